"""What every run store promises about topics."""

from datetime import date, timedelta

from tests.adapters.contracts.samples import NOW, SECOND, TOPIC

from wikikeeper.models import TopicState
from wikikeeper.ports import RunStore

LAST_DAY = date(2026, 6, 30)


class TopicsContract:
    def test_a_topic_that_was_never_seen_is_empty(self, store: RunStore) -> None:
        assert store.topic(TOPIC) == TopicState(slug=TOPIC)
        assert list(store.topics()) == []

    def test_topics_are_listed_with_what_is_known_of_each(self, store: RunStore) -> None:
        store.checked("zebra", NOW, ran=True)
        store.set_note_due("ameise", NOW)

        assert sorted(store.topics(), key=lambda topic: topic.slug) == [
            TopicState(slug="ameise", note_due=NOW),
            TopicState(slug="zebra", last_check=NOW, last_run=NOW),
        ]

    def test_a_check_that_ran_nothing_leaves_the_last_run(self, store: RunStore) -> None:
        store.checked(TOPIC, NOW, ran=True)
        store.checked(TOPIC, NOW + SECOND, ran=False)

        assert (store.topic(TOPIC).last_check, store.topic(TOPIC).last_run) == (NOW + SECOND, NOW)

    def test_a_first_run_after_checks_is_recorded(self, store: RunStore) -> None:
        store.checked(TOPIC, NOW, ran=False)
        assert store.topic(TOPIC).last_run is None

        store.checked(TOPIC, NOW + SECOND, ran=True)
        assert store.topic(TOPIC).last_run == NOW + SECOND

    def test_last_check_and_last_run_never_move_backwards(self, store: RunStore) -> None:
        store.checked(TOPIC, NOW, ran=True)
        store.checked(TOPIC, NOW - timedelta(days=1), ran=True)

        assert (store.topic(TOPIC).last_check, store.topic(TOPIC).last_run) == (NOW, NOW)

    def test_a_late_report_of_an_older_run_is_still_a_run(self, store: RunStore) -> None:
        store.checked(TOPIC, NOW, ran=False)
        store.checked(TOPIC, NOW - SECOND, ran=True)

        assert (store.topic(TOPIC).last_check, store.topic(TOPIC).last_run) == (NOW, NOW - SECOND)

    def test_only_one_caller_ends_a_topic(self, store: RunStore) -> None:
        assert store.end_topic(TOPIC, LAST_DAY)
        assert not store.end_topic(TOPIC, LAST_DAY)
        assert store.topic(TOPIC).ended == LAST_DAY

    def test_a_topic_that_went_on_and_ends_again_is_ended_again(self, store: RunStore) -> None:
        store.end_topic(TOPIC, LAST_DAY)

        assert store.end_topic(TOPIC, LAST_DAY + timedelta(days=7))

    def test_a_topic_that_was_seen_can_be_ended(self, store: RunStore) -> None:
        store.checked(TOPIC, NOW, ran=False)

        assert store.end_topic(TOPIC, LAST_DAY)
        assert store.topic(TOPIC).last_check == NOW

    def test_a_note_is_made_due_by_one_caller_until_it_is_cleared(self, store: RunStore) -> None:
        assert store.set_note_due(TOPIC, NOW)
        assert not store.set_note_due(TOPIC, NOW + SECOND)
        assert store.topic(TOPIC).note_due == NOW

        store.clear_note_due(TOPIC)
        assert store.topic(TOPIC).note_due is None
        assert store.set_note_due(TOPIC, NOW + SECOND)

    def test_clearing_what_is_not_due_changes_nothing(self, store: RunStore) -> None:
        store.clear_note_due(TOPIC)

        assert store.topic(TOPIC) == TopicState(slug=TOPIC)

    def test_only_the_first_opens_a_note(self, store: RunStore) -> None:
        assert store.open_note(TOPIC, "inbox/a.md", instead_of=None)
        assert not store.open_note(TOPIC, "inbox/b.md", instead_of=None)
        assert store.topic(TOPIC).open_note == "inbox/a.md"

    def test_a_note_is_opened_instead_of_the_one_that_was_seen(self, store: RunStore) -> None:
        assert not store.open_note(TOPIC, "inbox/b.md", instead_of="inbox/a.md")
        store.open_note(TOPIC, "inbox/a.md", instead_of=None)

        assert store.open_note(TOPIC, "inbox/b.md", instead_of="inbox/a.md")
        assert not store.open_note(TOPIC, "inbox/c.md", instead_of="inbox/a.md")
        assert store.topic(TOPIC).open_note == "inbox/b.md"

    def test_a_note_is_started_until_another_opens(self, store: RunStore) -> None:
        store.open_note(TOPIC, "inbox/a.md", instead_of=None)
        assert not store.topic(TOPIC).open_note_started

        store.start_note(TOPIC, "inbox/a.md")
        assert store.topic(TOPIC).open_note_started

        store.open_note(TOPIC, "inbox/b.md", instead_of="inbox/a.md")
        assert not store.topic(TOPIC).open_note_started

    def test_starting_a_note_that_is_not_the_open_one_changes_nothing(self, store: RunStore) -> None:
        store.open_note(TOPIC, "inbox/b.md", instead_of=None)
        store.start_note(TOPIC, "inbox/a.md")

        assert not store.topic(TOPIC).open_note_started
