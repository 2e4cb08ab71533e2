"""What stands before every page: whose request it is, how large it may be, and what a browser is told to allow.

Whether a request passes is decided in policy/web_access.py; this is the ASGI side of it.
"""

import asyncio
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wikikeeper.policy import web_access
from wikikeeper.web.site import Site

COOKIE = "__Host-wikikeeper"
"""The prefix has browsers insist on Secure, on this host alone and on every path."""
HOOKS = "/hooks/"
"""Verified by their own signatures on the raw body; they come from senders without cookies, under any name."""
OPEN = ("/login", "/static/")
"""What a person who has not signed in needs to do so."""
MOST_BYTES = 64 * 1024
"""Of a form: ours hold a few words."""
BODY_SECONDS = 5.0
"""For a whole form: a browser sends one in a single piece."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    # Not "no-referrer": with that, browsers hide the origin of our own forms as well.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_NO_STORE = {"cache-control": "no-store"}


class Guard:
    """Wraps the whole app, so that no route can be added beside it."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_guarding(message["headers"])]
            await send(message)

        if scope["path"].startswith(HOOKS):
            await self._app(scope, receive, send_guarded)
            return
        refusal = self._refusal(scope)
        if refusal is None and scope["method"] not in SAFE:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await _body(Headers(scope=scope), receive)
            except TimeoutError:
                refusal = _plain(408, f"The form did not come within {BODY_SECONDS:g} seconds.", closing=True)
            else:
                if body is None:
                    refusal = _plain(413, f"A form of these pages has at most {MOST_BYTES} bytes.", closing=True)
                else:
                    receive = _again(body, receive)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, access = Headers(scope=scope), self._site.access
        host = _only(headers, "host")
        if not web_access.host_allowed(host, access.names, https=scope["scheme"] == "https"):
            return _plain(
                421, "These pages are not served under that name. Add it to web.names, or use another address."
            )
        if scope["method"] not in SAFE and not web_access.same_origin(
            host=host, origin=_only(headers, "origin"), fetch_site=_only(headers, "sec-fetch-site")
        ):
            return _plain(403, "Only these pages themselves may send that. Go to the page and use its button.")
        if access.token is None or scope["path"].startswith(OPEN) or self._signed_in(headers, access.token):
            return None
        if scope["method"] in SAFE:
            query = scope["query_string"].decode("ascii", "replace")
            wanted = quote(scope["path"]) + (f"?{query}" if query else "")
            return RedirectResponse(f"/login?{urlencode({'next': wanted})}", 303)
        return _plain(401, "You are not signed in. Go to /login.")

    def _signed_in(self, headers: Headers, token: str) -> bool:
        now = self._site.clock.now()
        return any(web_access.session_holds(value, token, now) for value in _sessions(headers.getlist("cookie")))


def _only(headers: Headers, name: str) -> str | None:
    """What a header says. One that comes several times says what no browser of ours would: it fits nothing."""
    values = headers.getlist(name)
    return ", ".join(values) if values else None


def _sessions(cookies: Iterable[str]) -> list[str]:
    """Ours among all that a browser sends: programs on other ports of the host set some too, in forms that parsers give up at."""
    pairs = (pair.strip().partition("=") for line in cookies for pair in line.split(";"))
    return [value.strip('"') for name, _, value in pairs if name == COOKIE]


def _guarding(present: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in present}
    wanted = _HEADERS if b"cache-control" in there else _HEADERS | _NO_STORE
    return [(name.encode(), value.encode()) for name, value in wanted.items()]


async def _body(headers: Headers, receive: Receive) -> bytes | None:
    """The whole body; None: it is too long."""
    declared = headers.get("content-length", "0")
    if (
        not (declared.isascii() and declared.isdigit())
        or len(declared) > len(str(MOST_BYTES))
        or int(declared) > MOST_BYTES
    ):
        return None
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":  # the sender is gone
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """As if the body had not been read yet."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _plain(status: int, said: str, *, closing: bool = False) -> Response:
    # A body that was not read to its end can't be followed by another request.
    return Response(
        said + "\n", status, {"connection": "close"} if closing else None, media_type="text/plain; charset=utf-8"
    )
