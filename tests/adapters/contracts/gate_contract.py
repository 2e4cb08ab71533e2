"""What every `Gate` promises. A test class names a gate by a fixture:

class TestMyGate(GateContract):
    @pytest.fixture
    def open_gate(self) -> OpenGate: ...  # a gate over the same permits each time, as another process has it; at `HASTE`
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.adapters.contracts.gate_callers import AT_ONCE, HASTE, LONG, TTL, OpenGate, refused, taken
from tests.adapters.contracts.gate_handing_on import GateHandingOn
from tests.adapters.contracts.gate_lanes import GateLanes
from tests.adapters.contracts.samples import NOW, SECOND

from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane, Permit
from wikikeeper.ports import Gate

__all__ = ["AT_ONCE", "HASTE", "LONG", "TTL", "GateContract", "OpenGate", "refused", "taken"]


class GateContract(GateHandingOn, GateLanes):
    @pytest.fixture
    def open_gate(self) -> OpenGate:
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> SettableClock:
        return SettableClock(NOW)

    @pytest.fixture
    def gate(self, open_gate: OpenGate, clock: SettableClock) -> Gate:
        return open_gate(2, clock.now)

    def test_a_permit_says_who_holds_it_and_until_when(self, gate: Gate) -> None:
        permit = gate.acquire(Lane.PLEB, "judge r1", TTL, AT_ONCE)

        assert isinstance(permit, Permit)
        assert (permit.holder, permit.lane, permit.until) == ("judge r1", Lane.PLEB, NOW + TTL)

    def test_no_more_permits_than_the_limit(self, gate: Gate) -> None:
        assert len({taken(gate).slot, taken(gate).slot}) == 2
        refused(gate)

    def test_what_is_taken_over_is_held_as_long_as_what_was_taken_first(
        self, open_gate: OpenGate, clock: SettableClock
    ) -> None:
        dead, other, third = (open_gate(1, clock.now) for _ in range(3))
        taken(dead, ttl=SECOND)
        clock.advance(TTL)

        permit = taken(other, ttl=TTL)

        assert permit.until == clock.now() + TTL
        refused(third)
        assert other.renew(permit, TTL) is not None

    def test_gates_over_the_same_permits_share_the_limit(self, open_gate: OpenGate, clock: SettableClock) -> None:
        one, other = open_gate(2, clock.now), open_gate(2, clock.now)
        taken(one)
        permit = taken(other)
        refused(one)
        assert not one.release(permit), "it is given back through the gate that gave it"
        refused(one)

        assert other.release(permit)
        taken(one)

    def test_a_permit_that_is_given_back_is_given_out_again(self, gate: Gate) -> None:
        first, _ = taken(gate), taken(gate)
        assert gate.release(first)

        again = taken(gate)
        assert again.slot == first.slot
        assert again.fence > first.fence

    def test_a_permit_ends_by_itself(self, gate: Gate, clock: SettableClock) -> None:
        first = taken(gate, ttl=SECOND)
        taken(gate, ttl=TTL)
        clock.advance(first.until - clock.now() - timedelta(microseconds=1))
        refused(gate)

        clock.advance(first.until - clock.now())
        again = taken(gate)
        assert again.slot == first.slot
        assert again.fence > first.fence
        refused(gate)

    def test_a_fence_never_starts_again(self, gate: Gate, clock: SettableClock) -> None:
        fences: dict[int, list[int]] = {0: [], 1: []}
        for number in range(6):
            permit = taken(gate)
            fences[permit.slot].append(permit.fence)
            if number % 2:
                gate.release(permit)
            else:
                clock.advance(permit.until - clock.now())

        for seen in fences.values():
            assert seen == sorted(set(seen))

    def test_giving_back_twice_does_nothing(self, gate: Gate) -> None:
        permit = taken(gate)

        assert gate.release(permit)
        assert not gate.release(permit)

    def test_freeing_all_slots_lets_others_in_and_keeps_the_fences(self, gate: Gate) -> None:
        left = [taken(gate), taken(gate)]

        gate.free_all()

        fences = {permit.slot: permit.fence for permit in left}
        again = [taken(gate), taken(gate)]
        assert all(permit.fence > fences[permit.slot] for permit in again)
        assert not any(gate.release(permit) for permit in left)

    def test_a_late_release_does_not_free_the_slot_of_another(self, gate: Gate, clock: SettableClock) -> None:
        late = taken(gate)
        clock.advance(late.until - clock.now())
        taken(gate)
        taken(gate)

        assert not gate.release(late)
        refused(gate)

    def test_a_permit_that_ran_out_is_no_longer_held(self, gate: Gate, clock: SettableClock) -> None:
        permit = taken(gate)
        clock.advance(permit.until - clock.now())

        assert gate.renew(permit, TTL) is None
        assert not gate.release(permit)

    def test_renewing_extends_a_permit_that_is_held(self, gate: Gate, clock: SettableClock) -> None:
        first, _ = taken(gate, ttl=SECOND), taken(gate)
        clock.advance(SECOND / 2)
        renewed = gate.renew(first, TTL)
        assert renewed is not None
        assert renewed == first.model_copy(update={"until": clock.now() + TTL, "fence": renewed.fence})
        assert renewed.fence >= first.fence

        clock.advance(first.until - clock.now())
        refused(gate)
        assert gate.release(renewed)

    def test_what_was_given_back_or_passed_on_is_not_renewed(self, gate: Gate, clock: SettableClock) -> None:
        permit = taken(gate)
        gate.release(permit)
        assert gate.renew(permit, TTL) is None

        assert permit.slot in {taken(gate).slot, taken(gate).slot}
        assert gate.renew(permit, TTL) is None

    def test_a_lowered_limit_counts_what_was_given_out_before(self, open_gate: OpenGate, clock: SettableClock) -> None:
        wide = open_gate(4, clock.now)
        permits = [taken(wide) for _ in range(4)]
        narrow = open_gate(2, clock.now)
        for permit in permits[:2]:
            wide.release(permit)
        refused(narrow)

        wide.release(permits[2])
        taken(narrow)
        refused(narrow)

    def test_the_hint_is_when_the_first_permit_runs_out(self, gate: Gate, clock: SettableClock) -> None:
        taken(gate, ttl=timedelta(seconds=40))
        taken(gate, ttl=timedelta(seconds=20))
        clock.advance(timedelta(seconds=5))

        assert refused(gate).hint == timedelta(seconds=15)

    def test_waiting_lasts_as_long_as_the_patience(self, gate: Gate) -> None:
        taken(gate)
        taken(gate)
        patience = timedelta(milliseconds=150)
        before = time.monotonic()
        refused(gate, patience)

        assert patience.total_seconds() <= time.monotonic() - before < LONG.total_seconds()

    def test_one_who_waits_is_let_in_when_a_permit_is_given_back(self, gate: Gate) -> None:
        permit, _ = taken(gate), taken(gate)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(gate.acquire, Lane.KEEPER, "b", TTL, LONG)
            time.sleep(0.05)
            assert not waiting.done()
            gate.release(permit)

            assert isinstance(waiting.result(timeout=10), Permit)

    def test_one_who_waits_is_let_in_when_another_gate_gives_back(
        self, open_gate: OpenGate, gate: Gate, clock: SettableClock
    ) -> None:
        other = open_gate(2, clock.now)
        permit, _ = taken(other), taken(other)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(gate.acquire, Lane.KEEPER, "b", TTL, LONG)
            time.sleep(0.05)
            other.release(permit)

            assert isinstance(waiting.result(timeout=10), Permit)

    def test_one_who_waits_is_let_in_when_a_permit_runs_out(self, gate: Gate, clock: SettableClock) -> None:
        permit, _ = taken(gate, ttl=SECOND), taken(gate)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(gate.acquire, Lane.KEEPER, "b", TTL, LONG)
            time.sleep(0.05)
            clock.advance(permit.until - clock.now())

            assert isinstance(waiting.result(timeout=10), Permit)

    def test_many_threads_never_hold_more_than_the_limit(self, gate: Gate) -> None:
        inside, most = 0, 0
        counting = threading.Lock()

        def work(number: int) -> bool:
            nonlocal inside, most
            permit = taken(gate, f"t{number}", patience=LONG)
            with counting:
                inside += 1
                most = max(most, inside)
            time.sleep(0.001)
            with counting:
                inside -= 1
            return gate.release(permit)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(40)))
        assert most <= 2
