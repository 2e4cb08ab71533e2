"""What a run did, counted from the events of its workflows: exactly what this process did, nothing of others."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from wikikeeper.models import Cycle

if TYPE_CHECKING:
    from collections.abc import Callable

SAID = {
    "alert": "[red]attention[/red] {cause}: {detail}",
    "cycle_skipped": "[yellow]skipped[/yellow] {topic}: {cause}",
    "cycle_problem": "[yellow]problem[/yellow] {topic}: {problem}",
    "cycle_stopped": "[red]stopped[/red] {cycle}: {cause}",
    "model_waking": "{topic}: the model is {cause}; it was woken, next look in a minute",
    "topic_ended": "{topic}: ended, its last day was {until}",
    "results_withdrawn": "{count} results withdrawn: their topics were deleted",
    "claim_freed": "{topic}: took back a result whose worker went silent",
    "cycle_recovered": "{topic}: nobody worked on its results; they were sent again",
    "escalated": "[red]attention[/red] {subject}: {detail}",
    "escalation_not_delivered": "[yellow]not delivered[/yellow] {escalation}: {cause} {detail}; the next run tries again",
    "command_failed": "[red]failed[/red] {command}: {error}",
}
"""What a person should see while it happens; the rest is shown with --debug."""


@dataclass
class TopicCount:
    """What one topic's cycle came to."""

    kept: int = 0
    discarded: Counter[str] = field(default_factory=Counter)
    folded: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """By cause."""
    parked: int = 0
    calls: int = 0
    model_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def anything(self) -> bool:
        """Was anything done?"""
        numbers = (self.kept, self.discarded.total(), self.folded, self.failed.total(), self.parked, self.calls)
        return any(numbers) or bool(self.notes)


class RunReporter:
    """Prints what a person should see and counts the rest. Thread-safe."""

    def __init__(self, console: Console, *, debug: bool = False) -> None:
        self._console = console
        self._debug = debug
        self._lock = threading.Lock()
        self.counts: dict[str, TopicCount] = {}
        self.started: list[str] = []
        """Cycles that this run started or skipped, whoever sent their ticks."""
        self.escalated: list[str] = []
        self.sent = 0
        self.finished = 0
        self.on_change: Callable[[], None] = lambda: None

    def topic(self, slug: str) -> TopicCount:
        return self.counts.setdefault(slug, TopicCount())

    def event(self, name: str, **fields: object) -> None:
        with self._lock:
            self._count(name, fields)
            if name == "escalated":
                self.escalated.append(str(fields["escalation"]))
            self.on_change()
        if (form := SAID.get(name)) is not None:
            self._console.print(form.format(**{k: escape(str(v)) for k, v in fields.items()}), soft_wrap=True)
        elif self._debug:
            shown = " ".join(f"{key}={value}" for key, value in fields.items())
            self._console.print(escape(f"{name} {shown}"), style="dim", soft_wrap=True)
        if self._debug and "trace" in fields:
            self._console.print(escape(str(fields["trace"])), soft_wrap=True)

    def _count(self, name: str, fields: dict[str, object]) -> None:
        topic = self.topic(str(fields["topic"])) if "topic" in fields else TopicCount()
        match name:
            case "cycle_started" | "cycle_skipped":
                self.started.append(str(fields["cycle"]))
            case "cycle_sent":
                self.sent += int(str(fields["sent"]))
            case "result_judged":
                self.finished += 1
                if fields["kept"]:
                    topic.kept += 1
                else:
                    topic.discarded[str(fields["reason"])] += 1
            case "result_folded":
                self.finished += 1
                topic.folded += 1
            case "result_failed":
                self.finished += 1
                topic.failed[str(fields["cause"])] += 1
            case "result_parked":
                topic.parked += 1
            case "result_discarded":
                topic.discarded[str(fields["reason"])] += 1
            case "model_called":
                topic.calls += 1
                topic.model_seconds += float(str(fields["seconds"] or 0))
            case "note_written":
                # One note is written to several times.
                topic.notes = list(dict.fromkeys([*topic.notes, str(fields["note"])]))
            case _:
                pass


@dataclass(frozen=True)
class CycleSummary:
    """One topic's line of the table at the end."""

    topic: str
    cycle: Cycle | None
    """The one that this run started; None where it started none."""
    count: TopicCount
    waiting: int
    earlier: tuple[Cycle, ...] = ()
    """Other cycles of the topic that this run brought to their end: those of a run that died."""
    ended: date | None = None
    """The topic's last day, once it has passed."""
    asked: bool = True
    """False: the topic is only here for what was left of an earlier run."""

    @property
    def earlier_run(self) -> bool:
        """Is all that was done work of an earlier run?"""
        return self.cycle is None and (not self.asked or bool(self.earlier) or self.count.anything())

    @property
    def seconds(self) -> float | None:
        """From the start of the cycle to its end."""
        cycle = self.cycle
        return None if cycle is None or cycle.ended is None else (cycle.ended - cycle.started).total_seconds()

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """State and reason of each cycle that a person should look at."""
        cycles = (*self.earlier, self.cycle) if self.cycle else self.earlier
        return [(cycle.state.value, cycle.reason) for cycle in cycles if cycle.reason is not None]

    @property
    def outage(self) -> bool:
        """Was a source of results out?"""
        return self.cycle is not None and any(p.startswith("search_outage:") for p in self.cycle.problems)

    def as_json(self) -> dict[str, object]:
        cycle = self.cycle
        return {
            "topic": self.topic,
            "cycle": cycle.id if cycle else None,
            "state": cycle.state.value if cycle else None,
            "reason": cycle.reason if cycle else None,
            "ended": str(self.ended) if self.ended else None,
            "earlier_run": self.earlier_run,
            "earlier": [{"cycle": c.id, "state": c.state.value, "reason": c.reason} for c in self.earlier],
            "problems": list(cycle.problems) if cycle else [],
            "cap_reached": cycle.cap_reached if cycle else False,
            "found": cycle.found if cycle else 0,
            "new": cycle.new if cycle else 0,
            "kept": self.count.kept,
            "discarded": dict(sorted(self.count.discarded.items())),
            "folded": self.count.folded,
            "failed": dict(sorted(self.count.failed.items())),
            "waiting": self.waiting,
            "parked": self.count.parked,
            "calls": self.count.calls,
            "seconds": self.seconds,
            "model_seconds": round(self.count.model_seconds, 3),
            "notes": self.count.notes,
        }
