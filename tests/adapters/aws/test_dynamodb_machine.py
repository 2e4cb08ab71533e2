"""The store's whole life on DynamoDB, in any order of events."""

from pathlib import Path

from hypothesis.stateful import invariant
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.store_machine import UNFINISHED, ResultLife, live

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.ports import RunStore

STEPS = 500
"""Each with several requests, to look at what came of it."""


def test_the_stores_life_is_as_expected_in_any_order_of_events(roto: Clients) -> None:
    class DynamoResultLife(ResultLife):
        def open_store(self, folder: Path) -> RunStore:
            return DynamoRunStore(make_table(roto.dynamodb), S3Pages(roto.s3, "none"))

        @invariant()
        def every_unfinished_result_is_listed(self) -> None:
            left = {name for name, result in self.results.items() if result.state in UNFINISHED}
            assert {result.id for result in self.store.results(states=UNFINISHED)} == left

    live(DynamoResultLife, STEPS)

    assert DynamoResultLife.steps >= STEPS
