"""The DynamoDB run store: the contract, and what only a table in the cloud has to promise."""

import random
from collections.abc import Callable
from datetime import timedelta

import pytest
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
    claimed,
    stored,
)
from tests.adapters.contracts.store_contract import RunStoreContract

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_items import FAILURES_KEPT, HISTORY, cycle_key, result_key, run_key
from wikikeeper.adapters.aws.dynamodb_listing import LISTED, OPEN
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Scalar, Table
from wikikeeper.adapters.aws.packing import pack, unpack
from wikikeeper.adapters.aws.s3_pages import PREFIX, S3Pages
from wikikeeper.models import Cycle, CycleState, Judgement, Kind, Result, ResultState, StoredPage, Verdict
from wikikeeper.policy.identity import digest, result_id
from wikikeeper.ports import RunStore


def store_on(one: Clients, table: Table | None = None) -> DynamoRunStore:
    return DynamoRunStore(table or make_table(one.dynamodb), S3Pages(one.s3, make_bucket(one)))


class TestDynamoRunStoreOnMoto(RunStoreContract):
    @pytest.fixture
    def store(self, moto: Clients) -> RunStore:
        return store_on(moto)


class TestDynamoRunStoreOnRoto(RunStoreContract):
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
    over = int((NOW + HISTORY).timestamp())

    assert item(store, run_key(a_run().id))["expires"] == over
    assert item(store, cycle_key(CYCLE))["expires"] == over
    store.start_cycle(a_cycle())
    assert "expires" not in item(store, cycle_key(CYCLE))
    assert store.purge(NOW + 2 * HISTORY) == 0


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


# -- the index of what is unfinished


@pytest.mark.parametrize(
    ("ending", "there"),
    [
        (lambda store, claim: store.put_back(claim, stay_in_cycle=False), True),
        (lambda store, claim: store.finish(claim, ResultState.KEPT, NOW), True),
        (lambda store, claim: store.finish(claim, ResultState.DISCARDED, NOW), False),
        (lambda store, claim: store.finish(claim, ResultState.FOLDED, NOW, folded_into="r0"), False),
    ],
)
def test_only_what_is_unfinished_is_in_the_index(
    store: DynamoRunStore, ending: Callable[[RunStore, object], bool], there: bool
) -> None:
    claim = claimed(store)
    before = item(store, result_key("r0001"))["open"]
    assert ending(store, claim)

    assert item(store, result_key("r0001")).get("open") == (before if there else None)


def test_a_kept_result_leaves_the_index_when_it_is_noted(store: DynamoRunStore) -> None:
    store.finish(claimed(store), ResultState.KEPT, NOW, verdict=VERDICT)
    store.mark_noted(["r0001"], "a.md")

    assert "open" not in item(store, result_key("r0001"))
    assert list(store.unnoted(TOPIC)) == []


class LateIndex(Table):
    """Its indexes show nothing yet, as they may for a moment after a write."""

    late = True

    def query(self, where: str, values: object, **more: object) -> object:  # type: ignore[override]
        return iter(()) if self.late and "index" in more else super().query(where, values, **more)  # type: ignore[arg-type]


def test_what_was_just_added_is_listed_before_the_index_shows_it(roto: Clients) -> None:
    table = LateIndex(roto.dynamodb, make_table(roto.dynamodb).name)
    store = store_on(roto, table)
    for number in (2, 1, 3):
        store.add_result(a_result(number))
    waiting = frozenset({ResultState.WAITING})

    assert [result.id for result in store.results(topic=TOPIC, states=waiting)] == ["r0001", "r0002", "r0003"]
    table.late = False
    assert [result.id for result in store.results(topic=TOPIC, states=waiting)] == ["r0001", "r0002", "r0003"]
    table.late = True  # seen there once, it need not be remembered
    assert list(store.results(topic=TOPIC, states=waiting)) == []


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
        (lambda store: store.results(states=frozenset({ResultState.JUDGING})), {(None, "opened"), (OPEN, "open")}),
        (lambda store: store.results(topic=TOPIC, states=frozenset({ResultState.WAITING})), {(OPEN, "open")}),
        (lambda store: store.unnoted(TOPIC), {(OPEN, "open")}),
        (lambda store: store.results(topic=TOPIC), {(None, "result")}),
        (lambda store: store.cycles(states=frozenset({CycleState.OPEN})), {(OPEN, "cycles")}),
        (lambda store: store.cycles(topic=TOPIC), {(LISTED, "cycles")}),
        (lambda store: store.runs(topic=TOPIC, outcome="failed"), {(LISTED, "runs")}),
        (lambda store: store.topics(), {(None, "topics")}),
        (lambda store: store.alerts(), {(None, "alerts")}),
    ],
)
def test_every_listing_asks_for_partitions_and_never_scans(
    roto: Clients, listing: Callable[[RunStore], object], asked: set[tuple[str | None, str]]
) -> None:
    table = Asked(make_table(roto.dynamodb))
    store = store_on(roto, table)
    store.add_result(a_result())
    list(listing(store))  # type: ignore[call-overload]

    assert table.asked == asked


# -- the crash that begin_call cannot rule out


def test_a_worker_that_dies_before_its_call_is_counted_leaves_a_call_for_the_reaper_to_record(roto: Clients) -> None:
    class Killed(Exception):
        pass

    class Dying(Table):
        dying = False

        def change(self, key: Key, *rest: object, **more: object) -> Item | None:
            if self.dying and key == cycle_key(CYCLE):
                raise Killed
            return super().change(key, *rest, **more)  # type: ignore[arg-type]

    table = Dying(roto.dynamodb, make_table(roto.dynamodb).name)
    store = store_on(roto, table)
    claim = claimed(store)
    table.dying = True
    with pytest.raises(Killed):
        store.begin_call(claim, CYCLE, NOW + LEASE)

    left = stored(store)
    assert (left.fence, left.call_fence) == (2, 2)  # what the reaper goes by
    cycle = store.cycle(CYCLE)
    assert cycle is not None
    assert cycle.calls == 0


def test_a_call_that_is_refused_at_the_count_leaves_no_trace_on_its_result(roto: Clients) -> None:
    class Stale(Table):
        """Others counted between its look at a cycle and its own count."""

        before: Item | None = None

        def get(self, key: Key) -> Item | None:
            return self.before if self.before is not None and key == cycle_key(CYCLE) else super().get(key)

    table = Stale(roto.dynamodb, make_table(roto.dynamodb).name)
    store = store_on(roto, table)
    first, late = claimed(store, a_result(1, etag='"1"')), claimed(store, a_result(2))
    before = table.get(cycle_key(CYCLE))
    for number in range(3, 6):
        store.begin_call(claimed(store, a_result(number)), CYCLE, NOW + LEASE)
    table.before = before

    for claim in (first, late):
        assert store.begin_call(claim, CYCLE, NOW + 2 * LEASE, text_hash=HASH) is None
        assert stored(store, claim.result.id) == claim.result
        assert store.finish(claim, ResultState.DISCARDED, NOW)


def test_what_is_learned_before_a_call_and_with_its_verdict_is_kept_together(store: DynamoRunStore) -> None:
    claim = store.begin_call(claimed(store, a_result(etag='"1"')), CYCLE, NOW + LEASE, text_hash=HASH)
    assert claim is not None
    store.finish(claim, ResultState.KEPT, NOW, title="Its own", last_modified="today", verdict=VERDICT)

    result = stored(store)
    assert (result.title, result.text_hash, result.etag, result.last_modified) == ("Its own", HASH, '"1"', "today")


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


def test_a_judged_result_takes_eight_writes_of_one_unit_and_three_of_indexes(moto: Clients) -> None:
    table = CountingTable(moto.dynamodb, make_table(moto.dynamodb).name)
    store = store_on(moto, table)
    cycle = Cycle.model_validate(a_cycle(cap=200).model_dump())
    store.start_cycle(cycle)
    results = 10
    store.unfinished.announce(TOPIC)
    table.written.clear()
    for number in range(results):
        url = f"https://www.example.org/2026/03/what-is-new-in-the-eighteenth-release-of-it-{number}"
        result = a_result(id=result_id(TOPIC, url, 1), url=f"{url}?utm_source=feed", canonical=url, title="t" * 70)
        judge(store, result, a_discard(number))

    assert {what: count / results for what, count in table.written.items()} == {
        ("result", "item"): 5,  # put, sent, claimed, call begun, verdict
        ("text", "item"): 1,
        ("cycle", "item"): 1,
        ("run", "item"): 1,
        ("result", "open"): 2,  # comes and goes
        ("run", "listed"): 1,
    }
    assert table.sizes["result"] <= KILOBYTE


def judge(store: RunStore, result: Result, verdict: Verdict) -> None:
    assert verdict.text_hash is not None
    store.add_result(result)
    store.send_result(result.id, CYCLE, instead_of=None)
    claim = store.claim(result.id, CYCLE, NOW, NOW + LEASE)
    assert claim is not None
    store.claim_text(TOPIC, verdict.text_hash, result.id)
    claim = store.begin_call(claim, CYCLE, NOW + LEASE)
    assert claim is not None
    store.put_run(
        a_run(id=f"{result.id}-2", subject=result.id, judgement=verdict.judgement, verdict=verdict, kept=False)
    )
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
