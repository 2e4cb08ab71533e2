"""An app on a loopback socket of its own, for what only real HTTP shows."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

MOST_SECONDS = 30


@contextmanager
def on_socket(make: Callable[[int], FastAPI]) -> Iterator[int]:
    """Serve what `make` makes of the port, as `wikikeeper serve` does, for as long as the block. Yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
        server = uvicorn.Server(
            uvicorn.Config(make(port), log_level="warning", access_log=False, lifespan="off", ws="none")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield port  # what connects before the server accepts waits in the listener's queue
        finally:
            server.should_exit = True
            thread.join(MOST_SECONDS)
    assert not thread.is_alive()
