"""The pages' part of the DynamoDB store: the contract, and what a page costs."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from tests.adapters.aws.schema import make_bucket, make_table
from tests.adapters.contracts.samples import NOW, TOPIC, a_cycle, a_run, in_parallel
from tests.adapters.contracts.store_web import WebContract, paging

from wikikeeper.adapters.aws import dynamodb_web
from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import SKEW, DynamoSlots
from wikikeeper.adapters.aws.dynamodb_items import RUN_SHARDS
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Item, Scalar, Table
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.adapters.aws.store_clock import GivenClock
from wikikeeper.adapters.gate_slots import Slots
from wikikeeper.models import Cycle, Kind
from wikikeeper.policy.run_filter import RunFilter
from wikikeeper.ports_web import WebStore


class Read(Table):
    """Counts its queries, and the items that they read, by whole pages."""

    items = 0
    queries = 0

    def query(
        self,
        where: str,
        values: Mapping[str, Scalar],
        *,
        page: int | None = None,
        **more: Any,  # noqa: ANN401 - passed on
    ) -> Iterator[Item]:
        assert page is not None
        self.queries += 1
        for number, found in enumerate(super().query(where, values, page=page, **more)):
            self.items += page if number % page == 0 else 0
            yield found


def store_on(one: Clients, table: Table | None = None) -> DynamoRunStore:
    return DynamoRunStore(table or make_table(one.dynamodb), S3Pages(one.s3, make_bucket(one)))


class OnDynamo(WebContract):
    def slots(self, store: WebStore) -> Slots:
        assert isinstance(store, DynamoRunStore)
        return DynamoSlots(store.table, GivenClock(lambda: NOW), SKEW)


class TestDynamoPagesOnMoto(OnDynamo):
    test_pages_of_any_filter_and_size_hold_exactly_what_matches = paging(3)

    @pytest.fixture
    def store(self, moto: Clients) -> WebStore:
        return store_on(moto)


class TestDynamoPagesOnRoto(OnDynamo):
    test_pages_of_any_filter_and_size_hold_exactly_what_matches = paging(20)

    @pytest.fixture
    def store(self, roto: Clients) -> WebStore:
        return store_on(roto)


@pytest.fixture
def table(roto: Clients) -> Read:
    return Read(roto.dynamodb, make_table(roto.dynamodb).name)


def test_a_page_of_all_runs_reads_little_more_than_it_shows(roto: Clients, table: Read) -> None:
    store = store_on(roto, table)
    in_parallel(store.put_run, [a_run(number) for number in range(300)])

    first = store.run_page(RunFilter(), after=None, most=40, most_read=5_000)
    assert [run.id for run in first.runs] == [a_run(number).id for number in range(299, 259, -1)]
    assert (table.queries, table.items <= 40 * 3) == (RUN_SHARDS, True)

    table.items = 0
    store.run_page(RunFilter(), after=first.next, most=40, most_read=5_000)
    assert table.items <= 40 * 3, "a later page costs no more"


def test_a_page_of_few_runs_reads_no_more_than_it_may(roto: Clients, table: Read) -> None:
    store = store_on(roto, table)
    in_parallel(store.put_run, [a_run(number, kind=Kind.RELEASE) for number in range(300)])

    page = store.run_page(RunFilter(kind=Kind.SPAM), after=None, most=20, most_read=100)
    assert (page.runs, page.searched) == ((), True)
    assert table.items <= 100 * 2


def test_the_cycles_of_a_topic_are_looked_for_among_so_many_at_a_time(
    roto: Clients, table: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamodb_web, "CYCLES_SEARCHED", 4)
    monkeypatch.setattr(dynamodb_web, "CYCLES_AT_ONCE", 2)
    store = store_on(roto, table)
    for number in range(10):
        topic = TOPIC if number == 1 else "other"
        started = NOW + timedelta(minutes=number)
        store.start_cycle(a_cycle(id=f"{topic}#{number}", topic=topic, tick=str(number), started=started))

    found: list[Cycle] = []
    pages, cursor = 0, None
    while pages == 0 or cursor is not None:
        table.items = 0
        page = store.cycle_page(TOPIC, after=cursor, most=3)
        assert table.items <= 4 + 2
        found += page.cycles
        pages, cursor = pages + 1, page.next
    assert [cycle.tick for cycle in found] == ["1"]
    assert pages == 3
