"""A request whose answer was lost is sent again, finds its own work, and must not take it for somebody else's."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.adapters.aws.faults import Faults, after, method, target
from tests.adapters.aws.schema import make_bucket, make_table
from tests.adapters.aws.servers import clients, moto_server
from tests.adapters.contracts.gate_contract import TTL
from tests.adapters.contracts.samples import (
    CYCLE,
    LEASE,
    NOW,
    VERDICT,
    a_cycle,
    a_result,
    a_run,
    add,
    claimed,
    stored,
    stored_cycle,
)

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import DynamoGate
from wikikeeper.adapters.aws.dynamodb_items import FOUND
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.adapters.aws.s3_wiki import CONFLICT_TRIES, S3Wiki
from wikikeeper.errors import WikiConflict
from wikikeeper.models import CycleState, Lane, Permit, ResultState


@pytest.fixture(scope="module")
def faults() -> Faults:
    return Faults()


@pytest.fixture(scope="module")
def faulty(faults: Faults, _nobodys_account: None) -> Iterator[Clients]:
    with moto_server(faults.around) as address:
        yield clients(address)


@pytest.fixture(autouse=True)
def _every_fault_happened(faults: Faults) -> Iterator[None]:
    yield
    assert faults == Faults()


@pytest.fixture
def store(faulty: Clients) -> DynamoRunStore:
    return DynamoRunStore(make_table(faulty.dynamodb), S3Pages(faulty.s3, make_bucket(faulty)))


@pytest.fixture
def wiki(faulty: Clients) -> S3Wiki:
    return S3Wiki(faulty.s3, make_bucket(faulty), sleep=lambda _: None)


def test_a_result_is_added_although_the_answer_was_lost(store: DynamoRunStore, faults: Faults) -> None:
    faults.lost_answers.append(after(1, target("PutItem")))

    assert add(store, a_result())
    assert not add(store, a_result())


@pytest.mark.parametrize("lost", range(4))
def test_what_a_cycle_found_is_added_although_an_answer_was_lost(
    store: DynamoRunStore, faults: Faults, lost: int
) -> None:
    results = [a_result(number, cycle=CYCLE) for number in range(3)]
    faults.lost_answers.append(after(lost, target("PutItem")))  # that of the list, or of a result

    assert store.add_results(CYCLE, results) == results
    assert list(store.results(states=frozenset({ResultState.WAITING}))) == results
    assert len(list(store.table.query("#pk = :found", {"found": FOUND}))) == 1


def test_what_is_sent_and_claimed_is_ours_although_the_answers_were_lost(store: DynamoRunStore, faults: Faults) -> None:
    add(store, a_result())
    faults.lost_answers.append(target("UpdateItem"))
    assert store.send_result("r0001", CYCLE, instead_of=None)
    faults.lost_answers.append(target("UpdateItem"))
    claim = store.claim("r0001", CYCLE, NOW, NOW + LEASE)

    assert claim is not None
    assert (claim.fence, claim.result) == (1, stored(store))
    assert store.claim("r0001", CYCLE, NOW, NOW + LEASE) is None


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_call_is_counted_once_although_its_answer_was_lost(
    store: DynamoRunStore, faulty: Clients, faults: Faults, others: int
) -> None:
    """Also where others counted between the two tries, and reached the cap with it."""
    claim, *rest = (claimed(store, a_result(number)) for number in range(3))
    other = DynamoRunStore(Table(faulty.dynamodb, store.table.name), S3Pages(faulty.s3, "none"))

    def overtaken(environ: dict[str, object]) -> bool:
        if not target("UpdateItem")(environ):
            return False
        faults.then.append(lambda: [other.begin_call(late, CYCLE, NOW, NOW + LEASE) for late in rest[:others]])
        return True

    faults.lost_answers.append(overtaken)
    begun = store.begin_call(claim, CYCLE, NOW, NOW + LEASE)

    assert begun is not None
    assert (begun.fence, store.call_begun(stored(store, "r0000"))) == (1, NOW)
    assert stored_cycle(store).calls == 1 + others
    assert begun.result == stored(store, "r0000")


@pytest.mark.parametrize("lost", ["renewal", "count"])
def test_a_renewed_call_is_counted_once_although_an_answer_was_lost(
    store: DynamoRunStore, faults: Faults, lost: str
) -> None:
    claim = claimed(store)
    faults.lost_answers.append(after({"renewal": 0, "count": 1}[lost], target("UpdateItem")))
    begun = store.begin_call(claim, CYCLE, NOW, NOW + 2 * LEASE)

    assert begun is not None
    assert (begun.fence, stored(store).fence, stored_cycle(store).calls) == (2, 2, 1)
    assert store.call_begun(stored(store)) == NOW


def test_a_refused_call_whose_answer_was_lost_is_still_refused(store: DynamoRunStore, faults: Faults) -> None:
    for number in range(3):
        store.begin_call(claimed(store, a_result(number)), CYCLE, NOW, NOW + LEASE)
    claim = claimed(store, a_result(3))
    faults.lost_answers.append(target("UpdateItem"))

    assert store.begin_call(claim, CYCLE, NOW, NOW + LEASE) is None
    assert stored_cycle(store).calls == 3


@pytest.mark.parametrize("lost", range(6))
def test_a_sweep_loses_nothing_with_an_answer(store: DynamoRunStore, faults: Faults, lost: int) -> None:
    """Lists first shortened, then given entries in the index, then deleted."""
    store.start_cycle(a_cycle(state=CycleState.DONE))
    results = [a_result(number, cycle=CYCLE) for number in range(3)]
    store.add_results(CYCLE, results)
    writes = [*(after(number, target("UpdateItem")) for number in range(4)), target("PutItem"), target("DeleteItem")]
    faults.lost_answers.append(writes[lost])
    for hours in range(2):
        store.purge(NOW + timedelta(hours=hours))

    assert list(store.results(states=frozenset({ResultState.WAITING}))) == results
    assert list(store.table.query("#pk = :found", {"found": FOUND})) == []


def test_a_verdict_and_its_run_are_written_although_the_answers_were_lost(
    store: DynamoRunStore, faults: Faults
) -> None:
    claim = claimed(store)
    faults.lost_answers += [target("PutItem"), target("UpdateItem")]

    assert store.put_run(a_run())
    assert store.finish(claim, ResultState.KEPT, NOW, verdict=VERDICT)
    assert stored(store).verdict == VERDICT


def test_the_refusal_of_a_lost_request_is_still_a_refusal(store: DynamoRunStore, faults: Faults) -> None:
    """Sent twice, but somebody else was first."""
    claim = claimed(store)
    store.finish(claim, ResultState.DISCARDED, NOW)
    faults.lost_answers.append(target("UpdateItem"))

    assert not store.finish(claim, ResultState.KEPT, NOW, verdict=VERDICT)
    assert stored(store).state is ResultState.DISCARDED


def test_a_permit_is_not_lost_with_its_answer(faulty: Clients, faults: Faults) -> None:
    gate = DynamoGate(make_table(faulty.dynamodb), 1)
    faults.lost_answers.append(target("UpdateItem"))
    permit = gate.acquire(Lane.KEEPER, "a", TTL, timedelta())

    assert isinstance(permit, Permit)
    assert gate.release(permit)


def test_a_file_is_created_and_replaced_although_the_answers_were_lost(wiki: S3Wiki, faults: Faults) -> None:
    faults.lost_answers.append(method("PUT"))
    etag = wiki.create("a.md", b"first")
    faults.lost_answers.append(method("PUT"))
    etag = wiki.replace("a.md", b"second", etag)

    found = wiki.read("a.md")
    assert found is not None
    assert (found.data, found.etag) == (b"second", etag)


def test_a_file_that_is_there_is_not_created_by_a_lost_request(wiki: S3Wiki, faults: Faults) -> None:
    wiki.create("a.md", b"first")
    faults.lost_answers.append(method("PUT"))

    with pytest.raises(WikiConflict):
        wiki.create("a.md", b"second")


@pytest.mark.parametrize("lost", ["PUT", "DELETE"])
def test_a_file_that_is_moved_is_not_lost_with_an_answer(wiki: S3Wiki, faults: Faults, lost: str) -> None:
    etag = wiki.create("a.md", b"a")
    faults.lost_answers.append(method(lost))
    wiki.move("a.md", "b.md", etag)

    assert wiki.read("a.md") is None
    assert list(wiki.keys("n/")) == []
    found = wiki.read("b.md")
    assert found is not None
    assert found.data == b"a"


def test_a_move_that_stopped_half_way_is_finished_by_the_next(wiki: S3Wiki) -> None:
    etag = wiki.create("a.md", b"a")

    class Killed(Exception):
        pass

    def dies(key: str, etag: str, *, must: bool = True) -> None:
        raise Killed

    dying = S3Wiki(wiki._client, wiki._bucket)
    dying._delete = dies  # type: ignore[method-assign]  # a crash between the copy and the removal
    with pytest.raises(Killed):
        dying.move("a.md", "b.md", etag)
    assert wiki.read("a.md") is not None

    wiki.move("a.md", "b.md", etag)
    assert wiki.read("a.md") is None
    assert wiki.read("b.md") is not None


def test_a_write_that_another_gets_in_the_way_of_is_tried_again(wiki: S3Wiki, faults: Faults) -> None:
    faults.conflicts += [method("PUT")] * 2

    etag = wiki.create("a.md", b"a")
    assert wiki.read("a.md") is not None
    faults.conflicts += [method("PUT")] * CONFLICT_TRIES
    with pytest.raises(WikiConflict):
        wiki.replace("a.md", b"b", etag)
