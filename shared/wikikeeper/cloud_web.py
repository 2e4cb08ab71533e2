"""The pages and hooks over the cloud's stores, as one ASGI app: for the function behind a URL, and for Modal.

Anybody can reach such an address, so without a token nothing is served at all.

    a request ─▶ faults are reported ─▶ its path is decoded ─▶ the guard: a session, or a hook's signature ─▶ a page
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from starlette.responses import PlainTextResponse

from wikikeeper.adapters.aws.dynamodb_deliveries import DynamoDeliveries
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.cloud_app import cloud_app, sender, settings
from wikikeeper.errors import Unusable
from wikikeeper.faults import described
from wikikeeper.models import Send
from wikikeeper.policy.web_access import Access, own_names, start_fault
from wikikeeper.ports import Reporter
from wikikeeper.settings import Web
from wikikeeper.web import hooks
from wikikeeper.web.app import create_app
from wikikeeper.web.hook_work import HookWork
from wikikeeper.web.site import Site

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope
    from starlette.types import Send as Answer

EVERYBODY = "0.0.0.0"  # noqa: S104 - nothing listens there: it is from where a URL is reached
HTTPS = 443


def application(send: Callable[[Sequence[Send]], None] | None = None) -> "Reported":
    """The pages and hooks of this container; what hooks begin goes to `send`, or to the queues of the settings.

    Raises Unusable, in one line, for settings that are missing or wrong: first of all for a token.
    """
    chosen = settings()
    access = guarded(chosen.web)
    app = cloud_app("web")
    assert isinstance(app.store, DynamoRunStore)
    site = Site(
        store=app.store,
        wiki=app.wiki,
        clock=app.clock,
        reporter=app.reporter,
        access=access,
        thresholds=app.rules.thresholds,
        gate_limit=chosen.gate.limit,
    )
    work = HookWork(
        app=app,
        send=send or sender().send,
        deliveries=DynamoDeliveries(app.store.table),
        bot_user=chosen.slack.bot_user,
    )
    return Reported(Decoded(create_app(site, hooks=hooks.router(work, chosen.hooks))), app.reporter)


def guarded(web: Web) -> Access:
    """By its token, and under the names that are set, or any if none is. Raises Unusable without a token."""
    token = None if web.token is None else web.token.get_secret_value()
    if (fault := start_fault(EVERYBODY, token)) is not None:
        raise Unusable(fault)
    return Access(names=own_names(EVERYBODY, HTTPS, web.names), token=token)


class Decoded:
    """Requests of a Function URL with the path that ASGI promises: the event has it as it came, in percent signs."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Answer") -> None:
        if (event := scope.get("aws.event")) is not None:
            raw = cast("str", event["rawPath"])
            scope = {**scope, "path": unquote(raw), "raw_path": raw.encode()}
        await self._app(scope, receive, send)


class Reported:
    """The app with its faults reported as those of workflows are: with their kind and place, not with what they quote."""

    def __init__(self, app: "ASGIApp", reporter: Reporter) -> None:
        self._app = app
        self._reporter = reporter

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Answer") -> None:
        started = finished = False

        async def noted(message: "Message") -> None:
            nonlocal started, finished
            await send(message)
            started = True
            finished = message["type"] == "http.response.body" and not message.get("more_body", False)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:  # noqa: BLE001 - the boundary of the app: what answers was said by its own handlers
            self._reporter.event("page_failed", method=scope["method"], **described(error))
            if not started:
                await PlainTextResponse("A fault of wikikeeper: its log says more.\n", 500)(scope, receive, send)
            elif not finished:
                raise RuntimeError("an answer broke off") from None
