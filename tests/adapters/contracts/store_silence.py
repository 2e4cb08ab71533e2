"""What every run store promises about silence: claims given up, counters, escalations, and how the model was seen."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    LEASE,
    NOW,
    SECOND,
    TOPIC,
    VERDICT,
    a_failure,
    claimed,
    in_parallel,
    stored,
)

from wikikeeper.models import Condition, Escalation, FailureKind, ModelSighting, ResultState, Silence
from wikikeeper.ports import RunStore

SILENT = a_failure(kind=FailureKind.SILENT, cause="silent")
SUBJECT = f"note:{TOPIC}"
AHEAD = 365 * 24 * 60
"""Minutes that a wrong clock may be ahead."""


def a_silence(nonresponses: int = 1, **changes: object) -> Silence:
    values = {"subject": SUBJECT, "nonresponses": nonresponses, "since": NOW, "counted": NOW}
    return Silence.model_validate(values | changes)


def an_escalation(number: int = 1) -> Escalation:
    return Escalation(
        id=f"result:r{number:04}:4",
        subject=f"result:r{number:04}",
        topic=TOPIC,
        detail='Größer "18" 🐘',
        raised=NOW + number * SECOND,
    )


def a_sighting(minutes: int, condition: Condition, cause: str = "", model: str = "decider") -> ModelSighting:
    return ModelSighting(
        model=model, condition=condition, cause=cause, detail="d", since=NOW + timedelta(minutes=minutes)
    )


class SilenceContract:
    # -- claims that are given up

    def test_an_expired_claim_is_given_up_once(self, store: RunStore) -> None:
        claim = claimed(store)

        assert store.give_up("r0001", claim.fence, NOW + LEASE, failure=SILENT)
        assert not store.give_up("r0001", claim.fence, NOW + LEASE, failure=SILENT)
        result = stored(store)
        assert (result.state, result.fence, result.cycle) == (ResultState.PARKED, claim.fence + 1, None)
        assert (result.failures, result.lease_until, result.nonresponses) == ((SILENT,), None, 0)

    def test_a_live_claim_is_not_given_up(self, store: RunStore) -> None:
        claim = claimed(store)

        assert not store.give_up("r0001", claim.fence, NOW + LEASE - SECOND, failure=SILENT)
        assert not store.give_up("r0001", claim.fence + 1, NOW + LEASE, failure=SILENT)
        assert not store.give_up("unknown", 1, NOW + LEASE, failure=SILENT)
        assert stored(store) == claim.result

    def test_giving_up_remembers_the_call_and_refuses_the_late_worker(self, store: RunStore) -> None:
        claim = store.begin_call(claimed(store), CYCLE, NOW + SECOND, NOW + LEASE)
        assert claim is not None

        assert store.give_up("r0001", claim.fence, NOW + LEASE, failure=SILENT, called=claim.called)
        assert not store.finish(claim, ResultState.KEPT, NOW, verdict=VERDICT)
        assert not store.put_back(claim, stay_in_cycle=True)
        result = stored(store)
        assert (result.call_fence, result.call_started) == (claim.fence, NOW + SECOND)

    def test_what_was_given_up_is_listed_and_only_a_person_brings_it_back(self, store: RunStore) -> None:
        claim = claimed(store)
        store.free("r0001", claim.fence, NOW + LEASE, stay_in_cycle=True)
        again = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert again is not None
        store.give_up("r0001", again.fence, NOW + LEASE, failure=SILENT)
        assert [result.id for result in store.results(states=frozenset({ResultState.PARKED}))] == ["r0001"]
        assert not store.send_result("r0001", CYCLE, instead_of=None)
        assert stored(store).nonresponses == 1

        assert store.retry("r0001")
        assert (stored(store).nonresponses, stored(store).failures) == (0, (SILENT,))

    @pytest.mark.parametrize(("failed", "left"), [(True, 0), (False, 1)])
    def test_a_recorded_failure_is_an_outcome_and_being_put_back_is_none(
        self, store: RunStore, failed: bool, left: int
    ) -> None:
        store.free("r0001", claimed(store).fence, NOW + LEASE, stay_in_cycle=True)
        again = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert again is not None
        assert stored(store).nonresponses == 1

        store.put_back(again, stay_in_cycle=True, failure=a_failure() if failed else None)

        assert stored(store).nonresponses == left

    # -- counters

    def test_a_silence_is_counted_only_on_what_was_seen(self, store: RunStore) -> None:
        assert store.silence(SUBJECT) is None
        assert store.count_silence(a_silence(1), instead_of=None)
        assert not store.count_silence(a_silence(1), instead_of=None)
        later = a_silence(2, counted=NOW + SECOND)
        assert not store.count_silence(later, instead_of=a_silence(2))
        assert store.count_silence(later, instead_of=a_silence(1))
        assert store.silence(SUBJECT) == later
        assert store.silence("note:other") is None

    def test_a_silence_that_somebody_began_to_cool_down_is_not_counted_by_one_who_saw_it_before(
        self, store: RunStore
    ) -> None:
        seen, cooling = a_silence(), a_silence(cooldown_until=NOW + LEASE)
        assert store.count_silence(seen, instead_of=None)
        assert store.count_silence(cooling, instead_of=seen)

        assert not store.count_silence(a_silence(2), instead_of=seen)
        assert store.silence(SUBJECT) == cooling

    def test_of_reapers_at_once_one_counts(self, store: RunStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            won = list(
                pool.map(
                    lambda second: store.count_silence(a_silence(1, counted=NOW + second * SECOND), instead_of=None),
                    range(8),
                )
            )

        assert won.count(True) == 1

    def test_hearing_of_it_sets_the_counter_back_and_keeps_the_cooldown(self, store: RunStore) -> None:
        store.heard(SUBJECT)
        assert store.silence(SUBJECT) is None
        given_up, other = a_silence(3, cooldown_until=NOW + LEASE), a_silence(2, subject="note:other")
        for silence in (given_up, other):
            store.count_silence(silence, instead_of=None)

        store.heard(SUBJECT)

        assert store.silence(SUBJECT) == given_up.model_copy(update={"nonresponses": 0})
        assert store.silence("note:other") == other
        assert not store.count_silence(a_silence(4), instead_of=given_up)

    # -- escalations

    def test_an_escalation_is_made_once(self, store: RunStore) -> None:
        assert store.escalate(an_escalation())
        assert not store.escalate(an_escalation().model_copy(update={"detail": "another"}))
        assert store.escalation(an_escalation().id) == an_escalation()
        assert store.escalation("unknown") is None

    def test_an_escalation_outlives_all_history_as_what_it_tells_of_may(self, store: RunStore) -> None:
        store.escalate(an_escalation())
        store.escalation_delivered(an_escalation().id, NOW)
        store.purge(NOW + timedelta(days=3 * 365))

        assert not store.escalate(an_escalation())

    def test_an_escalation_is_delivered_once_and_an_unknown_one_never(self, store: RunStore) -> None:
        for number in range(2):
            store.escalate(an_escalation(number))

        store.escalation_delivered(an_escalation(0).id, NOW + LEASE)
        store.escalation_delivered(an_escalation(0).id, NOW + 2 * LEASE)
        store.escalation_delivered("unknown", NOW)

        delivered = an_escalation(0).model_copy(update={"delivered": NOW + LEASE})
        assert store.escalation(an_escalation(0).id) == delivered
        assert list(store.escalations()) == [an_escalation(1), delivered]
        assert list(store.escalations(undelivered=True)) == [an_escalation(1)]

    def test_escalations_are_listed_newest_first(self, store: RunStore) -> None:
        in_parallel(store.escalate, [an_escalation(number) for number in range(120)])
        newest_first = [an_escalation(number) for number in reversed(range(120))]

        assert list(store.escalations()) == newest_first
        assert list(store.escalations(undelivered=True)) == newest_first

    # -- how the model was

    def test_a_model_is_remembered_when_it_changes(self, store: RunStore) -> None:
        seen = [
            a_sighting(0, Condition.LOADING, "loading"),
            a_sighting(1, Condition.LOADING, "wake_timeout"),
            a_sighting(2, Condition.HEALTHY),
        ]
        other = a_sighting(1, Condition.UNREACHABLE, "unreachable", "other")
        assert list(store.model_history()) == []

        assert store.saw_model(seen[0])
        assert not store.saw_model(a_sighting(1, Condition.LOADING, "loading"))
        assert store.saw_model(seen[1])
        assert store.saw_model(other)
        assert store.saw_model(seen[2])
        assert not store.saw_model(a_sighting(9, Condition.HEALTHY))
        assert not store.saw_model(a_sighting(2, Condition.WAKING)), "at one moment it was seen one way"
        alike = a_sighting(3, Condition.HEALTHY, model="alike")
        assert store.saw_model(alike)

        assert list(store.model_history("decider")) == seen[::-1]
        assert list(store.model_history("other")) == [other]
        assert list(store.model_history("alike")) == [alike]
        assert [sighting.since for sighting in store.model_history()] == [
            NOW + timedelta(minutes=minutes) for minutes in (3, 2, 1, 1, 0)
        ]

    def test_a_model_is_as_the_right_clock_saw_it_after_one_that_was_ahead(self, store: RunStore) -> None:
        before, other = a_sighting(0, Condition.UNREACHABLE), a_sighting(AHEAD + 1, Condition.HEALTHY, model="other")
        for seen in (before, a_sighting(AHEAD, Condition.LOADING), other, a_sighting(AHEAD + 5, Condition.WAKING)):
            assert store.saw_model(seen)

        told = [store.saw_model(a_sighting(minutes, Condition.HEALTHY)) for minutes in (10, 11, 12)]

        assert told == [True, False, False]
        healthy, later = a_sighting(10, Condition.HEALTHY), a_sighting(13, Condition.LOADING)
        assert list(store.model_history("decider")) == [healthy, before]
        assert list(store.model_history()) == [other, healthy, before]
        assert store.saw_model(later)
        assert list(store.model_history("decider")) == [later, healthy, before]

    def test_a_model_that_is_as_a_clock_that_was_ahead_saw_it_is_so_since_the_right_one_did(
        self, store: RunStore
    ) -> None:
        assert store.saw_model(a_sighting(AHEAD, Condition.LOADING))

        assert not store.saw_model(a_sighting(10, Condition.LOADING))
        assert not store.saw_model(a_sighting(11, Condition.LOADING))
        assert list(store.model_history("decider")) == [a_sighting(10, Condition.LOADING)]

    def test_a_look_that_a_later_one_overtook_changes_nothing(self, store: RunStore) -> None:
        def late(seconds: int, condition: Condition) -> ModelSighting:
            return a_sighting(1, condition).model_copy(update={"since": seen[1].since - seconds * SECOND})

        seen = [a_sighting(0, Condition.HEALTHY), a_sighting(1, Condition.LOADING)]
        assert store.saw_model(seen[0])
        assert store.saw_model(seen[1])

        for seconds in (1, 5):
            assert not store.saw_model(late(seconds, Condition.UNREACHABLE))
            assert not store.saw_model(late(seconds, Condition.LOADING))
        assert list(store.model_history("decider")) == seen[::-1]
        assert store.saw_model(late(6, Condition.UNREACHABLE)), "no look takes as long: the clock was ahead"
        assert list(store.model_history("decider")) == [late(6, Condition.UNREACHABLE), seen[0]]
