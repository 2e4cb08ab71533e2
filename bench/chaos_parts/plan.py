"""What goes wrong in a chaos run, and where: drawn from the seed before anything starts, so that it can be repeated.

Times are of this machine and not of the seed: which worker has a result when its order strikes differs from run to run.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Literal

from wikikeeper.policy.identity import result_id
from wikikeeper.policy.urls import canonical, folder_url

CALL_SECONDS, DEADLINE = 0.1, 1.0
LEASE = timedelta(seconds=1.5)
"""Of claims and permits: longer than a call can take, so that only one who is dead or frozen outlives it."""
STOPPED = 3 * LEASE
LIMIT = 4
TOPIC_SIZE = 200
"""Results of one topic: a note with a few dozen entries is what a person could still read."""
CAP = 206
"""Calls of a cycle: what its kills repeat reaches it now and then."""

KILLED_SHARE, STOPPED_SHARE, PLANTED_SHARE, REAPERS_KILLED_SHARE = 0.05, 0.003, 0.01, 0.004
FEWEST = 3
"""Of each, however few results there are."""
BUSY_SHARE, RESET_SHARE, HANG_SHARE = 0.10, 0.05, 0.01

Broken = Literal["fence", "counter", "note"]


class Point(StrEnum):
    """Where a worker is struck, in the order in which one result comes by."""

    CLAIMED = "after claim"
    FETCHED = "page read"
    COUNTED = "before the call"
    CALLING = "during the call"
    CALLED = "after the call, no run record"
    RECORDED = "run record, no verdict"
    FINISHED = "after finish"
    DUE = "between verdict and note"
    NOTING = "note begun, nothing written"
    TORN = "inside the note write, half written"
    UNNAMED = "inside the note write, not yet in place"
    UNMARKED = "note written, not marked"
    FREED = "reaper: claim freed, no lost run"
    LOST_RECORDED = "reaper: lost run recorded, nothing sent"
    GIVEN_UP = "reaper: parked, no escalation"
    ESCALATED = "reaper: escalation recorded, not told"
    TOLD = "reaper: escalation told, not marked"


KILLING = (
    Point.CLAIMED,
    Point.CALLING,
    Point.RECORDED,
    Point.DUE,
    Point.TORN,
    Point.COUNTED,
    Point.FINISHED,
    Point.UNMARKED,
    Point.CALLED,
    Point.UNNAMED,
    Point.FETCHED,
    Point.NOTING,
)
"""In turn: a few kills already strike on both sides of each step that matters."""
NOTING = frozenset({Point.NOTING, Point.TORN, Point.UNNAMED, Point.UNMARKED})
REAPING = (Point.FREED, Point.GIVEN_UP, Point.LOST_RECORDED, Point.ESCALATED, Point.TOLD)
STOPPING = (Point.COUNTED, Point.CALLED, Point.RECORDED)
"""All with the permit in hand: before the call it may go over the limit, after it the verdict is late."""
PLANTED_AT = (*[Point.FETCHED] * 9, Point.CALLING)
"""A page that kills does so when it is read, mostly; one in ten takes its worker along during the call."""


@dataclass(frozen=True)
class Order:
    """What happens to the worker that comes to a point."""

    do: Literal["kill", "stop", "hold"]
    at: Point


@dataclass(frozen=True)
class Run:
    """One of the two runs of the bench."""

    root: Path
    results: int
    processes: int
    seed: int
    disturbed: bool
    broken: Broken | None
    base_url: str

    @property
    def wiki(self) -> Path:
        return self.root / "wiki"

    @property
    def journal(self) -> Path:
        return self.root / "journal"


@dataclass(frozen=True)
class Page:
    """A saved page, and the result that it becomes."""

    number: int
    topic: str
    path: PurePosixPath
    result: str


def pages(results: int) -> list[Page]:
    """As many pages as results are wanted, topic by topic."""
    made = []
    for number in range(results):
        topic = f"subject-{number // TOPIC_SIZE:03}"
        path = PurePosixPath("pages") / topic / f"{number:06}.md"
        made.append(Page(number, topic, path, result_id(topic, canonical(folder_url(path)), 1)))
    return made


def write_wiki(wiki: Path, made: Iterable[Page]) -> None:
    for page in made:
        file = wiki / page.path
        if not file.parent.exists():
            file.parent.mkdir(parents=True)
            (wiki / "topics").mkdir(exist_ok=True)
            (wiki / "topics" / f"{page.topic}.md").write_text(
                f"---\ntitle: Locks of {page.topic}\nfolder: pages/{page.topic}\n---\n"
                f"What operators report about the locks of {page.topic}: damage, repairs and waiting times.\n"
            )
        file.write_text(_text(page.number))


def _text(number: int) -> str:
    """About a screen of text that no other page repeats. The server knows a page by its sheet number."""
    said = (
        f"Lock {number} was out of order for {number % 97 + 2} days, and {number % 31 + 3} boats had to wait for it. "
    )
    return "\n\n".join([f"Sheet {number:06} of the lock keepers' log.", *(f"Entry {n}. {said * 3}" for n in range(4))])


@dataclass
class Plan:
    """The orders of a run that are still to strike. Taken and handed on by the parent of all workers."""

    planted: dict[str, Point] = field(default_factory=dict)
    """Results that kill every worker that touches them."""
    judging: dict[str, Order] = field(default_factory=dict)
    """By result: what happens to the first worker that has it."""
    noting: dict[str, list[Order]] = field(default_factory=dict)
    """By topic: what happens to those that write its note."""
    reaping: list[Order] = field(default_factory=list)
    met: frozenset[str] = frozenset()
    """Results whose stopped worker goes on at the worst moment: while its successor is about to finish."""


def plan(run: Run, made: Sequence[Page]) -> Plan:
    """Orders for the shares of results that are to meet something, each result at most one."""
    if not run.disturbed:
        return Plan()
    rng = random.Random(run.seed)
    struck = rng.sample(made, len(made))
    planted = [struck.pop() for _ in range(_share(PLANTED_SHARE, len(made)))]
    stopped = [struck.pop() for _ in range(_share(STOPPED_SHARE, len(made)))]
    killed = [struck.pop() for _ in range(max(_share(KILLED_SHARE, len(made)), len(KILLING)))]
    drawn = Plan(
        planted={page.result: PLANTED_AT[-1 - number % len(PLANTED_AT)] for number, page in enumerate(planted)},
        reaping=[Order("kill", REAPING[n % len(REAPING)]) for n in range(_share(REAPERS_KILLED_SHARE, len(made)))],
        met=frozenset(page.result for page in stopped[::2]),
    )
    for number, page in enumerate(stopped):
        # Of two neighbours one is met and one is not, so each point gets both.
        drawn.judging[page.result] = Order("stop", STOPPING[number // 2 % len(STOPPING)])
    for number, page in enumerate(killed):
        order = Order("kill", KILLING[number % len(KILLING)])
        if order.at in NOTING:
            drawn.noting.setdefault(page.topic, []).append(order)
        else:
            drawn.judging[page.result] = order
    return drawn


def _share(share: float, of: int) -> int:
    return max(round(share * of), FEWEST)
