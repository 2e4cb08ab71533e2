"""The composition root of one machine: settings and a folder in, an App with real adapters out."""

import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path

from wikikeeper.adapters.local.files import explaining, flush_folder, link_new, read_file
from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.gate import SqliteGate
from wikikeeper.adapters.local.private_folder import PRIVATE_FOLDER, private_folder
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.adapters.web.extract import ChildExtractor
from wikikeeper.adapters.web.fetch import FeedFetcher, GuardedFetcher
from wikikeeper.adapters.web.guard_client import GuardedClient
from wikikeeper.adapters.web.sources import TopicSearch
from wikikeeper.errors import Unusable
from wikikeeper.keeper import QuestioningKeeper
from wikikeeper.parts import ModelServer, SystemClock, decider, rules, searxng, thresholds
from wikikeeper.ports import Messenger, Reporter
from wikikeeper.settings import Settings
from wikikeeper.workflows.context import App

SECRET_BYTES = 32
"""As many as a digest of SHA-256: more would add nothing."""


@contextmanager
def model_server(settings: Settings) -> Iterator[ModelServer]:
    """The configured model server, or the bundled judge, started for as long as it is needed."""
    if settings.keeper_base_url is not None:
        yield ModelServer(settings.keeper_base_url, settings.keeper_model)
        return
    from wikikeeper import bundled

    if (missing := bundled.missing()) is not None:
        raise Unusable(
            f"no model server is configured and the bundled judge lacks {missing}: "
            "set llama.base_url, or install wikikeeper[model]"
        )
    with ExitStack() as stack:
        try:
            judge = stack.enter_context(bundled.BundledServer())
        except bundled.DidNotStart as error:
            raise Unusable(str(error)) from error
        yield ModelServer(judge.base_url, bundled.MODEL, bundled.recommended(), bundled=True)


@contextmanager
def open_database(root: Path) -> Iterator[Database]:
    """The database of a wiki, made if absent."""
    database = Database(state_folder(root) / "state.sqlite")
    try:
        yield database
    finally:
        database.close()


@contextmanager
def open_store(root: Path) -> Iterator[SqliteRunStore]:
    """The run store of a wiki, made if absent."""
    with open_database(root) as database:
        yield SqliteRunStore(database)


@contextmanager
def open_app(root: Path, settings: Settings, server: ModelServer, reporter: Reporter) -> Iterator[App]:
    """Everything that the workflows need on one machine, closed again afterwards."""
    with ExitStack() as stack:
        decide = stack.enter_context(closing(decider(settings, server)))
        extractor = stack.enter_context(closing(ChildExtractor(settings.extraction)))
        web = searxng(settings)
        if web is not None:
            stack.enter_context(closing(web))
        database = stack.enter_context(open_database(root))
        client = GuardedClient(settings.fetch)
        fetcher = GuardedFetcher(settings.fetch, root, client=client)
        secret = installation_secret(root)
        yield App(
            store=SqliteRunStore(database),
            wiki=FolderWiki(root),
            search=TopicSearch(
                web=web,
                feeds=FeedFetcher(client),
                root=root,
                results_per_query=settings.research.results_per_query,
            ),
            fetcher=fetcher,
            extractor=extractor,
            keeper=QuestioningKeeper(decide, secret=secret, quote_max_chars=settings.research.quote_max_chars),
            decider=decide,
            gate=SqliteGate(
                database,
                settings.gate.limit,
                calls_per_permit=settings.gate.calls_per_permit,
                max_wait=timedelta(seconds=settings.gate.max_wait),
            ),
            clock=SystemClock(),
            reporter=reporter,
            rules=rules(settings, thresholds(settings, server.thresholds)),
            holder=f"{socket.gethostname()}:{os.getpid()}",
            messenger=_messenger(settings, stack),
        )


def _messenger(settings: Settings, stack: ExitStack) -> Messenger | None:
    if settings.slack.webhook_url is None:
        return None
    from wikikeeper.adapters.slack.messenger import SlackMessenger

    return stack.enter_context(closing(SlackMessenger(settings.slack.webhook_url)))


def state_folder(root: Path) -> Path:
    """Where the machine's memory of a wiki lies; only its owner can read it."""
    return private_folder(root / PRIVATE_FOLDER)


def installation_secret(root: Path) -> bytes:
    """The key of the boundary around page text: made once, known to this installation alone.

    Raises Unusable for a file that holds no such key.
    """
    file = state_folder(root) / "secret"
    if (secret := read_file(file)) is None:
        _make_secret(file)
        secret = read_file(file)
    if secret is None or len(secret) != SECRET_BYTES:
        raise Unusable(
            f"{file} is damaged: it does not hold {SECRET_BYTES} bytes. Delete it: the next run makes a new key for the "
            "boundary around page text, and everything that was judged stays as it is"
        )
    return secret


def _make_secret(file: Path) -> None:
    """Whole and on disk before it has its name. Where another process is first, the secret of that one counts."""
    with explaining(file):
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".secret-")  # made readable for its owner only
        fresh = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(secrets.token_bytes(SECRET_BYTES))
                out.flush()
                os.fsync(descriptor)
            link_new(fresh, file)
        finally:
            fresh.unlink(missing_ok=True)
        flush_folder(file.parent)
