"""Where else every setting and its default stands, derived from settings.py: template, deploy workflow, example file, README.

    python -m infra.places           compare, and say what differs (`make check`)
    python -m infra.places --write   bring the marked parts up to date (`make settings`)

The parts stand between two marks. They are written out, not read at run time, because CloudFormation, GitHub and people
need to see them; being compared as text, none can drift.
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from wikikeeper.settings import NESTED, PREFIX, Settings, load, markdown_table

ROOT = Path(__file__).resolve().parents[1]
STACK = "aws"
"""The group of settings that the stack fills itself, with its table, bucket and queues. On Modal a person fills it, but for
the queues: there are none there, commands are spawned."""
SECRETS_OF: Mapping[str, tuple[str, ...]] = {
    "ScheduleCycle": ("llama", "keeper", "searxng"),
    "JudgeResult": ("llama", "keeper"),
    "ReapStale": ("slack",),
    "Web": ("web", "hooks"),
}
"""Function -> the groups of settings whose secrets it needs; the others never see them. On Modal all share one Secret."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a person may set for a deployment."""

    variable: str
    """In the environment, and as a variable or secret on GitHub."""
    parameter: str | None
    """In the template; None: it has none."""
    default: str
    about: str
    kind: str = "String"
    """CloudFormation's type."""
    secret: bool = False


def _variable(group: str, name: str) -> str:
    return f"{PREFIX}{group}{NESTED}{name}".upper()


def _parameter(group: str, name: str) -> str:
    return "".join(word.title() for word in (group, *name.split("_")))


def _is_secret(field: FieldInfo) -> bool:
    # What is never shown by the settings themselves is none of a log's business either.
    return SecretStr.__name__ in str(field.annotation) or field.repr is False


def _as_text(value: object) -> str:
    """As one writes it in an environment: empty where there is none, whole numbers without a point."""
    match value:
        case None | ():
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case str() | int() | float():
            return str(value)
        case tuple() if all(isinstance(part, str) for part in value):
            return ",".join(value)
    raise TypeError(
        f"a default of {type(value).__name__} cannot stand in an environment: teach infra/places.py to write it"
    )


def _kind(value: object) -> str:
    return "Number" if isinstance(value, int | float) and not isinstance(value, bool) else "String"


def settings() -> Iterator[Choice]:
    """Every setting, but the queues: only the stack has any."""
    for group, field in Settings.model_fields.items():
        for name, setting in type(field.default).model_fields.items():
            if group == STACK and name.endswith("_queue"):
                continue
            default = getattr(field.default, name)
            yield Choice(
                _variable(group, name),
                None if group == STACK else _parameter(group, name),
                "" if _is_secret(setting) else _as_text(default),
                f"{group}.{name}: {' '.join((setting.description or '').split())}",
                kind=_kind(default),
                secret=_is_secret(setting),
            )


DEPLOYMENT = (
    Choice("DEPLOY_TO", None, "", "Where to: `aws`, `modal` (the GPU server), `modal-functions` (that and the functions); several apart by spaces."),
    Choice("DEPLOY_ROLE_ARN", None, "", "The role in your AWS account that trusts this repository."),
    Choice("DEPLOY_REGION", None, "us-east-1", "AWS region."),
    Choice("DEPLOY_STACK", None, "wikikeeper", "Name of the CloudFormation stack; another name is another installation."),
    Choice("DEPLOY_ARCHITECTURE", "Architecture", "x86_64", "`x86_64`, or `arm64`, which AWS sells for a fifth less."),
    Choice("DEPLOY_ALARM_EMAIL", "AlarmEmail", "", "Who is told of alarms. Empty: nobody; the topic is there to subscribe to."),
    Choice(
        "DEPLOY_QUIET_HOURS",
        "QuietHours",
        "73",
        "Hours without a cycle that ran before an alarm: a weekend and an hour, since topics may rest then. At most 168.",
        kind="Number",
    ),
    Choice(
        "DEPLOY_RULES",
        "Rules",
        "ENABLED",
        "`DISABLED`: the stack starts nothing by itself, while it rests or where the functions run on Modal.",
    ),
    Choice(
        "DEPLOY_PAGES_AT_ONCE",
        "PagesAtOnce",
        "10",
        "Requests to the pages that are answered at once: what strangers can cost. 0: no bound, for an account whose limit of functions leaves none to set aside.",
        kind="Number",
    ),
    Choice("DEPLOY_LOG_DAYS", "LogDays", "30", "Days that logs are kept.", kind="Number"),
    Choice("MODAL_ENVIRONMENT", None, "main", "Modal's own environment."),
    Choice("MODAL_TOKEN_ID", None, "", "From `modal token new`.", secret=True),
    Choice("MODAL_TOKEN_SECRET", None, "", "Its other half.", secret=True),
)  # fmt: skip
"""What a deployment needs beyond the settings of the product."""


def choices() -> tuple[Choice, ...]:
    return (*settings(), *DEPLOYMENT)


# -- the parts


def _parameters() -> Iterator[str]:
    for choice in choices():
        if choice.parameter is None:
            continue
        default = choice.default if choice.kind == "Number" else json.dumps(choice.default)
        hidden = ", NoEcho: true" if choice.secret else ""
        yield f"  {choice.parameter}: {{Type: {choice.kind}, Default: {default}{hidden}}}"


def _environment() -> Iterator[str]:
    """For all functions. Secrets go to those that need them."""
    for choice in settings():
        if choice.parameter is not None and not choice.secret:
            yield f"        {choice.variable}: !Ref {choice.parameter}"


def _secrets_of(function: str) -> Iterator[str]:
    """Raises LookupError for a secret of which nobody said who needs it."""
    decided = {group for groups in SECRETS_OF.values() for group in groups}
    for choice in settings():
        if not choice.secret or choice.parameter is None:
            continue
        group = choice.variable.removeprefix(PREFIX).partition(NESTED)[0].lower()
        if group not in decided:
            raise LookupError(f"{choice.variable}: say in SECRETS_OF of infra/places.py which functions need its group")
        if group in SECRETS_OF[function]:
            yield f"          {choice.variable}: !Ref {choice.parameter}"


def _workflow_settings() -> Iterator[str]:
    for choice in choices():
        if choice.secret:
            continue
        default = choice.default.replace("'", "''")
        yield f"          {choice.variable}: ${{{{ vars.{choice.variable} || '{default}' }}}}"


def _workflow_secrets() -> Iterator[str]:
    """Of the product. Never with a default: a key that is missing must be missed."""
    for choice in settings():
        if choice.secret:
            yield f"          {choice.variable}: ${{{{ secrets.{choice.variable} }}}}"


def _strays(text: str) -> Iterator[str]:
    """Defaults in a workflow that are not those of `choices`, wherever they stand."""
    defaults = {choice.variable: choice.default for choice in choices() if not choice.secret}
    for variable, default in re.findall(r"vars\.(\w+) \|\| '((?:[^']|'')*)'", text):
        if defaults.get(variable) != default.replace("''", "'"):
            yield f"- {variable} || '{default}': it is {defaults.get(variable)!r}"


def _example(*, secret: bool) -> Iterator[str]:
    for choice in choices():
        if choice.secret is secret:
            yield f"# {choice.about}"
            yield f"{choice.variable}={choice.default}"


def _readme() -> Iterator[str]:
    yield from markdown_table().splitlines()


PARTS: Mapping[str, tuple[tuple[str, Callable[[], Iterator[str]]], ...]] = {
    "infra/template.yaml": (
        ("parameters", _parameters),
        ("environment", _environment),
        *((f"secrets of {function}", partial(_secrets_of, function)) for function in SECRETS_OF),
    ),
    ".github/workflows/deploy.yml": (("settings", _workflow_settings), ("secrets", _workflow_secrets)),
    "infra/settings.example.env": (
        ("variables", lambda: _example(secret=False)),
        ("secrets", lambda: _example(secret=True)),
    ),
    "README.md": (("settings", _readme),),
}
"""File -> the marks in it and what stands between them."""


MARKS = "# {}: made by `make settings`", "# end of {}"
MARKS_OF_MARKDOWN = "<!-- {}: made by `make readme` -->", "<!-- end of {} -->"


def renewed(file: str, text: str) -> str:
    """The text of a file with its parts as they should be. Raises LookupError where a mark is missing."""
    for name, part in PARTS[file]:
        begin, end = (mark.format(name) for mark in (MARKS_OF_MARKDOWN if file.endswith(".md") else MARKS))
        lines: list[str] = []
        parts, inside = 0, False
        for line in text.splitlines():
            inside = inside and line.strip() != end
            if not inside:
                lines.append(line)
            if line.strip() == begin:
                lines.extend(part())
                parts, inside = parts + 1, True
        if inside or not parts:
            raise LookupError(f"{file}: its {name} do not stand between two marks")
        text = "\n".join(lines) + "\n"
    return text


def differing() -> dict[str, list[str]]:
    """File -> the lines that are missing from it or stand in it wrongly."""
    found: dict[str, list[str]] = {}
    for file in PARTS:
        text = (ROOT / file).read_text("utf-8")
        wanted = renewed(file, text)
        there, should = text.splitlines(), wanted.splitlines()
        lines = [
            *(f"- {line.strip()}" for line in there if line not in should),
            *(f"+ {line.strip()}" for line in should if line not in there),
            *(_strays(wanted) if file.endswith(".yml") else ()),
        ]
        # Lines in another order are in neither list.
        if lines or wanted != text:
            found[file] = lines or ["the lines are there, in another order or more than once"]
    if wrong := list(_modal()):
        found["infra/modal_app.py"] = wrong
    return found


def _modal() -> Iterator[str]:
    """The Modal app reads settings.py itself; what it could get wrong is which settings it hands on, and their values."""
    from infra import modal_app  # noqa: PLC0415 - takes a second that `--write` does not need

    handed_on = set(modal_app.SETTING_NAMES)
    yield from (f"+ {choice.variable}" for choice in settings() if choice.variable not in handed_on)
    with tempfile.TemporaryDirectory() as nowhere:  # without a wikikeeper.toml
        if load(Path(nowhere)).model_dump() != modal_app.SETTINGS.model_dump():
            yield "- SETTINGS: they are not what settings.py and the environment say"


def main(arguments: list[str]) -> int:
    try:
        if arguments == ["--write"]:
            # All of them before any is written: half a change would be worse than none.
            texts = {ROOT / file: renewed(file, (ROOT / file).read_text("utf-8")) for file in PARTS}
            for path, text in texts.items():
                path.write_text(text, "utf-8")
            return 0
        wrong = differing()
    except (LookupError, TypeError) as error:
        print(error.args[0], file=sys.stderr)
        return 2
    for file, lines in wrong.items():
        said = f"{file} differs from settings.py or infra/places.py; `make settings` mends its marked parts:"
        print(said, *lines, sep="\n  ", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
