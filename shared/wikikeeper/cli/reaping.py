"""`wikikeeper reap`: take back what went silent, finish it, and say what was given up."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.private_folder import PRIVATE_FOLDER
from wikikeeper.adapters.local.run_lock import run_lock
from wikikeeper.app import open_app, open_store
from wikikeeper.cli.common import ATTENTION, OK, JsonOption, WikiOption, err, out, print_json, wiki_root
from wikikeeper.cli.cycles import anything_left, opened, run_cycles, workers
from wikikeeper.cli.report import Report
from wikikeeper.cli.summary import RunReporter
from wikikeeper.errors import AnotherRun
from wikikeeper.models import Action, Stage
from wikikeeper.parts import ModelServer
from wikikeeper.policy import silence as policy
from wikikeeper.settings import Settings, load
from wikikeeper.workflows.context import App, read_topics
from wikikeeper.workflows.schedule_cycle import UNFINISHED
from wikikeeper.workflows.silences import Silent, look

NOBODY = "http://127.0.0.1:9"
"""The discard port: a dry run asks no model, and must not reach one."""


def register(app: typer.Typer) -> None:
    app.command("reap")(reap)


def reap(
    context: typer.Context,
    wiki: WikiOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what is silent and what would be done about it.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Take back work that went silent and finish it; what stays silent is given up and told."""
    root = wiki_root(wiki)
    settings = load(root)
    if dry_run:
        return _dry_run(root, settings, as_json=as_json)
    if _nothing_left(root, settings):
        return Report(due=False, started=False).say(as_json=as_json)
    with opened(context, root, settings) as (app, reporter, _):
        return run_cycles(app, reporter, [], workers=workers(settings), due=False, as_json=as_json, start=False)


def _dry_run(root: Path, settings: Settings, *, as_json: bool) -> int:
    with open_app(root, settings, ModelServer(NOBODY, settings.keeper_model), RunReporter(err)) as app:
        try:
            with run_lock(root / PRIVATE_FOLDER):
                silent, another = look(app, alone=True), None
        except AnotherRun as error:
            silent, another = look(app), str(error)
        stages = _stages(app)
    silent = [each for each in silent if not each.only_seen]
    if as_json:
        _print_json(silent, stages)
    else:
        if another is not None:
            out.print(f"{another}: only what its leases say is shown", soft_wrap=True)
        out.print(", ".join(f"{count} {stage}" for stage, count in sorted(stages.items())) or "nothing is on its way")
        for each in silent:
            about = f"{each.action:<8} {each.subject}  {each.ended or each.said}; sent again {each.nonresponses} times"
            out.print(escape(about), soft_wrap=True)
        if not silent:
            out.print("nothing is silent")
    # What is ended without telling anybody needs nobody.
    return ATTENTION if any(each.action is not Action.RECOVER and each.ended is None for each in silent) else OK


def _nothing_left(root: Path, settings: Settings) -> bool:
    """Nothing is on its way, not noted or not told: no model need be started for that."""
    topics, _ = read_topics(FolderWiki(root))
    with open_store(root) as store:
        return not (anything_left(store, topics, settings) or any(store.escalations(undelivered=True)))


def _stages(app: App) -> Counter[Stage]:
    now = app.clock.now()
    unfinished = app.store.results(states=UNFINISHED)
    stages = (policy.stage(result, app.store.call_begun(result), now) for result in unfinished)
    return Counter(stage for stage in stages if stage is not None)


def _print_json(silent: list[Silent], stages: Counter[Stage]) -> None:
    found = [
        {
            "subject": each.subject,
            "topic": each.topic,
            "action": each.action.value,
            "nonresponses": each.nonresponses,
            "said": each.ended or each.said,
        }
        for each in silent
    ]
    print_json(json.dumps({"stages": dict(sorted(stages.items())), "silent": found}, ensure_ascii=False, indent=2))
