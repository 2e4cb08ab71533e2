"""The tables of the run store, as numbered migrations. A migration that was released is never changed.

Times are whole microseconds since 1970 in UTC: exact, and compared as numbers. A column is what a condition, an order
or an update names; the rest of a value lies in one JSON column. Indexes named `..._open` hold only what is unfinished,
so finding it costs the same however long the history is.
"""

import sqlite3
from pathlib import Path

from wikikeeper.errors import Unusable

OPEN_RESULTS = "state IN ('waiting', 'judging', 'parked')"
OPEN_CYCLES = "state IN ('open', 'expired', 'draining')"
UNNOTED_RESULTS = "state = 'kept' AND noted IS NULL"
"""Conditions of the partial indexes. SQLite uses such an index only for a query that repeats its condition."""

M001_FIRST = (
    """CREATE TABLE topics (
        slug TEXT PRIMARY KEY,
        last_check INTEGER,
        last_run INTEGER,
        open_note TEXT,
        open_note_started INTEGER NOT NULL DEFAULT 0,
        note_due INTEGER,
        ended TEXT
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE cycles (
        id TEXT PRIMARY KEY,
        topic TEXT NOT NULL,
        tick TEXT NOT NULL,
        state TEXT NOT NULL,
        started INTEGER NOT NULL,
        lease_until INTEGER,
        fence INTEGER NOT NULL,
        ended INTEGER,
        reason TEXT,
        problems TEXT NOT NULL,
        found INTEGER NOT NULL,
        new INTEGER NOT NULL,
        sent INTEGER NOT NULL,
        cap INTEGER NOT NULL,
        calls INTEGER NOT NULL CHECK (calls <= cap),
        cap_reached INTEGER NOT NULL,
        fetched INTEGER NOT NULL,
        answered INTEGER NOT NULL,
        refusals INTEGER NOT NULL,
        expires INTEGER
    ) STRICT""",
    "CREATE INDEX cycles_all ON cycles (started, id)",
    "CREATE INDEX cycles_of_topic ON cycles (topic, started, id)",
    "CREATE INDEX cycles_open ON cycles (started, id) WHERE state IN ('open', 'draining')",
    "CREATE INDEX cycles_expiring ON cycles (expires) WHERE expires IS NOT NULL",
    """CREATE TABLE results (
        id TEXT PRIMARY KEY,
        topic TEXT NOT NULL,
        canonical TEXT NOT NULL,
        revision INTEGER NOT NULL,
        title TEXT NOT NULL,
        about TEXT NOT NULL,
        found INTEGER NOT NULL,
        state TEXT NOT NULL,
        cycle TEXT,
        fence INTEGER NOT NULL,
        lease_until INTEGER,
        call_fence INTEGER,
        nonresponses INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        not_before INTEGER,
        failures TEXT NOT NULL,
        settled_cycle TEXT,
        text_hash TEXT,
        etag TEXT,
        last_modified TEXT,
        finished INTEGER,
        verdict TEXT,
        folded_into TEXT,
        noted TEXT,
        UNIQUE (topic, canonical, revision),
        CHECK ((state = 'judging') = (lease_until IS NOT NULL))
    ) STRICT""",
    "CREATE INDEX results_all ON results (found, id)",
    "CREATE INDEX results_of_topic ON results (topic, found, id)",
    f"CREATE INDEX results_open ON results (found, id, state) WHERE {OPEN_RESULTS}",
    f"CREATE INDEX results_of_topic_open ON results (topic, found, id, state) WHERE {OPEN_RESULTS}",
    f"CREATE INDEX results_unnoted ON results (topic, finished, id) WHERE {UNNOTED_RESULTS}",
    """CREATE TABLE texts (
        topic TEXT NOT NULL,
        text_hash TEXT NOT NULL,
        owner TEXT NOT NULL,
        PRIMARY KEY (topic, text_hash)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE pages (
        text_hash TEXT PRIMARY KEY,
        stored INTEGER NOT NULL,
        paragraphs BLOB NOT NULL,
        expires INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX pages_expiring ON pages (expires)",
    """CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        topic TEXT NOT NULL,
        started INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        body TEXT NOT NULL,
        expires INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX runs_all ON runs (started, id)",
    "CREATE INDEX runs_of_topic ON runs (topic, started, id)",
    "CREATE INDEX runs_of_outcome ON runs (outcome, started, id)",
    "CREATE INDEX runs_expiring ON runs (expires)",
    """CREATE TABLE alerts (
        subject TEXT NOT NULL,
        cause TEXT NOT NULL,
        detail TEXT NOT NULL,
        raised INTEGER NOT NULL,
        PRIMARY KEY (subject, cause)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE slots (
        slot INTEGER PRIMARY KEY,
        fence INTEGER NOT NULL,
        holder TEXT,
        lane TEXT,
        until INTEGER NOT NULL
    ) STRICT""",
)

M002_GATE_AND_REAPER = (
    "ALTER TABLE results ADD COLUMN call_started INTEGER",
    "ALTER TABLE cycles ADD COLUMN active INTEGER",
    """CREATE TABLE silences (
        subject TEXT PRIMARY KEY,
        nonresponses INTEGER NOT NULL,
        since INTEGER NOT NULL,
        counted INTEGER NOT NULL,
        cooldown_until INTEGER
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE escalations (
        id TEXT PRIMARY KEY,
        raised INTEGER NOT NULL,
        delivered INTEGER,
        body TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX escalations_all ON escalations (raised, id)",
    "CREATE INDEX escalations_undelivered ON escalations (raised, id) WHERE delivered IS NULL",
    """CREATE TABLE sightings (
        model TEXT NOT NULL,
        since INTEGER NOT NULL,
        condition TEXT NOT NULL,
        cause TEXT NOT NULL,
        detail TEXT NOT NULL,
        PRIMARY KEY (model, since)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX sightings_all ON sightings (since, model)",
    """CREATE TABLE demands (
        lane TEXT NOT NULL,
        who TEXT NOT NULL,
        since INTEGER NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (lane, who)
    ) STRICT, WITHOUT ROWID""",
)

M003_WEB = (
    """CREATE TABLE labels (
        result TEXT PRIMARY KEY,
        drawn INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
)

M004_HOOKS = (
    """CREATE TABLE deliveries (
        key TEXT PRIMARY KEY,
        finished INTEGER,
        expires INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX deliveries_expiring ON deliveries (expires)",
)

M005_EXPIRED_IS_UNFINISHED = (
    # Until then it was an end: what lies there has been over for long, and must not be begun again.
    "UPDATE cycles SET state = 'stopped' WHERE state = 'expired'",
    "DROP INDEX cycles_open",
    "CREATE INDEX cycles_open ON cycles (started, id) WHERE state IN ('open', 'expired', 'draining')",
)

MIGRATIONS = (M001_FIRST, M002_GATE_AND_REAPER, M003_WEB, M004_HOOKS, M005_EXPIRED_IS_UNFINISHED)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to the newest version, in one transaction. Raises Unusable for a file of a newer wikikeeper."""
    if _version(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have migrated while this one waited for the lock.
        for statements in MIGRATIONS[_version(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise Unusable(
            f"{path} was written by a newer wikikeeper (schema {version}, this one knows {len(MIGRATIONS)}): "
            "install that version again"
        )
    return version
