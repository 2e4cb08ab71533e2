"""`wikikeeper run` and `wikikeeper try`: a cycle now, and what came of it."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from wikikeeper import example
from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.private_folder import PRIVATE_FOLDER
from wikikeeper.adapters.local.run_lock import run_lock
from wikikeeper.adapters.local.threads import ThreadHost
from wikikeeper.app import model_server, open_app, open_store
from wikikeeper.cli.common import JsonOption, WikiOption, err, no_such_topic, out, wiki_root
from wikikeeper.cli.report import Report
from wikikeeper.cli.summary import CycleSummary, RunReporter
from wikikeeper.dispatch import dispatch
from wikikeeper.errors import AnotherRun, Unusable
from wikikeeper.models import (
    UNFINISHED_CYCLES,
    Command,
    Cycle,
    ReapStale,
    Send,
    StartCycle,
    Topic,
    TopicFault,
    WriteNote,
)
from wikikeeper.parts import ModelServer
from wikikeeper.policy import schedule
from wikikeeper.policy.identity import cycle_id, manual_tick
from wikikeeper.ports import RunStore
from wikikeeper.settings import Settings, load
from wikikeeper.workflows import given_up, schedule_cycle
from wikikeeper.workflows.context import App, read_topics
from wikikeeper.workflows.reap_stale import closes, reap_stale

TRY_FOLDER = Path("try-wiki")


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("try")(try_example)


def run(
    context: typer.Context,
    wiki: WikiOption = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="Only this topic (its slug); may be repeated.")
    ] = None,
    due: Annotated[
        bool, typer.Option("--due", help="Only topics whose schedule has come: for cron and timers.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Run a cycle of every topic now: search, judge what is new, write the notes."""
    root = wiki_root(wiki)
    settings = load(root)
    if due and _nothing_to_do(root, settings, topic or []):
        return Report(due=True).say(as_json=as_json)
    try:
        with opened(context, root, settings) as (app, reporter, _):
            return run_cycles(app, reporter, topic or [], workers=workers(settings), due=due, as_json=as_json)
    except AnotherRun:
        if not due:
            raise
        # A timer comes again: a cycle that takes longer than its interval must not mail a person each time.
        return Report(due=True, another_run=True).say(as_json=as_json)


def try_example(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where the example wiki is, or is made.")] = TRY_FOLDER,
    as_json: JsonOption = False,
) -> int:
    """Quick start: an example wiki with twelve saved pages, judged by the bundled judge. Needs no network."""
    made = example.copy_to(folder)
    root = wiki_root(folder)
    if not as_json:
        out.print(f"{'Made' if made else 'Using'} the example wiki in [bold]{folder}[/bold].", soft_wrap=True)
    settings = load(root)
    with opened(context, root, settings) as (app, reporter, server):
        code = run_cycles(app, reporter, [], workers=workers(settings), due=False, as_json=as_json)
        if not as_json:
            _explain(folder, app, bundled_judge=server.bundled)
    return code


@contextmanager
def opened(context: typer.Context, root: Path, settings: Settings) -> Iterator[tuple[App, RunReporter, ModelServer]]:
    """The App under the run lock, with the model server that it asks."""
    reporter = RunReporter(err, debug=context.obj["debug"])
    with (
        run_lock(root / PRIVATE_FOLDER),
        model_server(settings) as server,
        open_app(root, settings, server, reporter) as app,
    ):
        yield app, reporter, server


def _nothing_to_do(root: Path, settings: Settings, only: Sequence[str]) -> bool:
    """No tick has come, nothing is left of an earlier run, no topic has a fault: no model need be started for that."""
    topics, faults = read_topics(FolderWiki(root))
    _choose([topic.slug for topic in topics], only, faults)  # a typing error shows at once, not when a tick comes
    with open_store(root) as store:
        return not (
            faults
            or anything_left(store, topics, settings)
            or schedule_cycle.due_starts(topics, store, datetime.now(UTC))
        )


def anything_left(store: RunStore, topics: Sequence[Topic], settings: Settings) -> bool:
    """Something is on its way, not noted, or given up without its record. What is left to a person is not among it."""
    return (
        any(result.cycle is not None for result in store.results(states=schedule_cycle.UNFINISHED))
        or any(store.cycles(states=UNFINISHED_CYCLES))
        or any(unwritten_notes(store, topics, settings, left=False))
        or any(given_up.untold(store))
    )


def unwritten_notes(store: RunStore, topics: Sequence[Topic], settings: Settings, *, left: bool) -> Iterator[str]:
    return given_up.unwritten(
        [topic.slug for topic in topics],
        store,
        left=left,
        limit=settings.reaper.limit,
        cooldown=timedelta(seconds=settings.reaper.cooldown),
        now=datetime.now(UTC),
    )


def workers(settings: Settings) -> int:
    """One page in the hands of each: as many as calls may run, and those being got ready meanwhile."""
    return settings.gate.limit + settings.host.pages_ahead


def run_cycles(
    app: App,
    reporter: RunReporter,
    only: Sequence[str],
    *,
    workers: int,
    due: bool,
    as_json: bool,
    start: bool = True,
) -> int:
    """Take back what went silent, start the cycles, work until nothing is left, and say what came of it.

    The caller holds the run lock: nobody else is at work, and whatever seems to be was left by a run that died.
    """
    began = time.monotonic()
    topics, faults = app.topics()
    chosen = _choose([topic.slug for topic in topics], only, faults)
    schedule_cycle.withdraw_deleted(app)
    host = ThreadHost(
        lambda command: dispatch(command, app),
        reporter,
        workers=workers,
        hurry=_may_hurry,
        stopping=app.gate.turn_away,
    )
    starts = _starts(app, chosen, due=due) if start else []
    taken_back = [cycle.id for cycle in app.store.cycles(states=schedule_cycle.DRAINING)]
    with _progress(reporter, hidden=as_json):
        host.run(reap_stale(ReapStale(alone=True), app))
        host.run([*starts, *_notes_left(app, chosen)] if start and not due else starts)
        host.run(reap_stale(ReapStale(alone=True), app))
        host.run(closes(app))
    report = Report(
        due=due,
        started=start,
        summaries=_summaries(app, reporter, topics, starts, taken_back),
        faults=faults,
        errors=host.errors,
        escalated=reporter.escalated,
        seconds=time.monotonic() - began,
    )
    return report.say(as_json=as_json)


def _choose(slugs: Sequence[str], only: Sequence[str], faults: Sequence[TopicFault]) -> list[str]:
    if unknown := [slug for slug in only if slug not in slugs]:
        bad = next((fault for fault in faults if fault.key == f"topics/{unknown[0]}.md"), None)
        if bad is not None:
            raise Unusable(f"{bad.key}:{bad.line}: {bad.reason}")
        raise no_such_topic(unknown[0], slugs)
    return list(only or slugs)


def _starts(app: App, slugs: Sequence[str], *, due: bool) -> list[Send]:
    if due:
        return [s for s in schedule_cycle.due(app) if isinstance(s.command, StartCycle) and s.command.topic in slugs]
    tick = manual_tick(app.clock.now())
    return [Send(command=StartCycle(topic=slug, tick=tick)) for slug in slugs]


def _notes_left(app: App, slugs: Sequence[str]) -> list[Send]:
    """For a person who asks: their notes were given up, and no sweep writes them."""
    rules, now = app.rules, app.clock.now()
    left = given_up.unwritten(slugs, app.store, left=True, limit=rules.recovery_limit, cooldown=rules.cooldown, now=now)
    return [Send(command=WriteNote(topic=slug)) for slug in left]


def _may_hurry(command: Command) -> bool:
    """The delay of a note gathers more results; once nothing else is left there are none to gather."""
    return command.kind == "write_note"


def _summaries(
    app: App, reporter: RunReporter, topics: Sequence[Topic], starts: Sequence[Send], taken_back: Iterable[str]
) -> list[CycleSummary]:
    """One for each topic that was to run, and for each other one that something was done of."""
    own = {
        s.command.topic: cycle_id(s.command.topic, s.command.tick) for s in starts if s.command.kind == "start_cycle"
    }
    touched = _cycles(app, dict.fromkeys([*taken_back, *reporter.started]))
    for cycle in touched:
        if cycle.id in reporter.started:  # by a tick that was sent once more
            own.setdefault(cycle.topic, cycle.id)
    over = {t.slug: t.until for t in topics if schedule.ended(t.until, t.zone, app.clock.now())}
    summaries = []
    for slug in dict.fromkeys([*own, *sorted({*reporter.counts, *(cycle.topic for cycle in touched)})]):
        summary = CycleSummary(
            topic=slug,
            cycle=app.store.cycle(own[slug]) if slug in own else None,
            count=reporter.topic(slug),
            waiting=sum(1 for _ in app.store.results(topic=slug, states=schedule_cycle.UNFINISHED)),
            earlier=tuple(cycle for cycle in touched if cycle.topic == slug and cycle.id != own.get(slug)),
            ended=over.get(slug),
            asked=slug in own,
        )
        if summary.asked or summary.count.anything() or summary.reasons:
            summaries.append(summary)
    return summaries


def _cycles(app: App, ids: Iterable[str]) -> list[Cycle]:
    """As they are now."""
    return [cycle for identity in ids if (cycle := app.store.cycle(identity)) is not None]


@contextmanager
def _progress(reporter: RunReporter, *, hidden: bool) -> Iterator[None]:
    """A bar on a terminal; nothing where output goes to a file or a program."""
    if hidden or not err.is_terminal:
        yield
        return
    bar = Progress(
        TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err, transient=True
    )
    with bar:
        task = bar.add_task("judging", total=None)
        reporter.on_change = lambda: bar.update(task, total=reporter.sent or None, completed=reporter.finished)
        yield
        reporter.on_change = lambda: None


def _explain(folder: Path, app: App, *, bundled_judge: bool) -> None:
    """Where everything is, and what this judge can't do."""
    used = app.rules.thresholds
    out.print(f"Thresholds: useful >= {used.keep:g}, injection < {used.injection:g}.")
    for note in sorted((folder / "inbox" / "awaiting").glob("*.md")):
        out.print(f"Note:  {note}", soft_wrap=True)
    out.print(f"Runs:  wikikeeper runs --wiki {folder}   (stored in {folder / PRIVATE_FOLDER})", soft_wrap=True)
    out.print(f"Why:   wikikeeper show RUN --wiki {folder}", soft_wrap=True)
    for run in app.store.runs():
        verdict = run.verdict
        if verdict and verdict.findings.concealed_address and verdict.judgement:
            out.print(
                f"Caught by structure: {escape(run.title)} hides a text that addresses an AI reader "
                f"(the judge gave injection {verdict.judgement.injection:.2f}).",
                soft_wrap=True,
            )
    if bundled_judge:
        from wikikeeper import bundled

        out.print(bundled.CANNOT, soft_wrap=True)
