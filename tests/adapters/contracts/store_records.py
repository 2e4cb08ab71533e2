"""What every run store promises about texts, pages, runs and alerts."""

import pytest
from tests.adapters.contracts.samples import HASH, NOW, SECOND, TOPIC, a_run, in_parallel

from wikikeeper.models import Alert, Run, StoredPage
from wikikeeper.ports import RunStore

ALERT = Alert(subject="model:decider", cause="unreachable", detail="connection refused; start it", raised=NOW)


def stored_run(store: RunStore, run: str) -> Run:
    found = store.run(run)
    assert found is not None
    return found


class RecordsContract:
    def test_the_first_result_owns_a_text(self, store: RunStore) -> None:
        assert store.claim_text(TOPIC, HASH, "r1") == "r1"
        assert store.claim_text(TOPIC, HASH, "r2") == "r1"
        assert store.claim_text(TOPIC, HASH, "r1") == "r1"

    def test_a_text_is_owned_per_topic(self, store: RunStore) -> None:
        store.claim_text(TOPIC, HASH, "r1")

        assert store.claim_text("other", HASH, "r2") == "r2"
        assert store.claim_text(TOPIC, "another text", "r2") == "r2"

    def test_a_text_is_taken_over_from_the_owner_that_was_seen(self, store: RunStore) -> None:
        store.claim_text(TOPIC, HASH, "r1")

        assert store.claim_text(TOPIC, HASH, "r2", instead_of="r1") == "r2"
        assert store.claim_text(TOPIC, HASH, "r3", instead_of="r1") == "r2"

    def test_a_page_is_read_as_it_was_put(self, store: RunStore) -> None:
        page = StoredPage(text_hash=HASH, paragraphs=("Größer 🐘", "a\u0000b", "", "語" * 5000), stored=NOW)
        store.put_page(page)

        assert store.page(HASH) == page
        assert store.page("unknown") is None

    def test_a_page_that_is_put_again_keeps_the_paragraphs_that_quotes_point_into(self, store: RunStore) -> None:
        page = StoredPage(text_hash=HASH, paragraphs=("a", "b"), stored=NOW)
        store.put_page(page)
        store.put_page(page.model_copy(update={"stored": NOW + SECOND, "paragraphs": ("a b",)}))

        kept = store.page(HASH)
        assert kept is not None
        assert kept.paragraphs == ("a", "b")

    def test_a_run_is_read_as_it_was_put(self, store: RunStore) -> None:
        run = a_run()

        assert store.put_run(run)
        assert store.run(run.id) == run
        assert store.run("unknown") is None

    def test_a_run_that_is_there_is_not_written_over(self, store: RunStore) -> None:
        store.put_run(a_run(title="first"))

        assert not store.put_run(a_run(title="second"))
        assert not store.put_run(a_run(outcome="lost"))
        assert stored_run(store, a_run().id) == a_run(title="first")

    @pytest.mark.parametrize("outcome", ["answered", "failed"])
    def test_an_answer_after_its_run_was_lost_is_stored_as_superseded(self, store: RunStore, outcome: str) -> None:
        store.put_run(a_run(outcome="lost", judgement=None, verdict=None))

        assert store.put_run(a_run(outcome=outcome))
        assert stored_run(store, a_run().id) == a_run(outcome="superseded")
        assert [run.id for run in store.runs(outcome="superseded")] == [a_run().id]
        assert list(store.runs(outcome="lost")) == []
        assert not store.put_run(a_run(outcome=outcome))

    @pytest.mark.parametrize(
        ("outcome", "afterwards"),
        [("answered", "superseded"), ("failed", "failed"), ("lost", "lost"), ("superseded", "superseded")],
    )
    def test_only_an_answer_is_superseded(self, store: RunStore, outcome: str, afterwards: str) -> None:
        run = a_run(outcome=outcome)
        store.supersede_run(run.id, run.started)
        assert store.run(run.id, run.started) is None
        store.put_run(run)
        store.put_run(a_run(2))

        store.supersede_run(run.id, run.started)

        assert stored_run(store, run.id) == a_run(outcome=afterwards)
        assert [each.id for each in store.runs(outcome="superseded")] == [run.id] * (afterwards == "superseded")
        assert stored_run(store, a_run(2).id) == a_run(2)

    def test_a_run_is_lost_once(self, store: RunStore) -> None:
        assert store.put_run(a_run(outcome="lost"))
        assert not store.put_run(a_run(outcome="lost"))
        assert stored_run(store, a_run().id).outcome == "lost"

    def test_runs_are_listed_newest_first(self, store: RunStore) -> None:
        in_parallel(store.put_run, [a_run(number, started=NOW + (number // 2) * SECOND) for number in range(250)])

        assert [run.id for run in store.runs()] == [a_run(number).id for number in reversed(range(250))]

    def test_runs_are_listed_by_topic_and_outcome(self, store: RunStore) -> None:
        store.put_run(a_run(1))
        store.put_run(a_run(2, outcome="failed"))
        store.put_run(a_run(3, topic="other", outcome="failed"))

        assert [run.subject for run in store.runs(topic=TOPIC)] == ["r0002", "r0001"]
        assert [run.subject for run in store.runs(outcome="failed")] == ["r0003", "r0002"]
        assert [run.subject for run in store.runs(topic=TOPIC, outcome="failed")] == ["r0002"]

    def test_a_listing_goes_on_while_its_reader_writes(self, store: RunStore) -> None:
        in_parallel(store.put_run, [a_run(number) for number in range(250)])

        seen = 0
        for run in store.runs():
            if seen % 50 == 0:
                store.put_run(a_run(1000 + seen, topic="other"))
            seen += run.topic == TOPIC

        assert seen == 250

    def test_an_alert_is_told_once_per_cause_until_its_subject_is_well(self, store: RunStore) -> None:
        assert store.raise_alert(ALERT)
        assert not store.raise_alert(ALERT.model_copy(update={"detail": "still", "raised": NOW + SECOND}))
        assert store.raise_alert(ALERT.model_copy(update={"cause": "model_missing"}))
        assert store.raise_alert(ALERT.model_copy(update={"subject": "search"}))

        store.clear_alerts(ALERT.subject)
        assert [alert.subject for alert in store.alerts()] == ["search"]
        assert store.raise_alert(ALERT)
        assert ALERT in list(store.alerts())

    def test_clearing_without_an_alert_changes_nothing(self, store: RunStore) -> None:
        store.clear_alerts("model:decider")

        assert list(store.alerts()) == []
