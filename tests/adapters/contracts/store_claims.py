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
    claimed,
    stored,
    stored_cycle,
)

from wikikeeper.models import CycleState, ResultState
from wikikeeper.ports import RunStore

JUDGED = (ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED)


class ClaimsContract:
    def test_a_waiting_result_is_sent_and_claimed(self, store: RunStore) -> None:
        store.add_result(a_result())
        assert store.send_result("r0001", CYCLE, instead_of=None)
        assert stored(store).cycle == CYCLE

        claim = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert claim is not None
        assert (claim.fence, claim.until) == (1, NOW + LEASE)
        assert claim.result == stored(store)
        assert (claim.result.state, claim.result.lease_until) == (ResultState.JUDGING, NOW + LEASE)

    def test_a_result_is_claimed_only_for_the_cycle_that_sent_it(self, store: RunStore) -> None:
        store.add_result(a_result())
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
        assert store.claim("r0001", CYCLE, NOW + SECOND, NOW + LEASE) is not None

    def test_what_is_being_judged_is_not_sent_again(self, store: RunStore) -> None:
        claimed(store)

        assert not store.send_result("r0001", "another cycle", instead_of=None)
        assert not store.send_result("unknown", CYCLE, instead_of=None)
        assert stored(store).cycle == CYCLE

    def test_what_is_on_its_way_for_a_cycle_is_not_taken_by_another_that_did_not_see_that(
        self, store: RunStore
    ) -> None:
        store.add_result(a_result())
        store.send_result("r0001", CYCLE, instead_of=None)

        assert not store.send_result("r0001", "another cycle", instead_of=None)
        assert store.send_result("r0001", "another cycle", instead_of=CYCLE)
        assert stored(store).cycle == "another cycle"

    # -- the call

    def test_the_text_that_is_judged_is_known_before_the_call(self, store: RunStore) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW + LEASE, text_hash="t1")
        assert claim is not None

        again = store.begin_call(claim, CYCLE, NOW + LEASE)

        assert again is not None
        assert (again.result.text_hash, stored(store).text_hash) == ("t1", "t1")

    def test_beginning_a_call_counts_it_and_renews_the_claim(self, store: RunStore) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW + 2 * LEASE)

        assert claim is not None
        assert (claim.fence, claim.until, claim.result.call_fence) == (2, NOW + 2 * LEASE, 2)
        assert claim.result == stored(store)
        assert stored_cycle(store).calls == 1

    def test_a_repeated_call_counts_again(self, store: RunStore) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW + LEASE)
        assert claim is not None
        again = store.begin_call(claim, CYCLE, NOW + LEASE)

        assert again is not None
        assert (again.fence, again.result.call_fence, stored_cycle(store).calls) == (3, 3, 2)

    def test_the_cap_is_never_passed(self, store: RunStore) -> None:
        claims = [claimed(store, a_result(number)) for number in range(5)]
        begun = [store.begin_call(claim, CYCLE, NOW + LEASE) for claim in claims]

        assert [claim is not None for claim in begun] == [True, True, True, False, False]
        assert stored_cycle(store).calls == 3
        assert stored(store, "r0004") == claims[4].result

    @pytest.mark.parametrize(
        ("state", "counts"),
        [(state, state in {CycleState.OPEN, CycleState.DRAINING}) for state in CycleState],
    )
    def test_calls_are_begun_only_in_a_cycle_that_is_open_or_draining(
        self, store: RunStore, state: CycleState, counts: bool
    ) -> None:
        store.start_cycle(a_cycle(id="c", state=state))
        claim = claimed(store)

        assert (store.begin_call(claim, "c", NOW + LEASE) is not None) == counts
        assert stored_cycle(store, "c").calls == counts
        assert stored(store).fence == (2 if counts else 1)

    def test_a_lost_claim_counts_no_call(self, store: RunStore) -> None:
        claim = claimed(store)
        assert store.begin_call(claim, "unknown cycle", NOW + LEASE) is None
        store.put_back(claim, stay_in_cycle=True)
        assert store.begin_call(claim, CYCLE, NOW + LEASE) is None

        store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert store.begin_call(claim, CYCLE, NOW + LEASE) is None
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
        assert store.begin_call(claim, CYCLE, NOW + LEASE) is None
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
        store.begin_call(claim, CYCLE, NOW + 2 * LEASE)

        assert not store.free("r0001", claim.fence, NOW + 3 * LEASE, stay_in_cycle=True)

    def test_a_late_worker_changes_nothing(self, store: RunStore) -> None:
        late = claimed(store)
        store.free("r0001", late.fence, NOW + LEASE, stay_in_cycle=True)
        current = store.claim("r0001", CYCLE, NOW + LEASE, NOW + 2 * LEASE)
        assert current is not None

        assert not store.finish(late, ResultState.KEPT, NOW + LEASE, verdict=VERDICT)
        assert not store.put_back(late, stay_in_cycle=False, failure=a_failure())
        assert store.begin_call(late, CYCLE, NOW + 2 * LEASE) is None
        assert stored(store) == current.result
        assert store.finish(current, ResultState.DISCARDED, NOW + LEASE)
