"""The template's parameters, for `sam deploy`: `python -m infra.parameters [infra/settings.env] > parameters.yaml`.

From the environment, or from a filled-in copy of settings.example.env beside it. Reads what the settings read, checks it as
they do before anything is deployed, and adds what follows from it: how long the judge may take, and how long its queue hides
a message.
"""

import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from infra.places import choices

from wikikeeper.errors import Unusable
from wikikeeper.policy.web_access import start_fault
from wikikeeper.settings import Settings, load

LAMBDA_LONGEST = 900
"""Seconds that Lambda lets a function run."""
OWN_WORK = 30
"""Seconds beyond the lease of a claim, for a cold start and for sending what follows."""
QUIET_HOURS = range(2, 169)
"""What alarms can look back over: CloudWatch allows a week, and two skipped cycles need two hours."""
VISIBILITY = 6
"""Times the function's timeout: what AWS advises for a queue that a function reads, since polling and retries add up."""


def judge_timeout(settings: Settings) -> int:
    """Seconds for judge-result, in full minutes. Raises Unusable where no function may run that long."""
    needed = math.ceil((settings.judge_lease.total_seconds() + OWN_WORK) / 60) * 60
    if needed > LAMBDA_LONGEST:
        raise Unusable(
            f"judging one page may take {settings.judge_lease.total_seconds():.0f} s with these settings, and a function "
            f"may run for {LAMBDA_LONGEST} s: lower keeper.timeout, gate.patience, fetch.deadline or extraction.seconds"
        )
    return needed


def pages_fault(settings: Settings) -> str | None:
    """Why the function behind the URL would not start, or nobody would answer hooks; None: all is well."""
    if settings.web.token is not None:
        return start_fault("the URL of the pages", settings.web.token.get_secret_value())
    ways = [way for way in ("cycle", "github", "slack") if getattr(settings.hooks, f"{way}_secret") is not None]
    if ways:
        return f"hooks.{ways[0]}_secret is set and web.token is not: without a token there is no URL, for hooks neither"
    return None


def parameters(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Every parameter of the template with its value; what is unset or empty has its default.

    Raises Unusable for what the stack could not be made of.
    """
    chosen = {
        choice.parameter: environment.get(choice.variable) or choice.default
        for choice in choices()
        if choice.parameter is not None
    }
    if chosen["QuietHours"] not in map(str, QUIET_HOURS):
        raise Unusable(f"DEPLOY_QUIET_HOURS must be a whole number from {QUIET_HOURS[0]} to {QUIET_HOURS[-1]}")
    if not chosen["PagesAtOnce"].isdecimal():
        raise Unusable("DEPLOY_PAGES_AT_ONCE must be a whole number; 0 sets no bound")
    if (fault := pages_fault(settings)) is not None:
        raise Unusable(fault)
    timeout = judge_timeout(settings)
    return chosen | {"JudgeTimeout": str(timeout), "JudgeVisibility": str(VISIBILITY * timeout)}


def filled_in(text: str) -> dict[str, str]:
    """The lines NAME=value of a filled-in file, as they stand; what setup_github.sh makes of the same file."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: value for name, separator, value in (line.partition("=") for line in lines) if separator}


def main(arguments: list[str]) -> int:
    for file in arguments:
        os.environ.update(filled_in(Path(file).read_text("utf-8")))
    with tempfile.TemporaryDirectory() as nowhere:  # no wikikeeper.toml: in the cloud the environment is all there is
        try:
            found = parameters(load(Path(nowhere)), os.environ)
        except Unusable as error:
            print(error, file=sys.stderr)
            return 2
    print(json.dumps(found, indent=1))  # JSON is YAML, and needs no thought about quoting
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
