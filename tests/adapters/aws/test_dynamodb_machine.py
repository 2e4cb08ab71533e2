"""The life of a result on DynamoDB, in any order of events."""

from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.store_machine import ResultLife

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.ports import RunStore


def test_a_results_life_is_as_expected_in_any_order_of_events(roto: Clients) -> None:
    class DynamoResultLife(ResultLife):
        def open_store(self, folder: Path) -> RunStore:
            return DynamoRunStore(make_table(roto.dynamodb), S3Pages(roto.s3, "none"))

    # Some 400 events, each with several requests to look at what came of it.
    run_state_machine_as_test(
        DynamoResultLife,
        settings=settings(
            max_examples=12,
            stateful_step_count=35,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
