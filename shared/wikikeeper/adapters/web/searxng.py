"""SearXNG's JSON search. An outage is a `SearchFailed` with its cause, never an empty answer.

SearXNG usually has a private address, which the guarded client for pages refuses; so it is asked by a client of its
own that speaks to this one origin only.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import httpx

from wikikeeper.adapters.web.found import aware, found, unique
from wikikeeper.errors import SearchFailed
from wikikeeper.models import Found, Origin
from wikikeeper.policy.retry_after import retry_after

MAX_BYTES = 5_000_000
"""Of an answer. A hundred results are a tenth of a megabyte."""
MOST_REDIRECTS = 3
"""A reverse proxy adds a slash or a language; more is a loop."""
SHOWN = 200
"""Characters of a server's own words in a message: one line on a terminal."""


class Hits(NamedTuple):
    """What SearXNG found, and what a person should know about it."""

    found: tuple[Found, ...]
    warnings: tuple[str, ...]


class Searxng:
    """One SearXNG server."""

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        user_agent: str,
        transport: httpx.BaseTransport | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`timeout`: seconds for one query, redirects included. `transport` and `now` stand for the outside in tests."""
        self._search_url = httpx.URL(url.rstrip("/") + "/search")
        self._timeout = timeout
        self._now = now
        self._client = httpx.Client(
            timeout=timeout,
            # Proxies and .netrc of the environment are meant for the web, not for a server on the own network.
            trust_env=False,
            # One connection for each query: a query that meets the end of a kept one looks like a server that is down.
            headers={"Accept": "application/json", "Connection": "close", "User-Agent": user_agent},
            transport=transport,
        )

    def search(self, query: str, language: str | None, limit: int) -> Hits:
        """The first `limit` results for a query, each address once. Raises SearchFailed when there is an outage.

        No results and no engine that failed really means: nothing was found.
        """
        params = {"q": query, "format": "json"} | ({"language": language} if language else {})
        response, body = self._get(self._search_url.copy_merge_params(params))
        _check_status(response, body, self._now())
        return _hits(_json(response, body), limit)

    def close(self) -> None:
        self._client.close()

    def _get(self, url: httpx.URL) -> tuple[httpx.Response, bytes]:
        end = time.monotonic() + self._timeout
        try:
            for _ in range(MOST_REDIRECTS + 1):
                with self._client.stream("GET", url) as response:
                    if not response.has_redirect_location:
                        return response, _body(response, end)
                    url = _target(response, url)
        except httpx.TimeoutException as error:
            raise _timed_out(self._timeout) from error
        except httpx.DecodingError as error:
            raise SearchFailed("bad_reply", f"SearXNG's answer is not packed as it says ({error})") from error
        except (httpx.RequestError, httpx.InvalidURL) as error:
            raise SearchFailed(
                "unreachable",
                f"SearXNG at {_origin(url)} cannot be reached ({error}): is it running, is searxng.url right?",
            ) from error
        raise SearchFailed("redirect_loop", f"SearXNG redirects more than {MOST_REDIRECTS} times: check searxng.url")


def _target(response: httpx.Response, url: httpx.URL) -> httpx.URL:
    target = url.join(response.headers["Location"])
    if _origin(target) != _origin(url):
        raise SearchFailed(
            f"http_{response.status_code}",
            f"SearXNG redirects to {_origin(target)}: set searxng.url to it if that is your server",
        )
    return target


def _body(response: httpx.Response, end: float) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            raise SearchFailed("bad_reply", f"SearXNG's answer is larger than {MAX_BYTES // 1_000_000} MB")
        # httpx counts each read on its own, so a server that drips would hold us for ever.
        if time.monotonic() > end:
            raise SearchFailed(
                "timeout", "SearXNG sends its answer too slowly: raise searxng.timeout if that is normal"
            )
    return bytes(body)


def _check_status(response: httpx.Response, body: bytes, now: datetime) -> None:
    status = response.status_code
    said = _said(body)
    after = retry_after(response.headers.get("Retry-After"), now)
    match status:
        case 200:
            return
        case 400:
            raise SearchFailed("bad_request", f"SearXNG refuses the query: {said}")
        case 403 if "html" in response.headers.get("Content-Type", ""):
            raise SearchFailed(
                "json_disabled",
                "SearXNG answers 403: add `json` under `search.formats` in its settings.yml and restart it",
            )
        case 404:
            raise SearchFailed("http_404", "there is no /search at this address: check searxng.url")
        case 429:
            raise SearchFailed(
                "rate_limited",
                f"SearXNG's limiter answers 429 ({said}): let this machine pass in its limiter.toml",
                after=after,
            )
        case _:
            raise SearchFailed(f"http_{status}", f"SearXNG answers {status}: {said}", after=after)


def _json(response: httpx.Response, body: bytes) -> object:
    try:
        # strict=False: engines pass raw control characters through into the strings.
        return json.loads(body, strict=False)
    except ValueError as error:
        kind = response.headers.get("Content-Type", "no content type")
        raise SearchFailed(
            "not_json", f"SearXNG's answer is not JSON ({kind}): does searxng.url lead to SearXNG itself?"
        ) from error
    except RecursionError as error:
        raise SearchFailed("bad_reply", "SearXNG's answer is nested too deeply to be one") from error


def _hits(reply: object, limit: int) -> Hits:
    if not isinstance(reply, dict) or not isinstance(rows := reply.get("results"), list):
        raise SearchFailed("bad_reply", "SearXNG's answer has no list of results: is its version very old or new?")
    silent = _unresponsive(reply.get("unresponsive_engines"))
    usable = tuple(unique(_row(row) for row in rows))
    if silent and not usable:
        raise SearchFailed("engines_unresponsive", f"no search engine answered: {silent}")
    return Hits(usable[:limit], (f"engines without an answer: {silent}",) if silent else ())


def _row(row: object) -> Found | None:
    if not isinstance(row, dict):
        return None
    return found(row.get("url"), row.get("title"), Origin.SEARCH, aware(row.get("publishedDate")))


def _unresponsive(engines: object) -> str:
    """`brave (timeout), google (Suspended: CAPTCHA)`: one may stand there and have results all the same."""
    if not isinstance(engines, list):
        return ""
    named = []
    for engine in engines:
        name, reason, *_ = [*engine, "", ""] if isinstance(engine, list) else [engine, ""]
        named.append(f"{name} ({reason})" if reason else str(name))
    return ", ".join(named)


def _said(body: bytes) -> str:
    text = body[: SHOWN * 4].decode("utf-8", "replace")
    try:
        reply = json.loads(body, strict=False)
    except (ValueError, RecursionError):
        reply = None
    if isinstance(reply, dict) and isinstance(reply.get("error"), str):
        text = reply["error"]
    return " ".join(text.split())[:SHOWN] or "nothing more"


def _timed_out(seconds: float) -> SearchFailed:
    return SearchFailed("timeout", f"SearXNG did not answer within {seconds:g} s: see which of its engines are slow")


def _origin(url: httpx.URL) -> str:
    """Scheme, host and port: an address without the user name, password or query that it may carry."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
