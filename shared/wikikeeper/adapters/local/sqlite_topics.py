"""The run store's topics: what the machine remembers of each."""

from collections.abc import Iterator
from datetime import date, datetime

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_rows import micros, topic_from
from wikikeeper.models import TopicState


class Topics:
    """The part of `RunStore` about topics. A topic exists from the first thing that is recorded of it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def topic(self, slug: str) -> TopicState:
        rows = self.database.read("SELECT * FROM topics WHERE slug = ?", (slug,))
        return topic_from(rows[0]) if rows else TopicState(slug=slug)

    def topics(self) -> Iterator[TopicState]:
        """By slug."""
        return map(topic_from, self.database.listing("topics", order=("slug", "slug")))

    def checked(self, slug: str, at: datetime, *, ran: bool) -> None:
        # The two-argument max() is NULL when either is, so the first value needs the way round it.
        self.database.change(
            """INSERT INTO topics (slug, last_check, last_run) VALUES (?, ?, ?)
            ON CONFLICT (slug) DO UPDATE SET
                last_check = coalesce(max(last_check, excluded.last_check), excluded.last_check),
                last_run = coalesce(max(last_run, excluded.last_run), excluded.last_run, last_run)""",
            (slug, micros(at), micros(at) if ran else None),
        )

    def end_topic(self, slug: str, until: date) -> bool:
        return self.database.change(
            """INSERT INTO topics (slug, ended) VALUES (?, ?)
            ON CONFLICT (slug) DO UPDATE SET ended = excluded.ended WHERE ended IS NOT excluded.ended""",
            (slug, until.isoformat()),
        )

    def set_note_due(self, slug: str, at: datetime) -> bool:
        return self.database.change(
            """INSERT INTO topics (slug, note_due) VALUES (?, ?)
            ON CONFLICT (slug) DO UPDATE SET note_due = excluded.note_due WHERE note_due IS NULL""",
            (slug, micros(at)),
        )

    def clear_note_due(self, slug: str) -> None:
        self.database.change("UPDATE topics SET note_due = NULL WHERE slug = ?", (slug,))

    def open_note(self, slug: str, key: str, *, instead_of: str | None) -> bool:
        if instead_of is None:
            return self.database.change(
                """INSERT INTO topics (slug, open_note) VALUES (?, ?)
                ON CONFLICT (slug) DO UPDATE SET open_note = excluded.open_note, open_note_started = 0
                WHERE open_note IS NULL""",
                (slug, key),
            )
        return self.database.change(
            "UPDATE topics SET open_note = ?, open_note_started = 0 WHERE slug = ? AND open_note = ?",
            (key, slug, instead_of),
        )

    def start_note(self, slug: str, key: str) -> None:
        self.database.change("UPDATE topics SET open_note_started = 1 WHERE slug = ? AND open_note = ?", (slug, key))
