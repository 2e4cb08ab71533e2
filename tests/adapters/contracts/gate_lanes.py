"""The part of the gate's contract about lanes, demand and fairness."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.adapters.contracts.gate_callers import AT_ONCE, LONG, TTL, OpenGate, demands, refused, soon, taken, waiting
from tests.adapters.contracts.samples import SECOND

from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane, Permit, Wait


class GateLanes:
    @pytest.mark.parametrize(("higher", "lower"), list(itertools.pairwise(Lane)))
    def test_a_higher_lane_overtakes_a_lower_one_that_waits_in_the_same_process(
        self, open_gate: OpenGate, clock: SettableClock, higher: Lane, lower: Lane
    ) -> None:
        gate = open_gate(1, clock.now)
        permit = taken(gate)
        with waiting(gate, lower) as behind, waiting(gate, higher) as before:
            gate.release(permit)
            first = before.served()
            assert not behind.got
            gate.release(first)
            behind.served()

    def test_a_higher_lane_overtakes_a_lower_one_that_waits_in_another_process(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        holder, lower, higher = (open_gate(1, clock.now) for _ in range(3))
        permit = taken(holder)
        with waiting(lower, Lane.PLEB) as behind:
            clock.advance(SECOND)
            with waiting(higher, Lane.KEEPER) as before:
                holder.release(permit)
                first = before.served()
                assert not behind.got
                higher.release(first)
                behind.served()

    def test_a_slot_is_not_handed_on_past_a_higher_lane_that_waits_in_another_process(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        mine, other = open_gate(1, clock.now), open_gate(1, clock.now)
        permit = taken(mine)
        with waiting(mine, Lane.PLEB) as behind:
            clock.advance(SECOND)
            with waiting(other, Lane.AUTHOR) as before:
                mine.release(permit)
                first = before.served()
                assert not behind.got
                other.release(first)
                behind.served()

    def test_who_has_just_come_gives_way_to_who_waits(self, open_gate: OpenGate, clock: SettableClock) -> None:
        gate = open_gate(2, clock.now)
        now = clock.now()
        gate._slots.want("another process", Lane.EXPLORER, now, now + TTL)

        first = gate.acquire(Lane.PLEB, "p", TTL, AT_ONCE)
        assert isinstance(first, Permit), "two are free, and one is nobody's"
        assert isinstance(gate.acquire(Lane.PLEB, "p", TTL, AT_ONCE), Wait)
        clock.advance(SECOND)
        assert isinstance(gate.acquire(Lane.EXPLORER, "e", TTL, AT_ONCE), Wait), "the older of the same lane"
        assert isinstance(gate.acquire(Lane.REVIEWER, "r", TTL, AT_ONCE), Permit)

    def test_a_lane_that_has_waited_too_long_goes_before_higher_ones(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        mine, other = (open_gate(1, clock.now, max_wait=timedelta(seconds=10)) for _ in range(2))
        permit = taken(mine)
        with waiting(other, Lane.PLEB) as late:
            clock.advance(timedelta(seconds=9))
            with waiting(mine, Lane.KEEPER, Lane.KEEPER) as keepers:
                mine.release(permit)
                permit = keepers.served()  # a second too early
                clock.advance(SECOND)
                soon(lambda: (other._me, Lane.PLEB) in demands(other))
                mine.release(permit)
                theirs = late.served()
                assert len(keepers.got) == 1
                other.release(theirs)
                keepers.served()

    def test_a_lane_that_has_waited_too_long_goes_before_higher_ones_of_its_process(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        gate = open_gate(1, clock.now, max_wait=timedelta(seconds=10))
        permit = taken(gate)
        with waiting(gate, Lane.PLEB) as late:
            clock.advance(timedelta(seconds=10))
            with waiting(gate, Lane.KEEPER) as keeper:
                gate.release(permit)
                theirs = late.served()
                assert not keeper.got
                gate.release(theirs)
                keeper.served()

    def test_a_waiter_that_died_holds_up_nobody_once_its_demand_has_ended(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        gate = open_gate(1, clock.now)
        now = clock.now()
        gate._slots.want("dead", Lane.KEEPER, now, now + timedelta(seconds=15))
        assert isinstance(gate.acquire(Lane.PLEB, "p", TTL, AT_ONCE), Wait)

        clock.advance(timedelta(seconds=15))
        assert isinstance(gate.acquire(Lane.PLEB, "p", TTL, AT_ONCE), Permit)

    def test_a_demand_is_refreshed_while_its_waiter_waits(self, open_gate: OpenGate, clock: SettableClock) -> None:
        holder, gate = open_gate(1, clock.now), open_gate(1, clock.now)
        permit = taken(holder, ttl=timedelta(days=1))
        with waiting(gate, Lane.KEEPER):
            for _ in range(3):
                clock.advance(timedelta(seconds=20))  # longer than any demand lasts
                soon(lambda: demands(gate) == {(gate._me, Lane.KEEPER)})
            holder.release(permit)

    def test_a_demand_ends_with_the_wait(self, open_gate: OpenGate, clock: SettableClock) -> None:
        mine, other = open_gate(1, clock.now), open_gate(1, clock.now)
        permit = taken(mine)
        with waiting(other, Lane.AUTHOR, Lane.AUTHOR) as queue:
            mine.release(permit)
            first = queue.served()
            assert demands(other) == {(other._me, Lane.AUTHOR)}, "the second waits"
            other.release(first)
            queue.served()
            soon(lambda: not demands(other))
        with ThreadPoolExecutor(1) as pool:
            taken(mine)
            impatient = pool.submit(refused, other, timedelta(milliseconds=500))
            soon(lambda: demands(other) == {(other._me, Lane.KEEPER)})
            impatient.result(timeout=10)

        assert not demands(other)

    def test_freeing_all_slots_ends_demands(self, open_gate: OpenGate, clock: SettableClock) -> None:
        gate = open_gate(1, clock.now)
        gate._slots.want("dead", Lane.KEEPER, clock.now(), clock.now() + TTL)

        gate.free_all()

        assert not demands(gate)
        assert isinstance(gate.acquire(Lane.PLEB, "p", TTL, AT_ONCE), Permit)

    def test_many_gates_with_lanes_never_hold_more_than_the_limit(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        """Six gates as six processes have them, each with threads of its own; fences of a slot are never used twice."""
        gates = [open_gate(3, clock.now, calls_per_permit=1 + number % 3) for number in range(6)]
        inside, most = 0, 0
        seen: list[tuple[int, int]] = []
        counting = threading.Lock()

        def work(number: int) -> None:
            nonlocal inside, most
            gate, lane = gates[number % len(gates)], list(Lane)[number % len(Lane)]
            for _ in range(2):
                permit = gate.acquire(lane, f"t{number}", TTL, LONG)
                assert isinstance(permit, Permit)
                with counting:
                    inside += 1
                    most = max(most, inside)
                    seen.append((permit.slot, permit.fence))
                time.sleep(0.002)
                with counting:
                    inside -= 1
                assert gate.release(permit)

        with ThreadPoolExecutor(18) as pool:
            list(pool.map(work, range(18)))
        assert most <= 3
        assert len(seen) == len(set(seen)) == 36
        for slot in {slot for slot, _ in seen}:
            fences = [fence for number, fence in seen if number == slot]
            assert fences == sorted(fences)
