"""What every run store promises about results and their listings."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    HASH,
    LEASE,
    NOW,
    SECOND,
    TOPIC,
    VERDICT,
    a_cycle,
    a_failure,
    a_result,
    add,
    claimed,
    in_parallel,
    stored,
)

from wikikeeper.models import Claim, CycleState, Result, ResultState, Verdict
from wikikeeper.policy.identity import result_id
from wikikeeper.ports import RunStore

JUDGED = (ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED)
Step = Callable[[str], bool]
NOTE = "inbox/awaiting/2026-03-01-postgres-abc123.md"


def parked(store: RunStore, result: Result | None = None) -> Result:
    """A result that was put back with two failures and parked for them."""
    result = result or a_result()
    store.put_back(claimed(store, result), stay_in_cycle=True, failure=a_failure(1))
    claim = store.claim(result.id, CYCLE, NOW, NOW + LEASE)
    assert claim is not None
    store.put_back(claim, stay_in_cycle=False, failure=a_failure(2))
    assert store.settle(result.id, CYCLE, attempts=2, state=ResultState.PARKED, verdict=None, at=NOW)
    return stored(store, result.id)


def found(topic: str = TOPIC, revision: int = 1, **changes: object) -> Result:
    """As searching makes it: the id is the URL of the topic in its revision."""
    identity = result_id(topic, a_result().canonical, revision)
    return a_result(**{"id": identity, "topic": topic, "revision": revision, **changes})  # type: ignore[arg-type]


class ResultsContract:
    def test_a_result_is_read_as_it_was_put(self, store: RunStore) -> None:
        result = a_result(failures=(a_failure(), a_failure(1, detail="é")), etag='W/"1"', not_before=NOW, attempts=1)

        assert add(store, result)
        assert store.result(result.id) == result
        assert store.result("unknown") is None

    def test_a_url_is_added_once_per_topic_and_revision(self, store: RunStore) -> None:
        first = found()
        assert add(store, first)

        assert not add(store, found(title="found again"))
        assert add(store, found(revision=2))
        assert add(store, found(topic="other"))
        assert stored(store, first.id) == first

    def test_what_a_cycle_found_is_added_together(self, store: RunStore) -> None:
        add(store, a_result(2))
        results = [a_result(1, cycle="a cycle"), a_result(2, cycle="a cycle"), a_result(3)]

        assert store.add_results("a cycle", results) == [results[0], results[2]]
        assert store.add_results("a cycle", results) == []
        assert list(store.results(states=frozenset({ResultState.WAITING}))) == [results[0], a_result(2), results[2]]
        assert store.claim("r0001", "a cycle", NOW, NOW + LEASE) is not None

    @pytest.mark.parametrize("cycle", [None, CYCLE])
    def test_what_was_found_is_listed_until_it_is_done_with_whatever_becomes_of_its_cycle(
        self, store: RunStore, cycle: str | None
    ) -> None:
        store.start_cycle(a_cycle())
        results = [a_result(number, cycle=cycle) for number in range(8)]
        store.add_results(CYCLE, results)
        for result in results:
            store.send_result(result.id, CYCLE, instead_of=cycle)
        claims = [store.claim(result.id, CYCLE, NOW, NOW + LEASE) for result in results[:6]]
        for claim, state in zip(claims, (*JUDGED, None, None, None), strict=True):
            assert claim is not None
            if state is not None:
                store.finish(claim, state, NOW, verdict=VERDICT)
        store.put_back(claims[3], stay_in_cycle=False, failure=a_failure())  # type: ignore[arg-type]
        store.settle("r0003", CYCLE, attempts=3, state=ResultState.PARKED, verdict=None, at=NOW)

        def unfinished() -> list[str]:
            states = frozenset({ResultState.WAITING, ResultState.JUDGING, ResultState.PARKED})
            assert list(store.results(states=states)) == list(store.results(topic=TOPIC, states=states))
            return [result.id for result in store.results(topic=TOPIC, states=states)]

        left = ["r0003", "r0004", "r0005", "r0006", "r0007"]
        assert unfinished() == left
        store.end_cycle(CYCLE, CycleState.STOPPED, NOW, only_from=frozenset({CycleState.OPEN}))
        assert unfinished() == left
        for days in range(1, 4):
            store.purge(NOW + timedelta(days=days))
            assert unfinished() == left
            assert [result.id for result in store.unnoted(TOPIC)] == ["r0000"]
        store.retry("r0003")
        store.withdraw("r0006", NOW)
        store.mark_noted(["r0000"], "note")
        store.purge(NOW + timedelta(days=4))
        assert unfinished() == ["r0003", "r0004", "r0005", "r0007"]
        assert list(store.unnoted(TOPIC)) == []

    def test_the_latest_of_a_url_is_its_newest_revision(self, store: RunStore) -> None:
        assert store.latest(TOPIC, a_result().canonical) is None
        for revision in range(1, 12):
            add(store, found(revision=revision))
            assert store.latest(TOPIC, a_result().canonical) == found(revision=revision)

        assert store.latest("other", a_result().canonical) is None

    def test_results_are_listed_oldest_find_first(self, store: RunStore) -> None:
        results = [a_result(number, found=NOW + (number // 2) * SECOND) for number in range(450)]
        in_parallel(lambda result: add(store, result), reversed(results))

        expected = [f"r{number:04}" for number in range(450)]
        assert [result.id for result in store.results()] == expected
        assert [result.id for result in store.results(topic=TOPIC)] == expected
        assert [result.id for result in store.results(states=frozenset({ResultState.WAITING}))] == expected

    def test_results_are_listed_by_topic_and_state(self, store: RunStore) -> None:
        add(store, a_result(2))
        add(store, a_result(3, topic="other"))
        store.finish(claimed(store), ResultState.DISCARDED, NOW, verdict=Verdict.unfetchable("http_404"))

        def ids(topic: str | None = None, *states: ResultState) -> list[str]:
            return [result.id for result in store.results(topic=topic, states=frozenset(states) or None)]

        assert ids(TOPIC) == ["r0001", "r0002"]
        assert ids(None, ResultState.WAITING) == ["r0002", "r0003"]
        assert ids(TOPIC, ResultState.WAITING, ResultState.JUDGING) == ["r0002"]
        assert ids(TOPIC, ResultState.WAITING, ResultState.DISCARDED) == ["r0001", "r0002"]
        assert list(store.results(states=frozenset())) == []

    def test_a_listing_sees_every_result_while_its_reader_changes_their_states(self, store: RunStore) -> None:
        in_parallel(lambda result: add(store, result), [a_result(number) for number in range(250)])
        seen = 0
        for result in store.results(states=frozenset({ResultState.WAITING})):
            if seen % 5 == 0:
                store.withdraw(result.id, NOW)
            seen += 1

        assert seen == 250

    def test_kept_results_are_unnoted_in_the_order_of_their_verdicts(self, store: RunStore) -> None:
        for number, minutes in ((1, 3), (2, 1), (3, 2)):
            claim = claimed(store, a_result(number))
            store.finish(claim, ResultState.KEPT, NOW + timedelta(minutes=minutes), verdict=VERDICT)
        store.finish(claimed(store, a_result(4)), ResultState.DISCARDED, NOW)
        store.finish(claimed(store, a_result(5, topic="other")), ResultState.KEPT, NOW, verdict=VERDICT)
        assert [result.id for result in store.unnoted(TOPIC)] == ["r0002", "r0003", "r0001"]

        store.mark_noted(["r0002", "r0001"], NOTE)
        assert [result.id for result in store.unnoted(TOPIC)] == ["r0003"]
        assert stored(store, "r0002").noted == NOTE

    def test_what_is_noted_keeps_its_note(self, store: RunStore) -> None:
        store.finish(claimed(store), ResultState.KEPT, NOW, verdict=VERDICT)
        store.mark_noted(["r0001"], NOTE)
        store.mark_noted(["r0001"], "inbox/awaiting/another.md")

        assert stored(store).noted == NOTE

    def test_only_kept_results_are_noted(self, store: RunStore) -> None:
        add(store, a_result())
        store.mark_noted(["r0001", "unknown"], NOTE)
        store.mark_noted([], NOTE)

        assert stored(store).noted is None

    # -- failures and people

    def test_settling_counts_attempts_and_leaves_it_waiting(self, store: RunStore) -> None:
        store.put_back(claimed(store), stay_in_cycle=False, failure=a_failure(), not_before=NOW + LEASE)
        before = stored(store)

        assert store.settle("r0001", CYCLE, attempts=1, state=ResultState.WAITING, verdict=None, at=NOW)
        assert stored(store) == before.model_copy(update={"attempts": 1, "settled_cycle": CYCLE})

    def test_settling_discards_with_a_verdict(self, store: RunStore) -> None:
        store.put_back(claimed(store), stay_in_cycle=False, failure=a_failure())
        verdict = Verdict.unfetchable("dns")

        assert store.settle("r0001", CYCLE, attempts=3, state=ResultState.DISCARDED, verdict=verdict, at=NOW + SECOND)
        result = stored(store)
        assert (result.state, result.attempts, result.verdict) == (ResultState.DISCARDED, 3, verdict)
        assert result.finished == NOW + SECOND

    def test_a_cycle_that_closes_twice_counts_its_failures_once(self, store: RunStore) -> None:
        store.put_back(claimed(store), stay_in_cycle=False, failure=a_failure())

        assert store.settle("r0001", CYCLE, attempts=1, state=ResultState.WAITING, verdict=None, at=NOW)
        assert not store.settle("r0001", CYCLE, attempts=2, state=ResultState.PARKED, verdict=None, at=NOW)
        assert store.settle("r0001", "next cycle", attempts=2, state=ResultState.WAITING, verdict=None, at=NOW)
        assert stored(store).attempts == 2

    def test_settling_is_refused_while_it_is_on_its_way(self, store: RunStore) -> None:
        def settle() -> bool:
            return store.settle("r0001", CYCLE, attempts=1, state=ResultState.WAITING, verdict=None, at=NOW)

        store.put_back(claimed(store), stay_in_cycle=True, failure=a_failure())
        assert not settle()

        store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert not settle()
        assert (stored(store).attempts, stored(store).settled_cycle) == (0, None)

    @pytest.mark.parametrize(
        "state", [ResultState.KEPT, ResultState.FOLDED, ResultState.JUDGING, ResultState.WITHDRAWN]
    )
    def test_failures_never_come_to_anything_else(self, store: RunStore, state: ResultState) -> None:
        add(store, a_result())

        with pytest.raises(ValueError, match=state.value):
            store.settle("r0001", CYCLE, attempts=1, state=state, verdict=None, at=NOW)

    def test_a_parked_result_waits_again_with_its_history(self, store: RunStore) -> None:
        before = parked(store)
        assert store.retry(before.id)

        after = stored(store)
        assert (after.state, after.attempts, after.nonresponses) == (ResultState.WAITING, 0, 0)
        assert after.failures == before.failures == (a_failure(1), a_failure(2))
        assert after.cycle is None

    def test_only_parked_results_are_retried(self, store: RunStore) -> None:
        assert not store.retry("unknown")
        claim = claimed(store)
        assert not store.retry("r0001")
        store.finish(claim, ResultState.DISCARDED, NOW)

        assert not store.retry("r0001")

    def test_a_parked_result_is_not_sent(self, store: RunStore) -> None:
        parked(store)

        assert not store.send_result("r0001", CYCLE, instead_of=None)

    def test_waiting_and_parked_results_are_withdrawn_once(self, store: RunStore) -> None:
        add(store, a_result(2))
        parked(store)

        for result in ("r0001", "r0002"):
            assert store.withdraw(result, NOW + SECOND)
            assert not store.withdraw(result, NOW + LEASE)
            assert (stored(store, result).state, stored(store, result).finished) == (
                ResultState.WITHDRAWN,
                NOW + SECOND,
            )
            assert not store.retry(result)
            assert not store.send_result(result, CYCLE, instead_of=None)

    def test_what_is_being_judged_or_has_a_verdict_is_not_withdrawn(self, store: RunStore) -> None:
        claim = claimed(store)
        assert not store.withdraw("r0001", NOW)

        store.finish(claim, ResultState.KEPT, NOW, verdict=VERDICT, text_hash=HASH)
        assert not store.withdraw("r0001", NOW)

    def test_what_is_done_to_a_result_changes_no_other_that_stands_alike(self, store: RunStore) -> None:
        def put_back(name: str) -> bool:
            held = stored(store, name)
            claim = Claim(result=held, fence=held.fence, until=NOW + LEASE)
            return store.put_back(claim, stay_in_cycle=False, failure=a_failure())

        life: tuple[Step, ...] = (
            lambda name: store.send_result(name, CYCLE, instead_of=None),
            lambda name: store.claim(name, CYCLE, NOW, NOW + LEASE) is not None,
            put_back,
            lambda name: store.settle(name, CYCLE, attempts=1, state=ResultState.PARKED, verdict=None, at=NOW),
            store.retry,
            lambda name: store.withdraw(name, NOW),
        )
        store.add_results(CYCLE, [a_result(1), a_result(2)])
        for step in life:
            before = stored(store, "r0002")
            assert step("r0001")
            assert stored(store, "r0002") == before
            assert step("r0002")

    def test_only_what_waits_is_settled(self, store: RunStore) -> None:
        before = parked(store)

        assert not store.settle("r0001", "next cycle", attempts=9, state=ResultState.WAITING, verdict=None, at=NOW)
        assert stored(store) == before
        store.withdraw("r0001", NOW)
        assert not store.settle("r0001", "next cycle", attempts=9, state=ResultState.WAITING, verdict=None, at=NOW)

    @pytest.mark.parametrize("retried", [False, True])
    def test_what_is_brought_back_or_withdrawn_waits_for_no_moment_any_more(
        self, store: RunStore, retried: bool
    ) -> None:
        store.put_back(claimed(store), stay_in_cycle=False, failure=a_failure(), not_before=NOW + LEASE)
        store.settle("r0001", CYCLE, attempts=3, state=ResultState.PARKED, verdict=VERDICT, at=NOW)
        assert stored(store).not_before == NOW + LEASE

        assert store.retry("r0001") if retried else store.withdraw("r0001", NOW)
        assert (stored(store).not_before, stored(store).verdict) == (None, None if retried else VERDICT)

    def test_a_note_is_of_its_own_results_alone(self, store: RunStore) -> None:
        for number in (1, 2):
            store.finish(claimed(store, a_result(number)), ResultState.KEPT, NOW, verdict=VERDICT)

        store.mark_noted(["r0001"], NOTE)

        assert (stored(store, "r0001").noted, stored(store, "r0002").noted) == (NOTE, None)
