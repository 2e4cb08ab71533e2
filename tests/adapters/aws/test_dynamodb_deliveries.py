"""Deliveries in the cloud: the contract, and that their items carry a TTL."""

import pytest
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.deliveries_contract import DeliveriesContract
from tests.adapters.contracts.samples import NOW

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_deliveries import REMEMBERED, DynamoDeliveries
from wikikeeper.adapters.aws.dynamodb_table import Key


class TestDynamoDeliveries(DeliveriesContract):
    @pytest.fixture
    def deliveries(self, moto: Clients) -> DynamoDeliveries:
        return DynamoDeliveries(make_table(moto.dynamodb))


def test_an_item_is_forgotten_by_its_ttl(moto: Clients) -> None:
    deliveries = DynamoDeliveries(make_table(moto.dynamodb))
    deliveries.begin("k", NOW)

    item = deliveries.table.get(Key("delivery#k", "delivery"))

    assert item is not None
    assert item["expires"] == int((NOW + REMEMBERED).timestamp())
