"""`done` and `verify`: what a person does with notes, and whether every quote still holds."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.adapters.web.extract import ChildExtractor
from wikikeeper.adapters.web.fetch import GuardedFetcher
from wikikeeper.app import open_store
from wikikeeper.cli.common import ATTENTION, OK, JsonOption, WikiOption, out, print_json, wiki_root
from wikikeeper.errors import FetchFailed, Unfetchable, Unusable, WikiConflict
from wikikeeper.models import Result, StoredPage
from wikikeeper.policy.notes import AWAITING, COMPLETED, completed_key, entries
from wikikeeper.policy.verification import FAULTS, Check, Standing, check_entry, on_page
from wikikeeper.settings import load
from wikikeeper.workflows.context import read_topics


def register(app: typer.Typer) -> None:
    app.command("done")(done)
    app.command("verify")(verify)


def done(
    note: Annotated[str, typer.Argument(help="The note: its path, its key, or its file name.")],
    wiki: WikiOption = None,
) -> int:
    """Move a note to inbox/completed/: you are done with it. New kept pages then open a new note."""
    root = wiki_root(wiki)
    files = FolderWiki(root)
    name = Path(note).name
    key = AWAITING + (name if name.endswith(".md") else f"{name}.md")
    document = files.read(key)
    if document is None:
        if files.read(completed_key(key)) is not None:
            out.print(escape(f"{completed_key(key)} is completed already"), soft_wrap=True)
            return OK
        waiting = ", ".join(k.removeprefix(AWAITING) for k in files.keys(AWAITING)) or "none"
        raise Unusable(f"there is no note {key}; awaiting: {waiting}")
    try:
        files.move(key, completed_key(key), document.etag)
    except WikiConflict as error:
        raise Unusable(f"{error}; nothing was moved, try again") from None
    out.print(escape(f"{key} -> {completed_key(key)}"), soft_wrap=True)
    return OK


def verify(
    wiki: WikiOption = None,
    refetch: Annotated[bool, typer.Option("--refetch", help="Also fetch each page again and look there.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Check every quote of every note against the stored paragraphs, or the web now."""
    root = wiki_root(wiki)
    files = FolderWiki(root)
    checks: list[Check] = []
    with open_store(root) as store:
        again = _Again(root) if refetch else None
        try:
            for key in [*files.keys(AWAITING), *files.keys(COMPLETED)]:
                document = files.read(key)
                for entry in entries(document.data) if document else ():
                    result = store.result(entry.result)
                    found = check_entry(key, entry, result, _page(store, result))
                    checks += found if again is None or result is None else again.look(result, found)
        finally:
            if again is not None:
                again.close()
    broken = [check for check in checks if check.standing in FAULTS]
    if as_json:
        print_json(json.dumps([check.model_dump(mode="json") for check in checks], ensure_ascii=False, indent=2))
        return ATTENTION if broken else OK
    for check in checks:
        if check.standing is not Standing.HOLDS:
            shown = check.quote if len(check.quote) <= 100 else check.quote[:100] + " [...]"
            where = escape(f"{check.note} {check.result} {check.detail}".rstrip())
            out.print(f"[yellow]{check.standing.value}[/yellow] {where}\n  > {escape(shown)}", soft_wrap=True)
    counts = Counter(check.standing for check in checks)
    said = ", ".join(f"{number} {standing.value}" for standing, number in counts.most_common())
    out.print(f"{len(checks)} quotes: {said}" if checks else "There is no quote yet.")
    return ATTENTION if broken else OK


def _page(store: SqliteRunStore, result: Result | None) -> StoredPage | None:
    if result is None or result.verdict is None or result.verdict.text_hash is None:
        return None
    return store.page(result.verdict.text_hash)


class _Again:
    """Fetches pages anew, with the same guard as the first time."""

    def __init__(self, root: Path) -> None:
        settings = load(root)
        files = FolderWiki(root)
        read, _ = read_topics(files)
        self._folders = {topic.slug: topic.folder for topic in read}
        self._fetcher = GuardedFetcher(settings.fetch, root)
        self._extractor = ChildExtractor(settings.extraction)

    def look(self, result: Result, checks: list[Check]) -> list[Check]:
        try:
            fetched = self._fetcher.fetch(
                result.url,
                origin=result.origin,
                folder=self._folders.get(result.topic),
                etag=None,
                last_modified=None,
            )
            paragraphs = self._extractor.extract(fetched).paragraphs
        except (Unfetchable, FetchFailed) as error:
            unknown = {"standing": Standing.UNREACHABLE, "detail": error.cause}
            return [c.model_copy(update=unknown) if c.standing not in FAULTS else c for c in checks]
        return [self._against(check, paragraphs) for check in checks]

    def _against(self, check: Check, paragraphs: tuple[str, ...]) -> Check:
        if check.standing is Standing.EDITED or not check.quote:
            return check
        there = on_page(check.quote, paragraphs)
        return check.model_copy(update={"standing": Standing.HOLDS if there else Standing.NOT_ON_PAGE})

    def close(self) -> None:
        self._extractor.close()
