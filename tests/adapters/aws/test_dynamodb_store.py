"""The DynamoDB run store: the contract, and what only a table in the cloud has to promise."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest
from tests.adapters.aws.processes import Killed, mortal
from tests.adapters.aws.schema import make_bucket, make_table
from tests.adapters.aws.units import KILOBYTE, CountingTable
from tests.adapters.contracts.samples import (
    CYCLE,
    HASH,
    LEASE,
    NOW,
    TOPIC,
    VERDICT,
    a_cycle,
    a_failure,
    a_result,
    a_run,
    add,
    claimed,
    in_parallel,
    stored,
)
from tests.adapters.contracts.store_contract import RunStoreContract
from tests.adapters.contracts.store_silence import SilenceContract

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_items import (
    ESCALATIONS,
    FAILURES_KEPT,
    FOUND,
    HISTORY,
    RUN_SHARDS,
    cycle_key,
    result_key,
    run_key,
)
from wikikeeper.adapters.aws.dynamodb_listing import LISTED, OPEN, PAGE
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Scalar, Table
from wikikeeper.adapters.aws.packing import pack, unpack
from wikikeeper.adapters.aws.s3_pages import PREFIX, S3Pages
from wikikeeper.models import (
    Condition,
    CycleState,
    Escalation,
    Judgement,
    Kind,
    ModelSighting,
    Result,
    ResultState,
    StoredPage,
    Verdict,
)
from wikikeeper.policy.identity import digest, result_id
from wikikeeper.ports import RunStore


def store_on(one: Clients, table: Table | None = None) -> DynamoRunStore:
    return DynamoRunStore(table or make_table(one.dynamodb), S3Pages(one.s3, make_bucket(one)))


class TestDynamoRunStoreOnMoto(RunStoreContract, SilenceContract):
    @pytest.fixture
    def store(self, moto: Clients) -> RunStore:
        return store_on(moto)


class TestDynamoRunStoreOnRoto(RunStoreContract, SilenceContract):
    @pytest.fixture
    def store(self, roto: Clients) -> RunStore:
        return store_on(roto)


@pytest.fixture
def store(roto: Clients) -> DynamoRunStore:
    return store_on(roto)


def item(store: DynamoRunStore, key: Key) -> Item:
    found = store.table.get(key)
    assert found is not None
    return found


# -- what is kept, and for how long


def test_the_newest_failures_are_kept(store: DynamoRunStore) -> None:
    claim = claimed(store)
    for number in range(FAILURES_KEPT + 3):
        store.put_back(claim, stay_in_cycle=True, failure=a_failure(number))
        again = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert again is not None
        claim = again

    assert stored(store).failures == tuple(a_failure(number) for number in range(3, FAILURES_KEPT + 3))


def test_history_says_when_its_time_is_over(store: DynamoRunStore) -> None:
    store.put_run(a_run(started=NOW))
    store.start_cycle(a_cycle())
    assert "expires" not in item(store, cycle_key(CYCLE))
    store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=frozenset({CycleState.OPEN}))
    assert "expires" not in item(store, cycle_key(CYCLE))
    store.end_cycle(CYCLE, CycleState.STOPPED, NOW, only_from=frozenset({CycleState.EXPIRED}))
    over = int((NOW + HISTORY).timestamp())

    assert item(store, run_key(a_run().id, NOW))["expires"] == over
    assert item(store, cycle_key(CYCLE))["expires"] == over
    assert store.purge(NOW + 2 * HISTORY) == 0


def test_an_escalation_never_expires(store: DynamoRunStore) -> None:
    """Parked work is kept for ever, so what was told of it must be: it would be told of again each year."""
    told = Escalation(id="result:r0001:7", subject="result:r0001", topic=TOPIC, detail="d", raised=NOW)
    store.escalate(told)
    store.escalation_delivered(told.id, NOW)

    assert "expires" not in item(store, Key(ESCALATIONS, told.id))


def test_a_result_is_never_forgotten(store: DynamoRunStore) -> None:
    store.finish(claimed(store), ResultState.DISCARDED, NOW)

    assert "expires" not in item(store, result_key("r0001"))


def test_a_page_that_was_judged_again_is_kept_for_longer(moto: Clients) -> None:
    bucket = make_bucket(moto)
    pages = S3Pages(moto.s3, bucket)
    page = StoredPage(text_hash=HASH, paragraphs=("a",), stored=NOW)

    def written() -> str | None:
        return moto.s3.head_object(Bucket=bucket, Key=PREFIX + HASH)["ResponseMetadata"]["HTTPHeaders"].get(
            "x-amz-version-id"
        )

    moto.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    pages.put(page)
    before = written()
    pages.put(page.model_copy(update={"paragraphs": ("b",)}))

    assert written() != before  # a new version, with a time of its own
    assert pages.get(HASH) == page


@pytest.mark.parametrize("text_hash", ["../wiki/a.md", "", "a/b", "x" * 200])
def test_a_page_lies_nowhere_but_among_pages(moto: Clients, text_hash: str) -> None:
    with pytest.raises(ValueError, match="hash"):
        S3Pages(moto.s3, "none").get(text_hash)


class Asked(Table):
    """Notes what its queries ask."""

    def __init__(self, table: Table) -> None:
        super().__init__(table._client, table.name)
        self.asked: set[tuple[str | None, str]] = set()

    def query(self, where: str, values: dict[str, Scalar], *, index: str | None = None, **more: object) -> object:  # type: ignore[override]
        self.asked.add((index, str(next(iter(values.values()))).partition("#")[0]))
        return super().query(where, values, index=index, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("listing", "asked"),
    [
        (
            lambda store: store.results(states=frozenset({ResultState.JUDGING})),
            {(None, "found"), (None, "opened"), (OPEN, "open")},
        ),
        (
            lambda store: store.results(topic=TOPIC, states=frozenset({ResultState.WAITING})),
            {(None, "found"), (OPEN, "open")},
        ),
        (lambda store: store.unnoted(TOPIC), {(None, "found"), (OPEN, "open")}),
        (lambda store: store.results(topic=TOPIC), {(None, "result")}),
        (lambda store: store.cycles(states=frozenset({CycleState.OPEN})), {(OPEN, "cycles")}),
        (lambda store: store.cycles(topic=TOPIC), {(LISTED, "cycles")}),
        (lambda store: store.runs(topic=TOPIC, outcome="failed"), {(None, "runs")}),
        (lambda store: [store.run("r0001-2")], {(None, "runs")}),
        (lambda store: store.escalations(), {(None, "escalations")}),
        (lambda store: store.escalations(undelivered=True), {(OPEN, "escalations")}),
        (lambda store: store.model_history("decider"), {(None, "models"), (None, "sightings")}),
        (lambda store: store.topics(), {(None, "topics")}),
        (lambda store: store.alerts(), {(None, "alerts")}),
    ],
)
def test_every_listing_asks_for_partitions_and_never_scans(
    roto: Clients, listing: Callable[[RunStore], Iterable[object]], asked: set[tuple[str | None, str]]
) -> None:
    table = Asked(make_table(roto.dynamodb))
    store = store_on(roto, table)
    add(store, a_result())
    store.purge(NOW)  # now it has an entry in the index
    table.asked.clear()
    list(listing(store))

    assert table.asked == asked


# -- runs


@pytest.mark.parametrize("known", [True, False])
def test_a_run_is_found_by_its_id_alone(store: DynamoRunStore, known: bool) -> None:
    if known:
        add(store, a_result(1))
    runs = [a_run(number, id=f"r0001-{number}", subject="r0001") for number in range(1, 13)]
    for run in runs:
        store.put_run(run)

    assert [store.run(run.id) for run in runs] == runs
    assert store.run("r0001-13") is None
    assert store.run("r0001-1", runs[1].started) is None  # there is none that began then


class Counted(Table):
    """Counts the items that its queries hand out, by whole pages."""

    handed = 0

    def query(self, where: str, values: dict[str, Scalar], *, page: int | None = None, **more: object) -> object:  # type: ignore[override]
        for number, found in enumerate(super().query(where, values, page=page, **more)):  # type: ignore[arg-type]
            self.handed += page or 1 if number % (page or 1) == 0 else 0
            yield found


def test_the_newest_runs_are_listed_without_reading_all(roto: Clients) -> None:
    table = Counted(roto.dynamodb, make_table(roto.dynamodb).name)
    store = store_on(roto, table)
    in_parallel(store.put_run, [a_run(number) for number in range(400)])
    newest = [run.id for run in itertools.islice(store.runs(), 30)]

    assert newest == [a_run(number).id for number in range(399, 369, -1)]
    assert table.handed <= RUN_SHARDS * PAGE * 2


# -- how the model was


@pytest.mark.parametrize("request_number", range(3))
@pytest.mark.parametrize("last", [False, True])
def test_a_crash_loses_nothing_of_the_models_history(roto: Clients, request_number: int, last: bool) -> None:
    table = make_table(roto.dynamodb)
    store = store_on(roto, table)

    def seen(condition: Condition, minutes: int) -> ModelSighting:
        since = NOW + timedelta(minutes=minutes)
        return ModelSighting(model="decider", condition=condition, cause=condition.value, detail="", since=since)

    healthy, away = seen(Condition.HEALTHY, 0), seen(Condition.UNREACHABLE, 1)
    assert store.saw_model(healthy)
    with pytest.raises(Killed):
        store_on(roto, mortal(table, request_number, last=last)).saw_model(away)
    written = request_number == 2 and last

    assert list(store.model_history("decider")) == ([away, healthy] if written else [healthy])
    assert store.saw_model(away) == (not written)
    assert list(store.model_history()) == [away, healthy]


# -- what it costs


def shares(chance: random.Random, count: int) -> list[float]:
    numbers = [chance.random() ** 4 for _ in range(count)]
    return [number / sum(numbers) for number in numbers]


def a_discard(number: int) -> Verdict:
    """As long as verdicts really are: twenty paragraphs, every number with all its digits."""
    chance = random.Random(number)
    judgement = Judgement(
        useful=chance.random() / 2,
        injection=chance.random() / 10,
        kinds=dict(zip(Kind, shares(chance, len(Kind)), strict=True)),
        quotes=dict(enumerate(shares(chance, 21)[:20])),
    )
    return VERDICT.model_copy(
        update={
            "kept": False,
            "reason": "not_useful",
            "judgement": judgement,
            "injection": judgement.injection,
            "quotes": (),
            "text_hash": digest("text", str(number)),
            "option_order": tuple(range(20)),
            "model": "OpenJev-4B-Q4_K_M.gguf",
        }
    )


def test_a_judged_result_takes_six_writes_of_one_unit(moto: Clients) -> None:
    table = CountingTable(moto.dynamodb, make_table(moto.dynamodb).name)
    store = store_on(moto, table)
    results = 10
    store.start_cycle(a_cycle(cap=results))
    table.written.clear()
    found = []
    for number in range(results):
        url = f"https://www.example.org/2026/03/what-is-new-in-the-eighteenth-release-of-it-{number}"
        known = a_result(id=result_id(TOPIC, url, 1), url=f"{url}?utm_source=feed", canonical=url, title="t" * 70)
        found.append(known.model_copy(update={"cycle": CYCLE}))
    assert store.add_results(CYCLE, found) == found
    for number, result in enumerate(found):
        judge(store, result, a_discard(number))
    store.end_cycle(CYCLE, CycleState.DONE, NOW, only_from=frozenset({CycleState.OPEN}))
    of_cycle = {("cycle", "item"): 1, ("cycle", "open"): 1, ("found", "item"): 2}  # ended; listed and, at last, not
    store.purge(NOW)

    assert table.written - Counter(of_cycle) == {
        ("result", "item"): 3 * results,  # put, claimed, verdict
        ("text", "item"): results,
        ("cycle", "item"): results,
        ("runs", "item"): results,
    }
    assert table.sizes["result"] <= KILOBYTE
    assert table.sizes["runs"] <= KILOBYTE
    assert table.sizes["cycle"] <= KILOBYTE // 2
    assert list(table.query("#pk = :found", {"found": FOUND})) == []


def judge(store: RunStore, result: Result, verdict: Verdict) -> None:
    assert verdict.text_hash is not None
    claim = store.claim(result.id, CYCLE, NOW, NOW + LEASE)
    assert claim is not None
    store.claim_text(TOPIC, verdict.text_hash, result.id)
    claim = store.begin_call(claim, CYCLE, NOW, NOW + LEASE)
    assert claim is not None
    run = a_run(id=f"{result.id}-{claim.fence}", subject=result.id, verdict=verdict, kept=False, started=NOW)
    store.put_run(run.model_copy(update={"judgement": verdict.judgement, "text_hash": verdict.text_hash}))
    store.finish(
        claim,
        ResultState.DISCARDED,
        NOW + timedelta(seconds=1),
        verdict=verdict,
        text_hash=verdict.text_hash,
        etag='"5f3e-abc"',
    )


def test_what_a_newer_version_packed_is_refused() -> None:
    assert unpack(pack('{"kept":true}')) == '{"kept":true}'
    with pytest.raises(ValueError, match="dictionary 9"):
        unpack(b"\x09" + pack("{}")[1:])
