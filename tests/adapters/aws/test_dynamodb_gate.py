"""The gate on DynamoDB: the contract, and what it saves by handing slots on inside one process."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.gate_contract import AT_ONCE, LONG, TTL, GateContract, OpenGate, refused, taken
from tests.adapters.contracts.samples import NOW, SECOND

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import GATE, KEPT, SKEW, DynamoGate
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane, Permit
from wikikeeper.ports import Gate

CALL = timedelta(milliseconds=2)


def opener(table: Table) -> OpenGate:
    def open_gate(limit: int, now: Callable[[], datetime]) -> Gate:
        # The contract's clock is one for all, and its times are exact.
        return DynamoGate(table, limit, now, skew=timedelta())

    return open_gate


class TestDynamoGateOnMoto(GateContract):
    @pytest.fixture
    def open_gate(self, moto: Clients) -> OpenGate:
        return opener(make_table(moto.dynamodb))


class TestDynamoGateOnRoto(GateContract):
    @pytest.fixture
    def open_gate(self, roto: Clients) -> OpenGate:
        return opener(make_table(roto.dynamodb))


@pytest.fixture
def table(roto: Clients) -> Table:
    return make_table(roto.dynamodb)


def writes(table: Table) -> list[str]:
    """Every write to the table from now on, by its name."""
    seen: list[str] = []
    table._client.meta.events.register(
        "before-call.dynamodb.UpdateItem",
        lambda params, **_: seen.append(params["body"].decode()) if table.name.encode() in params["body"] else None,
    )
    return seen


def test_a_slot_is_handed_on_in_one_process_without_a_write(table: Table) -> None:
    gate = DynamoGate(table, 2)
    seen = writes(table)
    inside, most, passed = 0, 0, 0
    counting = threading.Lock()

    def work(number: int) -> None:
        nonlocal inside, most, passed
        for _ in range(5):
            permit = taken(gate, f"t{number}", patience=LONG)
            with counting:
                inside, passed = inside + 1, passed + 1
                most = max(most, inside)
            time.sleep(CALL.total_seconds())
            with counting:
                inside -= 1
            assert gate.release(permit)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(work, range(10)))

    assert (passed, most) == (50, 2)
    assert len(seen) < passed  # two for each permit otherwise
    taken(gate)
    taken(gate)  # all were given back


def test_who_handed_on_a_permit_can_neither_give_back_nor_renew_that_of_the_next(table: Table) -> None:
    gate = DynamoGate(table, 1)
    first = taken(gate)
    with ThreadPoolExecutor(2) as pool:
        # The second takes it with others waiting, so that it can be handed on to the third.
        second = pool.submit(taken, gate, "b", TTL, LONG)
        third = pool.submit(taken, gate, "c", TTL, LONG)
        while len(gate._line) < 2:
            time.sleep(0.001)
        gate.release(first)
        done, waiting = (second, third) if _first_done(second, third) else (third, second)
        before = done.result(timeout=10)
        assert gate.release(before)
        after = waiting.result(timeout=10)

    assert after.fence > before.fence > first.fence
    assert not gate.release(before)
    assert gate.renew(before, TTL) is None
    refused(gate)
    assert gate.renew(after, TTL) is not None
    assert gate.release(after)
    assert taken(gate).fence > after.fence


def _first_done(one: object, other: object) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if one.done():  # type: ignore[attr-defined]
            return True
        if other.done():  # type: ignore[attr-defined]
            return False
        time.sleep(0.001)
    raise TimeoutError


def test_a_slot_that_is_kept_is_given_back_for_others(table: Table) -> None:
    clock = SettableClock(NOW)
    mine, other = DynamoGate(table, 1, clock.now), DynamoGate(table, 1, clock.now)
    permit = taken(mine)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(mine.acquire, Lane.KEEPER, "x", TTL, LONG) for _ in range(2)]
        while len(mine._line) < 2:
            time.sleep(0.001)
        mine.release(permit)
        while not any(one.done() for one in waiting):
            time.sleep(0.001)
        held = next(one.result() for one in waiting if one.done())
        assert isinstance(held, Permit)
        clock.advance(KEPT + SECOND)
        seen = writes(table)
        # What is left of the lease is too short to hand it on: it goes back to the store.
        assert mine.release(held)
        assert seen
        last = next(one for one in waiting if one.result(timeout=10) != held).result()
        assert isinstance(last, Permit)
        assert mine.release(last)

    taken(other)


def test_a_lease_that_ended_is_left_alone_for_the_difference_of_clocks(table: Table) -> None:
    clock = SettableClock(NOW)
    gate = DynamoGate(table, 1, clock.now)
    permit = taken(gate)

    clock.advance(permit.until - clock.now())
    assert refused(gate).hint == SKEW
    assert not gate.release(permit)
    clock.advance(SKEW)
    assert taken(gate).fence == permit.fence + 1


def test_what_other_containers_left_behind_is_freed(table: Table) -> None:
    gone, mine = DynamoGate(table, 2), DynamoGate(table, 2)
    left = [taken(gone), taken(gone)]
    refused(mine)
    mine.free_all()

    assert [taken(mine).fence, taken(mine).fence] == [2, 2]
    assert not any(gone.release(permit) for permit in left)
    refused(mine)


def test_who_holds_what_can_be_looked_up(table: Table) -> None:
    DynamoGate(table, 1).acquire(Lane.PLEB, "draft of an article", TTL, AT_ONCE)

    (slot,) = table.query("#pk = :gate", {"gate": GATE})
    assert (slot["sk"], slot["fence"], slot["holder"], slot["lane"]) == ("0", 1, "draft of an article", "pleb")


def test_containers_never_hold_more_permits_than_the_limit(table: Table) -> None:
    """Six gates as six containers have them, each with threads of its own."""
    inside, most, passed = 0, 0, 0
    counting = threading.Lock()
    gates = [DynamoGate(table, 3) for _ in range(6)]

    def work(number: int) -> None:
        nonlocal inside, most, passed
        gate = gates[number % len(gates)]
        for _ in range(4):
            permit = taken(gate, f"t{number}", patience=LONG)
            with counting:
                inside, passed = inside + 1, passed + 1
                most = max(most, inside)
            time.sleep(CALL.total_seconds())
            with counting:
                inside -= 1
            assert gate.release(permit)

    with ThreadPoolExecutor(18) as pool:
        list(pool.map(work, range(18)))
    assert passed == 72
    assert most <= 3
