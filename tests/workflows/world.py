"""A whole App for workflow tests: real stores on a temporary folder, scripted pages, search and Keeper."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.gate import SqliteGate
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.adapters.local.threads import ThreadHost
from wikikeeper.dispatch import dispatch
from wikikeeper.errors import SearchFailed
from wikikeeper.fakes import (
    ListedSearch,
    ListedSource,
    PageShelf,
    PlainExtractor,
    RecordingReporter,
    ScriptedDecider,
    ScriptedKeeper,
    SettableClock,
)
from wikikeeper.models import CloseCycle, Cycle, Found, Origin, Result, ResultState, Run, Send, StartCycle, Thresholds
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows.context import App, Rules

TOPIC = """---
title: Postgres releases
links: [https://example.org/a]
schedule: {cron: "0 7 * * *", zone: Europe/Berlin}
---
What is new in Postgres, with facts that help to decide on an upgrade.
"""

RULES = Rules(
    thresholds=Thresholds(keep=0.6, injection=0.5),
    quote_max_chars=200,
    max_chars=2000,
    max_attempts=3,
    cycle_cap=100,
    recheck_after=None,
    note_delay=timedelta(seconds=30),
    judge_lease=timedelta(seconds=200),
    call_lease=timedelta(seconds=100),
    cycle_lease=timedelta(seconds=100),
    source_deadline=timedelta(seconds=10),
    call_deadline=timedelta(seconds=90),
    permit_lease=timedelta(seconds=100),
    patience=timedelta(seconds=0.05),
    wake_timeout=timedelta(minutes=10),
    recovery_limit=3,
    cooldown=timedelta(hours=6),
    silence_after=timedelta(minutes=16),
)


@dataclass
class World:
    """The App and the scripted parts of it, with what a person would do and see."""

    app: App
    root: Path
    clock: SettableClock
    keeper: ScriptedKeeper
    decider: ScriptedDecider
    shelf: PageShelf
    search: ListedSearch
    reporter: RecordingReporter
    database: Database
    ticks: int = 0

    def topic(self, slug: str = "postgres", text: str = TOPIC) -> None:
        (self.root / "topics").mkdir(exist_ok=True)
        (self.root / "topics" / f"{slug}.md").write_text(text)

    def pages(self, **pages: str | Exception) -> None:
        """Pages named a, b, ... at https://example.org/, found by the search from now on."""
        self.shelf.pages |= {url_of(name): page for name, page in pages.items()}
        found = [Found(url=url, title=url[-1].upper(), origin=Origin.SEARCH) for url in self.shelf.pages]
        self.search.all = [ListedSource("search", found)]

    def outage(self, cause: str) -> None:
        self.search.all.append(ListedSource("out", SearchFailed(cause, "it is down")))

    def run(self, *sends: Send) -> list[Exception]:
        """Carry commands, and all that follow, on four threads."""
        host = ThreadHost(
            lambda command: dispatch(command, self.app),
            self.reporter,
            workers=4,
            hurry=lambda command: command.kind != "start_cycle",
        )
        host.run(sends)
        return host.errors

    def cycle(self, slug: str = "postgres") -> Cycle:
        """One whole cycle; it must raise nothing."""
        self.ticks += 1
        tick = f"tick-{self.ticks}"
        errors = self.run(Send(command=StartCycle(topic=slug, tick=tick)))
        # The host is idle: what would be the next tick's work closes the cycle now.
        errors += self.run(Send(command=CloseCycle(cycle=cycle_id(slug, tick))))
        assert errors == []
        cycle = self.app.store.cycle(cycle_id(slug, tick))
        assert cycle is not None
        return cycle

    def result(self, name: str, topic: str = "postgres") -> Result:
        found = self.app.store.latest(topic, url_of(name))
        assert found is not None
        return found

    def states(self) -> dict[str, ResultState]:
        return {result.url[-1]: result.state for result in self.app.store.results()}

    def runs(self) -> list[Run]:
        return list(self.app.store.runs())

    def notes(self) -> dict[str, str]:
        keys = self.app.wiki.keys("inbox/")
        return {key: (self.root / key).read_text() for key in keys}


def url_of(name: str) -> str:
    return f"https://example.org/{name}"


@contextmanager
def open_world(folder: Path) -> Iterator[World]:
    """A world with the topic `postgres` in an empty folder."""
    (folder / "topics").mkdir()
    (folder / ".wikikeeper").mkdir(mode=0o700)
    clock, keeper, decider, shelf = SettableClock(), ScriptedKeeper(), ScriptedDecider(), PageShelf()
    search, reporter = ListedSearch(), RecordingReporter()
    database = Database(folder / ".wikikeeper" / "state.sqlite")
    app = App(
        store=SqliteRunStore(database),
        wiki=FolderWiki(folder),
        search=search,
        fetcher=shelf,
        extractor=PlainExtractor(),
        keeper=keeper,
        decider=decider,
        gate=SqliteGate(database, 2),
        clock=clock,
        reporter=reporter,
        rules=RULES,
        holder="test",
    )
    made = World(app, folder, clock, keeper, decider, shelf, search, reporter, database)
    made.topic()
    try:
        yield made
    finally:
        database.close()
