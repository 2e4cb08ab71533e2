"""The cloud's slots, each write as it is asked for."""

from datetime import timedelta

import pytest
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.slots_contract import SlotsContract

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import DynamoSlots
from wikikeeper.adapters.aws.store_clock import GivenClock
from wikikeeper.adapters.gate_slots import Slots
from wikikeeper.fakes import SettableClock


class TestDynamoSlotsOnRoto(SlotsContract):
    @pytest.fixture
    def slots(self, roto: Clients, clock: SettableClock) -> Slots:
        return DynamoSlots(make_table(roto.dynamodb), GivenClock(clock.now), timedelta())
