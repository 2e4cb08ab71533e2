"""What every run store promises about claims: who may work on a result, and whose writes still count."""

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    HASH,
    LEASE,
    NOW,
    SECOND,
    VERDICT,
    a_cycle,
    a_failure,
    a_result,
    add,
    claimed,
    stored,
    stored_cycle,
)

from wikikeeper.models import CycleState, ResultState
from wikikeeper.ports import RunStore

JUDGED = (ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED)


class ClaimsContract:
    def test_a_waiting_result_is_sent_and_claimed(self, store: RunStore) -> None:
        add(store, a_result())
        assert store.send_result("r0001", CYCLE, instead_of=None)
        assert stored(store).cycle == CYCLE

        claim = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert claim is not None
        assert (claim.fence, claim.until) == (1, NOW + LEASE)
        assert claim.result == stored(store)
        assert (claim.result.state, claim.result.lease_until) == (ResultState.JUDGING, NOW + LEASE)

    def test_a_result_is_claimed_only_for_the_cycle_that_sent_it(self, store: RunStore) -> None:
        add(store, a_result())
        assert store.claim("r0001", CYCLE, NOW, NOW + LEASE) is None

        store.send_result("r0001", "another cycle", instead_of=None)
        assert store.claim("r0001", CYCLE, NOW, NOW + LEASE) is None
        assert store.claim("unknown", CYCLE, NOW, NOW + LEASE) is None
        assert stored(store).fence == 0

    def test_a_command_that_is_delivered_twice_claims_once(self, store: RunStore) -> None:
        claimed(store)

        assert store.claim("r0001", CYCLE, NOW, NOW + LEASE) is None

    def test_a_claim_does_not_take_over_an_expired_one(self, store: RunStore) -> None:
        claimed(store)

        assert store.claim("r0001", CYCLE, NOW + 2 * LEASE, NOW + 3 * LEASE) is None

    def test_a_result_is_not_claimed_before_its_time(self, store: RunStore) -> None:
        store.put_back(claimed(store), stay_in_cycle=True, not_before=NOW + SECOND)

        assert store.claim("r0001", CYCLE, NOW, NOW + LEASE) is None
        claim = store.claim("r0001", CYCLE, NOW + SECOND, NOW + LEASE)
        assert claim is not None
        store.finish(claim, ResultState.DISCARDED, NOW + SECOND)
        assert stored(store).not_before is None

    def test_what_is_being_judged_is_not_sent_again(self, store: RunStore) -> None:
        claimed(store)

        assert not store.send_result("r0001", "another cycle", instead_of=None)
        assert not store.send_result("unknown", CYCLE, instead_of=None)
        assert stored(store).cycle == CYCLE

    def test_what_is_on_its_way_for_a_cycle_is_not_taken_by_another_that_did_not_see_that(
        self, store: RunStore
    ) -> None:
        add(store, a_result())
        store.send_result("r0001", CYCLE, instead_of=None)

        assert not store.send_result("r0001", "another cycle", instead_of=None)
        assert store.send_result("r0001", "another cycle", instead_of=CYCLE)
        assert stored(store).cycle == "another cycle"

    # -- the call

    def test_beginning_a_call_counts_it_and_holds_the_claim_for_it(self, store: RunStore) -> None:
        claim = claimed(store)
        assert store.call_begun(claim.result) is None

        begun = store.begin_call(claim, CYCLE, NOW + SECOND, NOW + 2 * LEASE)

        assert begun is not None
        assert begun.fence >= claim.fence
        assert begun.until >= NOW + 2 * LEASE
        assert begun.called == NOW + SECOND
        result = stored(store)
        assert (result.state, result.fence, result.lease_until) == (ResultState.JUDGING, begun.fence, begun.until)
        assert store.call_begun(result) == NOW + SECOND
        assert (stored_cycle(store).calls, stored_cycle(store).active) == (1, NOW + SECOND)

    def test_a_repeated_call_counts_again_under_a_fence_of_its_own(self, store: RunStore) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW, NOW + LEASE)
        assert claim is not None
        again = store.begin_call(claim, CYCLE, NOW + SECOND, NOW + LEASE)

        assert again is not None
        assert again.fence > claim.fence
        assert (again.called, store.call_begun(stored(store)), stored_cycle(store).calls) == (
            NOW + SECOND,
            NOW + SECOND,
            2,
        )
        assert not store.finish(claim, ResultState.KEPT, NOW, verdict=VERDICT)
        assert store.finish(again, ResultState.KEPT, NOW, verdict=VERDICT)

    def test_the_next_claim_knows_of_no_call_until_it_makes_one(self, store: RunStore) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW, NOW + LEASE)
        assert claim is not None
        store.put_back(claim, stay_in_cycle=True, failure=a_failure())

        again = store.claim("r0001", CYCLE, NOW, NOW + LEASE)

        assert again is not None
        assert again.called is None
        assert store.call_begun(again.result) is None

    def test_the_cap_is_never_passed(self, store: RunStore) -> None:
        claims = [claimed(store, a_result(number)) for number in range(5)]
        begun = [store.begin_call(claim, CYCLE, NOW, NOW + LEASE) for claim in claims]

        assert [claim is not None for claim in begun] == [True, True, True, False, False]
        assert stored_cycle(store).calls == 3
        assert stored(store, "r0004") == claims[4].result

    @pytest.mark.parametrize(
        ("state", "counts"),
        [(state, state in {CycleState.OPEN, CycleState.DRAINING}) for state in CycleState],
    )
    @pytest.mark.parametrize("longer", [False, True])
    def test_calls_are_begun_only_in_a_cycle_that_is_open_or_draining(
        self, store: RunStore, state: CycleState, counts: bool, longer: bool
    ) -> None:
        store.start_cycle(a_cycle(id="c", state=state))
        claim = claimed(store)

        begun = store.begin_call(claim, "c", NOW, NOW + (2 if longer else 1) * LEASE)
        assert (begun is not None) == counts
        assert stored_cycle(store, "c").calls == counts
        assert stored(store).fence == (begun or claim).fence

    def test_one_call_is_begun_under_a_claim_as_it_was_given_out(self, store: RunStore) -> None:
        claim = claimed(store)
        assert store.begin_call(claim, CYCLE, NOW, NOW + LEASE) is not None

        assert store.begin_call(claim, CYCLE, NOW + SECOND, NOW + LEASE) is None
        assert (stored_cycle(store).calls, store.call_begun(stored(store))) == (1, NOW)

    def test_a_lost_claim_counts_no_call(self, store: RunStore) -> None:
        claim = claimed(store)
        later = NOW + LEASE
        assert store.begin_call(claim, "unknown cycle", NOW, later + SECOND) is None
        store.free("r0001", claim.fence, later, stay_in_cycle=True)
        assert store.begin_call(claim, CYCLE, later, later + LEASE) is None

        store.claim("r0001", CYCLE, later, later + LEASE)
        assert store.begin_call(claim, CYCLE, later, later + LEASE) is None
        assert stored_cycle(store).calls == 0

    def test_nobody_calls_under_a_claim_that_was_given_back(self, store: RunStore) -> None:
        claim = claimed(store)
        store.put_back(claim, stay_in_cycle=True)

        assert store.begin_call(claim, CYCLE, NOW, NOW + 2 * LEASE) is None
        assert stored_cycle(store).calls == 0

    # -- the end of a claim

    @pytest.mark.parametrize("state", JUDGED)
    def test_finishing_stores_the_verdict_and_all_that_belongs_to_it(self, store: RunStore, state: ResultState) -> None:
        claim = claimed(store)

        assert store.finish(
            claim,
            state,
            NOW + SECOND,
            verdict=VERDICT,
            folded_into="r2",
            title='The page\'s own "title" 🐘',
            text_hash=HASH,
            etag='"1"',
            last_modified="Sun, 01 Mar 2026 12:00:00 GMT",
        )
        assert stored(store) == claim.result.model_copy(
            update={
                "state": state,
                "lease_until": None,
                "finished": NOW + SECOND,
                "verdict": VERDICT,
                "folded_into": "r2",
                "title": 'The page\'s own "title" 🐘',
                "text_hash": HASH,
                "etag": '"1"',
                "last_modified": "Sun, 01 Mar 2026 12:00:00 GMT",
            }
        )

    def test_finishing_without_title_hash_or_validators_keeps_those_it_had(self, store: RunStore) -> None:
        claim = claimed(store, a_result(etag='"1"', text_hash=HASH))
        store.finish(claim, ResultState.FOLDED, NOW, folded_into="r0")

        result = stored(store)
        assert (result.title, result.etag, result.text_hash) == (a_result().title, '"1"', HASH)

    @pytest.mark.parametrize("state", JUDGED)
    def test_a_verdict_is_final(self, store: RunStore, state: ResultState) -> None:
        claim = claimed(store)
        store.finish(claim, state, NOW, verdict=VERDICT)
        before = stored(store)

        assert not store.finish(claim, ResultState.KEPT, NOW + SECOND, verdict=VERDICT)
        assert not store.put_back(claim, stay_in_cycle=False)
        assert not store.free("r0001", claim.fence, NOW + 2 * LEASE, stay_in_cycle=False)
        assert not store.send_result("r0001", CYCLE, instead_of=None)
        assert not store.settle("r0001", CYCLE, attempts=1, state=ResultState.WAITING, verdict=None, at=NOW)
        assert store.claim("r0001", CYCLE, NOW, NOW + LEASE) is None
        assert stored(store) == before

    @pytest.mark.parametrize("state", [ResultState.WAITING, ResultState.PARKED, ResultState.WITHDRAWN])
    def test_a_claim_is_not_finished_without_a_verdict(self, store: RunStore, state: ResultState) -> None:
        claim = claimed(store)

        with pytest.raises(ValueError, match=state.value):
            store.finish(claim, state, NOW)

    def test_putting_back_records_the_failure_and_leaves_the_cycle(self, store: RunStore) -> None:
        assert store.put_back(claimed(store), stay_in_cycle=False, failure=a_failure(), not_before=NOW + LEASE)

        result = stored(store)
        assert (result.state, result.cycle, result.lease_until) == (ResultState.WAITING, None, None)
        assert (result.failures, result.not_before) == ((a_failure(),), NOW + LEASE)
        assert (result.attempts, result.nonresponses) == (0, 0)

    def test_what_is_tried_again_within_the_cycle_stays_in_it(self, store: RunStore) -> None:
        assert store.put_back(claimed(store), stay_in_cycle=True)
        assert (stored(store).cycle, stored(store).failures) == (CYCLE, ())

        claim = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert claim is not None
        assert claim.fence == 2

    @pytest.mark.parametrize("stay", [True, False])
    @pytest.mark.parametrize("failed", [True, False])
    def test_a_result_that_was_put_back_remembers_its_last_call(
        self, store: RunStore, stay: bool, failed: bool
    ) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW, NOW + LEASE)
        assert claim is not None
        last = store.begin_call(claim, CYCLE, NOW + SECOND, NOW + LEASE)
        assert last is not None
        store.put_back(last, stay_in_cycle=stay, failure=a_failure() if failed else None)
        assert (stored(store).call_fence, stored(store).call_started) == (last.fence, NOW + SECOND)

        store.send_result("r0001", CYCLE, instead_of=None)
        again = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert again is not None
        store.put_back(again, stay_in_cycle=stay)
        assert (stored(store).call_fence, stored(store).call_started) == (last.fence, NOW + SECOND), "it made none"

    def test_failures_are_kept_in_order(self, store: RunStore) -> None:
        claim = claimed(store)
        for number in range(3):
            store.put_back(claim, stay_in_cycle=True, failure=a_failure(number, detail='"\n🐘'))
            again = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
            assert again is not None
            claim = again

        assert stored(store).failures == tuple(a_failure(number, detail='"\n🐘') for number in range(3))

    # -- the reaper's

    def test_an_expired_claim_is_freed_once(self, store: RunStore) -> None:
        claim = claimed(store)

        assert store.free("r0001", claim.fence, NOW + LEASE, stay_in_cycle=True)
        assert not store.free("r0001", claim.fence, NOW + LEASE, stay_in_cycle=True)
        result = stored(store)
        assert (result.state, result.fence, result.nonresponses) == (ResultState.WAITING, 2, 1)
        assert (result.cycle, result.lease_until) == (CYCLE, None)

    def test_a_freed_result_remembers_the_call_that_was_begun(self, store: RunStore) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW + SECOND, NOW + LEASE)
        assert claim is not None

        assert store.free("r0001", claim.fence, NOW + LEASE, stay_in_cycle=True, called=claim.called)
        again = store.claim("r0001", CYCLE, NOW + LEASE, NOW + 2 * LEASE)

        assert again is not None
        assert (again.result.call_fence, again.result.call_started) == (claim.fence, NOW + SECOND)
        assert store.call_begun(again.result) is None

    def test_a_freed_result_leaves_a_cycle_that_is_over(self, store: RunStore) -> None:
        store.free("r0001", claimed(store).fence, NOW + LEASE, stay_in_cycle=False)

        assert stored(store).cycle is None

    def test_a_live_claim_is_not_freed(self, store: RunStore) -> None:
        claim = claimed(store)

        assert not store.free("r0001", claim.fence, NOW + LEASE - SECOND, stay_in_cycle=True)
        assert not store.free("unknown", 1, NOW + LEASE, stay_in_cycle=True)
        assert stored(store) == claim.result

    def test_a_claim_that_was_renewed_is_not_freed_by_its_old_fence(self, store: RunStore) -> None:
        claim = claimed(store)
        begun = store.begin_call(claim, CYCLE, NOW, NOW + 2 * LEASE)

        assert begun is not None
        assert not store.free("r0001", claim.fence, NOW + LEASE, stay_in_cycle=True)
        assert not store.free("r0001", claim.fence, NOW + 2 * LEASE, stay_in_cycle=True), "as long ago as it may be"
        assert store.free("r0001", begun.fence, NOW + 2 * LEASE, stay_in_cycle=True)

    def test_a_late_worker_changes_nothing(self, store: RunStore) -> None:
        late = claimed(store)
        store.free("r0001", late.fence, NOW + LEASE, stay_in_cycle=True)
        current = store.claim("r0001", CYCLE, NOW + LEASE, NOW + 2 * LEASE)
        assert current is not None

        assert not store.finish(late, ResultState.KEPT, NOW + LEASE, verdict=VERDICT)
        assert not store.put_back(late, stay_in_cycle=False, failure=a_failure())
        assert store.begin_call(late, CYCLE, NOW + LEASE, NOW + 2 * LEASE) is None
        assert stored(store) == current.result
        assert store.finish(current, ResultState.DISCARDED, NOW + LEASE)

    @pytest.mark.parametrize("write", ["begin_call", "finish", "put_back", "free", "give_up"])
    def test_what_is_done_under_a_claim_changes_no_other_that_stands_alike(self, store: RunStore, write: str) -> None:
        mine, other = claimed(store, a_result(1)), claimed(store, a_result(2))
        over = NOW + LEASE
        done = {
            "begin_call": lambda: store.begin_call(mine, CYCLE, NOW, NOW + 2 * LEASE) is not None,
            "finish": lambda: store.finish(mine, ResultState.KEPT, NOW, verdict=VERDICT),
            "put_back": lambda: store.put_back(mine, stay_in_cycle=False, failure=a_failure()),
            "free": lambda: store.free("r0001", mine.fence, over, stay_in_cycle=False),
            "give_up": lambda: store.give_up("r0001", mine.fence, over, failure=a_failure()),
        }

        assert done[write]()
        assert stored(store) != mine.result
        assert stored(store, "r0002") == other.result
