"""One HTTP exchange with the model server: bounded in time and size, and never with anybody else."""

import string
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from pydantic import SecretStr

from wikikeeper.adapters.llama.deadline import DeadlineTransport, until
from wikikeeper.errors import Unusable, WikikeeperError

MOST_BYTES = 1 << 20
"""Of an answer. Four questions answer in some kilobytes; a router with hundreds of models lists them in less."""

MOST_REDIRECTS = 20
"""As browsers do. Hosts that answer slow calls by redirects send one every few minutes, so time ends it long before."""

CONNECTIONS = 72
"""The largest gate limit is 64 calls at once; the rest is for looking at the state meanwhile."""

_VISIBLE = frozenset(string.ascii_letters + string.digits + string.punctuation)


@dataclass(frozen=True)
class Answered:
    """What the server answered, read to its end."""

    status: int
    headers: httpx.Headers
    body: bytes


class Unreadable(WikikeeperError):
    """The server said 200 and began to answer, but there is no whole body to look at."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        """truncated, too_large or encoded."""


class SentElsewhere(WikikeeperError):
    """The server redirects to another origin, where our key and the pages have no business."""

    def __init__(self, origin: str, status: int) -> None:
        super().__init__(origin)
        self.origin = origin
        self.status = status


class ModelServer:
    """The server below one base URL. Safe to use from several threads."""

    def __init__(
        self,
        base_url: str,
        api_key: SecretStr | None,
        *,
        proxy: tuple[SecretStr, SecretStr] | None,
        connect_timeout: float,
        clock: Callable[[], float],
        transport: httpx.BaseTransport | None,
    ) -> None:
        self.base = _base(base_url)
        self._connect_timeout = connect_timeout
        self._clock = clock
        headers = {
            "Accept": "application/json",
            # No compression: a small answer needs none, and it would let a few bytes become many.
            "Accept-Encoding": "identity",
            # One connection for each call. llama-server's router promises to keep them open and then closes some of
            # them right after an answer; a call sent into one of those cannot be told from one that was lost half-way.
            # A call takes a tenth of a second and more, a connection next to nothing.
            "Connection": "close",
            "User-Agent": "wikikeeper",
        }
        if api_key is not None:
            headers["Authorization"] = f"Bearer {_sendable(api_key, 'api_key')}"
        if proxy is not None:
            headers["Modal-Key"] = _sendable(proxy[0], "proxy_key")
            headers["Modal-Secret"] = _sendable(proxy[1], "proxy_secret")
        self._client = httpx.Client(
            headers=headers,
            trust_env=False,  # a proxy of the surroundings has no business between us and the model
            transport=transport or DeadlineTransport(connections=CONNECTIONS),
        )

    def exchange(self, method: str, path: str, body: bytes | None = None, *, ends: float) -> Answered:
        """Ask `<base>/<path>` and read the whole answer before the moment `ends` (by the clock).

        Redirects are followed within the origin. Raises httpx.TransportError as long as no answer has begun (a
        timeout at any time), then Unreadable; SentElsewhere for a redirect to another origin.
        """
        url = self.base.copy_with(path=self.base.path + path)
        answered = self._once(method, url, body, ends)
        for _ in range(MOST_REDIRECTS):
            target = _redirect(answered, url)
            if target is None:
                break
            if _origin(target) != _origin(self.base):
                raise SentElsewhere(_origin(target), answered.status)
            if answered.status == httpx.codes.SEE_OTHER:
                method, body = "GET", None
            url = target
            answered = self._once(method, url, body, ends)
        return answered

    def close(self) -> None:
        self._client.close()

    def _once(self, method: str, url: httpx.URL, body: bytes | None, ends: float) -> Answered:
        left = ends - self._clock()
        if left <= 0:
            raise httpx.ReadTimeout("the deadline has passed")
        request = self._client.build_request(
            method,
            url,
            content=body,
            headers={"Content-Type": "application/json"} if body is not None else None,
            timeout=httpx.Timeout(left, connect=min(self._connect_timeout, left)),
        )
        with until(ends):
            try:
                response = self._client.send(request, stream=True)
            except UnicodeError as error:  # httpx looks at a redirect's host, also when it does not follow
                raise httpx.RemoteProtocolError("redirected to an impossible host") from error
            try:
                return Answered(response.status_code, response.headers, self._body(response, ends))
            finally:
                response.close()

    def _body(self, response: httpx.Response, ends: float) -> bytes:
        try:
            return self._read(response, ends)
        except Unreadable:
            if response.status_code == httpx.codes.OK:
                raise
            return b""  # any other status says enough by itself, and must not be lost over its page

    def _read(self, response: httpx.Response, ends: float) -> bytes:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Unreadable("encoded")
        body = bytearray()
        try:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise Unreadable("too_large")
                if self._clock() >= ends:
                    raise httpx.ReadTimeout("the deadline has passed")
        except (httpx.NetworkError, httpx.ProtocolError) as error:
            raise Unreadable("truncated") from error
        return bytes(body)


def _base(base_url: str) -> httpx.URL:
    """The URL that paths such as `v1/systemone` are put behind: with a slash at its end, without `/v1`."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise Unusable(f"the model server's base_url is not a URL: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise Unusable("the model server's base_url must look like http://127.0.0.1:8080")
    if url.userinfo or url.query or url.fragment:
        raise Unusable("the model server's base_url must have no user, query or fragment; a key belongs into api_key")
    return url.copy_with(path=url.path.rstrip("/").removesuffix("/v1").rstrip("/") + "/")


def _sendable(secret: SecretStr, setting: str) -> str:
    key = secret.get_secret_value()
    if not key or not _VISIBLE.issuperset(key):
        raise Unusable(f"the model server's {setting} is empty or has spaces, line ends or non-ASCII characters in it")
    return key


def _redirect(answered: Answered, url: httpx.URL) -> httpx.URL | None:
    """Where to go on. 301 and 302 are none for a call: most clients would turn them into a GET of another page."""
    location = answered.headers.get("Location")
    if location is None or not 300 <= answered.status < 400:
        return None
    try:
        target = url.join(location)
    except httpx.InvalidURL:
        return None
    followed = answered.status in {303, 307, 308}
    return target if followed or _origin(target) != _origin(url) else None


def _origin(url: httpx.URL) -> str:
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
    return f"{url.scheme}://{url.raw_host.decode()}:{port}"  # raw: decoding international names may fail
