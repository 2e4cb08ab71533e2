"""Reading a transformed template: its resources, roles and policies."""

import json
from typing import Any

WORKERS = {
    "ScheduleCycle": "schedule-cycle",
    "JudgeResult": "judge-result",
    "WriteNote": "write-note",
    "ReapStale": "reap-stale",
}
"""Those that work on commands, and the names they are deployed under."""
FUNCTIONS = {**WORKERS, "Web": "web"}
QUEUE_OF = {"ScheduleCycle": "Schedule", "JudgeResult": "Judge", "WriteNote": "Note", "ReapStale": "Reap"}


def of_type(template: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {
        name: resource["Properties"] for name, resource in template["Resources"].items() if resource["Type"] == kind
    }


def resolved(template: dict[str, Any], value: object) -> int:
    """A value that may be a parameter, at its default."""
    return int(template["Parameters"][value["Ref"]]["Default"] if isinstance(value, dict) else str(value))


def statements(template: dict[str, Any], role: str) -> list[dict[str, Any]]:
    policies = template["Resources"][role]["Properties"]["Policies"]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def allowed(template: dict[str, Any], role: str) -> dict[str, set[str]]:
    """Action -> on what, as text."""
    found: dict[str, set[str]] = {}
    for statement in statements(template, role):
        for action in as_list(statement["Action"]):
            found.setdefault(action, set()).update(_named(resource) for resource in as_list(statement["Resource"]))
    return found


def _named(resource: object) -> str:
    match resource:
        case {"Fn::GetAtt": [name, "Arn"]}:
            return str(name)
        case {"Fn::Sub": text}:
            return str(text)
        case _:
            return json.dumps(resource)


def refuses_plain_http(policy: dict[str, Any], action: str) -> bool:
    return any(
        (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", action)
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in policy["PolicyDocument"]["Statement"]
    )
