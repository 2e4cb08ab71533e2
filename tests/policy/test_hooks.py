"""What a hook asks for, by pure rules. What comes of it is in tests/web."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.models import CycleState, Topic, Watch
from wikikeeper.policy.hooks import (
    asked,
    asked_cycle,
    asks_no_source,
    by_hook,
    first_fence,
    hook_tick,
    to_be_begun,
    watching,
)
from wikikeeper.policy.identity import manual_tick

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a.md"]), min_size=1, max_size=4).map("/".join)


def topic(*watch: Watch, slug: str = "t") -> Topic:
    return Topic(slug=slug, title="T", brief="B", queries=("q",), watch=watch)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_tick_is_the_same_for_the_same_delivery_and_no_other(way: str, known: str, other: str, more: str) -> None:
    assert (hook_tick(way, known) == hook_tick(other, more)) == ((way, known) == (other, more))
    for pushed in (False, True):
        tick = hook_tick(way, known, pushed=pushed)
        assert (by_hook(tick), asks_no_source(tick)) == (True, pushed)


@pytest.mark.parametrize("tick", ["2026-03-02T06:00Z", manual_tick(NOW)])
def test_other_ticks_are_no_hooks(tick: str) -> None:
    assert not by_hook(tick)
    assert first_fence(tick) == 1


def test_a_cycle_is_asked_for_until_somebody_begins_it_and_to_be_begun_again_when_that_one_went_silent() -> None:
    put = asked_cycle("t", hook_tick("cycle", "m"), now=NOW, lease=timedelta(minutes=1), cap=5)
    begun = put.model_copy(update={"fence": first_fence(put.tick)})
    silent = begun.model_copy(update={"state": CycleState.EXPIRED})
    done = begun.model_copy(update={"state": CycleState.DONE})

    assert [asked(cycle) for cycle in (put, begun, silent, done)] == [True, False, False, False]
    assert [to_be_begun(cycle) for cycle in (put, begun, silent, done)] == [True, False, True, False]
    other = put.model_copy(update={"tick": "2026-03-02T06:00Z"})
    assert not asked(other)
    assert to_be_begun(other.model_copy(update={"state": CycleState.EXPIRED})), "so is any tick that is sent once more"


@given(changed=st.lists(PATHS, max_size=5), named=st.lists(PATHS, max_size=3))
def test_a_push_concerns_a_topic_when_it_changed_a_named_file_or_something_below_a_named_folder(
    changed: list[str], named: list[str]
) -> None:
    one = topic(Watch(github="a/b", paths=tuple(named)))
    expected = any(path == name or path.startswith(name + "/") for path in changed for name in named)

    assert watching([one], "A/B", changed) == ([one] if expected else [])
    assert watching([one], "A/B", None) == [one]
    assert watching([one], "a/bb", None) == []


def test_each_topic_is_named_once_however_many_of_its_watches_fit() -> None:
    one = topic(Watch(github="a/b", paths=("x",)), Watch(github="a/b"))

    assert watching([one, topic(slug="other")], "a/b", ["x"]) == [one]
