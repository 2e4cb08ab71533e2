"""Functions that would have nothing to work with are not deployed to Modal."""

import os
import subprocess
import sys

from infra.modal_ready import missing
from tests.infra.conftest import ROOT

from wikikeeper.settings import PREFIX, Settings

WHOLE = {"aws": {"bucket": "b", "table": "t"}, "llama": {"base_url": "https://model.example"}}


def said(environment: dict[str, str], **settings: dict[str, str]) -> list[str]:
    return list(missing(Settings.model_validate(WHOLE | settings), environment))


def test_with_stores_and_a_model_server_nothing_is_missing() -> None:
    assert said({"DEPLOY_TO": "modal-functions", "DEPLOY_RULES": "ENABLED"}) == []


def test_stores_and_a_model_server_are_needed() -> None:
    [stores] = said({}, aws={})
    [model] = said({}, llama={})

    assert "WIKIKEEPER_AWS__BUCKET and WIKIKEEPER_AWS__TABLE" in stores
    assert "WIKIKEEPER_LLAMA__BASE_URL" in model


def test_a_server_of_the_keepers_own_is_one() -> None:
    assert said({}, llama={}, keeper={"base_url": "https://model.example"}) == []


def test_functions_on_lambda_must_rest_meanwhile() -> None:
    [rules] = said({"DEPLOY_TO": "aws modal-functions"})

    assert "DEPLOY_RULES=DISABLED" in rules
    assert said({"DEPLOY_TO": "aws modal-functions", "DEPLOY_RULES": "DISABLED"}) == []


def test_pages_need_a_token_that_nobody_guesses_and_hooks_need_the_pages() -> None:
    [short] = said({}, web={"token": "hunter2"})
    [without] = said({}, hooks={"github_secret": "0123456789abcdef"})

    assert "web.token has 7 characters" in short
    assert "hooks.github_secret is set and web.token is not" in without
    assert said({}, web={"token": "0123456789abcdef"}, hooks={"github_secret": "0123456789abcdef"}) == []


def test_all_that_is_missing_is_said_at_once_and_stops_the_deployment() -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "DEPLOY_"))}
    done = subprocess.run(
        [sys.executable, "-m", "infra.modal_ready"],
        cwd=ROOT, env=clean | {"PYTHONPATH": f"{ROOT / 'shared'}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 2
