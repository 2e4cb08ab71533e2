"""`retry` and `doctor`: bringing back what was set aside, and saying what is wrong with the set-up and how to mend it."""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.private_folder import PRIVATE_FOLDER
from wikikeeper.app import open_app, open_store
from wikikeeper.cli.common import ATTENTION, OK, JsonOption, WikiOption, check_topic, err, out, print_json, wiki_root
from wikikeeper.cli.cycles import unwritten_notes
from wikikeeper.cli.reaping import NOBODY
from wikikeeper.cli.summary import RunReporter
from wikikeeper.errors import SearchFailed, Unusable
from wikikeeper.models import ResultState, Topic, Value, WriteNote
from wikikeeper.parts import ModelServer, decider, searxng
from wikikeeper.policy.redaction import redact
from wikikeeper.ports import RunStore
from wikikeeper.settings import CONFIG_FILE, Settings, load
from wikikeeper.workflows.context import read_topics
from wikikeeper.workflows.given_up import standing
from wikikeeper.workflows.write_note import write_note

PARKED = frozenset({ResultState.PARKED})
SIGHTINGS, ESCALATIONS = 5, 5
"""The newest of each that doctor shows; the rest is on the Runs page."""
NOTE = "note:"
"""Begins the id of a note that was given up: the subject of its escalation."""


def register(app: typer.Typer) -> None:
    app.command("retry")(retry)
    app.command("doctor")(doctor)


def retry(
    results: Annotated[
        list[str] | None, typer.Argument(help="Ids of parked results and of notes that were given up; none lists them.")
    ] = None,
    wiki: WikiOption = None,
    topic: Annotated[
        str | None, typer.Option("--topic", "-t", help="All parked results of this topic, and its note.")
    ] = None,
) -> int:
    """Bring back parked results, which wait for the next cycle then, and notes that were given up: they are written now."""
    root = wiki_root(wiki)
    settings = load(root)
    with open_store(root) as store:
        check_topic(topic, root, store)
        left = list(unwritten_notes(store, read_topics(FolderWiki(root))[0], settings, left=True))
        if not results and topic is None:
            return _list_parked(store, left)
        chosen = [each for each in results or [] if not each.startswith(NOTE)]
        notes = [each.removeprefix(NOTE) for each in results or [] if each.startswith(NOTE)]
        if topic is not None:
            chosen += [result.id for result in store.results(topic=topic, states=PARKED)]
            notes += [slug for slug in left if slug == topic]
        missed = [result for result in chosen if not store.retry(result)]
    if chosen or not notes:
        out.print(f"{len(chosen) - len(missed)} waiting again")
    _write_notes([slug for slug in dict.fromkeys(notes) if slug in left], root, settings)
    faults = [f"not parked: {', '.join(missed)}"] if missed else []
    if strange := [f"{NOTE}{slug}" for slug in notes if slug not in left]:
        faults.append(f"not given up: {', '.join(strange)}")
    if faults:
        raise Unusable("; ".join(faults))
    return OK


def _list_parked(store: RunStore, notes: Sequence[str]) -> int:
    parked = list(store.results(states=PARKED))
    for result in parked:
        last = result.failures[-1] if result.failures else None
        why = f"{last.cause}: {last.detail}" if last else ""
        out.print(escape(f"{result.id}  {result.topic}  {result.title or redact(result.url)}  {why}"), soft_wrap=True)
    for slug in notes:
        out.print(escape(f"{NOTE}{slug}  {slug}  pages are kept and its note was given up"), soft_wrap=True)
    said = f"{len(parked)} parked" + (f", {len(notes)} notes given up" if notes else "")
    out.print(said + (": 'wikikeeper retry ID' brings one back" if parked or notes else ""))
    return OK


def _write_notes(slugs: Sequence[str], root: Path, settings: Settings) -> None:
    """Now, since it needs no model. What fails says why, and the note stays given up."""
    if not slugs:
        return
    reporter = RunReporter(err)
    with open_app(root, settings, ModelServer(NOBODY, settings.keeper_model), reporter) as app:
        for slug in slugs:
            write_note(WriteNote(topic=slug), app)
            for note in reporter.topic(slug).notes:
                out.print(f"note: [bold]{escape(note)}[/bold]", soft_wrap=True)


State = Literal["ok", "note", "fault"]
MODEL_STATES: dict[str, State] = {"healthy": "ok", "waking": "note", "unhealthy": "fault"}


class Finding(Value):
    """One thing that doctor looked at."""

    part: str
    state: State
    said: str
    """What was seen; for a fault also how to mend it."""


def doctor(wiki: WikiOption = None, as_json: JsonOption = False) -> int:
    """Look at settings, wiki, model server and SearXNG, and say how to mend what is wrong."""
    findings = list(_examine(wiki))
    if as_json:
        print_json(json.dumps([finding.model_dump() for finding in findings], ensure_ascii=False, indent=2))
    else:
        colours = {"ok": "green", "note": "yellow", "fault": "red"}
        for finding in findings:
            colour = colours[finding.state]
            line = (
                f"[{colour}]{finding.state:<5}[/{colour}] [bold]{escape(finding.part)}[/bold]  {escape(finding.said)}"
            )
            out.print(line, soft_wrap=True)
    return ATTENTION if any(finding.state == "fault" for finding in findings) else OK


def _examine(wiki: Path | None) -> Iterator[Finding]:
    try:
        root = wiki_root(wiki)
    except Unusable as error:
        yield Finding(part="wiki", state="fault", said=str(error))
        return
    try:
        settings = load(root)
    except Unusable as error:
        yield Finding(part="settings", state="fault", said=str(error))
        return
    source = f"defaults and {CONFIG_FILE}" if (root / CONFIG_FILE).exists() else f"defaults, no {CONFIG_FILE}"
    yield Finding(part="settings", state="ok", said=f"read ({source}, environment WIKIKEEPER_…)")
    topics, findings = _wiki(root)
    yield from findings
    yield _model(settings)
    yield _searxng(settings, topics)
    yield from _alerts(root)


def _wiki(root: Path) -> tuple[list[Topic], list[Finding]]:
    files = FolderWiki(root)
    topics, faults = read_topics(files)
    findings = [
        Finding(part="topics", state="fault", said=f"{fault.key}:{fault.line}: {fault.reason}") for fault in faults
    ]
    if not topics:
        findings.append(Finding(part="topics", state="note", said="none yet: write topics/<name>.md"))
    else:
        findings.append(Finding(part="topics", state="ok", said=", ".join(topic.slug for topic in topics)))
    if os.access(root, os.W_OK):
        findings.append(Finding(part="wiki", state="ok", said=f"{root} can be written; state in {PRIVATE_FOLDER}/"))
    else:
        findings.append(Finding(part="wiki", state="fault", said=f"{root} cannot be written: notes need it"))
    return topics, findings


def _model(settings: Settings) -> Finding:
    if settings.keeper_base_url is None:
        from wikikeeper import bundled

        missing = bundled.missing()
        if missing is not None:
            said = f"no server is configured and the bundled judge lacks {missing}: set llama.base_url or install wikikeeper[model]"
            return Finding(part="model", state="fault", said=said)
        return Finding(part="model", state="ok", said=f"the bundled judge ({bundled.MODEL}), started when needed")
    try:
        client = decider(settings, ModelServer(settings.keeper_base_url, settings.keeper_model))
    except Unusable as error:
        return Finding(part="model", state="fault", said=str(error))
    try:
        seen = client.state()
    finally:
        client.close()
    state = MODEL_STATES[seen.state]
    said = f"{settings.keeper_model} at {settings.keeper_base_url}: {seen.state}"
    return Finding(part="model", state=state, said=said + (f" ({seen.cause}): {seen.detail}" if seen.cause else ""))


def _searxng(settings: Settings, topics: list[Topic]) -> Finding:
    asking = [topic.slug for topic in topics if topic.queries]
    client = searxng(settings)
    if client is None:
        if not asking:
            return Finding(part="searxng", state="ok", said="not configured, and no topic has queries")
        said = f"{', '.join(asking)} have queries and searxng.url is not set: set it, or use feeds and links"
        return Finding(part="searxng", state="fault", said=said)
    try:
        hits = client.search("wikikeeper", None, 5)
    except SearchFailed as error:
        return Finding(part="searxng", state="fault", said=str(error))
    finally:
        client.close()
    if hits.warnings:
        return Finding(part="searxng", state="note", said="answers JSON; " + "; ".join(hits.warnings))
    return Finding(part="searxng", state="ok", said=f"{redact(str(settings.searxng.url))} answers JSON")


def _alerts(root: Path) -> Iterator[Finding]:
    if not (root / PRIVATE_FOLDER / "state.sqlite").exists():
        return
    try:
        with open_store(root) as store:
            for alert in store.alerts():
                said = f"{alert.cause} since {alert.raised:%Y-%m-%d %H:%M} UTC: {alert.detail}"
                yield Finding(part=alert.subject, state="note", said=said)
            for seen in islice(store.model_history(), SIGHTINGS):
                cause = f" ({seen.cause})" if seen.cause else ""
                said = f"{seen.condition}{cause} since {seen.since:%Y-%m-%d %H:%M} UTC"
                yield Finding(part=f"model {seen.model}", state="ok", said=said)
            for escalation in islice(standing(store), ESCALATIONS):
                said = f"given up at {escalation.raised:%Y-%m-%d %H:%M} UTC: {escalation.detail}"
                yield Finding(part=escalation.subject, state="note", said=said)
            parked = sum(1 for _ in store.results(states=PARKED))
            if parked:
                yield Finding(part="parked", state="note", said=f"{parked} results: 'wikikeeper retry' lists them")
    except Unusable as error:
        yield Finding(part="state", state="fault", said=str(error))
