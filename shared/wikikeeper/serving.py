"""One machine, served: the pages and hooks on a socket, a tick each minute, and the work, until it is told to stop.

    main thread      ThreadHost.run ─ workers ─ workflows; a tick is a command that sends itself again each minute
    pages' thread    uvicorn; hooks add their commands to the same host

    SIGINT, SIGTERM  what runs ends, the rest is dropped and found in the state by the next start; then the pages close

A tick never waits for the work of the one before: it takes the next free worker, before what only is ready.
"""

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from wikikeeper.adapters.local.sqlite_deliveries import SqliteDeliveries
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.adapters.local.threads import ThreadHost
from wikikeeper.dispatch import dispatch
from wikikeeper.errors import Unusable
from wikikeeper.models import Command, ReapStale, Send
from wikikeeper.policy.web_access import Access, own_names, start_fault
from wikikeeper.ports import Reporter
from wikikeeper.settings import Settings
from wikikeeper.settings import Web as WebSettings
from wikikeeper.web import hooks
from wikikeeper.web.app import create_app
from wikikeeper.web.hook_work import HookWork
from wikikeeper.web.site import Site
from wikikeeper.workflows.context import App
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import due, withdraw_deleted

MINUTE = timedelta(minutes=1)
LAST_ANSWERS = 5
"""Seconds for requests that are under way when the pages close."""
BACKLOG = 128
"""Connections that wait while a model loads: a person's browser opens six."""


@contextmanager
def listening(web: WebSettings) -> Iterator[socket.socket]:
    """The socket of the pages. Raises Unusable where they must not be served, or the port is not to be had."""
    token = None if web.token is None else web.token.get_secret_value()
    if (fault := start_fault(web.host, token)) is not None:
        raise Unusable(fault)
    host = "127.0.0.1" if web.host.lower() == "localhost" else web.host.strip("[]")
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        raise Unusable(
            f"web.host {web.host!r} is not an address: take one of this machine's, such as 127.0.0.1"
        ) from None
    try:
        listener = socket.create_server((host, web.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise Unusable(
            f"cannot serve on {web.host}, port {web.port}: {error.strerror}; choose another with --port, "
            "or stop what is served there"
        ) from error
    with listener:
        # Inherited by each connection. asyncio sets it only on sockets that name TCP, which this one does not: without
        # it the body of an answer waits 40 ms for the browser to acknowledge its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def application(app: App, settings: Settings, port: int, send: Callable[[Sequence[Send]], None]) -> FastAPI:
    """The pages and hooks over the stores that the work uses. `port` is the one that they are served on."""
    assert isinstance(app.store, SqliteRunStore)
    web = settings.web
    site = Site(
        store=app.store,
        wiki=app.wiki,
        clock=app.clock,
        reporter=app.reporter,
        access=Access(
            names=own_names(web.host, port, web.names),
            token=None if web.token is None else web.token.get_secret_value(),
        ),
        thresholds=app.rules.thresholds,
        gate_limit=settings.gate.limit,
    )
    work = HookWork(
        app=app, send=send, deliveries=SqliteDeliveries(app.store.database), bot_user=settings.slack.bot_user
    )
    return create_app(site, hooks=hooks.router(work, settings.hooks))


def serve(app: App, settings: Settings, listener: socket.socket, *, workers: int) -> None:
    """Serve and work until SIGINT or SIGTERM, or until the pages fail. The caller holds the run lock.

    Only from the main thread, which alone hears signals.
    """
    host = ThreadHost(lambda command: handle(command, app), app.reporter, workers=workers, stopping=app.gate.turn_away)
    pages = _Pages(application(app, settings, listener.getsockname()[1], host.add), listener, app.reporter, host.stop)
    with _interruptible(), pages:
        try:
            host.run([*reap_stale(ReapStale(alone=True), app), Send(command=ReapStale())])
        except KeyboardInterrupt:
            app.reporter.event("stopping")
    if pages.failed:
        raise Unusable("the pages stopped by themselves; the log above says why")


def handle(command: Command, app: App) -> Sequence[Send]:
    """A command's workflow; a sweep of the reaper is the tick that starts what is due.

    What a workflow raises is reported and goes no further: a process that runs for months collects no errors, and a
    tick that fails comes again.
    """
    sends: Sequence[Send] = ()
    try:
        sends = tick(app) if command.kind == "reap_stale" else dispatch(command, app)
    except Exception as error:  # noqa: BLE001 - the boundary of the host: state is the truth, and is looked at each minute
        app.reporter.event("command_failed", command=command.kind, error=f"{type(error).__name__}: {error}")
    if command.kind == "reap_stale":
        return [*sends, Send(command=ReapStale(), after=until_next_minute(app.clock.now()))]
    return sends


def tick(app: App) -> list[Send]:
    """What a minute brings: topics that were deleted, work that went silent, topics that are due."""
    withdraw_deleted(app)
    return [*reap_stale(ReapStale(), app), *due(app)]


def until_next_minute(now: datetime) -> timedelta:
    """Never nothing: a tick that comes a moment early waits a whole minute instead of running twice."""
    return MINUTE - timedelta(seconds=now.second, microseconds=now.microsecond)


class _Pages:
    """uvicorn on a thread of its own, for as long as the block."""

    def __init__(
        self, app: FastAPI, listener: socket.socket, reporter: Reporter, on_failure: Callable[[], None]
    ) -> None:
        self._listener = listener
        self._reporter = reporter
        self._on_failure = on_failure
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=LAST_ANSWERS,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="pages", daemon=True)
        self.failed = False

    def __enter__(self) -> None:
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)  # uvicorn says it by this flag alone

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(LAST_ANSWERS + 1)

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        except Exception as error:  # noqa: BLE001 - of a thread: said here, or nowhere
            self._reporter.event("pages_failed", error=f"{type(error).__name__}: {error}")
        if not self._server.should_exit:
            self.failed = True
            self._on_failure()


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM, as service managers send it, ends things in the same order as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
