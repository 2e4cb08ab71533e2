"""An HTTP transport that keeps to a deadline, whatever the server does.

The timeouts of httpx hold for one wait each: a server that sends one byte a second stays inside every one of them and
still takes for ever, also while it sends its headers, where no caller can look in between. So the deadline is checked
where the waiting happens, in the network stream below httpx.
"""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ssl import SSLContext

import httpcore
import httpx

_ENDS: ContextVar[float] = ContextVar("_ENDS", default=math.inf)
"""When, by `time.monotonic()`, the current call stops waiting."""

_AS_HTTPX: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.ReadTimeout, httpx.ReadTimeout),
    (httpcore.WriteTimeout, httpx.WriteTimeout),
    (httpcore.PoolTimeout, httpx.PoolTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ReadError, httpx.ReadError),
    (httpcore.WriteError, httpx.WriteError),
    (httpcore.RemoteProtocolError, httpx.RemoteProtocolError),
    (httpcore.LocalProtocolError, httpx.LocalProtocolError),
    (httpcore.UnsupportedProtocol, httpx.UnsupportedProtocol),
)


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Let no wait on the network inside the block last beyond `moment` (by `time.monotonic()`)."""
    token = _ENDS.set(moment)
    try:
        yield
    finally:
        _ENDS.reset(token)


class DeadlineTransport(httpx.BaseTransport):
    """Connections whose every connect, read and write ends at the moment that `until` set.

    Outside is only the resolver, which has limits of its own, and a name with several dead addresses: each of them may
    take what was left at the first. Raises httpx's own errors.
    """

    def __init__(self, *, connections: int) -> None:
        """At most so many connections at once, and none kept for later."""
        self._pool = httpcore.ConnectionPool(
            max_connections=connections, max_keepalive_connections=0, network_backend=_Backend()
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        assert isinstance(request.stream, httpx.SyncByteStream)  # the client above is a sync one
        with _errors_of_httpx():
            response = self._pool.handle_request(
                httpcore.Request(
                    request.method,
                    url,
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _errors_of_httpx():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
    ) as error:
        for theirs, ours in _AS_HTTPX:
            if isinstance(error, theirs):
                raise ours(str(error)) from error
        raise


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        wait = _at_most(timeout, httpcore.ConnectTimeout)
        try:
            return _Stream(self._sockets.connect_tcp(host, port, wait, local_address, socket_options))
        except (UnicodeError, OverflowError) as error:  # how Python refuses impossible names and ports
            raise httpcore.ConnectError(f"impossible address: {error}") from error


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _at_most(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _at_most(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        wait = _at_most(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, wait))

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


def _at_most(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    left = _ENDS.get() - time.monotonic()
    if left <= 0:
        raise late("the deadline has passed")
    if timeout is None:
        return None if math.isinf(left) else left
    return min(timeout, left)
