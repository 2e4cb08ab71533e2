"""`topics`, `runs`, `show`, `what-if`: looking at what is stored. Nothing here calls, fetches or changes anything."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer
from rich.markup import escape

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.app import open_store
from wikikeeper.cli.common import ATTENTION, OK, JsonOption, WikiOption, check_topic, err, out, print_json, wiki_root
from wikikeeper.errors import Unusable
from wikikeeper.models import ResultState, Run, RunOutcome, Thresholds, Topic
from wikikeeper.policy import schedule
from wikikeeper.policy.redaction import redact
from wikikeeper.policy.what_if import what_if as apply
from wikikeeper.settings import load
from wikikeeper.workflows.context import read_topics


class Ended(StrEnum):
    """How a run ended; kept and discarded are answered runs."""

    ANSWERED = "answered"
    FAILED = "failed"
    LOST = "lost"
    SUPERSEDED = "superseded"
    KEPT = "kept"
    DISCARDED = "discarded"


OUTCOMES: dict[Ended, RunOutcome] = {
    Ended.ANSWERED: "answered",
    Ended.FAILED: "failed",
    Ended.LOST: "lost",
    Ended.SUPERSEDED: "superseded",
    Ended.KEPT: "answered",
    Ended.DISCARDED: "answered",
}
COUNTED = (ResultState.WAITING, ResultState.JUDGING, ResultState.KEPT, ResultState.PARKED)


def register(app: typer.Typer) -> None:
    app.command("topics")(topics)
    app.command("runs")(runs)
    app.command("show")(show)
    app.command("what-if")(what_if)


def topics(wiki: WikiOption = None, as_json: JsonOption = False) -> int:
    """List the topics: last check, last run, next run, and what waits, was kept or is parked."""
    root = wiki_root(wiki)
    files = FolderWiki(root)
    read, faults = read_topics(files)
    with open_store(root) as store:
        rows = [_topic_row(topic, store) for topic in read]
    if as_json:
        print_json(
            json.dumps(
                {"topics": rows, "faults": [fault.model_dump() for fault in faults]}, ensure_ascii=False, indent=2
            )
        )
        return ATTENTION if faults else OK
    for row in rows:
        _print_topic(row)
    if not rows:
        out.print("There is no topic yet: write topics/<name>.md.")
    for fault in faults:
        err.print(f"[red]{escape(fault.key)}:{fault.line}[/red]: {escape(fault.reason)}", soft_wrap=True)
    return ATTENTION if faults else OK


def _print_topic(row: dict[str, object]) -> None:
    out.print(f"[bold]{row['topic']}[/bold]  {escape(str(row['title']))}", soft_wrap=True)
    out.print(
        f"    last check {row['last_check'] or 'never'}   last run {row['last_run'] or 'never'}   "
        f"next run {row['next_run']}",
        soft_wrap=True,
    )
    out.print(f"    waiting {row['waiting']}   kept {row['kept']}   parked {row['parked']}", soft_wrap=True)


def _topic_row(topic: Topic, store: SqliteRunStore) -> dict[str, object]:
    state = store.topic(topic.slug)
    counts = Counter(result.state for result in store.results(topic=topic.slug, states=frozenset(COUNTED)))
    now = datetime.now(topic.tz)
    ended = schedule.ended(topic.until, topic.zone, now)
    coming = None if topic.cron is None or ended else schedule.next_run(topic.cron, topic.zone, now)
    return {
        "topic": topic.slug,
        "title": topic.title,
        "last_check": _shown(state.last_check, topic),
        "last_run": _shown(state.last_run, topic),
        "next_run": f"ended {topic.until}" if ended else _shown(coming, topic) or "by hand",
        "waiting": counts[ResultState.WAITING] + counts[ResultState.JUDGING],
        "kept": counts[ResultState.KEPT],
        "parked": counts[ResultState.PARKED],
    }


def _shown(at: datetime | None, topic: Topic) -> str | None:
    """In the topic's own zone, with its offset."""
    return None if at is None else f"{at.astimezone(topic.tz):%Y-%m-%d %H:%M %z}"


def runs(
    wiki: WikiOption = None,
    topic: Annotated[str | None, typer.Option("--topic", "-t", help="Only this topic (its slug).")] = None,
    outcome: Annotated[
        Ended | None,
        typer.Option(help="Only runs that ended so; kept and discarded are answered runs."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, newest first.")] = 50,
    as_json: JsonOption = False,
) -> int:
    """List model calls, newest first. With --json one object a line, whole."""
    root = wiki_root(wiki)
    with open_store(root) as store:
        check_topic(topic, root, store)
        chosen = [_shareable(run) for run in islice(_chosen(store, topic, outcome), limit)]
    if as_json:
        for run in chosen:
            print_json(run.model_dump_json())
        return OK
    for run in chosen:
        _print_line(run)
    if not chosen:
        out.print("No run yet.")
    return OK


def _chosen(store: SqliteRunStore, topic: str | None, outcome: Ended | None) -> Iterator[Run]:
    found = store.runs(topic=topic, outcome=OUTCOMES[outcome] if outcome else None)
    if outcome in (Ended.KEPT, Ended.DISCARDED):
        return (run for run in found if run.kept == (outcome is Ended.KEPT))
    return found


def _shareable(run: Run) -> Run:
    """As it may be seen: addresses can carry tokens, and what is printed ends up in logs and tickets."""
    return run.model_copy(update={"url": redact(run.url)})


def _print_line(run: Run) -> None:
    verdict, judgement = run.verdict, run.judgement
    ended = run.outcome if verdict is None or run.outcome != "answered" else (verdict.reason or "kept")
    out.print(f"{run.started:%Y-%m-%d %H:%M:%S}  {run.id}  [bold]{ended}[/bold]", soft_wrap=True)
    facts = []
    if judgement and verdict and verdict.injection is not None:
        facts += [f"useful {judgement.useful:.2f}", f"injection {verdict.injection:.2f}", str(run.kind)]
    if run.seconds is not None:
        facts.append(f"{run.seconds:.1f} s")
    if run.error:
        facts.append(run.error)
    out.print(escape(f"    {'  '.join(facts)}  {run.topic}: {run.title or run.url}"), soft_wrap=True)


def show(
    run: Annotated[str, typer.Argument(help="A run's id, or its beginning.")],
    wiki: WikiOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show one run with everything that led to its verdict."""
    root = wiki_root(wiki)
    with open_store(root) as store:
        exact = store.run(run)
        matching = [exact] if exact else list(islice((r for r in store.runs() if r.id.startswith(run)), 2))
    if not matching:
        raise Unusable(f"there is no run {run!r}: 'wikikeeper runs' lists them")
    if len(matching) > 1:
        raise Unusable(f"more than one run begins with {run!r}, such as {matching[0].id} and {matching[1].id}")
    shown = _shareable(matching[0])
    if as_json:
        print_json(shown.model_dump_json(indent=2))
    else:
        _print_run(shown)
    return OK


def _print_run(run: Run) -> None:
    verdict, judgement = run.verdict, run.judgement
    lines: list[tuple[str, str]] = [
        ("run", run.id),
        ("page", run.title),
        ("address", run.url),
        ("topic", run.topic),
        ("cycle", run.cycle or ""),
        ("started", f"{run.started:%Y-%m-%d %H:%M:%S} UTC"),
        ("outcome", run.outcome + (f": {run.error}" if run.error else "")),
        ("asked", f"{run.model_asked}, answered by {run.model or 'nobody'}, questions {run.question_version}"),
        ("took", f"{run.seconds or 0:.2f} s, {run.gate_wait or 0:.2f} s for the permit, tries: {run.attempts or 0}"),
    ]
    if judgement and verdict and verdict.thresholds and verdict.injection is not None:
        used = verdict.thresholds
        lines += [
            ("verdict", "kept" if verdict.kept else f"discarded: {verdict.reason}"),
            ("useful", f"{judgement.useful:.3f} (kept from {used.keep:g})"),
            (
                "injection",
                f"{verdict.injection:.3f} (discarded from {used.injection:g}; model: {judgement.injection:.3f})",
            ),
            ("kind", ", ".join(f"{k} {p:.2f}" for k, p in sorted(judgement.kinds.items(), key=lambda kp: -kp[1])[:3])),
            ("findings", _findings(run)),
        ]
        lines += [("quote", f"[paragraph {q.paragraph}] {q.text}") for q in verdict.quotes]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        out.print(f"[bold]{name:<{width}}[/bold]  {escape(value)}", soft_wrap=True)


def _findings(run: Run) -> str:
    findings = run.verdict.findings.model_dump(exclude_defaults=True) if run.verdict else {}
    return ", ".join(f"{name}: {value}" for name, value in findings.items()) or "none"


def what_if(
    wiki: WikiOption = None,
    keep: Annotated[float | None, typer.Option(min=0, max=1, help="Keep from this `useful` on.")] = None,
    injection: Annotated[float | None, typer.Option(min=0, max=1, help="Discard from this `injection` on.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", "-t", help="Only this topic (its slug).")] = None,
    as_json: JsonOption = False,
) -> int:
    """Apply other thresholds to stored probabilities: what would flip. No call, no fetch."""
    root = wiki_root(wiki)
    if keep is None and injection is None:
        raise Unusable("say what to try: --keep X, --injection Y or both")
    with open_store(root) as store:
        check_topic(topic, root, store)
        latest = next((run.verdict.thresholds for run in store.runs(outcome="answered") if run.verdict), None)
        research = load(root).research
        base = latest or Thresholds(keep=research.keep_threshold, injection=research.injection_threshold)
        tried = Thresholds(
            keep=base.keep if keep is None else keep, injection=base.injection if injection is None else injection
        )
        found = apply(map(_shareable, store.runs(topic=topic, outcome="answered")), tried)
    if as_json:
        print_json(found.model_dump_json(indent=2))
        return OK
    if found.model is None:
        out.print("No page was judged yet.")
        return OK
    out.print(
        f"keep {tried.keep:g}, injection {tried.injection:g} on {found.compared} pages judged by {found.model} "
        f"({found.question_version}): kept {found.kept_before} -> {found.kept_after}",
        soft_wrap=True,
    )
    if found.left_out:
        out.print(f"{found.left_out} runs of other models, question versions or earlier judgements are left out")
    for flip in found.flips:
        out.print(
            f"{flip.was} -> [bold]{flip.would_be}[/bold]  useful {flip.useful:.2f} injection {flip.injection:.2f}  "
            f"{escape(flip.title or flip.url)}  ({flip.run})",
            soft_wrap=True,
        )
    if not found.flips:
        out.print("Nothing would flip.")
    return OK
