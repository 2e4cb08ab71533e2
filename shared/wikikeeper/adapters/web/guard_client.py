"""One guarded GET: hop by hop, each on a connection of its own, to a document that keeps to every limit.

No cookies, no proxies, nothing from the environment, no connection used twice: a page learns nothing from the last one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from ssl import SSLContext
from urllib.parse import urljoin

import httpcore
import httpx

from wikikeeper.adapters.web.decode_body import ACCEPTED, BodyDecoder
from wikikeeper.adapters.web.guard import Allowance, GuardedNetwork, Resolver, system_resolver
from wikikeeper.errors import FetchFailed, Unfetchable, Unusable
from wikikeeper.models import Fetched
from wikikeeper.policy import challenges, media
from wikikeeper.policy.retry_after import retry_after
from wikikeeper.policy.url_parts import Parts, parse, parse_origin
from wikikeeper.settings import Fetch

MOST_REDIRECTS = 5
"""http to https to www to a language to the page, and one to spare."""
WIRE_FACTOR = 2
"""Bytes from the wire per decoded byte allowed, over all hops: as `fetch.max_bytes` promises."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_EMPTY = frozenset({204, 205})
_LATER = frozenset({408, 425, 429})
_MAYBE_CHALLENGE = frozenset({401, 403, 429, 503})
"""Where the body is worth a look. The others say enough by their number."""


class GuardedClient:
    """Fetches what other people name. Any number of threads may use one at once."""

    def __init__(
        self,
        settings: Fetch,
        *,
        resolve: Resolver = system_resolver,
        network: httpcore.NetworkBackend | None = None,
        tls: SSLContext | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`resolve`, `network`, `tls` and `now` stand for the outside: the machine's own unless a test brings others.

        Raises Unusable for settings that no request can be made with.
        """
        self._settings = settings
        self._resolve = resolve
        self._network = network or httpcore.SyncBackend()
        self._given_tls = tls
        self._now = now
        try:
            self._listed = frozenset(parse_origin(origin) for origin in settings.allow_origins)
        except ValueError as error:
            raise Unusable(f"fetch.allow_origins: {error}") from error
        if not _is_header(settings.user_agent):
            raise Unusable("fetch.user_agent: only printable ASCII can be sent")

    @cached_property
    def _tls(self) -> SSLContext:
        # At the first connection, as botocore and httpcore do: reading whom to believe takes as long as loading httpx.
        return self._given_tls or httpx.create_ssl_context(trust_env=False)

    def get(
        self,
        url: str,
        *,
        exempt: bool,
        accepted: frozenset[str] = media.PAGES,
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> Fetched:
        """The document at `url`, redirects followed, decoded, of one of the `accepted` types.

        `exempt`: a person wrote this very URL, so a listed origin may be asked. That never extends to where it
        redirects to. Validators make the request conditional; without them 304 is no answer.

        Raises Unfetchable: bad_url, bad_redirect, insecure_redirect, redirect_loop, too_many_redirects,
        forbidden_address, forbidden_port, unsupported_encoding, broken_encoding, too_large, wrong_type, no_text,
        bot_challenge, http_<status>. Raises FetchFailed: dns, connect, tls, interrupted, deadline, http_<status>.
        """
        try:
            target = parse(url)
        except ValueError as error:
            raise Unfetchable("bad_url", str(error)) from error
        headers = self._headers(etag, last_modified)
        allowance = Allowance(self._settings.deadline, WIRE_FACTOR * self._settings.max_bytes)
        listed = exempt and target.origin in self._listed
        seen: set[str] = set()
        while len(seen) <= MOST_REDIRECTS:
            seen.add(target.url)
            answer = self._hop(target, headers, allowance, accepted, listed=listed)
            if isinstance(answer, Fetched):
                return answer
            target, listed = _next(target, answer), False
            if target.url in seen:
                raise Unfetchable("redirect_loop", target.host)
        raise Unfetchable("too_many_redirects", f"more than {MOST_REDIRECTS}")

    def _headers(self, etag: str | None, last_modified: str | None) -> dict[str, str]:
        headers = {
            "User-Agent": self._settings.user_agent,
            "Accept": "text/html, application/xhtml+xml, application/pdf;q=0.9, text/*;q=0.8, */*;q=0.5",
            "Accept-Encoding": ACCEPTED,
            "Connection": "close",
        }
        # Validators came from a server, by way of the store: one that can't be sent is as good as none.
        if etag is not None and _is_header(etag):
            headers["If-None-Match"] = etag
        if last_modified is not None and _is_header(last_modified):
            headers["If-Modified-Since"] = last_modified
        return headers

    def _hop(
        self, target: Parts, headers: Mapping[str, str], allowance: Allowance, accepted: frozenset[str], *, listed: bool
    ) -> Fetched | str:
        """One request: the document, or where it has gone."""
        allowance.begin_head()
        scheme, host = target.scheme.encode(), target.host.encode()
        connection = httpcore.HTTPConnection(
            origin=httpcore.Origin(scheme, host, target.port),
            ssl_context=self._tls,
            network_backend=GuardedNetwork(allowance, listed=listed, resolve=self._resolve, network=self._network),
        )
        url = httpcore.URL(scheme=scheme, host=host, port=target.port, target=target.target)
        sent = [(name.encode(), value.encode()) for name, value in {"Host": target.authority, **headers}.items()]
        with _our_errors(), closing(connection), connection.stream("GET", url, headers=sent) as response:
            allowance.end_head()
            return self._answer(target, response, headers, allowance, accepted)

    def _answer(
        self,
        target: Parts,
        response: httpcore.Response,
        asked: Mapping[str, str],
        allowance: Allowance,
        accepted: frozenset[str],
    ) -> Fetched | str:
        headers = _received(response)
        status = response.status
        if status in _REDIRECTS and "location" in headers:
            return headers["location"]
        if status == 304 and ("If-None-Match" in asked or "If-Modified-Since" in asked):
            unchanged = media.essence(headers.get("content-type")) or ""
            return _fetched(target, status, headers, unchanged, b"", not_modified=True)
        if not 200 <= status < 300:
            raise self._refusal(status, headers, self._beginning(status, headers, response, allowance))
        if status in _EMPTY:
            raise Unfetchable("no_text", f"HTTP {status}")
        kind, body = self._document(response, headers, allowance, accepted)
        return _fetched(target, status, headers, kind, body)

    def _document(
        self, response: httpcore.Response, headers: Mapping[str, str], allowance: Allowance, accepted: frozenset[str]
    ) -> tuple[str, bytes]:
        limit = self._settings.max_bytes
        decoder = BodyDecoder(headers.get("content-encoding", ""), limit, allowance.seconds)
        promised = headers.get("content-length", "")
        most = WIRE_FACTOR * limit if decoder.decodes else limit
        # More digits than that could be too many for int(), and are too large in any case.
        if len(promised) > 15 or (promised.isdecimal() and int(promised) > most):
            raise Unfetchable("too_large", f"{promised[:20]} bytes announced")
        declared = headers.get("content-type")
        body = bytearray()
        kind: str | None = None
        for piece in response.iter_stream():
            body += decoder.feed(piece)
            if kind is None and len(body) >= media.START:
                kind = _kind(declared, body, accepted)
        decoder.finish()
        return kind or _kind(declared, body, accepted), bytes(body)

    def _beginning(
        self, status: int, headers: Mapping[str, str], response: httpcore.Response, allowance: Allowance
    ) -> bytes:
        """The first bytes of a refusal, as far as they can be had."""
        start = b""
        if status in _MAYBE_CHALLENGE:
            # What goes wrong with the body of a refusal changes nothing about it: the status is the outcome.
            with suppress(Unfetchable, FetchFailed), _our_errors():
                decoder = BodyDecoder(headers.get("content-encoding", ""), self._settings.max_bytes, allowance.seconds)
                for piece in response.iter_stream():
                    start += decoder.feed(piece)
                    if len(start) >= challenges.START:
                        break
        return start

    def _refusal(self, status: int, headers: Mapping[str, str], start: bytes) -> Unfetchable | FetchFailed:
        service = challenges.challenge(status, headers, start)
        if service is not None and status != 429:
            return Unfetchable("bot_challenge", service)
        if status in _LATER or status >= 500:
            return FetchFailed(f"http_{status}", retry_after(headers.get("retry-after"), self._now()))
        return Unfetchable(f"http_{status}")


def _next(target: Parts, location: str) -> Parts:
    # Before joining, which would quietly drop tabs and line breaks.
    if not location.isprintable():
        raise Unfetchable("bad_redirect", "control characters in an address")
    try:
        # Only what is relative is joined: with the same scheme before it, urljoin would take "http:///x" for relative too.
        following = parse(location if _SCHEME.match(location) else urljoin(target.url, location))
    except ValueError as error:
        raise Unfetchable("bad_redirect", str(error)) from error
    if target.scheme == "https" and following.scheme == "http":
        raise Unfetchable("insecure_redirect", following.host)
    return following


def _kind(declared: str | None, body: bytearray, accepted: frozenset[str]) -> str:
    kind = media.media_type(declared, bytes(body[: media.START]), accepted)
    if kind is None:
        raise Unfetchable("wrong_type", (declared or "no type")[:80])
    return kind


def _fetched(
    target: Parts, status: int, headers: Mapping[str, str], kind: str, body: bytes, *, not_modified: bool = False
) -> Fetched:
    return Fetched(
        url=target.url,
        status=status,
        content_type=kind,
        charset=media.charset(headers.get("content-type")),
        body=body,
        etag=headers.get("etag"),
        last_modified=headers.get("last-modified"),
        not_modified=not_modified,
    )


def _received(response: httpcore.Response) -> dict[str, str]:
    """Headers by lower-case name; the first where one is repeated, but all layers of the encoding."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name = raw_name.decode("latin-1").lower()
        try:
            value = raw_value.decode()  # servers send raw UTF-8 in Location
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        if name == "content-encoding" and name in headers:
            headers[name] += f", {value}"
        headers.setdefault(name, value)
    return headers


def _is_header(value: str) -> bool:
    return value.isascii() and value.isprintable() and value.strip() == value and value != ""


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except httpcore.TimeoutException as error:
        raise FetchFailed("deadline") from error
    except httpcore.ConnectError as error:
        raise FetchFailed("connect", detail=str(error)) from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise FetchFailed("interrupted", detail=str(error)) from error
