"""The template's parameters follow from the environment, and are refused where they cannot work."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from infra.parameters import OWN_WORK, judge_timeout, parameters
from pydantic import ValidationError
from tests.infra.conftest import ROOT

from wikikeeper.errors import Unusable
from wikikeeper.settings import PREFIX, Settings


def printed(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "DEPLOY_"))}
    return subprocess.run(
        [sys.executable, "-m", "infra.parameters", *arguments],
        cwd=ROOT, env=clean | {"PYTHONPATH": f"{ROOT / 'shared'}"} | environment,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_without_choices_every_parameter_is_the_templates_own_default(template: dict[str, Any]) -> None:
    defaults = {name: str(parameter["Default"]) for name, parameter in template["Parameters"].items()}

    assert yaml.safe_load(printed().stdout) == defaults


def test_what_is_chosen_is_passed_on_as_it_stands_and_an_empty_choice_is_none() -> None:
    done = printed(
        WIKIKEEPER_FETCH__USER_AGENT='o\'brien "the bot"; $HOME, *', WIKIKEEPER_GATE__LIMIT="", DEPLOY_LOG_DAYS="7"
    )
    chosen = yaml.safe_load(done.stdout)

    assert chosen["FetchUserAgent"] == 'o\'brien "the bot"; $HOME, *'
    assert chosen["GateLimit"] == "2"
    assert chosen["LogDays"] == "7"


def test_a_filled_in_file_is_read_as_the_set_up_script_reads_it(tmp_path: Path) -> None:
    example = (ROOT / "infra" / "settings.example.env").read_text()
    (tmp_path / "settings.env").write_text(f"{example}DEPLOY_LOG_DAYS=7\nWIKIKEEPER_LLAMA__MODEL=a = 'b'\n")

    chosen = yaml.safe_load(printed(str(tmp_path / "settings.env")).stdout)

    assert chosen["LogDays"] == "7"
    assert chosen["LlamaModel"] == "a = 'b'"
    assert chosen["FetchUserAgent"] == Settings().fetch.user_agent


def test_a_longer_call_makes_the_function_and_its_queue_wait_longer() -> None:
    settings = Settings(keeper={"timeout": 300})

    chosen = parameters(settings, {"WIKIKEEPER_KEEPER__TIMEOUT": "300"})

    assert int(chosen["JudgeTimeout"]) >= settings.judge_lease.total_seconds() + OWN_WORK
    assert int(chosen["JudgeVisibility"]) == 6 * int(chosen["JudgeTimeout"])


def test_settings_that_no_function_can_keep_are_refused_before_anything_is_deployed() -> None:
    done = printed(WIKIKEEPER_KEEPER__TIMEOUT="1200")

    assert (done.returncode, done.stdout) == (2, "")
    assert "a function may run for 900 s: lower keeper.timeout" in done.stderr


def test_a_token_that_is_soon_guessed_and_hooks_without_one_are_refused_and_not_shown() -> None:
    short = printed(WIKIKEEPER_WEB__TOKEN="hunter2")
    without = printed(WIKIKEEPER_HOOKS__SLACK_SECRET="hunter2-hunter2-hunter2")

    assert (short.returncode, without.returncode) == (2, 2)
    assert "web.token has 7 characters" in short.stderr
    assert "hooks.slack_secret is set and web.token is not" in without.stderr
    assert "hunter2" not in short.stderr + without.stderr


@pytest.mark.parametrize("bound", ["-1", "ten", "1.5"])
def test_a_bound_of_pages_at_once_that_is_no_number_is_refused(bound: str) -> None:
    done = printed(DEPLOY_PAGES_AT_ONCE=bound)

    assert (done.returncode, done.stdout) == (2, "")
    assert "DEPLOY_PAGES_AT_ONCE must be a whole number" in done.stderr


@pytest.mark.parametrize("hours", ["1", "169", "two", "73.5"])
def test_hours_that_no_alarm_can_look_back_over_are_refused(hours: str) -> None:
    done = printed(DEPLOY_QUIET_HOURS=hours)

    assert (done.returncode, done.stdout) == (2, "")
    assert "DEPLOY_QUIET_HOURS must be a whole number from 2 to 168" in done.stderr


def test_a_setting_that_is_wrong_is_named_without_its_value() -> None:
    done = printed(WIKIKEEPER_LLAMA__BASE_URL="https://me:hunter2@model.example")

    assert done.returncode == 2
    assert "llama.base_url" in done.stderr
    assert "hunter2" not in done.stderr


def test_the_judge_may_take_at_least_the_lease_of_a_claim() -> None:
    assert judge_timeout(Settings()) >= Settings().judge_lease.total_seconds()
    with pytest.raises((Unusable, ValidationError)):
        judge_timeout(Settings(gate={"patience": 86_400}))
