"""The set-up script, with a gh that writes down what it is asked for."""

import os
import subprocess
from pathlib import Path

import pytest
from infra.places import choices
from tests.infra.conftest import ROOT

SCRIPT = ROOT / "infra" / "setup_github.sh"
FAKE_GH = """#!/usr/bin/env bash
# What GitHub has stands in $GH_HAS as "variable NAME" and "secret NAME"; a set secret's value arrives by standard input.
if [[ $2 == list ]]; then
  sed -n "s/^$1 //p" "$GH_HAS"
  exit
fi
printf '%s' "$*" >>"$GH_LOG"
if [[ $1 == secret ]]; then
  printf ' <<< %s' "$(cat)" >>"$GH_LOG"
fi
printf '\\n' >>"$GH_LOG"
"""


class GitHub:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "gh").write_text(FAKE_GH)
        (folder / "gh").chmod(0o755)
        self.log, self.has = folder / "log", folder / "has"
        self.log.touch()
        self.has.touch()

    def set_up(self, settings: str, *options: str) -> "subprocess.CompletedProcess[str]":
        (self.folder / "settings.env").write_text(settings)
        return subprocess.run(
            [SCRIPT, self.folder / "settings.env", *options],
            env=os.environ
            | {"PATH": f"{self.folder}:{os.environ['PATH']}", "GH_LOG": str(self.log), "GH_HAS": str(self.has)},
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip

    def was_asked(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    return GitHub(tmp_path)


def test_the_example_as_it_stands_sets_nothing(github: GitHub) -> None:
    done = github.set_up((ROOT / "infra" / "settings.example.env").read_text(), "--apply")

    assert done.returncode == 0, done.stderr
    assert github.was_asked() == []


def test_a_dry_run_says_what_it_would_do_and_does_nothing(github: GitHub) -> None:
    done = github.set_up("DEPLOY_TO=aws modal\nWIKIKEEPER_LLAMA__API_KEY=hunter2\n")

    assert done.returncode == 0
    assert github.was_asked() == []
    assert "would run: gh variable set DEPLOY_TO --body aws\\ modal" in done.stdout
    assert "would run: gh secret set WIKIKEEPER_LLAMA__API_KEY" in done.stdout
    assert "nothing was done: add --apply" in done.stdout


def test_a_secret_is_never_shown_nor_on_a_command_line(github: GitHub) -> None:
    dry = github.set_up("MODAL_TOKEN_SECRET=hunter2\n")
    real = github.set_up("MODAL_TOKEN_SECRET=hunter2\n", "--apply")

    assert "hunter2" not in dry.stdout + dry.stderr + real.stdout + real.stderr
    assert github.was_asked() == ["secret set MODAL_TOKEN_SECRET <<< hunter2"]


def test_values_arrive_as_they_stand(github: GitHub) -> None:
    github.set_up('WIKIKEEPER_FETCH__USER_AGENT=me "o\'brien" $HOME * = `id`\r\n', "--apply")

    assert github.was_asked() == [
        "variable set WIKIKEEPER_FETCH__USER_AGENT --body me \"o'brien\" $HOME * = `id`"
    ]  # fmt: skip


def test_a_default_is_not_set_so_that_it_follows_later_versions(github: GitHub) -> None:
    github.set_up("WIKIKEEPER_GATE__LIMIT=2\nWIKIKEEPER_GATE__PATIENCE=61\n", "--apply")

    assert github.was_asked() == ["variable set WIKIKEEPER_GATE__PATIENCE --body 61"]


def test_a_variable_that_is_back_at_its_default_is_deleted(github: GitHub) -> None:
    github.has.write_text("variable WIKIKEEPER_GATE__LIMIT\nvariable SOMEBODY_ELSES\n")

    github.set_up("WIKIKEEPER_GATE__LIMIT=2\n", "--apply")

    assert github.was_asked() == ["variable delete WIKIKEEPER_GATE__LIMIT"]


def test_a_secret_that_was_left_empty_stays_and_one_that_is_missing_is_named(github: GitHub) -> None:
    github.has.write_text("secret WIKIKEEPER_LLAMA__API_KEY\n")

    done = github.set_up("", "--apply")

    assert github.was_asked() == []
    assert "not set: secret WIKIKEEPER_LLAMA__API_KEY" not in done.stdout
    assert "not set: secret MODAL_TOKEN_ID" in done.stdout


def test_an_environment_is_made_and_gets_everything_but_what_is_looked_at_before_it_is_entered(github: GitHub) -> None:
    settings = "DEPLOY_TO=aws\nDEPLOY_ARCHITECTURE=arm64\nDEPLOY_STACK=staging\nMODAL_TOKEN_ID=id\n"

    github.set_up(settings, "--environment", "staging", "--apply")

    assert github.was_asked() == [
        "api --method PUT --silent repos/{owner}/{repo}/environments/staging",
        "variable set DEPLOY_ARCHITECTURE --body arm64",
        "variable set DEPLOY_STACK --env staging --body staging",
        "variable set DEPLOY_TO --body aws",
        "secret set MODAL_TOKEN_ID --env staging <<< id",
    ]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("WIKIKEEPER_GATE__LIMITS=3\n", "line 1: there is no setting WIKIKEEPER_GATE__LIMITS"),
        ("DEPLOY_TO=aws\n# a comment\nhunter2\n", "line 3: not NAME=value"),
        ("export DEPLOY_TO=aws\n", "line 1: not NAME=value"),
    ],
)
def test_a_line_that_is_no_setting_stops_everything(github: GitHub, settings: str, complaint: str) -> None:
    done = github.set_up(settings, "--apply")

    assert done.returncode == 2
    assert complaint in done.stderr
    assert "hunter2" not in done.stderr
    assert github.was_asked() == []


def test_the_example_itself_is_not_taken_lest_a_key_be_committed(github: GitHub) -> None:
    done = subprocess.run(
        [SCRIPT, ROOT / "infra" / "settings.example.env"],
        env=os.environ | {"PATH": f"{github.folder}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert "copy" in done.stderr


def test_git_ignores_the_filled_in_file() -> None:
    assert "settings.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_script_knows_which_variables_jobs_look_at_before_they_enter_an_environment() -> None:
    workflow = (ROOT / ".github" / "workflows" / "deploy.yml").read_text()
    early = {
        choice.variable
        for choice in choices()
        for line in workflow.splitlines()
        if line.startswith(("    if:", "    runs-on:")) and f"vars.{choice.variable}" in line
    }

    assert f"whole_repository=' {' '.join(sorted(early, reverse=True))} '" in SCRIPT.read_text()
