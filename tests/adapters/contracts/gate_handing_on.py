"""The part of the gate's contract about permits that are handed on inside one process."""

from datetime import timedelta

from tests.adapters.contracts.gate_callers import TTL, OpenGate, refused, taken, waiting
from tests.adapters.contracts.samples import SECOND

from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane
from wikikeeper.policy.gate import lease


class GateHandingOn:
    def test_a_permit_serves_several_calls_in_a_row_and_then_goes_back(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        gate = open_gate(1, clock.now, calls_per_permit=3)
        permit = taken(gate)
        fences = [permit.fence]
        with waiting(gate, *[Lane.KEEPER] * 4) as queue:
            leased = []
            for _ in range(4):
                assert gate.release(permit)
                permit = queue.served()
                fences.append(permit.fence)
                leased.append(gate._here.leases[0].fence)

        assert leased[0] == leased[1] < leased[2] == leased[3], "three permits of one lease, then another was taken"
        assert fences == sorted(set(fences))

    def test_a_permit_of_one_call_goes_back_each_time(self, open_gate: OpenGate, clock: SettableClock) -> None:
        mine, other = open_gate(1, clock.now, calls_per_permit=1), open_gate(1, clock.now)
        permit = taken(mine)
        with waiting(other, Lane.KEEPER) as elsewhere:
            clock.advance(SECOND)
            with waiting(mine, Lane.KEEPER) as here:
                mine.release(permit)
                first = elsewhere.served()
                assert not here.got
                other.release(first)
                here.served()

    def test_who_waits_elsewhere_has_a_turn_when_the_calls_are_used_up(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        mine, other = open_gate(1, clock.now, calls_per_permit=3), open_gate(1, clock.now)
        permit = taken(mine)
        with waiting(other, Lane.KEEPER) as elsewhere:
            clock.advance(SECOND)
            with waiting(mine, *[Lane.KEEPER] * 4) as here:
                for _ in range(2):
                    mine.release(permit)
                    permit = here.served()
                assert not elsewhere.got
                mine.release(permit)  # the third
                theirs = elsewhere.served()
                assert len(here.got) == 2
                other.release(theirs)
                here.served()

    def test_what_is_left_of_a_lease_is_not_handed_on_when_it_is_too_short(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        gate = open_gate(1, clock.now)
        permit = taken(gate)
        reserved = gate._here.leases[0].fence
        with waiting(gate, Lane.KEEPER, Lane.KEEPER) as queue:
            clock.advance(lease(TTL) - TTL)
            gate.release(permit)
            within = queue.served()
            assert gate._here.leases[0].fence == reserved
            clock.advance(timedelta(microseconds=1))
            gate.release(within)
            queue.served()
            assert gate._here.leases[0].fence > reserved

    def test_the_first_who_takes_a_slot_can_hand_it_on(self, open_gate: OpenGate, clock: SettableClock) -> None:
        """Also when nobody waited as it took it."""
        gate = open_gate(1, clock.now)
        permit = taken(gate)
        with waiting(gate, Lane.KEEPER) as queue:
            gate.release(permit)
            assert queue.served().fence == permit.fence + 1

    def test_who_handed_on_a_permit_can_neither_give_back_nor_renew_that_of_the_next(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        gate = open_gate(1, clock.now)
        permit = taken(gate)
        with waiting(gate, Lane.KEEPER) as queue:
            assert gate.release(permit)
            following = queue.served()

            assert following.fence > permit.fence
            assert not gate.release(permit)
            assert gate.renew(permit, TTL) is None
            refused(gate)
            assert gate.renew(following, TTL) is not None

    def test_what_was_renewed_for_longer_is_held_for_longer(self, open_gate: OpenGate, clock: SettableClock) -> None:
        mine, other = open_gate(1, clock.now), open_gate(1, clock.now)
        permit = taken(mine)
        clock.advance(TTL - SECOND)
        renewed = mine.renew(permit, lease(TTL))
        assert renewed is not None
        clock.advance(lease(TTL) - SECOND)

        refused(other)
        assert mine.release(renewed)
        taken(other)

    def test_who_overruns_its_permit_holds_up_nobody(self, open_gate: OpenGate, clock: SettableClock) -> None:
        mine, other = open_gate(1, clock.now), open_gate(1, clock.now)
        slow = taken(mine, ttl=SECOND)
        with waiting(mine, Lane.KEEPER, ttl=SECOND) as queue:
            clock.advance(SECOND)
            assert queue.served().fence > slow.fence
            assert not mine.release(slow)
            refused(other)

    def test_a_dead_process_blocks_its_slot_for_so_long(self, open_gate: OpenGate, clock: SettableClock) -> None:
        dead, other = open_gate(1, clock.now), open_gate(1, clock.now)
        permit = taken(dead)
        reserved = dead._here.leases[0].fence
        clock.advance(lease(TTL) - timedelta(microseconds=1))
        refused(other)

        clock.advance(timedelta(microseconds=1))
        assert taken(other).fence > reserved > permit.fence, "fences that it may have handed on are not used again"
        assert not dead.release(permit)
        assert dead.renew(permit, TTL) is None
