"""The cloud's slots, each write as it is asked for."""

from datetime import timedelta

import pytest
from tests.adapters.aws.processes import Fated
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.slots_contract import SlotsContract

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import DynamoSlots
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.store_clock import GivenClock
from wikikeeper.adapters.gate_slots import Slots
from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane

MINUTE = timedelta(minutes=1)


class TestDynamoSlotsOnRoto(SlotsContract):
    @pytest.fixture
    def slots(self, roto: Clients, clock: SettableClock) -> Slots:
        return DynamoSlots(make_table(roto.dynamodb), GivenClock(clock.now), timedelta())


# -- what somebody does between another's look and its write


def of(table: Table, clock: SettableClock) -> DynamoSlots:
    return DynamoSlots(table, GivenClock(clock.now), timedelta())


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def table(roto: Clients) -> Table:
    return make_table(roto.dynamodb)


def test_a_demand_that_ended_and_is_anothers_by_now_is_not_taken_back(table: Table, clock: SettableClock) -> None:
    def meanwhile() -> None:
        clock.advance(MINUTE)
        of(table, clock).want("other", Lane.KEEPER, clock.now(), clock.now() + MINUTE)

    of(table, clock).want("mine", Lane.KEEPER, clock.now(), clock.now() + MINUTE)
    of(Fated(table, 1, meanwhile), clock).unwant("mine", Lane.KEEPER)

    assert [demand.who for demand in of(table, clock).look("").demands] == ["other"]


def test_who_frees_everything_frees_nothing_that_was_taken_since_it_looked(table: Table, clock: SettableClock) -> None:
    slots = of(table, clock)
    fence = slots.take(0, "first", Lane.KEEPER, clock.now() + MINUTE, 1)
    slots.want("first", Lane.PLEB, clock.now(), clock.now() + MINUTE)
    assert fence is not None
    taken: list[int | None] = []

    def meanwhile() -> None:
        clock.advance(MINUTE)
        taken.append(slots.take(0, "second", Lane.PLEB, clock.now() + MINUTE, 1))
        slots.want("second", Lane.PLEB, clock.now(), clock.now() + MINUTE)

    of(Fated(table, 1, meanwhile), clock).free_all()

    assert taken == [fence + 1]
    view = slots.look("")
    assert list(view.live) == [0]
    assert [demand.who for demand in view.demands] == ["second"]


def test_who_frees_everything_revives_no_slot_that_was_given_back_since_it_looked(
    table: Table, clock: SettableClock
) -> None:
    slots = of(table, clock)
    fence = slots.take(0, "first", Lane.KEEPER, clock.now() + MINUTE, 1)
    assert fence is not None

    of(Fated(table, 1, lambda: slots.give_back(0, fence)), clock).free_all()

    assert dict(slots.look("").live) == {}
    assert slots.take(0, "second", Lane.KEEPER, clock.now() + MINUTE, 1) == fence + 1
