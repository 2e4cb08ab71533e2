"""The test after a deployment, with an aws and a curl that answer what a test wants."""

import os
import subprocess
from pathlib import Path

import pytest
from infra.modal_app import functions, tick
from tests.infra.conftest import ROOT

# aws lambda invoke writes the function's answer into the file that is named last.
FAKE_AWS = """#!/usr/bin/env bash
echo "$*" >>"$SAID"
[[ $1 == cloudformation ]] && { echo "$PAGES"; exit; }
echo '{"errorMessage": "Unusable: aws.bucket"}' >"${@: -1}"
[[ $* == *"--function-name wiki-$BROKEN "* ]] && echo Unhandled || echo None
"""
FAKE_CURL = """#!/usr/bin/env bash
echo "$*" >>"$SAID"
case $* in */login) STATUS=$LOGIN ;; */runs) STATUS=$RUNS ;; esac
printf '%s' "$STATUS"
"""
PAGES = "https://abc.lambda-url.us-east-1.on.aws/"


FAKE_PYTHON = """#!/usr/bin/env bash
echo "$*" >>"$SAID"
exit "${TICK:-0}"
"""


def smoke(folder: Path, where: str, **environment: str) -> tuple["subprocess.CompletedProcess[str]", list[str]]:
    for name, text in (("aws", FAKE_AWS), ("curl", FAKE_CURL), ("python", FAKE_PYTHON)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    said = folder / "said"
    said.touch()
    done = subprocess.run(
        [ROOT / "infra" / "smoke_test.sh", where],
        env=os.environ
        | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(folder / "python"), "SAID": str(said), "BROKEN": "", "PAGES": "", "LOGIN": "200", "RUNS": "303"}
        | environment,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    return done, said.read_text().splitlines()


def test_each_function_is_started_and_the_tick_is_tried(tmp_path: Path) -> None:
    done, said = smoke(tmp_path, "aws", DEPLOY_STACK="wiki")

    assert done.returncode == 0, done.stderr
    started = [line.split()[3] for line in said if line.startswith("lambda")]
    assert started == ["wiki-judge-result", "wiki-write-note", "wiki-reap-stale", "wiki-schedule-cycle"]
    assert "no pages: WIKIKEEPER_WEB__TOKEN is not set" in done.stdout


def test_pages_show_their_form_to_strangers_and_nothing_else(tmp_path: Path) -> None:
    done, said = smoke(tmp_path, "aws", DEPLOY_STACK="wiki", PAGES=PAGES)

    assert done.returncode == 0, done.stderr
    assert [line.split()[-1] for line in said[-2:]] == [f"{PAGES}login", f"{PAGES}runs"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"RUNS": "200"}, "runs answers 200 to a stranger; it must be 303"),
        ({"LOGIN": "502"}, "login answers 502 to a stranger; it must be 200"),
    ],
)
def test_pages_that_are_open_or_do_not_start_fail_the_deployment(
    tmp_path: Path, answers: dict[str, str], said: str
) -> None:
    done, _ = smoke(tmp_path, "aws", DEPLOY_STACK="wiki", PAGES=PAGES, **answers)

    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.parametrize("function", ["judge-result", "write-note", "reap-stale", "schedule-cycle"])
def test_a_function_that_fails_is_named_with_what_it_said(tmp_path: Path, function: str) -> None:
    done, _ = smoke(tmp_path, "aws", DEPLOY_STACK="wiki", BROKEN=function)

    assert done.returncode == 1
    assert f"wiki-{function} failed" in done.stderr
    assert "Unusable: aws.bucket" in done.stderr


def test_a_model_server_that_turns_strangers_away_is_well(tmp_path: Path) -> None:
    done, [asked] = smoke(tmp_path, "modal", WIKIKEEPER_LLAMA__BASE_URL="https://model.example/", STATUS="401")

    assert done.returncode == 0, done.stderr
    assert asked.endswith(" https://model.example/health")


def test_a_model_server_that_answers_strangers_is_not(tmp_path: Path) -> None:
    done, _ = smoke(tmp_path, "modal", WIKIKEEPER_LLAMA__BASE_URL="https://model.example", STATUS="200")

    assert done.returncode == 1
    assert "must be 401" in done.stderr


WELL = {"WIKIKEEPER_LLAMA__BASE_URL": "https://model.example", "STATUS": "401"}


def test_functions_on_modal_are_tried_by_their_tick(tmp_path: Path) -> None:
    done, [_, asked] = smoke(tmp_path, "modal", DEPLOY_TO="modal-functions", **WELL)

    assert done.returncode == 0, done.stderr
    assert asked == f'-c import modal; modal.Function.from_name("{functions.name}", "tick").remote()'
    assert tick.info().schedule is not None


def test_functions_on_modal_that_fail_fail_the_deployment(tmp_path: Path) -> None:
    done, _ = smoke(tmp_path, "modal", DEPLOY_TO="modal-functions", TICK="1", **WELL)

    assert done.returncode == 1


def test_before_the_address_is_known_it_says_where_to_put_it(tmp_path: Path) -> None:
    done, said = smoke(tmp_path, "modal", WIKIKEEPER_LLAMA__BASE_URL="")

    assert (done.returncode, said) == (0, [])
    assert "WIKIKEEPER_LLAMA__BASE_URL is not set yet" in done.stdout
