"""What all commands share: where the wiki is, how to print, how to fail."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from wikikeeper.adapters.local.files import explaining
from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.errors import Unusable
from wikikeeper.policy.topics import slug_of
from wikikeeper.workflows.context import read_topics

OK, ATTENTION, UNUSABLE, INTERRUPTED = 0, 1, 2, 130

# No emoji: what a page calls ":warning:" is shown as it stands.
out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)

WikiOption = Annotated[
    Path | None,
    typer.Option("--wiki", "-w", envvar="WIKIKEEPER_WIKI", help="The wiki's folder.", show_default="this folder"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


def wiki_root(given: Path | None) -> Path:
    """The wiki's folder, or an error that says how to make one."""
    wiki = given or Path()
    with explaining(wiki):
        if not wiki.is_dir():
            raise Unusable(
                f"{wiki} is not a folder: name the wiki with --wiki, or make an example with 'wikikeeper try'"
            )
        if not (wiki / "topics").is_dir():
            raise Unusable(
                f"{wiki} has no folder topics/: write topics/<name>.md there, or make an example with 'wikikeeper try'"
            )
        return wiki.resolve()


def no_such_topic(slug: str, known: Iterable[str]) -> Unusable:
    """The error for a topic that nobody has heard of."""
    return Unusable(f"there is no topic {slug!r}; topics here: {', '.join(known) or 'none'}")


def check_topic(slug: str | None, root: Path, store: SqliteRunStore) -> None:
    """Nothing for a topic that has a file, however faulty, or that something is remembered of. Otherwise an error."""
    if slug is None:
        return
    topics, faults = read_topics(FolderWiki(root))
    if slug in {topic.slug for topic in topics} | {slug_of(fault.key) for fault in faults}:
        return
    if any(state.slug == slug for state in store.topics()) or next(iter(store.results(topic=slug)), None):
        return
    raise no_such_topic(slug, [topic.slug for topic in topics])


def print_json(text: str) -> None:
    """JSON to standard output as it is: no colours, no folding of long lines."""
    out.file.write(text + "\n")
