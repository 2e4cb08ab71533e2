"""No unfinished result is ever unlisted, whoever dies or freezes at whichever request, and however late the index is."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.adapters.aws.processes import Fated, Killed, LateIndex, mortal
from tests.adapters.aws.schema import make_table
from tests.adapters.contracts.samples import (
    CYCLE,
    LEASE,
    NOW,
    SECOND,
    TOPIC,
    VERDICT,
    a_cycle,
    a_failure,
    a_result,
    add,
    stored,
)

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_items import FOUND, result_from, result_item, result_key
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Item, Table
from wikikeeper.adapters.aws.dynamodb_unfinished import FROZEN, LATE, LISTED
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.models import CycleState, Result, ResultState

STATES = frozenset({ResultState.WAITING, ResultState.JUDGING, ResultState.PARKED})
RESULTS = [a_result(number, cycle=CYCLE) for number in range(5)]


@pytest.fixture
def table(roto: Clients) -> Table:
    return make_table(roto.dynamodb)


def process(roto: Clients, table: Table) -> DynamoRunStore:
    return DynamoRunStore(table, S3Pages(roto.s3, "none"))


@pytest.fixture
def store(roto: Clients, table: Table) -> DynamoRunStore:
    one = process(roto, table)
    one.start_cycle(a_cycle(cap=100))
    return one


def listed(store: DynamoRunStore) -> list[str]:
    """As every listing says: of the topic and over all, and what is kept."""
    kept = [result.id for result in store.unnoted(TOPIC)]
    of_topic = [result.id for result in store.results(topic=TOPIC, states=STATES)]
    assert [result.id for result in store.results(states=STATES)] == of_topic
    return of_topic + kept


def there(store: DynamoRunStore) -> list[str]:
    """What the items say."""
    items = store.table.read([result_key(result.id) for result in RESULTS])
    every = [result_from(item) for item in items]
    kept = [result.id for result in every if result.state is ResultState.KEPT and result.noted is None]
    return [result.id for result in every if result.state in STATES] + kept


def lists(store: DynamoRunStore) -> list[Item]:
    return list(store.table.query("#pk = :found", {"found": FOUND}))


def has_entry(store: DynamoRunStore, number: int) -> bool:
    item = store.table.get(result_key(f"r{number:04}"))
    assert item is not None
    return "open" in item


def end(store: DynamoRunStore) -> None:
    assert store.end_cycle(CYCLE, CycleState.STOPPED, NOW, only_from=frozenset({CycleState.OPEN}))


def work(store: DynamoRunStore) -> None:
    """Of five: one discarded, one kept, one being judged, one that failed and left the cycle, one still waiting."""
    claims = [store.claim(result.id, CYCLE, NOW, NOW + LEASE) for result in RESULTS[:4]]
    discarded, kept, _, failed = claims
    assert discarded is not None
    assert kept is not None
    assert failed is not None
    store.finish(discarded, ResultState.DISCARDED, NOW, verdict=VERDICT)
    store.finish(kept, ResultState.KEPT, NOW, verdict=VERDICT)
    store.put_back(failed, stay_in_cycle=False, failure=a_failure())


# -- what a list and an entry in the index are for


def test_a_finished_result_never_has_an_entry_and_its_list_goes_with_its_cycle(store: DynamoRunStore) -> None:
    store.add_results(CYCLE, RESULTS)
    work(store)
    store.purge(NOW)
    assert listed(store) == ["r0002", "r0003", "r0004", "r0001"]
    assert not any(has_entry(store, number) for number in range(5))

    end(store)
    store.purge(NOW)
    assert [has_entry(store, number) for number in range(5)] == [False, True, True, True, True]
    assert len(lists(store)) == 1
    store.purge(NOW + LATE - SECOND)
    assert len(lists(store)) == 1
    store.purge(NOW + LATE)
    assert lists(store) == []
    assert listed(store) == ["r0002", "r0003", "r0004", "r0001"]


def test_a_list_goes_as_soon_as_all_of_it_is_done(store: DynamoRunStore) -> None:
    store.add_results(CYCLE, RESULTS[:1])
    claim = store.claim("r0000", CYCLE, NOW, NOW + LEASE)
    assert claim is not None
    store.finish(claim, ResultState.FOLDED, NOW, folded_into="r1")
    store.purge(NOW)

    assert lists(store) == []


@pytest.mark.parametrize(
    "ending",
    [
        lambda store: store.mark_noted(["r0001"], "a.md"),
        lambda store: store.withdraw("r0004", NOW),
        lambda store: store.settle("r0003", CYCLE, attempts=1, state=ResultState.DISCARDED, verdict=VERDICT, at=NOW),
    ],
)
def test_what_is_done_with_leaves_the_index(store: DynamoRunStore, ending: Callable[[DynamoRunStore], object]) -> None:
    store.add_results(CYCLE, RESULTS)
    work(store)
    end(store)
    store.purge(NOW)
    entries = [has_entry(store, number) for number in range(5)].count(True)
    ending(store)

    assert [has_entry(store, number) for number in range(5)].count(True) == entries - 1
    assert listed(store) == there(store)


def without_a_list(store: DynamoRunStore) -> None:
    """What is left of the work is found by its entries alone."""
    store.add_results(CYCLE, RESULTS)
    work(store)
    end(store)
    for moment in (NOW, NOW + LATE):
        store.purge(moment)
    assert lists(store) == []


def late_verdict(store: DynamoRunStore, state: ResultState) -> None:
    claim = store.claim("r0004", CYCLE, NOW, NOW + LEASE)
    assert claim is not None
    assert store.finish(claim, state, NOW, verdict=VERDICT)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (4, lambda store: late_verdict(store, ResultState.KEPT)),
        (3, lambda store: store.settle("r0003", CYCLE, attempts=1, state=ResultState.PARKED, verdict=None, at=NOW)),
        (3, lambda store: store.settle("r0003", CYCLE, attempts=1, state=ResultState.WAITING, verdict=None, at=NOW)),
    ],
    ids=["kept", "parked", "waiting"],
)
def test_what_stays_unfinished_without_a_list_keeps_its_entry(
    store: DynamoRunStore, number: int, change: Callable[[DynamoRunStore], object]
) -> None:
    without_a_list(store)
    change(store)

    assert has_entry(store, number)
    assert f"r000{number}" in listed(store)


def test_a_late_verdict_that_keeps_nothing_takes_the_entry_away(store: DynamoRunStore) -> None:
    without_a_list(store)
    late_verdict(store, ResultState.DISCARDED)

    assert not has_entry(store, 4)
    assert listed(store) == there(store)


def test_what_comes_back_keeps_its_entry(store: DynamoRunStore) -> None:
    store.add_results(CYCLE, RESULTS)
    work(store)
    end(store)
    store.settle("r0003", CYCLE, attempts=1, state=ResultState.PARKED, verdict=None, at=NOW)
    for hours in range(3):
        store.purge(NOW + timedelta(hours=hours))
    store.retry("r0003")

    assert lists(store) == []
    assert "r0003" in listed(store)


def test_many_results_are_named_in_several_lists(store: DynamoRunStore) -> None:
    lists_of = store.unfinished.name(CYCLE, [a_result(number) for number in range(LISTED + 1)])

    assert len(lists_of) == len(lists(store)) == 2


# -- deaths


def every_death(steps: Callable[[int, bool], bool]) -> int:
    """At each request, before and after it was carried out, until one process lives. Returns how many deaths there were."""
    for number in range(100):
        outcomes = [steps(number, last) for last in (False, True)]
        if all(outcomes):
            return number
    raise AssertionError("it never came to an end")


def lives(step: Callable[[], object]) -> bool:
    try:
        step()
    except Killed:
        return False
    return True


def test_what_a_scheduler_put_before_it_died_is_listed(roto: Clients) -> None:
    def dies(number: int, last: bool) -> bool:
        table = make_table(roto.dynamodb)
        store = process(roto, table)
        store.start_cycle(a_cycle())
        lived = lives(lambda: process(roto, mortal(table, number, last=last)).add_results(CYCLE, RESULTS[:2]))
        for ended in (False, True):
            if ended:
                end(store)
            for hours in range(3):
                assert listed(store) == there(store)
                store.purge(NOW + timedelta(hours=hours))
        assert listed(store) == there(store)
        assert lists(store) == []
        return lived

    assert every_death(dies) == 4  # the list, two results, the look at the list


@pytest.mark.parametrize("late", [False, True])
def test_what_a_sweep_left_when_it_died_is_listed(roto: Clients, late: bool) -> None:
    def dies(number: int, last: bool) -> bool:
        table = LateIndex(roto.dynamodb, make_table(roto.dynamodb).name)
        store = process(roto, table)
        store.start_cycle(a_cycle())
        store.add_results(CYCLE, RESULTS)
        work(store)
        end(store)
        # The index shows nothing for the first minute, and from then on what is a minute old.
        table.late = late
        lived = lives(lambda: process(roto, mortal(table, number, last=last)).purge(NOW))
        assert listed(store) == there(store)
        store.purge(NOW + LATE - SECOND)
        assert listed(store) == there(store)
        table.late = False
        lived &= lives(lambda: process(roto, mortal(table, number, last=last)).purge(NOW + 2 * LATE))
        for minutes in range(3, 5):
            assert listed(store) == there(store)
            store.purge(NOW + minutes * LATE)
        assert listed(store) == there(store)
        assert lists(store) == []
        return lived

    assert every_death(dies) > 8


# -- freezing


def late_sweep(store: DynamoRunStore, *moments: datetime) -> Callable[[], None]:
    def meanwhile() -> None:
        end(store)
        for moment in moments:
            store.purge(moment)

    return meanwhile


@pytest.mark.parametrize("request_number", range(7))
@pytest.mark.parametrize(
    "sweeps", [(NOW,), (NOW, NOW + LATE), (NOW, NOW + FROZEN), (NOW, NOW + FROZEN, NOW + 2 * FROZEN)]
)
def test_a_scheduler_that_thaws_after_its_cycle_was_swept_lists_its_results(
    roto: Clients, table: Table, store: DynamoRunStore, request_number: int, sweeps: tuple[datetime, ...]
) -> None:
    frozen = process(roto, Fated(table, request_number, late_sweep(store, *sweeps)))
    assert frozen.add_results(CYCLE, RESULTS) == RESULTS

    assert listed(store) == [result.id for result in RESULTS]
    for hours in range(2, 6):
        store.purge(NOW + timedelta(hours=hours))
        assert listed(store) == [result.id for result in RESULTS]
    assert lists(store) == []


@pytest.mark.parametrize("request_number", range(1, 7))
def test_a_scheduler_that_thaws_and_dies_at_once_leaves_nothing_unlisted(
    roto: Clients, table: Table, store: DynamoRunStore, request_number: int
) -> None:
    dying = Fated(table, request_number, late_sweep(store, NOW, NOW + LATE, NOW + 2 * LATE), dies="after")
    with pytest.raises(Killed):
        process(roto, dying).add_results(CYCLE, RESULTS)

    put = there(store)
    assert len(put) == min(request_number, 5)
    for hours in range(4):
        assert listed(store) == put
        store.purge(NOW + timedelta(hours=hours))
    assert listed(store) == put
    assert lists(store) == []


def test_a_scheduler_that_thaws_just_as_its_list_is_deleted_lists_its_results(
    roto: Clients, table: Table, store: DynamoRunStore
) -> None:
    """It puts a result after the sweep saw that it was missing, and looks at the list before that is deleted."""
    found = store.unfinished.name(CYCLE, RESULTS)
    end(store)
    store.purge(NOW)

    def thaws() -> None:
        table.put_new(result_item(RESULTS[0]))
        store.unfinished.put(found, RESULTS[:1])

    # Of the sweep: lists, cycle; then the deletion.
    process(roto, Fated(table, 2, thaws)).purge(NOW + FROZEN)

    assert lists(store) == []
    assert listed(store) == ["r0000"]


def test_two_schedulers_of_a_cycle_at_once_list_what_both_put(
    roto: Clients, table: Table, store: DynamoRunStore
) -> None:
    other: list[Result] = []
    overtakes = Fated(table, 3, lambda: other.extend(process(roto, table).add_results(CYCLE, RESULTS)))
    mine = process(roto, overtakes).add_results(CYCLE, RESULTS)

    assert sorted(result.id for result in mine + other) == [result.id for result in RESULTS]
    assert listed(store) == [result.id for result in RESULTS]
    end(store)
    for hours in range(3):
        store.purge(NOW + timedelta(hours=hours))
    assert listed(store) == [result.id for result in RESULTS]


# -- a late index


def test_an_entry_that_comes_in_a_later_sweep_has_its_minute_too(roto: Clients) -> None:
    table = LateIndex(roto.dynamodb, make_table(roto.dynamodb).name)
    store = process(roto, table)
    store.unfinished.name(CYCLE, RESULTS[:1])
    store.purge(NOW)
    table.put_new(result_item(RESULTS[0]))  # by a scheduler that was frozen, and died with that
    store.purge(NOW + FROZEN)
    store.purge(NOW + FROZEN + LATE - SECOND)

    assert listed(store) == ["r0000"]


def test_what_was_just_added_is_listed_before_any_index_shows_it(roto: Clients) -> None:
    table = LateIndex(roto.dynamodb, make_table(roto.dynamodb).name)
    store, other = process(roto, table), process(roto, table)
    store.start_cycle(a_cycle())
    store.add_results(CYCLE, RESULTS)
    for number in (8, 7):
        add(store, a_result(number))
    every = ["r0000", "r0001", "r0002", "r0003", "r0004", "r0007", "r0008"]

    assert listed(other) == every
    end(store)
    store.purge(NOW)
    store.purge(NOW + LATE - SECOND)
    assert listed(other) == every
    table.late = False
    store.purge(NOW + LATE)
    assert lists(store) == []
    assert listed(other) == every


def test_what_changes_while_it_is_swept_gets_no_entry_for_good(
    roto: Clients, table: Table, store: DynamoRunStore
) -> None:
    store.add_results(CYCLE, RESULTS)
    work(store)
    end(store)
    # Of a sweep: lists, cycle, list shortened, `opened` twice; then the first of four results, which is the kept one.
    sweeping = Fated(table, 5, lambda: store.mark_noted(["r0001"], "a.md"))
    process(roto, sweeping).purge(NOW)

    assert not has_entry(store, 1)
    assert stored(store).noted == "a.md"
    assert listed(store) == there(store)
