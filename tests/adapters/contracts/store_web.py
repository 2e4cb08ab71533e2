"""What every run store promises to the pages: a page of runs or cycles at a time, labels, permits."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.adapters.contracts.samples import NOW, SECOND, TOPIC, VERDICT, a_cycle, a_run, in_parallel

from wikikeeper.models import Kind, Label, Run, Should, Trigger
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


class WebContract:
    @pytest.fixture
    def store(self) -> Iterator[WebStore]:
        raise NotImplementedError

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(chosen=filters(), most=st.integers(1, 20), most_read=st.integers(1, 25))
    def test_pages_of_any_filter_and_size_hold_exactly_what_matches(
        self, store: WebStore, chosen: RunFilter, most: int, most_read: int
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

    def test_nobody_holds_a_permit_of_a_new_store(self, store: WebStore) -> None:
        assert store.permits(NOW) == []
