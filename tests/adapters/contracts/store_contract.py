"""What every `RunStore` promises. A test class names a store by a fixture:

class TestMyStore(RunStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[RunStore]: ...
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    HASH,
    LEASE,
    NOW,
    TOPIC,
    a_cycle,
    a_result,
    add,
    stored,
    stored_cycle,
)
from tests.adapters.contracts.store_claims import ClaimsContract
from tests.adapters.contracts.store_cycles import CyclesContract
from tests.adapters.contracts.store_records import RecordsContract
from tests.adapters.contracts.store_results import ResultsContract
from tests.adapters.contracts.store_topics import TopicsContract

from wikikeeper.models import CycleState
from wikikeeper.ports import RunStore

THREADS = 8


T = TypeVar("T")


def all_at_once(work: Callable[[int], T]) -> list[T]:
    """The same work on eight threads, started together; each is told its number."""
    start = Barrier(THREADS)

    def one(number: int) -> T:
        start.wait(timeout=30)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


class RunStoreContract(TopicsContract, CyclesContract, ResultsContract, ClaimsContract, RecordsContract):
    @pytest.fixture
    def store(self) -> Iterator[RunStore]:
        raise NotImplementedError

    def test_of_racing_threads_one_claims_a_result(self, store: RunStore) -> None:
        for number in range(10):
            add(store, a_result(number))
            store.send_result(f"r{number:04}", CYCLE, instead_of=None)

        claims = all_at_once(lambda _: [store.claim(f"r{number:04}", CYCLE, NOW, NOW + LEASE) for number in range(10)])
        assert [sum(one is not None for one in of_result) for of_result in zip(*claims, strict=True)] == [1] * 10

    def test_racing_threads_begin_no_more_calls_than_the_cap(self, store: RunStore) -> None:
        store.start_cycle(a_cycle(cap=11))
        claims = []
        for number in range(4 * THREADS):
            add(store, a_result(number))
            store.send_result(f"r{number:04}", CYCLE, instead_of=None)
            claims.append(store.claim(f"r{number:04}", CYCLE, NOW, NOW + LEASE))

        def begin(thread: int) -> int:
            mine = [claim for claim in claims[thread::THREADS] if claim is not None]
            return sum(store.begin_call(claim, CYCLE, NOW, NOW + LEASE) is not None for claim in mine)

        assert sum(all_at_once(begin)) == 11
        assert stored_cycle(store).calls == 11
        assert sum(store.call_begun(stored(store, f"r{number:04}")) is not None for number in range(4 * THREADS)) == 11

    def test_of_racing_threads_one_starts_a_tick(self, store: RunStore) -> None:
        assert sum(all_at_once(lambda _: store.start_cycle(a_cycle()))) == 1

        store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=frozenset({CycleState.OPEN}))
        assert sum(all_at_once(lambda _: store.start_cycle(a_cycle()))) == 1
        assert stored_cycle(store).fence == 2

    def test_of_racing_threads_one_makes_a_note_due_and_one_opens_it(self, store: RunStore) -> None:
        assert sum(all_at_once(lambda _: store.set_note_due(TOPIC, NOW))) == 1
        assert sum(all_at_once(lambda number: store.open_note(TOPIC, f"{number}.md", instead_of=None))) == 1

    def test_racing_threads_agree_on_the_owner_of_a_text(self, store: RunStore) -> None:
        owners = set(all_at_once(lambda number: store.claim_text(TOPIC, HASH, f"r{number}")))
        assert len(owners) == 1

        (owner,) = owners
        taken_over = set(all_at_once(lambda n: store.claim_text(TOPIC, HASH, f"new-{n}", instead_of=owner)))
        assert len(taken_over) == 1

    def test_every_refusal_of_racing_threads_is_counted(self, store: RunStore) -> None:
        store.start_cycle(a_cycle())

        assert sorted(all_at_once(lambda _: store.count_refusal(CYCLE))) == list(range(1, THREADS + 1))
