"""The run store's topics: what the machine remembers of each."""

from collections.abc import Iterator
from datetime import date, datetime

from wikikeeper.adapters.aws.dynamodb_items import TOPICS, micros, topic_from, topic_key
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.models import TopicState


class Topics:
    """The part of `RunStore` about topics. A topic exists from the first thing that is recorded of it."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def topic(self, slug: str) -> TopicState:
        item = self.table.get(topic_key(slug))
        return TopicState(slug=slug) if item is None else topic_from(item)

    def topics(self) -> Iterator[TopicState]:
        """By slug."""
        return map(topic_from, self.table.query("#pk = :topics", {"topics": TOPICS}))

    def checked(self, slug: str, at: datetime, *, ran: bool) -> None:
        names = ("last_check", "last_run") if ran else ("last_check",)
        # Nearly always both move forwards, in one write. Only a late report has to be told apart.
        if not self._moved_forwards(slug, names, at) and ran:
            for name in names:
                self._moved_forwards(slug, (name,), at)

    def _moved_forwards(self, slug: str, names: tuple[str, ...], at: datetime) -> bool:
        when = " AND ".join(f"(attribute_not_exists(#{name}) OR #{name} < :at)" for name in names)
        changes = dict.fromkeys(names, micros(at))
        return self.table.change(topic_key(slug), changes, when, {"at": micros(at)}) is not None

    def end_topic(self, slug: str, until: date) -> bool:
        ended = until.isoformat()
        another_day = "attribute_not_exists(#ended) OR #ended <> :ended"
        return self.table.change(topic_key(slug), {"ended": ended}, another_day, {"ended": ended}) is not None

    def set_note_due(self, slug: str, at: datetime) -> bool:
        # Every kept result comes here, and most find it due: a look costs a fifth of a write that is refused.
        if self.topic(slug).note_due is not None:
            return False
        due = {"note_due": micros(at)}
        return self.table.change(topic_key(slug), due, "attribute_not_exists(#note_due)") is not None

    def clear_note_due(self, slug: str) -> None:
        self.table.change(topic_key(slug), {"note_due": None}, "attribute_exists(#note_due)")

    def open_note(self, slug: str, key: str, *, instead_of: str | None) -> bool:
        opened = {"open_note": key, "open_note_started": None}
        if instead_of is None:
            changed = self.table.change(topic_key(slug), opened, "attribute_not_exists(#open_note)")
        else:
            changed = self.table.change(topic_key(slug), opened, "#open_note = :instead_of", {"instead_of": instead_of})
        return changed is not None

    def start_note(self, slug: str, key: str) -> None:
        self.table.change(
            topic_key(slug),
            {"open_note_started": True},
            "#open_note = :key AND attribute_not_exists(#open_note_started)",
            {"key": key},
        )
