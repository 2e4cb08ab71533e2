"""The gate on DynamoDB: the contract, what it costs in writes, and clocks that differ from the table's."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.gate_contract import AT_ONCE, HASTE, LONG, TTL, GateContract, OpenGate, refused, taken
from tests.adapters.contracts.samples import NOW, SECOND

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import GATE, LOOKS, PACE, SKEW, DynamoGate, DynamoSlots
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.store_clock import GivenClock
from wikikeeper.adapters.gate_line import GateLine
from wikikeeper.errors import ClockUnknown, Unusable
from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane, Permit
from wikikeeper.policy.gate import lease

CALL = timedelta(milliseconds=2)


def opener(table: Table) -> OpenGate:
    # The contract's clock is one for all, and its times are exact. A look takes a while at a server of one thread.
    pace = replace(HASTE, first=0.02, next=0.03, others=0.1, demand_again=0.5)
    return partial(DynamoGate, table, skew=timedelta(), pace=pace)


class TestDynamoGateOnMoto(GateContract):
    @pytest.fixture
    def open_gate(self, moto: Clients) -> OpenGate:
        return opener(make_table(moto.dynamodb))

    # It answers one request at a time, so it proves nothing of many at once, and slowly.
    test_many_gates_with_lanes_never_hold_more_than_the_limit = None  # type: ignore[assignment]


class TestDynamoGateOnRoto(GateContract):
    @pytest.fixture
    def open_gate(self, roto: Clients) -> OpenGate:
        return opener(make_table(roto.dynamodb))


@pytest.fixture
def table(roto: Clients) -> Table:
    return make_table(roto.dynamodb)


class Writes(list[str]):
    """Every write to the table from now on."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        table._client.meta.events.register("before-call.dynamodb.UpdateItem", self._note)
        self._table = table

    def _note(self, params: dict[str, bytes], **_: object) -> None:
        body = params["body"].decode()
        if self._table.name in body:
            self.append(body)

    def of_demands(self) -> list[str]:
        return [body for body in self if "demand#" in body]


def batch(gate: GateLine, calls: int, call: float = 0.005) -> list[Permit]:
    """As a container works on a batch: every message on a thread of its own."""

    def work(number: int) -> Permit:
        permit = taken(gate, f"message {number}", patience=LONG)
        time.sleep(call)
        assert gate.release(permit)
        return permit

    with ThreadPoolExecutor(calls) as pool:
        return list(pool.map(work, range(calls)))


@pytest.mark.parametrize("limit", [1, 2])
def test_a_batch_of_ten_costs_two_writes_for_each_slot(table: Table, limit: int) -> None:
    gate = DynamoGate(table, limit)
    seen = Writes(table)

    permits = batch(gate, 10)

    assert len({(permit.slot, permit.fence) for permit in permits}) == 10
    assert len(seen) == 2 * len({permit.slot for permit in permits}) <= 2 * limit


def test_one_call_after_the_other_costs_two_writes_each_and_no_more(table: Table) -> None:
    gate = DynamoGate(table, 2)
    seen = Writes(table)
    for _ in range(3):
        batch(gate, 1)

    assert len(seen) == 6


def test_a_short_wait_leaves_no_demand(table: Table) -> None:
    mine, other = DynamoGate(table, 1), DynamoGate(table, 1)
    permit = taken(mine)
    seen = Writes(table)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(batch, other, 1)
        time.sleep(0.3)  # for some looks
        assert mine.release(permit)
        waiting.result(timeout=10)

    assert not seen.of_demands()


def test_a_long_wait_leaves_a_demand_and_takes_it_back(table: Table) -> None:
    pace = replace(PACE, demand_after=0.2)
    mine, other = DynamoGate(table, 1), DynamoGate(table, 1, pace=pace)
    permit = taken(mine)
    seen = Writes(table)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(batch, other, 1)
        while not seen:
            time.sleep(0.01)
        assert mine.release(permit)
        waiting.result(timeout=10)

    assert len(seen.of_demands()) == 2


def test_there_are_as_many_demands_as_ever_waited_at_once(table: Table) -> None:
    slots = DynamoSlots(table, GivenClock(lambda: NOW), timedelta())
    for _ in range(3):
        for who in ("a", "b"):
            slots.want(who, Lane.PLEB, NOW, NOW + SECOND)
            slots.want(who, Lane.PLEB, NOW, NOW + SECOND)
        assert {demand.who for demand in slots.look("c").demands} == {"a", "b"}
        for who in ("a", "b"):
            slots.unwant(who, Lane.PLEB)
        slots.want("c", Lane.PLEB, NOW, NOW + SECOND)
        assert [demand.who for demand in slots.look("d").demands] == ["c"]
        slots.unwant("c", Lane.PLEB)

    assert len(list(table.query("#pk = :gate", {"gate": GATE}))) == 2


def test_demands_that_are_left_at_once_are_all_left(table: Table) -> None:
    slots = DynamoSlots(table, GivenClock(lambda: NOW), timedelta())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: slots.want(f"w{number}", Lane.PLEB, NOW, NOW + SECOND), range(8)))

    assert {demand.who for demand in slots.look("me").demands} == {f"w{number}" for number in range(8)}


def test_a_lease_that_ended_is_left_alone_for_the_difference_of_clocks(table: Table) -> None:
    clock = SettableClock(NOW)
    gate, other = DynamoGate(table, 1, clock.now), DynamoGate(table, 1, clock.now)
    permit = taken(gate)

    clock.advance(permit.until - TTL + lease(TTL) - clock.now())
    assert refused(other).hint == SKEW
    assert not gate.release(permit)
    clock.advance(SKEW)
    assert taken(other).fence > permit.fence


def test_what_other_containers_left_behind_is_freed(table: Table) -> None:
    gone, mine = DynamoGate(table, 2), DynamoGate(table, 2)
    left = [taken(gone), taken(gone)]
    refused(mine)
    mine.free_all()

    fences = {permit.slot: permit.fence for permit in left}
    assert all(permit.fence > fences[permit.slot] for permit in (taken(mine), taken(mine)))
    assert not any(gone.release(permit) for permit in left)
    refused(mine)


def test_who_holds_what_can_be_looked_up(table: Table) -> None:
    DynamoGate(table, 1).acquire(Lane.PLEB, "draft of an article", TTL, AT_ONCE)

    (slot,) = table.query("#pk = :gate", {"gate": GATE})
    assert (slot["sk"], slot["fence"], slot["holder"], slot["lane"]) == ("0", 10, "draft of an article", "pleb")


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


# -- clocks


def wrong_by(seconds: float) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("offset", "said"), [(-90.0, "behind"), (90.0, "ahead of"), (-7.0, "behind"), (7.0, "ahead of")]
)
def test_a_clock_that_is_wrong_by_too_much_gets_no_permit_and_a_clear_word(
    table: Table, offset: float, said: str
) -> None:
    gate = DynamoGate(table, 1, machine=wrong_by(offset))
    seen = Writes(table)

    with pytest.raises(Unusable, match=rf"clock of this machine is \d+\.\d s {said} the table's.*set the clock"):
        taken(gate)

    assert not seen
    taken(DynamoGate(table, 1))  # nobody is held up


def test_a_first_answer_that_was_slow_hides_no_wrong_clock(table: Table) -> None:
    """As where a first try was lost, and botocore asked once more."""
    looks: list[bool] = []

    def delay_the_first(**_: object) -> None:
        looks.append(True)
        time.sleep(1.3 if len(looks) == 1 else 0)

    table._client.meta.events.register("before-send.dynamodb.Query", delay_the_first)
    with pytest.raises(Unusable, match="clock of this machine is"):
        taken(DynamoGate(table, 1, machine=wrong_by(6.2)))


def test_a_table_that_is_never_prompt_gives_no_permit(table: Table) -> None:
    class Unknown(GivenClock):
        asked = 0

        def is_known(self) -> bool:
            self.asked += 1
            return False

    clock = Unknown(lambda: NOW)
    slots = DynamoSlots(table, clock, timedelta())

    with pytest.raises(ClockUnknown, match=f"none of {LOOKS} answers"):
        slots.look("me")

    assert clock.asked == LOOKS


@pytest.mark.parametrize("offset", [-4.0, 4.0])
def test_a_clock_that_is_wrong_by_less_is_corrected(table: Table, offset: float) -> None:
    mine, other = DynamoGate(table, 1, machine=wrong_by(offset)), DynamoGate(table, 1)
    before = datetime.now(UTC)
    permit = taken(mine)

    # By less than the `Date` of one answer leaves open, and the time that this took.
    assert abs(permit.until - TTL - before) < SECOND + (datetime.now(UTC) - before)
    refused(other)
    assert mine.release(permit)
    taken(other)


def test_how_much_a_clock_may_be_wrong_is_a_setting(table: Table) -> None:
    taken(DynamoGate(table, 1, machine=wrong_by(30), max_skew=timedelta(seconds=60)))
    with pytest.raises(Unusable):
        taken(DynamoGate(table, 1, machine=wrong_by(3), max_skew=timedelta()))
