"""Slack's hook: the address verified, events acknowledged, one effect for all copies of a reaction."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.web.hook_world import HookWorld, request, slack_headers
from tests.workflows.world import open_world

from wikikeeper.policy.webhooks import github_fault, slack_fault
from wikikeeper.settings import Hooks

DATA = Path(os.environ.get("WIKIKEEPER_DATA", Path(__file__).parents[3] / "shared" / "data")) / "08_slack"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no events of Slack in {DATA} (WIKIKEEPER_DATA)")


def reaction(**fields: object) -> dict[str, Any]:
    item = {"type": "message", "channel": "C0001", "ts": "1700000000.000100"}
    event = {"type": "reaction_added", "user": "U0001", "reaction": "eyes", "item": item, "event_ts": "1700000001.0001"}
    return {"type": "event_callback", "team_id": "T0001", "event_id": "Ev0001", "event": event | fields}


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookWorld]:
    with open_world(tmp_path) as world:
        yield HookWorld(world, bot_user="U0BOT")


def test_the_address_is_verified_by_giving_the_challenge_back(hooks: HookWorld) -> None:
    answer = hooks.slack({"type": "url_verification", "token": "old-and-unused", "challenge": "abc"})

    assert (answer.status_code, answer.json()) == (200, {"challenge": "abc"})
    assert answer.headers["content-type"] == "application/json"


def test_a_reaction_to_a_message_is_passed_on(hooks: HookWorld) -> None:
    answer = hooks.slack(reaction())

    assert answer.status_code == 202
    [passed] = hooks.reactions
    assert passed.model_dump(exclude={"key"}) == {
        "added": True,
        "team": "T0001",
        "channel": "C0001",
        "message": "1700000000.000100",
        "user": "U0001",
        "reaction": "eyes",
    }


def test_copies_under_other_event_ids_and_retries_have_one_effect(hooks: HookWorld) -> None:
    first = hooks.slack(reaction())
    copy = hooks.slack(reaction() | {"event_id": "Ev0002"})
    retry = hooks.slack(reaction(), {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"})

    assert first.json() == copy.json() == retry.json()
    assert len(hooks.reactions) == 1


def test_a_retry_of_what_failed_with_us_is_worked_on(hooks: HookWorld) -> None:
    hooks.failures = 1
    assert hooks.slack(reaction()).status_code == 503

    assert hooks.slack(reaction(), {"x-slack-retry-num": "1"}).status_code == 202
    assert len(hooks.reactions) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"user": "U0002"},
        {"reaction": "tada"},
        {"event_ts": "1700000002.0001"},
        {"type": "reaction_removed"},
        {"item": {"type": "message", "channel": "C0002", "ts": "1700000000.000100"}},
        {"item": {"type": "message", "channel": "C0001", "ts": "1700000000.000200"}},
    ],
)
def test_another_reaction_is_another(hooks: HookWorld, other: dict[str, object]) -> None:
    hooks.slack(reaction())
    hooks.slack(reaction(**other))

    assert len({each.key for each in hooks.reactions}) == 2


@pytest.mark.parametrize(
    "content",
    [
        reaction(user="U0BOT"),
        reaction(user="U0APP") | {"authorizations": [{"user_id": "U0APP", "is_bot": True}]},
        reaction(item={"type": "file", "file": "F1"}),
        reaction(item={"type": "message", "channel": "C0001"}),
        reaction(type="app_mention", text="hello"),
        {"type": "app_rate_limited", "minute_rate_limited": 1},
        {"type": "event_callback", "event": {"type": "app_uninstalled"}},
    ],
)
def test_what_no_person_did_to_a_message_is_acknowledged_and_starts_nothing(hooks: HookWorld, content: object) -> None:
    answer = hooks.slack(content)

    assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
    assert hooks.reactions == []


def test_copies_at_once_are_all_acknowledged(hooks: HookWorld) -> None:
    body = json.dumps(reaction()).encode()

    answers = hooks.ask(*(request("slack", body, slack_headers(body, hooks.now)) for _ in range(4)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({each.key for each in hooks.reactions}) == 1


# -- with the measuring data


def read(name: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads((DATA / name).read_text("utf-8"))


@needs_data
def test_every_signature_of_slacks_vectors_is_judged_as_it_should_be() -> None:
    wrong = []
    for vector in read("slack_signature_vectors.json"):
        fault = slack_fault(
            vector["body"].encode(),
            timestamp=vector["timestamp"],
            signature=vector["signature"],
            keys=[vector["secret"].encode()],
            now=datetime.fromtimestamp(vector["now"], UTC),
            tolerance=timedelta(seconds=Hooks().tolerance),
        )
        if vector["valid"] is not None and (fault is None) != vector["valid"]:
            wrong.append((vector["name"], fault))
    assert wrong == []


@needs_data
def test_every_signature_of_githubs_vectors_is_judged_as_it_should_be() -> None:
    wrong = [
        vector["name"]
        for vector in read("github_signature_vectors.json")
        if (
            github_fault(vector["body"].encode(), signature=vector["signature"], keys=[vector["secret"].encode()])
            is None
        )
        != vector["valid"]
    ]
    assert wrong == []


EVENTS = {
    "reaction_added_docs": 1,
    "duplicate_with_other_event_id": 0,
    "retry_of_seen_event": 0,
    "retry_of_unseen_event": 1,
    "reaction_added_bolt": 1,
    "reaction_added_by_own_bot": 0,
    "reaction_added_no_item_user": 0,  # user, item and time of the first: the same reaction
    "reaction_added_on_file": 0,
    "reaction_added_on_file_comment": 0,
    "reaction_removed": 1,
    "app_mention_bolt": 0,
    "app_uninstalled_bolt": 0,
    "tokens_revoked_bolt": 0,
    "url_verification": 0,
}
"""Event -> how many reactions it passes on, told in this order."""


@needs_data
def test_every_recorded_event_is_acknowledged_and_has_the_effect_it_should(hooks: HookWorld) -> None:
    hooks = HookWorld(hooks.world, bot_user="W23456789")
    seen: dict[str, int] = {}
    for name in EVENTS:
        event = read(f"events/{name}.json")
        before = len(hooks.reactions)
        assert hooks.slack(event["body"], event["headers"]).status_code in (200, 202), name
        seen[name] = len(hooks.reactions) - before
    assert seen == EVENTS
