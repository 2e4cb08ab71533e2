"""What every run store promises to the pages: a page of runs or cycles at a time, labels, who is at the gate."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.adapters.contracts.samples import LEASE, NOW, SECOND, TOPIC, VERDICT, a_cycle, a_run, in_parallel

from wikikeeper.adapters.gate_slots import Slots
from wikikeeper.models import Kind, Label, Lane, Permit, Run, Should, Trigger
from wikikeeper.policy.gate import Demand
from wikikeeper.policy.run_filter import Cursor, Ended, RunFilter
from wikikeeper.ports_web import WebStore

ALL = RunFilter()
DROPPED = VERDICT.model_copy(update={"kept": False, "reason": "not_useful"})
INJECTED = VERDICT.model_copy(update={"kept": False, "reason": "injection"})


def a_label(result: str = "r0001", **changes: object) -> Label:
    label = Label(result=result, run=f"{result}-2", topic=TOPIC, should=Should.KEPT, at=NOW, drawn=False)
    return label.model_copy(update=changes)


def of_all_sorts() -> list[Run]:
    runs = []
    for number in range(60):
        more: dict[str, object] = {"topic": ("a", "b", "c")[number % 3], "kind": list(Kind)[number % 4]}
        if number % 5 == 1:
            more |= {"outcome": "failed", "verdict": None, "judgement": None, "kept": None, "kind": None}
        elif number % 5 == 2:
            more |= {"verdict": DROPPED, "kept": False}
        elif number % 5 == 3:
            more |= {"verdict": INJECTED, "kept": False}
        elif number % 7 == 4:
            more |= {"outcome": "superseded"}
        runs.append(a_run(number, started=NOW + (number // 4) * SECOND, **more))
    return runs


def filters() -> st.SearchStrategy[RunFilter]:
    moments = st.none() | st.integers(-1, 16).map(lambda seconds: NOW + seconds * SECOND)
    return st.builds(
        RunFilter,
        topic=st.sampled_from([None, "a", "b", "nobody"]),
        trigger=st.sampled_from([None, Trigger.TRIAGE]),
        ended=st.none() | st.sampled_from(Ended),
        kind=st.none() | st.sampled_from(Kind),
        since=moments,
        until=moments,
    )


def paging(examples: int) -> Callable[..., None]:
    """The test of so many filters and sizes of a page; over a network each costs a hundred requests."""

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(chosen=filters(), most=st.integers(1, 20), most_read=st.integers(1, 25))
    def pages_hold_exactly_what_matches(
        self: object,
        store: WebStore,
        chosen: RunFilter,
        most: int,
        most_read: int,
    ) -> None:
        if not next(store.runs(), None):
            in_parallel(store.put_run, of_all_sorts())

        seen: list[Run] = []
        cursor: Cursor | None = None
        for _ in range(200):
            page = store.run_page(chosen, after=cursor, most=most, most_read=max(most, most_read))
            assert len(page.runs) <= most
            assert page.searched == (page.next is not None and len(page.runs) < most)
            seen += page.runs
            cursor = page.next
            if cursor is None:
                break
        assert cursor is None
        assert seen == [run for run in store.runs() if chosen.matches(run)]

    return pages_hold_exactly_what_matches


class WebContract:
    @pytest.fixture
    def store(self) -> Iterator[WebStore]:
        raise NotImplementedError

    def slots(self, store: WebStore) -> Slots:
        """The gate's part of this store, for which it is NOW."""
        raise NotImplementedError

    test_pages_of_any_filter_and_size_hold_exactly_what_matches = paging(60)

    def test_a_page_reads_no_more_than_it_is_told(self, store: WebStore) -> None:
        in_parallel(
            store.put_run, [a_run(number, kind=Kind.SPAM if number == 0 else Kind.RELEASE) for number in range(30)]
        )
        wanted = RunFilter(kind=Kind.SPAM)

        first = store.run_page(wanted, after=None, most=5, most_read=10)
        assert (first.runs, first.searched) == ((), True)
        assert first.next == Cursor(started=a_run(20).started, id=a_run(20).id)

    def test_an_empty_store_has_an_empty_page(self, store: WebStore) -> None:
        page = store.run_page(ALL, after=None, most=5, most_read=5)

        assert (page.runs, page.next, page.searched) == ((), None, False)

    def test_runs_that_come_while_somebody_pages_shift_nothing(self, store: WebStore) -> None:
        in_parallel(store.put_run, [a_run(number) for number in range(10)])
        first = store.run_page(ALL, after=None, most=4, most_read=4)
        store.put_run(a_run(500))

        second = store.run_page(ALL, after=first.next, most=4, most_read=4)
        assert [run.id for run in second.runs] == [a_run(number).id for number in (5, 4, 3, 2)]

    def test_cycles_are_paged_newest_first(self, store: WebStore) -> None:
        for number in range(7):
            topic = TOPIC if number % 2 else "other"
            store.start_cycle(
                a_cycle(
                    id=f"{topic}#{number}", topic=topic, tick=str(number), started=NOW + timedelta(minutes=number // 2)
                )
            )

        seen, cursor = [], None
        while True:
            page = store.cycle_page(None, after=cursor, most=3)
            seen += [cycle.id for cycle in page.cycles]
            cursor = page.next
            if cursor is None:
                break
        assert seen == [cycle.id for cycle in store.cycles()]
        assert [cycle.tick for cycle in store.cycle_page(TOPIC, after=None, most=9).cycles] == ["5", "3", "1"]

    def test_a_label_is_read_as_it_was_put_and_a_later_one_takes_its_place(self, store: WebStore) -> None:
        store.put_label(a_label())
        store.put_label(a_label("r0002", should=Should.DISCARDED))
        assert store.labels_of(["r0001", "nobody"]) == {"r0001": a_label()}
        assert [label.result for label in store.labels()] == ["r0001", "r0002"]
        assert store.labels_of([]) == {}

        later = a_label(should=Should.DISCARDED, at=NOW + SECOND)
        store.put_label(later)
        assert store.labels_of(["r0001"]) == {"r0001": later}

    def test_a_drawn_result_stays_drawn(self, store: WebStore) -> None:
        store.put_label(a_label(drawn=True))
        store.put_label(a_label(should=Should.DISCARDED))

        assert store.labels_of(["r0001"]) == {"r0001": a_label(should=Should.DISCARDED, drawn=True)}

    def test_there_are_more_labels_than_are_read_at_once(self, store: WebStore) -> None:
        results = [f"r{number:04}" for number in range(105)]
        in_parallel(store.put_label, map(a_label, results))

        assert sorted(store.labels_of([*results, "nobody", *results])) == results
        assert [label.result for label in store.labels()] == results

    def test_a_range_of_time_that_ends_before_it_begins_is_empty(self, store: WebStore) -> None:
        store.put_run(a_run())

        page = store.run_page(RunFilter(since=NOW + LEASE, until=NOW), after=None, most=5, most_read=5)
        assert (page.runs, page.next) == ((), None)

    def test_the_farthest_times_a_person_can_ask_for_are_no_fault(self, store: WebStore) -> None:
        store.put_run(a_run())
        first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

        page = store.run_page(RunFilter(since=first, until=last), after=None, most=5, most_read=5)
        assert page.runs == (a_run(),)
        page = store.run_page(ALL, after=Cursor(started=last, id="a"), most=5, most_read=5)
        assert page.runs == (a_run(),)
        cycles = store.cycle_page(None, after=Cursor(started=last, id="a"), most=5)
        assert cycles.cycles == ()

    def test_who_holds_a_permit_is_listed_until_it_ends(self, store: WebStore) -> None:
        assert store.permits(NOW) == []
        slots = self.slots(store)
        for slot in (11, 2, 1):
            slots.take(slot, f"host:{slot}", Lane.KEEPER, NOW + LEASE, fences=3)
        slots.give_back(1, 3)

        held = [
            Permit(slot=slot, holder=f"host:{slot}", lane=Lane.KEEPER, fence=3, until=NOW + LEASE) for slot in (2, 11)
        ]
        assert store.permits(NOW) == held
        assert store.permits(NOW + LEASE) == []

    def test_who_waits_at_the_gate_is_listed_until_they_stop(self, store: WebStore) -> None:
        assert store.demands(NOW) == []
        slots = self.slots(store)
        slots.want("host:1", Lane.PLEB, NOW - SECOND, NOW + LEASE)
        slots.want("host:2", Lane.KEEPER, NOW, NOW + LEASE)
        slots.want("host:1", Lane.KEEPER, NOW - 2 * SECOND, NOW + LEASE)
        slots.want("host:3", Lane.KEEPER, NOW - 3 * SECOND, NOW + LEASE)
        slots.unwant("host:3", Lane.KEEPER)

        assert store.demands(NOW) == [
            Demand(Lane.KEEPER, NOW - 2 * SECOND, "host:1"),
            Demand(Lane.PLEB, NOW - SECOND, "host:1"),
            Demand(Lane.KEEPER, NOW, "host:2"),
        ]
        assert store.demands(NOW + LEASE) == []
        assert store.permits(NOW) == [], "who waits holds nothing"
