"""What every run store promises about cycles."""

from datetime import datetime, timedelta

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    LEASE,
    NOW,
    SECOND,
    TOPIC,
    a_cycle,
    claimed,
    in_parallel,
    stored_cycle,
)

from wikikeeper.models import CycleState
from wikikeeper.ports import RunStore

ANY = frozenset(CycleState)
OPEN = frozenset({CycleState.OPEN})
EXPIRED = frozenset({CycleState.EXPIRED})


class CyclesContract:
    def test_a_cycle_is_read_as_it_was_put(self, store: RunStore) -> None:
        cycle = a_cycle(problems=("search_outage:rate_limited: wait", "missed_ticks:3"), reason="ü", found=2)

        assert store.start_cycle(cycle)
        assert store.cycle(CYCLE) == cycle

    def test_an_unknown_cycle_is_none(self, store: RunStore) -> None:
        assert store.cycle(CYCLE) is None

    @pytest.mark.parametrize(
        "state", [CycleState.DONE, CycleState.SKIPPED, CycleState.STOPPED, CycleState.OPEN, CycleState.DRAINING]
    )
    def test_a_tick_that_runs_or_has_run_is_not_started_again(self, store: RunStore, state: CycleState) -> None:
        store.start_cycle(a_cycle(state=state))

        assert not store.start_cycle(a_cycle())
        assert stored_cycle(store).state is state

    def test_an_expired_tick_is_opened_again_with_the_next_fence(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())
        store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, reason="the process died", only_from=OPEN)

        assert store.start_cycle(a_cycle(started=NOW + SECOND, lease_until=NOW + 2 * LEASE))
        again = stored_cycle(store)
        assert (again.state, again.fence, again.lease_until) == (CycleState.OPEN, 2, NOW + 2 * LEASE)
        assert (again.ended, again.reason) == (None, None)
        store.purge(NOW + timedelta(days=999))
        assert stored_cycle(store) == again, "it is no history any more"

    def test_an_expired_tick_is_unfinished_until_it_is_opened_again_or_stopped(self, store: RunStore) -> None:
        unfinished = frozenset({CycleState.OPEN, CycleState.EXPIRED, CycleState.DRAINING})
        store.start_cycle(a_cycle())
        store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=OPEN, fence=1)
        store.purge(NOW + timedelta(days=999))
        expired = stored_cycle(store)

        assert list(store.cycles(states=EXPIRED)) == list(store.cycles(states=unfinished)) == [expired]
        assert store.end_cycle(CYCLE, CycleState.STOPPED, NOW + SECOND, only_from=EXPIRED, fence=1)
        assert list(store.cycles(states=unfinished)) == []
        assert not store.start_cycle(a_cycle()), "it is over"

    def test_calls_of_an_expired_tick_still_count_when_it_is_opened_again(self, store: RunStore) -> None:
        claim = claimed(store)
        store.begin_call(claim, CYCLE, NOW, NOW + LEASE)
        store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=OPEN)
        store.start_cycle(a_cycle())

        assert stored_cycle(store).calls == 1

    def test_cycles_are_listed_newest_first(self, store: RunStore) -> None:
        cycles = [a_cycle(id=f"c{number:03}", started=NOW + (number // 2) * SECOND) for number in range(250)]
        in_parallel(store.start_cycle, cycles)

        assert [cycle.id for cycle in store.cycles()] == [f"c{number:03}" for number in reversed(range(250))]

    def test_cycles_are_listed_by_topic_and_state(self, store: RunStore) -> None:
        store.start_cycle(a_cycle(id="a", state=CycleState.DONE))
        store.start_cycle(a_cycle(id="b", state=CycleState.DRAINING))
        store.start_cycle(a_cycle(id="c", topic="other", state=CycleState.DRAINING))

        def ids(topic: str | None = None, *states: CycleState) -> list[str]:
            return [cycle.id for cycle in store.cycles(topic=topic, states=frozenset(states) or None)]

        assert ids(TOPIC) == ["b", "a"]
        assert ids(None, CycleState.DRAINING) == ["c", "b"]
        assert ids(TOPIC, CycleState.DRAINING) == ["b"]
        assert ids(TOPIC, CycleState.DONE, CycleState.DRAINING) == ["b", "a"]
        assert ids(TOPIC, CycleState.STOPPED) == []
        assert list(store.cycles(states=frozenset())) == []

    def test_draining_stores_what_was_found(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())

        assert store.drain_cycle(a_cycle(found=9, new=4, sent=3, cap_reached=True, problems=("feed_failed:x",)))
        cycle = stored_cycle(store)
        assert (cycle.state, cycle.lease_until) == (CycleState.DRAINING, None)
        assert (cycle.found, cycle.new, cycle.sent, cycle.cap_reached) == (9, 4, 3, True)
        assert cycle.problems == ("feed_failed:x",)

    def test_a_cap_that_was_not_reached_is_not_said_to_be(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())
        store.drain_cycle(a_cycle(sent=1))

        assert not stored_cycle(store).cap_reached

    @pytest.mark.parametrize(("at", "stored"), [(None, NOW), (NOW + SECOND, NOW + SECOND)])
    def test_draining_is_activity(self, store: RunStore, at: datetime | None, stored: datetime) -> None:
        store.start_cycle(a_cycle(active=NOW))
        store.drain_cycle(a_cycle(active=at))

        assert stored_cycle(store).active == stored

    def test_draining_keeps_what_was_counted_while_it_searched(self, store: RunStore) -> None:
        claim = claimed(store)
        store.begin_call(claim, CYCLE, NOW, NOW + LEASE)
        store.mark_cycle(CYCLE, fetched=True, cap_reached=True)
        store.count_refusal(CYCLE)
        store.drain_cycle(a_cycle(sent=1))

        cycle = stored_cycle(store)
        assert (cycle.calls, cycle.fetched, cycle.cap_reached, cycle.refusals) == (1, True, True, 1)

    def test_draining_needs_the_fence(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())
        store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=OPEN)
        store.start_cycle(a_cycle())

        assert not store.drain_cycle(a_cycle(fence=1))
        assert store.drain_cycle(a_cycle(fence=2))

    def test_only_an_open_cycle_drains(self, store: RunStore) -> None:
        assert not store.drain_cycle(a_cycle())
        store.start_cycle(a_cycle())
        store.end_cycle(CYCLE, CycleState.STOPPED, NOW, only_from=OPEN)

        assert not store.drain_cycle(a_cycle())

    @pytest.mark.parametrize("state", [CycleState.DONE, CycleState.SKIPPED, CycleState.STOPPED, CycleState.EXPIRED])
    def test_a_cycle_ends_once(self, store: RunStore, state: CycleState) -> None:
        store.start_cycle(a_cycle())

        assert store.end_cycle(CYCLE, state, NOW + SECOND, reason="why", only_from=OPEN)
        assert not store.end_cycle(CYCLE, state, NOW + LEASE, reason="again", only_from=OPEN)
        cycle = stored_cycle(store)
        assert (cycle.state, cycle.ended, cycle.reason) == (state, NOW + SECOND, "why")
        assert cycle.lease_until is None

    def test_a_cycle_ends_only_from_the_named_states(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())

        assert not store.end_cycle(CYCLE, CycleState.DONE, NOW, only_from=frozenset({CycleState.DRAINING}))
        assert not store.end_cycle(CYCLE, CycleState.DONE, NOW, only_from=frozenset())
        assert not store.end_cycle("unknown", CycleState.DONE, NOW, only_from=ANY)
        assert stored_cycle(store).state is CycleState.OPEN

    def test_a_cycle_that_was_sent_again_is_not_ended_by_one_who_saw_it_silent(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())
        store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=OPEN, fence=1)
        store.start_cycle(a_cycle())

        assert not store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=OPEN, fence=1)
        assert store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=OPEN, fence=2)

    def test_an_end_without_a_reason_leaves_the_one_that_was_given_before(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())
        store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, reason="why", only_from=OPEN)
        store.end_cycle(CYCLE, CycleState.STOPPED, NOW, only_from=EXPIRED)

        assert stored_cycle(store).reason == "why"

    def test_a_cycle_does_not_end_as_open(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())

        with pytest.raises(ValueError, match="draining"):
            store.end_cycle(CYCLE, CycleState.DRAINING, NOW, only_from=ANY)

    def test_flags_only_go_up(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())
        store.mark_cycle(CYCLE, fetched=True)
        store.mark_cycle(CYCLE, cap_reached=True)
        store.mark_cycle(CYCLE, answered=True)
        store.mark_cycle(CYCLE)

        cycle = stored_cycle(store)
        assert (cycle.fetched, cycle.answered, cycle.cap_reached) == (True, True, True)

    def test_no_flag_makes_a_cycle(self, store: RunStore) -> None:
        store.mark_cycle("unknown", fetched=True, answered=True)

        assert store.cycle("unknown") is None

    def test_refusals_are_counted_until_a_good_answer(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())
        assert [store.count_refusal(CYCLE) for _ in range(2)] == [1, 2]

        store.mark_cycle(CYCLE, fetched=True)
        assert stored_cycle(store).refusals == 2

        store.mark_cycle(CYCLE, answered=True)
        assert stored_cycle(store).refusals == 0
        assert store.count_refusal(CYCLE) == 1

        store.mark_cycle(CYCLE, answered=True)
        assert stored_cycle(store).refusals == 0

    def test_what_is_done_to_a_cycle_changes_no_other_that_stands_alike(self, store: RunStore) -> None:
        other = a_cycle(id="other", topic="other", refusals=1)
        store.start_cycle(other)
        claim = claimed(store)

        assert store.begin_call(claim, CYCLE, NOW, NOW + LEASE) is not None
        store.mark_cycle(CYCLE, fetched=True, answered=True, cap_reached=True)
        assert store.count_refusal(CYCLE) == 1
        assert store.drain_cycle(a_cycle(found=3, new=2, sent=1, problems=("missed_ticks:3",)))
        assert store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=frozenset({CycleState.DRAINING}))
        assert store.start_cycle(a_cycle())

        assert store.cycle("other") == other

    def test_a_refusal_counts_only_for_a_cycle_that_was_started(self, store: RunStore) -> None:
        with pytest.raises(KeyError):
            store.count_refusal("unknown")
