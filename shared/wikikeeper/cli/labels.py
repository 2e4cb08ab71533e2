"""`label` and `calibrate`: what a person says of verdicts, and the thresholds that this speaks for."""

import json
import secrets
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.markup import escape

from wikikeeper.adapters.local.files import explaining
from wikikeeper.app import open_store
from wikikeeper.cli.common import ATTENTION, OK, JsonOption, WikiOption, check_topic, out, print_json, wiki_root
from wikikeeper.errors import Unusable
from wikikeeper.models import Label, Run, Should, Thresholds
from wikikeeper.policy.calibration import Calibration, Point, Share
from wikikeeper.policy.calibration import calibrate as apply
from wikikeeper.policy.curve import curve_svg
from wikikeeper.policy.redaction import redact
from wikikeeper.policy.sampling import draw, newest_judged
from wikikeeper.ports_web import PageStore, WebStore
from wikikeeper.settings import load

NEWEST = 5_000
"""Answered runs that pages are drawn from, as in the browser."""
ANSWERS = {"k": Should.KEPT, "d": Should.DISCARDED}
TopicOption = Annotated[str | None, typer.Option("--topic", "-t", help="Only this topic (its slug).")]


class Answer(BaseModel):
    """An entry of what `--json` printed, filled in."""

    run: str
    should: Should | None = None


ANSWER_FILE = TypeAdapter(list[Answer])


def register(app: typer.Typer) -> None:
    app.command("label")(label)
    app.command("calibrate")(calibrate)


def label(
    wiki: WikiOption = None,
    sample: Annotated[int, typer.Option(min=1, max=1000, help="So many pages, kept and discarded alike.")] = 20,
    topic: TopicOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was drawn instead of asking; 'should' is for you to fill in.")
    ] = False,
    answers: Annotated[
        Path | None, typer.Option("--from", help="Store the labels of such a file instead of asking.")
    ] = None,
) -> int:
    """Label pages drawn at random from what was kept and what was discarded, so that recall can be known."""
    root = wiki_root(wiki)
    with open_store(root) as store:
        check_topic(topic, root, store)
        if answers is not None:
            return _store_answers(store, answers)
        judged = newest_judged(islice(store.runs(topic=topic, outcome="answered"), NEWEST))
        drawn = draw(
            judged.pages, {each.result: each for each in store.labels()}, most=sample, seed=secrets.token_hex(8)
        )
        if as_json:
            print_json(json.dumps([_as_json(run) for run in drawn], ensure_ascii=False, indent=2))
            return OK
        if not drawn:
            out.print("Every page that was judged is labelled." if judged.pages else "No page was judged yet.")
            return OK
        if not sys.stdin.isatty():
            raise Unusable(
                "'label' asks at a terminal; without one take --json, fill in 'should', and give it with --from"
            )
        said = _ask(store, drawn)
    out.print(f"{said} labelled. 'wikikeeper calibrate' says what the labels speak for.")
    return OK


def _store_answers(store: WebStore, file: Path) -> int:
    """Raises Unusable, naming the entry, before anything is stored."""
    with explaining(file):
        text = file.read_text(encoding="utf-8")
    try:
        entries = ANSWER_FILE.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Unusable(f"{file}: {where or 'the file'}: {first['msg']}") from None
    labels = []
    for number, entry in enumerate(entries, start=1):
        run = store.run(entry.run)
        if run is None:
            raise Unusable(f"{file}: entry {number}: there is no run {entry.run!r}")
        if entry.should is not None:
            labels.append(_label(run, entry.should))
    for each in labels:
        store.put_label(each)
    out.print(f"{len(labels)} labelled, {len(entries) - len(labels)} left open")
    return OK


def _ask(store: PageStore, drawn: Iterable[Run]) -> int:
    said = 0
    for run in drawn:
        out.print(f"\n[bold]{escape(run.title or redact(run.url))}[/bold]\n{escape(redact(run.url))}", soft_wrap=True)
        answer = typer.prompt(f"for {run.topic}: [k]eep, [d]rop, [s]kip, [q]uit").strip().lower()[:1]
        if answer == "q":
            break
        if answer in ANSWERS:
            store.put_label(_label(run, ANSWERS[answer]))
            said += 1
    return said


def _label(run: Run, should: Should) -> Label:
    return Label(result=run.subject, run=run.id, topic=run.topic, should=should, at=datetime.now(UTC), drawn=True)


def _as_json(run: Run) -> dict[str, str | None]:
    """Without what the Keeper said, so that it does not lead the one who labels."""
    return {"run": run.id, "topic": run.topic, "title": run.title, "url": redact(run.url), "should": None}


def calibrate(
    wiki: WikiOption = None,
    topic: TopicOption = None,
    svg: Annotated[Path | None, typer.Option(help="Also write the curve as a picture to this file.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Propose thresholds from labels, with intervals; or say why nothing can be said."""
    root = wiki_root(wiki)
    research = load(root).research
    with open_store(root) as store:
        check_topic(topic, root, store)
        latest = next((run.verdict.thresholds for run in store.runs(outcome="answered") if run.verdict), None)
        used = latest or Thresholds(keep=research.keep_threshold, injection=research.injection_threshold)
        found = apply(
            islice(store.runs(topic=topic, outcome="answered"), NEWEST),
            {each.result: each for each in store.labels()},
            keep=used.keep,
            injection=used.injection,
        )
    if svg is not None and found.curve:
        with explaining(svg):
            svg.write_text(curve_svg(found, used=used.keep), encoding="utf-8")
    if as_json:
        print_json(found.model_dump_json(indent=2))
    else:
        _print(found, used)
    return ATTENTION if found.cannot_say else OK


def _print(found: Calibration, used: Thresholds) -> None:
    for stratum in found.strata:
        out.print(
            f"{stratum.name}: {stratum.labelled} of {stratum.pages} labelled, each stands for {stratum.weight:.1f}"
        )
    if found.corrections:
        out.print(f"corrections: {found.corrections}, which weigh nothing since they were not drawn")
    if found.cannot_say:
        out.print(f"[yellow]cannot say[/yellow]: {escape(found.cannot_say)}", soft_wrap=True)
    if found.keep is not None:
        line = found.keep
        out.print(
            f"keep threshold: [bold]{line.at:.2f}[/bold] ({line.low:.2f} to {line.high:.2f}), in use {used.keep:g}"
        )
    if found.injection is not None:
        line = found.injection
        out.print(
            f"injection threshold: [bold]{line.at:.2f}[/bold] ({line.low:.2f} to {line.high:.2f}), in use {used.injection:g}"
        )
    elif found.injection_cannot_say:
        out.print(f"injection threshold: cannot say: {escape(found.injection_cannot_say)}", soft_wrap=True)
    if found.current is not None:
        out.print(f"in use: {_point(found.current)}")


def _point(point: Point) -> str:
    return f"precision {_share(point.precision)}, recall {_share(point.recall)}"


def _share(share: Share | None) -> str:
    return "unknown" if share is None else f"{share.value:.2f} ({share.low:.2f} to {share.high:.2f})"
