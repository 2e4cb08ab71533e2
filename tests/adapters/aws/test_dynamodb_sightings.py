"""How the model was, on DynamoDB, as clocks that differ saw it at once."""

from datetime import timedelta

import pytest
from tests.adapters.aws.processes import Fated
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.samples import NOW

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.models import Condition, ModelSighting

YEAR = 365 * 24 * 60 * 60
"""In seconds."""


@pytest.fixture
def table(roto: Clients) -> Table:
    return make_table(roto.dynamodb)


def process(roto: Clients, table: Table) -> DynamoRunStore:
    return DynamoRunStore(table, S3Pages(roto.s3, "none"))


def sighting(condition: Condition, seconds: int) -> ModelSighting:
    return ModelSighting(
        model="decider", condition=condition, cause="", detail="", since=NOW + timedelta(seconds=seconds)
    )


def test_of_two_who_see_that_a_clock_was_ahead_one_tells(roto: Clients, table: Table) -> None:
    store = process(roto, table)
    store.saw_model(sighting(Condition.HEALTHY, YEAR))
    told: list[bool] = []
    late = process(roto, Fated(table, 1, lambda: told.append(store.saw_model(sighting(Condition.LOADING, 1)))))
    told.append(late.saw_model(sighting(Condition.LOADING, 2)))

    assert told == [True, False]
    assert list(store.model_history()) == [sighting(Condition.LOADING, 1)]


def test_who_sees_the_model_by_a_clock_that_is_ahead_does_not_hide_how_it_was_seen_meanwhile(
    roto: Clients, table: Table
) -> None:
    store = process(roto, table)
    store.saw_model(sighting(Condition.HEALTHY, YEAR))
    told: list[bool] = []
    # It has looked, and put what was into the history.
    ahead = process(roto, Fated(table, 2, lambda: told.append(store.saw_model(sighting(Condition.LOADING, 1)))))
    told.append(ahead.saw_model(sighting(Condition.UNREACHABLE, YEAR + 1)))

    assert told == [True, False]
    assert list(store.model_history()) == [sighting(Condition.LOADING, 1)]
