"""Rules for the workflows that linters don't know, and what the documentation says about the trust they need."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.infra.conftest import ROOT

from infra import modal_app

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEPLOY = ROOT / ".github" / "workflows" / "deploy.yml"


def steps(file: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(file.read_text())["jobs"].values()
    return [step for job in jobs for step in job.get("steps", [])]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_has_no_rights_but_those_that_a_job_names(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())

    assert workflow["permissions"] == {}
    assert all("permissions" in job for job in workflow["jobs"].values())


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_with_the_version_beside_it(file: Path) -> None:
    uses = re.findall(r"uses: (.*)", file.read_text())

    assert [use for use in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+|\./[\w./-]+( #.*)?", use)] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_no_command_is_put_together_from_expressions(file: Path) -> None:
    assert [step["run"] for step in steps(file) if "${{" in step.get("run", "")] == []


def test_no_secret_has_a_default_and_none_is_seen_by_a_whole_job() -> None:
    text = DEPLOY.read_text()
    workflow = yaml.safe_load(text)

    assert not re.search(r"secrets\.\w+\s*\|\|", text)
    assert "env" not in workflow
    assert not [name for name, job in workflow["jobs"].items() if "env" in job]


def test_main_is_deployed_only_after_its_tests_and_to_nowhere_unless_told() -> None:
    workflow = yaml.safe_load(DEPLOY.read_text())

    assert workflow[True] == {  # YAML 1.1 reads "on" as true
        "push": {"branches": ["main"]},
        "workflow_dispatch": workflow[True]["workflow_dispatch"],
    }
    for name in ("modal", "aws"):
        job = workflow["jobs"][name]
        assert job["needs"] == "ci"
        assert job["if"] == f"contains(vars.DEPLOY_TO, '{name}')"
        assert job["environment"] == "${{ inputs.environment || 'production' }}"
        assert job["steps"][-1]["name"] == "Smoke test"


def test_weights_are_on_modal_before_the_server_that_reads_them_and_settings_are_looked_at_before_the_functions() -> (
    None
):
    [deploy] = [step["run"] for step in steps(DEPLOY) if "modal deploy" in step.get("run", "")]

    assert [line.strip() for line in deploy.splitlines()] == [
        ".venv/bin/modal run infra/modal_app.py::fetch_weights",
        ".venv/bin/modal deploy infra/modal_app.py",
        "if [[ $DEPLOY_TO == *modal-functions* ]]; then",
        ".venv/bin/python -m infra.modal_ready",
        ".venv/bin/modal deploy infra/modal_app.py::functions",
        "fi",
    ]


@pytest.mark.parametrize(
    "named",
    ["run infra/modal_app.py::fetch_weights", "deploy infra/modal_app.py", "deploy infra/modal_app.py::functions"],
)
def test_modal_finds_what_the_workflow_and_the_documentation_name(named: str, tmp_path: Path) -> None:
    """It looks for the app before it looks for an account, which is all that is missing here."""
    assert named in DEPLOY.read_text()
    assert named in (ROOT / "docs" / "modal.md").read_text()
    done = subprocess.run(
        [Path(sys.executable).with_name("modal"), *named.split()],
        cwd=ROOT, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert "Token missing" in done.stderr + done.stdout


def test_what_is_shipped_is_tested_on_the_python_it_is_shipped_with() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    dockerfile = (ROOT / "infra" / "Dockerfile").read_text()
    [shipped] = re.findall(r"^ARG BASE=\S+/python:([\d.]+)$", dockerfile, re.MULTILINE)
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")

    assert shipped == modal_app.PYTHON
    assert jobs["ci"]["strategy"]["matrix"]["python"] == [oldest, shipped]
    [python] = [
        step["with"]["python-version"] for step in jobs["lambda"]["steps"] if "setup-python" in step.get("uses", "")
    ]
    assert python == shipped


def test_aws_is_shown_who_asks_instead_of_a_stored_key() -> None:
    text = DEPLOY.read_text()

    assert yaml.safe_load(text)["jobs"]["aws"]["permissions"]["id-token"] == "write"
    assert "role-to-assume: ${{ vars.DEPLOY_ROLE_ARN }}" in text
    assert not re.search("AWS_(SECRET_)?ACCESS_KEY", text)


def test_the_trust_policy_names_one_repository_and_environment_in_both_forms_of_the_subject() -> None:
    guide = (ROOT / "docs" / "deploy.md").read_text()
    [trust] = [
        policy
        for block in re.findall(r"```json\n(.*?)```", guide, re.DOTALL)
        if "sts:AssumeRoleWithWebIdentity" in block and (policy := json.loads(block))
    ]
    condition = trust["Statement"][0]["Condition"]

    # StringEquals: with StringLike and a star, any branch, fork or repository with a like name would be let in.
    assert condition == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": [
                "repo:OWNER/REPO:environment:production",
                "repo:OWNER@OWNER_ID/REPO@REPO_ID:environment:production",
            ],
        }
    }


def test_both_kinds_of_machine_build_every_image() -> None:
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["images"]["strategy"][
        "matrix"
    ]

    assert matrix["function"] == ["schedule-cycle", "judge-result", "write-note", "reap-stale", "web"]
    assert matrix["runner"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]
