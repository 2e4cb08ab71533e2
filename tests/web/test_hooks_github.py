"""GitHub's hook: releases and pushes start the topics that watch a repository, once for each body."""

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.hook_world import REPOSITORY, WATCHING, HookWorld, push, started
from tests.workflows.world import open_world

from wikikeeper.models import CycleState
from wikikeeper.policy.hooks import hook_tick
from wikikeeper.policy.webhooks import body_key

RELEASE = {"action": "published", "release": {"draft": False, "tag_name": "v1"}, "repository": REPOSITORY}


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookWorld]:
    with open_world(tmp_path) as world:
        yield HookWorld(world)


@pytest.fixture
def watched(hooks: HookWorld) -> HookWorld:
    hooks.world.topic("widgets", WATCHING.format(title="Widgets"))
    hooks.world.topic("changes", WATCHING.format(title="Changes"))
    hooks.world.topic("over", WATCHING.format(title="Over").replace("watch:", "until: 2026-03-01\nwatch:"))
    hooks.world.topic("releases", "---\ntitle: R\nqueries: [q]\nwatch: [{github: acme/widgets}]\n---\nB\n")
    hooks.world.topic("other", "---\ntitle: O\nqueries: [q]\nwatch: [{github: acme/other, paths: [docs]}]\n---\nB\n")
    return hooks


def test_a_release_starts_every_topic_that_watches_the_repository(watched: HookWorld) -> None:
    tick = hook_tick("github", body_key(json.dumps(RELEASE).encode()))

    answer = watched.github("release", RELEASE)

    assert answer.status_code == 202
    assert answer.json()["cycles"] == [f"{slug}#{tick}" for slug in ("changes", "releases", "widgets")]
    assert started(watched.sent) == [("changes", tick), ("releases", tick), ("widgets", tick)]
    watched.work()
    watched.github("release", RELEASE)
    assert watched.sent == []


@pytest.mark.parametrize(
    ("changed", "starts"),
    [
        (["CHANGES.md"], True),
        (["src/x.py", "docs/changes/v1.md"], True),
        (["docs/changes"], True),
        (["docs/changes.md"], False),
        (["src/CHANGES.md"], False),
        (["docs/changesets/a"], False),
        ([], False),
    ],
)
def test_a_push_starts_the_topics_that_watch_what_it_changed(
    watched: HookWorld, changed: list[str], starts: bool
) -> None:
    answer = watched.github("push", push(*changed))

    assert answer.status_code == (202 if starts else 200)
    assert [topic for topic, _ in started(watched.sent)] == (["changes", "widgets"] if starts else [])


@pytest.mark.parametrize(
    ("event", "content"),
    [
        ("release", RELEASE | {"action": "created"}),
        ("release", RELEASE | {"release": {"draft": True}}),
        ("release", RELEASE | {"repository": REPOSITORY | {"full_name": "acme/widgets2"}}),
        ("push", push("CHANGES.md", ref="refs/heads/feature")),
        ("push", push("CHANGES.md", ref="refs/tags/main")),
        ("push", push("CHANGES.md", deleted=True)),
        ("ping", {"zen": "Keep it logically awesome.", "hook_id": 1, "repository": REPOSITORY}),
        ("workflow_run", {"action": "completed"}),
        ("", RELEASE),
    ],
)
def test_other_events_are_acknowledged_and_start_nothing(watched: HookWorld, event: str, content: object) -> None:
    answer = watched.github(event, content)

    assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
    assert watched.sent == []
    assert watched.cycles() == []


@pytest.mark.parametrize(("event", "content"), [("release", push("CHANGES.md")), ("push", RELEASE)])
def test_the_unsigned_header_cannot_turn_one_event_into_another(
    watched: HookWorld, event: str, content: object
) -> None:
    assert watched.github(event, content).status_code == 422
    assert watched.cycles() == []


def test_githubs_repeat_after_our_failure_starts_what_is_missing(watched: HookWorld) -> None:
    watched.failures = 1
    assert watched.github("release", RELEASE).status_code == 503

    assert watched.github("release", RELEASE).status_code == 202
    assert len(started(watched.sent)) == 3
    watched.work()
    assert {cycle.state for cycle in watched.cycles()} <= {CycleState.DONE, CycleState.DRAINING}
    assert len(watched.cycles()) == 3


@pytest.mark.parametrize(
    "path",
    ["a/" * 240_000, "CHANGES.md" + "/a" * 240_000, "/" * 480_000, "docs/" * 90_000, "x" * 480_000],
    ids=["deep", "below a file that is watched", "slashes", "repeating", "long"],
)
def test_a_path_of_any_depth_costs_no_more_than_its_length(watched: HookWorld, path: str) -> None:
    """All its folders written out would be gigabytes."""
    tracemalloc.start()
    try:
        answer = watched.github("push", push(path))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert answer.status_code == (202 if path.startswith("CHANGES.md") else 200)
    assert most < 40_000_000
