"""Bring a topic's open note up to date with everything that is kept and not noted.

clear note_due ── read kept, not noted ── open the note ── write the file ── note started ── mark noted
       │                                      │                │                 │               └ a crash before: the
       │                                      │                │                 │   entry is found in the file by its
       │                                      │                │                 │   id, and only marked
       │                                      │                │                 └ from now on a missing file means that
       │                                      │                │                   a person moved or deleted it
       │                                      │                └ exclusive create or conditional replace; changed
       │                                      │                  meanwhile: read again, add below
       │                                      └ the key is set on the topic before the file is made: two writers agree
       └ a verdict after this sets it again and sends a command of its own

Results that were noted once are never written again, so an entry that a person deleted stays deleted.
"""

from wikikeeper.errors import WikiConflict
from wikikeeper.models import Result, Send, Topic, TopicState, WriteNote
from wikikeeper.policy import notes
from wikikeeper.workflows.context import App

MOST_TRIES = 20
"""Conflicts with other writers of one note before giving up until the next tick; each needs another write in between."""


def write_note(command: WriteNote, app: App) -> list[Send]:
    """Write what is kept and not noted. Writing again changes no byte."""
    topic = app.topic(command.topic)
    app.store.clear_note_due(command.topic)
    kept = list(app.store.unnoted(command.topic))
    if topic is None or not kept:
        return []
    for _ in range(MOST_TRIES):
        state = app.store.topic(topic.slug)
        kept = _not_in_a_moved_note(state.open_note, kept, app)
        if not kept:
            app.store.heard(f"note:{topic.slug}")
            return []
        key = _open_note(topic, state, kept, app)
        if key is None:
            continue
        try:
            written = _write(topic, key, kept, app)
        except WikiConflict:
            continue
        app.store.heard(f"note:{topic.slug}")
        if written:
            app.reporter.event("note_written", topic=topic.slug, note=key, entries=written)
        return []
    app.store.set_note_due(topic.slug, app.clock.now())
    app.reporter.event("note_contended", topic=topic.slug)
    return []


def _not_in_a_moved_note(key: str | None, kept: list[Result], app: App) -> list[Result]:
    """Mark what a person has already moved away: the writer died before it could, and it must not be noted twice."""
    moved = app.wiki.read(notes.completed_key(key)) if key is not None and app.wiki.read(key) is None else None
    if key is None or moved is None:
        return kept
    there = notes.entry_ids(moved.data)
    app.store.start_note(kept[0].topic, key)
    app.store.mark_noted([result.id for result in kept if result.id in there], key)
    return [result for result in kept if result.id not in there]


def _open_note(topic: Topic, state: TopicState, kept: list[Result], app: App) -> str | None:
    """The key of the note that new entries join. None: another writer opened one just now, look again."""
    key = state.open_note
    if key is not None and (not state.open_note_started or app.wiki.read(key) is not None):
        return key
    fresh = notes.note_key(topic, app.clock.now(), kept[0].id)
    return fresh if app.store.open_note(topic.slug, fresh, instead_of=key) else None


def _write(topic: Topic, key: str, kept: list[Result], app: App) -> int:
    """Add the entries that the note lacks; how many that were. Raises WikiConflict if the file changed meanwhile."""
    document = app.wiki.read(key)
    there = notes.entry_ids(document.data) if document else frozenset[str]()
    missing = [result for result in kept if result.id not in there]
    if document is None:
        app.wiki.create(key, notes.new_note(topic, notes.opened_on(key), missing))
    elif missing:
        app.wiki.replace(key, notes.with_entries(document.data, missing), document.etag)
    app.store.start_note(topic.slug, key)
    app.store.mark_noted([result.id for result in kept], key)
    return len(missing)
