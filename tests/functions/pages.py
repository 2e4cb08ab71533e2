"""Saved pages behind a loopback server, and a topic that links to them: functions have no folder to read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".md": "text/markdown; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
    }

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """host:port of a server of the files in a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def linked(topic: str, folder: Path, origin: str, **more: object) -> str:
    """A topic file whose folder became links to the same files, in the same order."""
    _, head, brief = topic.split("---\n", 2)
    fields = yaml.safe_load(head)
    del fields["folder"]
    links = [f"http://{origin}/{path.name}" for path in sorted(folder.iterdir())]
    return f"---\n{yaml.safe_dump(fields | {'links': links} | more, allow_unicode=True)}---\n{brief}"
