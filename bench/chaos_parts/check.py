"""What a chaos run left behind, held against what was promised.

Read from the store, from the notes as files, from what the server counted, and from the journal that the workers wrote
beside the store: no part is asked about itself.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.chaos_parts.host import Ran
from bench.chaos_parts.plan import LEASE, LIMIT, Page, Run
from bench.chaos_parts.worker import opened

from wikikeeper.models import Lane, Permit, Result, ResultState, Topic
from wikikeeper.policy import notes
from wikikeeper.policy.identity import run_id
from wikikeeper.ports import RunStore
from wikikeeper.workflows.context import App

VERDICTS = frozenset({ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED})
MOST_CALLS = 1.25
"""Calls for a result that nobody was killed over: each failed one is repeated once."""


@dataclass
class Left:
    """The figures of one run, and what is wrong with them."""

    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def none_of(self, name: str, found: Sequence[str]) -> None:
        """A figure that has to be 0."""
        self.figures[name] = len(found)
        if found:
            self.wrong.append(f"{name}: {len(found)}, such as {found[0]}")


@dataclass
class Journal:
    verdicts: dict[str, list[int]] = field(default_factory=dict)
    """By result: the fence of each verdict that the store took."""
    refused: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    """By cycle."""
    runs: list[str] = field(default_factory=list)
    """The run that each of these calls has to have."""
    told: Counter[str] = field(default_factory=Counter)
    """By escalation."""


def check(run: Run, made: Sequence[Page], planted: frozenset[str], ran: Ran, counted: Mapping[str, Any]) -> Left:
    left = Left()
    journal = _journal(run.journal)
    with opened(run) as app:
        results = {result.id: result for result in app.store.results()}
        if not ran.settled:
            left.wrong.append("nothing went on any more, and not everything was settled")
        _lost(left, run, made, planted, results)
        _verdicts(left, journal, results)
        check_notes(left, run.wiki, app.topics()[0], results)
        _concurrency(left, made, ran, counted)
        _cap(left, journal, app)
        _calls(left, made, planted, ran, counted)
        _escalated(left, planted, journal, app.store)
        _runs(left, journal if ran.settled else Journal(), app.store)
        most = 1 + app.rules.recovery_limit
        too_often = [f"{result}: {n} workers" for result, n in ran.planted_kills.items() if n > most]
        left.none_of("recovered_too_often", too_often)
        left.figures["permits_leaked"] = leaked = LIMIT - _free(app)
        if leaked:
            left.wrong.append(f"{leaked} permits are still held")
    left.none_of("errors", ran.errors)
    left.figures |= {
        "seconds": round(ran.seconds, 1),
        "late_verdicts_refused": journal.refused,
        "server": counted["fates"],
        "kills": dict(ran.kills),
        "planted_kills": sum(ran.planted_kills.values()),
        "stops": dict(ran.stops),
        "met_by_successor": ran.met,
        "orders_left": ran.unstruck,
        "redelivered": ran.redelivered,
        "sweeps": ran.sweeps,
        "double_sweeps": ran.double_sweeps,
        "ticks": ran.ticks,
    }
    return left


def _journal(file: Path) -> Journal:
    read = Journal()
    for line in file.read_text().splitlines() if file.exists() else ():
        kind, result, *rest = line.split()
        match kind:
            case "verdict":
                read.verdicts.setdefault(result, []).append(int(rest[0]))
            case "refused":
                read.refused += 1
            case "call":
                read.calls[rest[0]] += 1
                read.runs.append(run_id(result, int(rest[1])))
            case "told":
                read.told[result] += 1
    return read


def _lost(left: Left, run: Run, made: Sequence[Page], planted: frozenset[str], results: Mapping[str, Result]) -> None:
    """Without a verdict, or kept and in no note. A planted one has to be parked."""
    noted = _entries(run.wiki)
    lost = []
    for page in made:
        result = results.get(page.result)
        if result is None:
            lost.append(f"{page.path} was never found")
        elif page.result in planted:
            if result.state is not ResultState.PARKED:
                lost.append(f"{page.result} kills every worker and is {result.state}, not parked")
        elif result.state not in VERDICTS:
            lost.append(f"{page.result} is {result.state} after {result.nonresponses} silences")
        elif result.state is ResultState.KEPT and page.result not in noted:
            lost.append(f"{page.result} is kept and in no note")
    left.figures["results"] = len(made)
    left.none_of("lost", lost)


def _verdicts(left: Left, journal: Journal, results: Mapping[str, Result]) -> None:
    """Each verdict once, and by the one who held the claim: the fence of the store is that of its last owner."""
    wrong = []
    for identity, fences in journal.verdicts.items():
        wrong += [f"{identity} got {len(fences)} verdicts"] * (len(fences) - 1)
        if (last := results[identity].fence) != fences[-1]:
            wrong.append(f"{identity} took the verdict of fence {fences[-1]} when {last} held the claim")
    wrong += [
        f"{result.id} is {result.state}, and nobody says to have brought the verdict"
        for result in results.values()
        if result.state in VERDICTS and result.id not in journal.verdicts
    ]
    left.none_of("duplicate_verdicts", wrong)


def _files(wiki: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted((wiki / "inbox").rglob("*.md")):
        yield file.relative_to(wiki).as_posix(), file.read_bytes()


def _entries(wiki: Path) -> Counter[str]:
    return Counter(entry.result for _, data in _files(wiki) for entry in notes.entries(data))


def check_notes(left: Left, wiki: Path, topics: Sequence[Topic], results: Mapping[str, Result]) -> None:
    """One note for a topic, each result once in it; and every byte as a note with these entries has it."""
    twice = [f"{result} stands {times} times in notes" for result, times in _entries(wiki).items() if times > 1]
    by_slug = {topic.slug: topic for topic in topics}
    files, torn = Counter[str](), []
    for key, data in _files(wiki):
        inside = [results.get(entry.result) for entry in notes.entries(data)]
        there = [result for result in inside if result is not None and result.verdict is not None]
        if not there or len(there) < len(inside):
            torn.append(f"{key} holds entries of no result")
            continue
        files[there[0].topic] += 1
        if notes.new_note(by_slug[there[0].topic], notes.opened_on(key), there) != data:
            torn.append(f"{key} is not what its {len(there)} entries come to")
    twice += [f"{topic} has {number} notes" for topic, number in files.items() if number > 1]
    left.none_of("duplicate_notes", twice)
    left.none_of("torn_notes", torn)
    left.figures["notes"] = sum(files.values())


def _concurrency(left: Left, made: Sequence[Page], ran: Ran, counted: Mapping[str, Any]) -> None:
    """Over the limit only with calls of those who were frozen just before them, permit in hand."""
    numbers = {page.result: page.number for page in made}
    late = {numbers[result] for result in ran.late_holders}
    unexplained = []
    for here in counted["over"]:
        resumed = sum((Counter(here) & Counter(late)).values())
        if len(here) - resumed > LIMIT:
            unexplained.append(f"{len(here)} calls at once, {resumed} of them by resumed holders")
    left.figures |= {"limit": LIMIT, "max_concurrency": counted["most"], "resumed_holders": len(ran.late_holders)}
    left.none_of("over_limit_unexplained", unexplained)


def _cap(left: Left, journal: Journal, app: App) -> None:
    """Of a cycle: what it counted, and what was really begun for it."""
    cycles = list(app.store.cycles())
    exceeded = [
        f"{cycle.id}: {max(cycle.calls, journal.calls[cycle.id])} calls, {cycle.cap} allowed"
        for cycle in cycles
        if max(cycle.calls, journal.calls[cycle.id]) > cycle.cap
    ]
    left.none_of("cap_exceeded", exceeded)
    left.none_of("uncounted_calls", [cycle.id for cycle in cycles if journal.calls[cycle.id] > cycle.calls])
    left.figures["cap_reached"] = sum(cycle.cap_reached for cycle in cycles)


def _runs(left: Left, journal: Journal, store: RunStore) -> None:
    """Whatever became of a call that was counted, a person can look it up."""
    known = {run.id: run.outcome for run in store.runs()}
    left.none_of("calls_without_run", [run for run in journal.runs if run not in known])
    left.figures["runs"] = dict(Counter(known.values()))


def _calls(left: Left, made: Sequence[Page], planted: frozenset[str], ran: Ran, counted: Mapping[str, Any]) -> None:
    """What faults of the server cost; what kills and stops cost is counted apart."""
    calls = {int(page): number for page, number in counted["calls"].items()}
    apart = ran.struck | planted
    by_faults = [calls.get(page.number, 0) for page in made if page.result not in apart]
    by_kills = [calls.get(page.number, 0) for page in made if page.result in apart - planted]
    per_result = sum(by_faults) / max(len(by_faults), 1)
    left.figures["calls_per_result"] = round(per_result, 3)
    left.figures["calls_per_struck_result"] = round(sum(by_kills) / max(len(by_kills), 1), 3)
    if per_result > MOST_CALLS and len(by_faults) >= 1000:
        left.wrong.append(f"calls_per_result: {per_result:.3f}, {MOST_CALLS} allowed")


def _escalated(left: Left, planted: frozenset[str], journal: Journal, store: RunStore) -> None:
    """Each planted one exactly once, and nothing else; and each record was told."""
    records = list(store.escalations())
    subjects = Counter(record.subject for record in records)
    wanted = {f"result:{result}" for result in planted}
    once = sum(subjects[subject] == 1 for subject in wanted)
    left.figures |= {"planted": len(planted), "escalated_planted": once}
    if once < len(planted):
        missing = sorted(subject for subject in wanted if subjects[subject] != 1)
        left.wrong.append(f"escalated_planted: {once} of {len(planted)}; {missing[0]} has {subjects[missing[0]]}")
    left.none_of("escalated_other", [f"{r.subject}: {r.detail}" for r in records if r.subject not in wanted])
    untold = [record.id for record in records if record.delivered is None or not journal.told[record.id]]
    left.none_of("escalations_untold", untold)


def _free(app: App) -> int:
    """Permits that are to be had once every lease is over."""
    had = [
        app.gate.acquire(Lane.KEEPER, f"check-{n}", timedelta(minutes=1), 2 * LEASE if n == 0 else timedelta())
        for n in range(LIMIT)
    ]
    return sum(isinstance(permit, Permit) for permit in had)


def described(figures: Mapping[str, Any]) -> Iterator[str]:
    for name, figure in figures.items():
        yield f"{name:<24} {json.dumps(figure) if isinstance(figure, dict) else figure}"
