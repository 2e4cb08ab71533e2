"""Servers for the tests of the model client: jevcompat's mock in this process, sparrow-decider beside it, raw sockets."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx
from jevcompat.mock import MockConfig, make_server

Script = Callable[[socket.socket], None]
"""What to do with one connection, whose request was read. The connection is closed afterwards."""


@contextmanager
def mock(*faults: str, key: str | None = None) -> Iterator[str]:
    """jevcompat's spec-exact server with these faults, as its base URL."""
    server = make_server(MockConfig(key=key, faults=frozenset(faults)))
    # The default interval of half a second would be waited for at each of fifty shutdowns.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def sparrow() -> Iterator[str]:
    """`sparrow-decider serve`: an independent server with a real small model."""
    port = free_port()
    command = [sys.executable, "-m", "sparrow_decider.cli", "serve", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            base_url = f"http://127.0.0.1:{port}"
            _await(base_url)
            yield base_url
        finally:
            process.kill()


@contextmanager
def raw(script: Script) -> Iterator[str]:
    """A server that reads each request and then does what the script says, as its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, script))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _serve(listener: socket.socket, script: Script) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the listener was shut down
            return
        # A client that has had enough hangs up: that is what most scripts provoke.
        with connection, suppress(OSError):
            _read_request(connection)
            script(connection)


def _read_request(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)


def _await(base_url: str) -> None:
    deadline = time.monotonic() + 20  # numpy and the model take about a second, more on a busy machine
    while True:
        try:
            httpx.get(base_url, trust_env=False).raise_for_status()
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
