"""What infra/template.yaml says of how messages come to the functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse
from tests.infra.stack_parts import FUNCTIONS, QUEUE_OF, WORKERS, resolved

TEMPLATE = Path(__file__).parents[2] / "infra" / "template.yaml"


@dataclass(frozen=True)
class Delivery:
    batch: int
    """Most messages of one invocation."""
    visibility: timedelta
    """Until a message that was received and not deleted comes again."""
    timeout: timedelta
    """Of the function."""
    receipts: int
    """Then it is a dead letter."""


def _read() -> dict[str, Any]:
    template: dict[str, Any] = yaml_parse(TEMPLATE.read_text("utf-8"))
    return template


def _timeouts() -> dict[str, int]:
    template = _read()
    return {
        deployed.replace("-", "_"): resolved(template, template["Resources"][name]["Properties"]["Timeout"])
        for name, deployed in FUNCTIONS.items()
    }


def _deliveries() -> dict[str, Delivery]:
    template = _read()
    found = {}
    for name, deployed in WORKERS.items():
        function = template["Resources"][name]["Properties"]
        source = function["Events"]["Commands"]["Properties"]
        queue = template["Resources"][f"{QUEUE_OF[name]}Queue"]["Properties"]
        found[deployed.replace("-", "_")] = Delivery(
            batch=resolved(template, source["BatchSize"]),
            visibility=timedelta(seconds=resolved(template, queue["VisibilityTimeout"])),
            timeout=timedelta(seconds=resolved(template, function["Timeout"])),
            receipts=resolved(template, queue["RedrivePolicy"]["maxReceiveCount"]),
        )
    return found


DELIVERIES: Mapping[str, Delivery] = _deliveries()
"""By function that works on commands."""
TIMEOUTS: Mapping[str, int] = _timeouts()
"""Seconds that each function may take."""
