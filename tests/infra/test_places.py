"""One list of settings, from settings.py; every place that repeats it is compared, and one default amiss anywhere shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from infra.places import PARTS, STACK, choices, renewed, settings
from tests.infra.conftest import ROOT

from wikikeeper.settings import NESTED, PREFIX, Settings

DEFAULTS = "shared/wikikeeper/setting_groups.py"
WITHOUT_SETTINGS = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "DEPLOY_"))}


def every_setting() -> list[str]:
    return [
        f"{PREFIX}{group}{NESTED}{name}".upper()
        for group, field in Settings.model_fields.items()
        for name in type(field.default).model_fields
    ]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project, as far as `make check` needs it to compare settings."""
    for folder in ("infra", "shared", ".github"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def compared(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """What `make check` runs, in a copy of the project."""
    return subprocess.run(
        [sys.executable, "-m", "infra.places", *arguments],
        cwd=root, env=WITHOUT_SETTINGS | {"PYTHONPATH": f"{root / 'shared'}{os.pathsep}{root}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_check_compares_the_places() -> None:
    makefile = (ROOT / "Makefile").read_text()

    assert "-m infra.places" in makefile.partition("\ncheck:")[2].partition("\n\n")[0]


def test_the_project_as_it_is_agrees_with_itself(copy: Path) -> None:
    done = compared(copy)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        (DEFAULTS, "keep_threshold: Share = 0.6", "keep_threshold: Share = 0.7"),
        ("infra/template.yaml", "ResearchKeepThreshold: {Type: Number, Default: 0.6}",
         "ResearchKeepThreshold: {Type: Number, Default: 0.7}"),
        ("infra/template.yaml", "        WIKIKEEPER_GATE__LIMIT: !Ref GateLimit\n", ""),
        ("infra/template.yaml", "          WIKIKEEPER_SEARXNG__URL: !Ref SearxngUrl\n", ""),
        (".github/workflows/deploy.yml", "vars.WIKIKEEPER_GATE__LIMIT || '2'", "vars.WIKIKEEPER_GATE__LIMIT || '3'"),
        (".github/workflows/deploy.yml", "  DEPLOY_STACK: ${{ vars.DEPLOY_STACK || 'wikikeeper' }}\n      - name: Smoke",
         "  DEPLOY_STACK: ${{ vars.DEPLOY_STACK || 'wiki' }}\n      - name: Smoke"),
        (".github/workflows/deploy.yml", "secrets.WIKIKEEPER_LLAMA__API_KEY }}",
         "secrets.WIKIKEEPER_LLAMA__API_KEY || 'changeme' }}"),
        ("infra/settings.example.env", "WIKIKEEPER_KEEPER__TIMEOUT=120", "WIKIKEEPER_KEEPER__TIMEOUT=60"),
        ("infra/settings.example.env", "WIKIKEEPER_SEARXNG__URL=\n", ""),
        ("README.md", "| `WIKIKEEPER_FETCH__DEADLINE` | 20.0 |", "| `WIKIKEEPER_FETCH__DEADLINE` | 30.0 |"),
        ("infra/modal_app.py", "    for name in type(field.default).model_fields\n",
         "    for name in type(field.default).model_fields if name != 'limit'\n"),
        ("infra/modal_app.py", "SETTINGS = load(HERE)", "SETTINGS = Settings(gate={'limit': 3})"),
    ],
    ids=["the groups", "template default", "template environment", "template secret", "workflow default", "workflow default of a step",
         "workflow secret", "example default", "example secret", "README", "Modal variable", "Modal value"],
)  # fmt: skip
def test_one_default_amiss_in_one_place_makes_check_fail(copy: Path, file: str, before: str, after: str) -> None:
    path = copy / file
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")

    done = compared(copy)

    assert done.returncode == 1
    amiss = re.findall(r"^(\S+) differs", done.stderr, re.MULTILINE)
    assert amiss == ([file] if file != DEFAULTS else list(PARTS))


def test_a_new_setting_is_missed_everywhere(copy: Path) -> None:
    path = copy / DEFAULTS
    text = path.read_text("utf-8")
    path.write_text(text.replace("    limit: int = Field(", "    spare: int = 7\n    limit: int = Field(", 1), "utf-8")

    assert re.findall(r"^(\S+) differs", compared(copy).stderr, re.MULTILINE) == list(PARTS)


NEW_GROUP = '''class Spare(Group):
    limit: int = 3
    """Recovery calls."""
    cooldown: Seconds = 21_600
    """Seconds."""
    quietly: bool = False
    """Whether."""
    lanes: tuple[str, ...] = ("keeper", "author")
    """Which."""
    note: str = "it's so"
    """What."""
    token: SecretStr | None = None
    """A key."""


class Host(Group):
'''


def with_new_group(root: Path) -> None:
    groups, path = root / DEFAULTS, root / "shared" / "wikikeeper" / "settings.py"
    groups.write_text(groups.read_text("utf-8").replace("class Host(Group):\n", NEW_GROUP, 1), "utf-8")
    text = path.read_text("utf-8").replace("    Host,\n", "    Host,\n    Spare,\n", 1)
    path.write_text(
        text.replace("    host: Host = Host()\n", "    host: Host = Host()\n    spare: Spare = Spare()\n"), "utf-8"
    )


def decided(root: Path) -> None:
    """Which functions need the new key."""
    path = root / "infra" / "places.py"
    text = path.read_text("utf-8")
    assert '"JudgeResult": ("llama", "keeper")' in text
    path.write_text(
        text.replace('"JudgeResult": ("llama", "keeper")', '"JudgeResult": ("llama", "keeper", "spare")'), "utf-8"
    )


def test_new_settings_are_brought_to_every_place_by_one_command(copy: Path) -> None:
    with_new_group(copy)
    decided(copy)

    assert compared(copy, "--write").returncode == 0
    done = compared(copy)

    assert (done.returncode, done.stderr) == (0, "")
    template = (copy / "infra" / "template.yaml").read_text("utf-8")
    assert "  SpareCooldown: {Type: Number, Default: 21600}\n" in template
    assert '  SpareQuietly: {Type: String, Default: "false"}\n' in template
    assert '  SpareLanes: {Type: String, Default: "keeper,author"}\n' in template
    assert "        WIKIKEEPER_SPARE__LIMIT: !Ref SpareLimit\n" in template
    assert template.count("WIKIKEEPER_SPARE__TOKEN: !Ref SpareToken\n          # end of secrets of JudgeResult\n") == 1
    workflow = (copy / ".github" / "workflows" / "deploy.yml").read_text("utf-8")
    assert workflow.count("WIKIKEEPER_SPARE__NOTE: ${{ vars.WIKIKEEPER_SPARE__NOTE || 'it''s so' }}\n") == 2
    assert workflow.count("WIKIKEEPER_SPARE__TOKEN: ${{ secrets.WIKIKEEPER_SPARE__TOKEN }}\n") == 2
    example = (copy / "infra" / "settings.example.env").read_text("utf-8")
    assert "\nWIKIKEEPER_SPARE__COOLDOWN=21600\n" in example
    assert "\nWIKIKEEPER_SPARE__TOKEN=\n" in example.partition("# secrets:")[2]


def test_a_new_key_of_which_nobody_said_who_needs_it_is_brought_nowhere(copy: Path) -> None:
    with_new_group(copy)
    before = {file: (copy / file).read_text("utf-8") for file in PARTS}

    done = compared(copy, "--write")

    assert done.returncode == 2
    assert "WIKIKEEPER_SPARE__TOKEN: say in SECRETS_OF of infra/places.py which functions need its group" in done.stderr
    assert {file: (copy / file).read_text("utf-8") for file in PARTS} == before


def test_a_default_that_no_environment_can_hold_is_named_by_its_type(copy: Path) -> None:
    path = copy / DEFAULTS
    text = path.read_text("utf-8")
    path.write_text(
        text.replace("    limit: int = Field(", "    shares: dict[str, int] = {'a': 1}\n    limit: int = Field(", 1),
        "utf-8",
    )

    done = compared(copy)

    assert done.returncode == 2
    assert "a default of dict cannot stand in an environment" in done.stderr


def test_make_settings_mends_what_check_finds() -> None:
    for file in PARTS:
        text = (ROOT / file).read_text("utf-8")
        spoilt = text.replace("_GATE__LIMIT", "_GATE__CEILING")

        assert spoilt != text or file == "README.md"
        assert renewed(file, spoilt) == text


def test_a_file_that_lost_its_marks_is_named() -> None:
    with pytest.raises(LookupError, match="its parameters"):
        renewed("infra/template.yaml", "Parameters:\n")


def test_every_setting_can_be_chosen_for_a_deployment_but_the_stacks_own_queues() -> None:
    """On Modal there are no queues: commands are spawned, or lie on a shelf until they are due."""
    left_out = set(every_setting()) - {choice.variable for choice in settings()}

    assert left_out == {name for name in every_setting() if name.endswith("_QUEUE")}


SECRETS_OF_PAGES = {
    "WIKIKEEPER_WEB__TOKEN",
    *(f"WIKIKEEPER_HOOKS__{way}_{kind}" for way in ("CYCLE", "GITHUB", "SLACK") for kind in ("SECRET", "OLD_SECRET")),
}


def test_keys_and_what_may_hold_a_password_are_secrets() -> None:
    assert {choice.variable for choice in choices() if choice.secret} == {
        "WIKIKEEPER_LLAMA__API_KEY", "WIKIKEEPER_LLAMA__PROXY_KEY", "WIKIKEEPER_LLAMA__PROXY_SECRET",
        "WIKIKEEPER_KEEPER__API_KEY", "WIKIKEEPER_SEARXNG__URL", "MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET",
        "WIKIKEEPER_SLACK__WEBHOOK_URL", *SECRETS_OF_PAGES,
    }  # fmt: skip


def test_the_template_hides_secrets_and_gives_none_a_default(template: dict[str, Any]) -> None:
    parameters = template["Parameters"]

    for choice in choices():
        if choice.parameter is not None:
            assert parameters[choice.parameter].get("NoEcho", False) is choice.secret, choice.parameter
            if choice.secret:
                assert parameters[choice.parameter]["Default"] == ""


def functions(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        name: resource["Properties"]["Environment"]["Variables"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function"
    }


def test_every_function_gets_every_setting_and_only_from_its_parameter(template: dict[str, Any]) -> None:
    parameters = {choice.variable: choice.parameter for choice in settings() if choice.parameter is not None}
    secrets = {choice.variable for choice in settings() if choice.secret}

    for environment in functions(template).values():
        given = {name: value for name, value in environment.items() if name in parameters}
        assert parameters.keys() - given.keys() <= secrets
        assert given == {name: {"Ref": parameters[name]} for name in given}


def test_the_stack_tells_functions_the_names_of_what_it_made(template: dict[str, Any]) -> None:
    made = {name for name in every_setting() if name.startswith(f"{PREFIX}{STACK.upper()}{NESTED}")}
    # Another server than AWS is for tests.
    expected = made - {"WIKIKEEPER_AWS__ENDPOINT_URL"}

    for environment in functions(template).values():
        given = {name: value["Ref"] for name, value in environment.items() if name in made}
        assert given.keys() == expected
        assert all(template["Resources"][resource]["Type"] in {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue"}
                   for resource in given.values())  # fmt: skip


def test_secrets_reach_only_functions_that_ask_the_servers_they_are_for(template: dict[str, Any]) -> None:
    secrets = {choice.variable for choice in settings() if choice.secret}
    keys = {name for name in secrets if name.startswith(("WIKIKEEPER_LLAMA__", "WIKIKEEPER_KEEPER__"))}

    assert {name: environment.keys() & secrets for name, environment in functions(template).items()} == {
        "ScheduleCycle": keys | {"WIKIKEEPER_SEARXNG__URL"}, "JudgeResult": keys, "WriteNote": set(),
        "ReapStale": {"WIKIKEEPER_SLACK__WEBHOOK_URL"}, "Web": SECRETS_OF_PAGES,
    }  # fmt: skip


def test_the_environment_of_a_function_is_not_larger_than_lambda_allows(template: dict[str, Any]) -> None:
    """4 KB for names and values together, of which addresses and keys that people choose need some."""
    defaults = {choice.parameter: choice.default for choice in choices()}
    for environment in functions(template).values():
        size = sum(
            len(name) + (len(defaults.get(value["Ref"], "x" * 90)) if isinstance(value, dict) else len(value))
            for name, value in environment.items()
        )
        assert size < 3000


def workflow() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "deploy.yml").read_text())
    return loaded


@pytest.mark.parametrize("job", ["modal", "aws"])
def test_both_deployments_see_every_setting(job: str) -> None:
    [seen] = [
        step["env"]
        for step in workflow()["jobs"][job]["steps"]
        if "WIKIKEEPER_GATE__LIMIT" in step.get("env", {})
    ]  # fmt: skip

    for choice in settings():
        wanted = (
            f"${{{{ secrets.{choice.variable} }}}}"
            if choice.secret
            else f"${{{{ vars.{choice.variable} || '{choice.default}' }}}}"
        )
        assert seen[choice.variable] == wanted
