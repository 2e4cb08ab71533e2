"""A small web for tests: one scripted server on loopback that plays every host, and a resolver that is not the system's.

The rules for addresses stay the real ones: a host "is at" a public address, and the network below the guard leads that
address to the server here. An address that nothing was mapped for fails the test, so no test leaves the machine.
"""

import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from ssl import SSLContext
from types import TracebackType
from typing import Self

import httpcore
import httpx

from wikikeeper.adapters.web.fetch import GuardedFetcher
from wikikeeper.adapters.web.guard_client import GuardedClient
from wikikeeper.errors import FetchFailed, Unfetchable
from wikikeeper.models import Fetched, Origin
from wikikeeper.settings import Fetch

PUBLIC = "93.184.216.34"
"""What every host of these tests is at unless it says otherwise. Never connected to."""
NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)

TLS = httpx.create_ssl_context(trust_env=False)
"""Once for all tests: reading the certificates takes longer than most of them."""

Pieces = Callable[[], Iterable[bytes]]


def reply(
    body: bytes = b"", *headers: str, status: int = 200, content_type: str | None = "text/html; charset=utf-8"
) -> bytes:
    """A response whose Content-Length is right unless `headers` brings one."""
    lines = [f"HTTP/1.1 {status} Whatever", *headers]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    if not any(line.lower().startswith(("content-length:", "transfer-encoding:")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, status: int = 302) -> bytes:
    return reply(b"", f"Location: {location}", status=status)


class StubWeb:
    """Answers by host and path, whatever port was meant, and remembers what was asked."""

    def __init__(self, tls: SSLContext | None = None, address: str = "127.0.0.1") -> None:
        self._listener = socket.create_server((address, 0))
        self._tls = tls
        self._answers: dict[str, Pieces] = {}
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.requests: list[str] = []
        """Whole request heads, in the order in which they came."""

    def on(self, address: str, answer: bytes | Pieces) -> None:
        """What "host/path" or "host:port/path" answers: bytes, or pieces that are sent one by one."""
        self._answers[address] = (lambda: [answer]) if isinstance(answer, bytes) else answer

    @property
    def asked(self) -> list[str]:
        """Host and path of each request."""
        return [self._address(request) for request in self.requests]

    def wait(self, seconds: float) -> bool:
        """For slow answers: False once the server is being closed."""
        return not self._closing.wait(seconds)

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        with suppress(OSError):  # not connected: that is how a listening socket is woken
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def _spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._spawn(partial(self._serve, connection))

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(5)
            stream = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            with stream:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = stream.recv(65_536)
                    if not piece:
                        return
                    head += piece
                    if head.startswith(b"\x16\x03"):  # a TLS handshake, to a server that speaks none
                        stream.sendall(reply(status=400))
                        return
                request = head.decode("latin-1")
                self.requests.append(request)
                missing = reply(b"nothing here", status=404)
                for piece in self._answers.get(self._address(request), lambda: [missing])():
                    if self._closing.is_set():
                        return
                    stream.sendall(piece)

    @staticmethod
    def _address(request: str) -> str:
        lines = request.split("\r\n")
        host = next(line[6:] for line in lines if line.lower().startswith("host: "))
        return host + lines[0].split(" ")[1]


class Network(httpcore.SyncBackend):
    """Leads addresses to ports on loopback; counts what was tried."""

    def __init__(self, **ports: int) -> None:
        """`Network(**{address: port})`"""
        self._ports = ports
        self.tried: list[tuple[str, int]] = []

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        self.tried.append((host, port))
        if host not in self._ports:
            raise AssertionError(f"a connection to {host}:{port}")
        return super().connect_tcp("127.0.0.1", self._ports[host], timeout, local_address, socket_options)


class Names:
    """A resolver: each host's answers in turn, the last one for good; `PUBLIC` for hosts that were not named."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {host: list(turns) for host, turns in answers.items()}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        turns = self._answers.get(host, [[PUBLIC]])
        return turns.pop(0) if len(turns) > 1 else turns[0]


class Visitor:
    """A fetcher in front of a `StubWeb`, with everything that a test may want to look at afterwards."""

    def __init__(
        self,
        web: StubWeb,
        *,
        names: Callable[[str, int], Sequence[str]] | None = None,
        network: httpcore.NetworkBackend | None = None,
        tls: SSLContext | None = None,
        settings: Fetch | None = None,
        wiki: Path = Path("/nonexistent"),
    ) -> None:
        self.web = web
        self.names = names or Names()
        self.network = network or Network(**{PUBLIC: web.port})
        settings = settings or Fetch(deadline=60)
        self.client = GuardedClient(settings, resolve=self.names, network=self.network, tls=tls or TLS, now=lambda: NOW)
        self.fetcher = GuardedFetcher(settings, wiki, client=self.client)

    def fetch(
        self,
        url: str,
        origin: Origin = Origin.SEARCH,
        *,
        folder: str | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> Fetched:
        return self.fetcher.fetch(url, origin=origin, folder=folder, etag=etag, last_modified=last_modified)

    def refusal(
        self, url: str, origin: Origin = Origin.SEARCH, *, folder: str | None = None
    ) -> Unfetchable | FetchFailed:
        """The error that a fetch ends with."""
        try:
            self.fetch(url, origin, folder=folder)
        except (Unfetchable, FetchFailed) as error:
            return error
        raise AssertionError(f"{url} was fetched")
