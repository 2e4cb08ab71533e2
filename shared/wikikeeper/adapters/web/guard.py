"""The connection itself keeps the rules: whoever goes through here can't reach a forbidden address or wait too long.

```
name ─▶ refused name or port? ─▶ looked up once ─▶ every address checked ─▶ connect to a checked one ─▶ TLS for the name
```

Checking a URL before giving it to a client is not enough: the client looks the name up again, and a hostile server
answers differently the second time. So the check sits where the socket is made, and the socket is made to the address
that was checked. Every wait, the lookup's as well, lasts at most as long as is left of the one deadline.
"""

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from ssl import SSLContext
from threading import Thread

import httpcore

from wikikeeper.errors import FetchFailed, Unfetchable
from wikikeeper.policy.addresses import is_forbidden, is_forbidden_name, is_forbidden_port

Resolver = Callable[[str, int], Sequence[str]]
"""All addresses of a host, in the order in which they should be tried. Raises OSError where there are none."""

MOST_HEAD_BYTES = 65_536
"""Of status line and headers, informational ones included. Browsers give up at about four times that, servers send
a hundredth."""
MOST_ADDRESSES = 4
"""Tried of those that a name has: two of each family. A server of which four are down is down."""


def system_resolver(host: str, port: int) -> Sequence[str]:
    """The machine's own resolver."""
    # As bytes: given text, Python would apply IDNA once more, by older rules.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _, _, _, _, address in found]


class Allowance:
    """What is left of one fetch, over all its hops: time, and bytes from the wire."""

    def __init__(self, seconds: float, wire_bytes: int) -> None:
        self._ends = time.monotonic() + seconds
        self._wire_bytes = wire_bytes
        self._wire_left = wire_bytes
        self._head_left: int | None = MOST_HEAD_BYTES

    def seconds(self) -> float:
        """Seconds left, more than none. Raises FetchFailed("deadline")."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise FetchFailed("deadline")
        return left

    def readable(self, wanted: int) -> int:
        """How much of `wanted` may be read in one go. Raises Unfetchable("too_large") when nothing may."""
        if self._head_left == 0:
            raise Unfetchable("too_large", f"headers of more than {MOST_HEAD_BYTES} bytes")
        # One byte more than is left: otherwise a body that just fits could not be seen to end.
        return min(wanted, self._wire_left + 1, wanted if self._head_left is None else self._head_left)

    def read(self, count: int) -> None:
        """Bytes that came. Raises Unfetchable("too_large")."""
        self._wire_left -= count
        if self._wire_left < 0:
            raise Unfetchable("too_large", f"more than {self._wire_bytes} bytes sent")
        if self._head_left is not None:
            self._head_left -= count

    def begin_head(self) -> None:
        """The next answer begins: its headers have a limit of their own."""
        self._head_left = MOST_HEAD_BYTES

    def end_head(self) -> None:
        """Status and headers are there; what follows is the body, which has its own limits."""
        self._head_left = None


class GuardedNetwork(httpcore.NetworkBackend):
    """Connections of one hop. `listed`: its origin is one that a person allowed, so names and addresses are theirs."""

    def __init__(
        self, allowance: Allowance, *, listed: bool, resolve: Resolver, network: httpcore.NetworkBackend
    ) -> None:
        self._allowance = allowance
        self._listed = listed
        self._resolve = resolve
        self._network = network

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline counts, not the caller's patience
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to a checked address of `host`.

        Raises Unfetchable: forbidden_port, forbidden_address (one forbidden address among many is enough: which of
        them answers is not ours to choose). Raises FetchFailed: dns, connect, deadline.
        """
        addresses = self._checked(host, port)
        for tries_left in range(len(addresses), 0, -1):
            address = addresses[-tries_left]
            patience = self._allowance.seconds() / tries_left  # so that one that is silent leaves time for the next
            try:
                stream = self._network.connect_tcp(address, port, patience, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                if tries_left == 1:
                    self._allowance.seconds()
                    raise FetchFailed("connect", detail=str(error)) from error
            else:
                return _GuardedStream(stream, self._allowance)
        raise FetchFailed("dns", detail="the name has no address")

    def _checked(self, host: str, port: int) -> Sequence[str]:
        if not self._listed and (reason := is_forbidden_port(port)):
            raise Unfetchable("forbidden_port", reason)
        if _is_address(host):
            addresses: Sequence[str] = [host]
        else:
            if not self._listed and (reason := is_forbidden_name(host)):
                raise Unfetchable("forbidden_address", f"{host}: {reason}")
            addresses = self._looked_up(host, port)
        for address in () if self._listed else addresses:
            if reason := is_forbidden(address):
                raise Unfetchable("forbidden_address", f"{host} is at {address}: {reason}")
        return addresses[:MOST_ADDRESSES]

    def _looked_up(self, host: str, port: int) -> Sequence[str]:
        # The system's resolver can't be interrupted, so it is left behind in a thread of its own when time is up.
        answer: Future[Sequence[str]] = Future()
        Thread(target=_look_up, args=(self._resolve, host, port, answer), name=f"look up {host}", daemon=True).start()
        try:
            return list(dict.fromkeys(answer.result(self._allowance.seconds())))
        except TimeoutError:
            raise FetchFailed("deadline", detail=f"no answer on where {host} is") from None
        except OSError as error:
            raise FetchFailed("dns", detail=f"{host}: {error.strerror or error}") from error


class _GuardedStream(httpcore.NetworkStream):
    """A connection whose every wait and every byte counts against the allowance."""

    def __init__(self, inner: httpcore.NetworkStream, allowance: Allowance) -> None:
        self._inner = inner
        self._allowance = allowance

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - as in connect_tcp
        data = self._inner.read(self._allowance.readable(max_bytes), self._allowance.seconds())
        self._allowance.read(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - as in connect_tcp
        self._inner.write(buffer, self._allowance.seconds())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - as in connect_tcp
    ) -> httpcore.NetworkStream:
        try:
            stream = self._inner.start_tls(ssl_context, server_hostname, self._allowance.seconds())
        except httpcore.ConnectError as error:
            raise FetchFailed("tls", detail=str(error)) from error
        return _GuardedStream(stream, self._allowance)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


def _look_up(resolve: Resolver, host: str, port: int, answer: Future[Sequence[str]]) -> None:
    try:
        answer.set_result(resolve(host, port))
    # Whatever it was belongs to the thread that waits for the answer, and is raised there.
    except BaseException as error:  # noqa: BLE001
        answer.set_exception(error)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
