"""What a run came to, for people and for programs, and whether a person is needed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from wikikeeper.cli.common import ATTENTION, OK, err, out, print_json
from wikikeeper.cli.summary import CycleSummary
from wikikeeper.models import TopicFault


@dataclass(frozen=True)
class Report:
    """Everything that is said at the end of `run` and `try`."""

    due: bool
    """Only what is due was asked for."""
    started: bool = True
    """False: nothing was to be started, only what was left to be finished."""
    summaries: Sequence[CycleSummary] = ()
    faults: Sequence[TopicFault] = ()
    errors: Sequence[Exception] = ()
    escalated: Sequence[str] = ()
    """Ids of what was given up and told."""
    seconds: float = 0.0
    another_run: bool = False
    """Nothing was done, because another run is at work."""

    def say(self, *, as_json: bool) -> int:
        """Print it; the exit code says whether a person is needed."""
        if as_json:
            self._print_json()
        elif self.another_run:
            out.print("another run is working; nothing to do")
        else:
            self._print_text()
        needed = any(summary.reasons or summary.outage for summary in self.summaries)
        return ATTENTION if needed or self.errors or self.faults or self.escalated else OK

    def _nothing(self) -> str:
        if not self.started:
            return "Nothing was silent."
        return "No topic is due." if self.due else "There is no topic yet: write topics/<name>.md."

    def _print_json(self) -> None:
        print_json(
            json.dumps(
                {
                    "cycles": [summary.as_json() for summary in self.summaries],
                    "faults": [fault.model_dump() for fault in self.faults],
                    "escalated": list(self.escalated),
                    "errors": [f"{type(error).__name__}: {error}" for error in self.errors],
                    "seconds": round(self.seconds, 3),
                    "another_run": self.another_run,
                },
                ensure_ascii=False,
                indent=2,
            )
        )

    def _print_text(self) -> None:
        for fault in self.faults:
            where = escape(f"{fault.key}:{fault.line}: {fault.reason}")
            err.print(f"[red]topic not read[/red] {where}", soft_wrap=True)
        if not self.summaries:
            out.print(self._nothing())
            return
        table = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("topic", overflow="fold")
        table.add_column("cycle", overflow="fold")
        for name in ("kept", "discarded", "folded", "waiting", "parked", "seconds", "model s"):
            table.add_column(name, justify="right", no_wrap=True)
        for summary in self.summaries:
            table.add_row(*_row(summary))
        out.print(table)
        for summary in self.summaries:
            _print_details(summary)
        out.print(f"{self.seconds:.1f} s")


def _row(summary: CycleSummary) -> list[str]:
    count = summary.count
    return [
        summary.topic,
        escape(_state(summary)),
        str(count.kept),
        str(count.discarded.total()),
        str(count.folded),
        str(summary.waiting),
        str(count.parked),
        "" if summary.seconds is None else f"{summary.seconds:.1f}",
        f"{count.model_seconds:.1f}",
    ]


def _state(summary: CycleSummary) -> str:
    cycle = summary.cycle
    if cycle is None:
        if summary.ended is not None:
            return f"ended {summary.ended}"
        return "earlier run" if summary.earlier_run else "not started"
    lines = [cycle.state.value]
    if cycle.cap_reached:
        lines.append("cap_reached")
    return "\n".join(lines + sorted({problem.partition(": ")[0] for problem in cycle.problems}))


def _print_details(summary: CycleSummary) -> None:
    count = summary.count
    for state, reason in summary.reasons:
        out.print(escape(f"{summary.topic}: {state}: {reason}"), soft_wrap=True)
    if count.discarded:
        reasons = ", ".join(f"{number} {reason}" for reason, number in count.discarded.most_common())
        out.print(escape(f"{summary.topic}: discarded {reasons}"), soft_wrap=True)
    if count.failed:
        causes = ", ".join(f"{number} {cause}" for cause, number in count.failed.most_common())
        out.print(escape(f"{summary.topic}: failed {causes}{_what_becomes_of_failures(summary)}"), soft_wrap=True)
    for note in count.notes:
        out.print(f"note: [bold]{escape(note)}[/bold]", soft_wrap=True)


def _what_becomes_of_failures(summary: CycleSummary) -> str:
    if not summary.waiting:
        return ""
    who = "what is not parked waits" if summary.count.parked else "they wait"
    return f" ({who} for the next cycle)"
