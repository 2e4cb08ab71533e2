"""A System One server that answers by a script: what it says about a page is chosen by words that stand in the page."""

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

MODEL = "scripted-1"
SHARES: dict[int, tuple[float, ...]] = {0: (), 1: (1.0,), 2: (0.55, 0.45), 3: (0.4, 0.33, 0.27)}
"""Of the probability, for so many quotes, best first: each is worth quoting from four options on."""
PATIENCE = 30
"""Seconds that a held call waits at most, so that no test hangs for ever."""


@dataclass(frozen=True)
class Answer:
    """What is said about a page."""

    useful: float = 0.9
    injection: float = 0.02
    kind: str = "release"
    quotes: tuple[str, ...] = ()
    """How the passages begin, best first; without any, "none" gets it all."""


@dataclass(frozen=True)
class Refusal:
    """An error, as it comes over the wire."""

    status: int
    body: bytes = b'{"error": {"message": "no"}}'


def listing(*entries: Mapping[str, object]) -> bytes:
    """An answer to `/v1/models`."""
    return json.dumps({"object": "list", "data": entries}).encode()


HEALTHY = listing({"id": "decider", "architecture": {"output_modalities": ["decisions"]}})


class _Server(ThreadingHTTPServer):
    request_queue_size = 64
    """As many as come at once when every topic starts; with the default of five some would be turned away."""
    daemon_threads = True


class DecisionServer:
    """Serves on loopback inside a `with` block."""

    def __init__(self, script: Mapping[str, Answer | Refusal] | None = None) -> None:
        """`script`: the first key that stands in the page chooses; a page with none of them is kept without quotes."""
        self.script = dict(script or {})
        self.models: tuple[int, bytes] = (200, HEALTHY)
        """Status and body of `/v1/models`."""
        self.refusal: Refusal | None = None
        """What every call is answered with, whatever the page."""
        self.key: str | None = None
        """Demanded of every request."""
        self.free = threading.Event()
        self.free.set()
        """Calls are answered while it is set."""
        self.arrived = threading.Semaphore(0)
        """Released by each call when it comes."""
        self.calls = 0
        self.most_at_once = 0
        self.bodies: list[bytes] = []
        self.heads: list[str] = []
        self.mistakes: list[str] = []
        """Of the script; the test fails at the end of the block."""
        self._now = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        # The default interval of half a second would be waited for at each shutdown.
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def pages(self) -> list[str]:
        """The text of each page that was asked about, in the order of the calls."""
        return [json.loads(body)["state"]["page"] for body in self.bodies]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.free.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        assert not self.mistakes, self.mistakes

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = server.models if self.path == "/v1/models" else (404, b"{}")
                self._send(*(server.locked(self.headers.get("Authorization")) or (status, body)))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                refused = server.locked(self.headers.get("Authorization"))
                self._send(*(refused or server.call(str(self.headers), body)))

            def _send(self, status: int, body: bytes) -> None:
                with suppress(OSError):  # a caller that was interrupted has hung up
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
                pass

        return Handler

    def locked(self, sent: str | None) -> tuple[int, bytes] | None:
        """A refusal for whoever comes without the key; it repeats what was sent, as careless servers do."""
        if self.key is None or sent == f"Bearer {self.key}":
            return None
        return 401, json.dumps({"error": {"message": f"bad key {sent}", "type": sent}}).encode()

    def call(self, head: str, body: bytes) -> tuple[int, bytes]:
        with self._lock:
            self.calls += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            self.bodies.append(body)
            self.heads.append(head)
        self.arrived.release()
        try:
            self.free.wait(PATIENCE)
            return self._answer(json.loads(body))
        finally:
            with self._lock:
                self._now -= 1

    def _answer(self, request: dict[str, Any]) -> tuple[int, bytes]:
        page = request["state"]["page"]
        chosen = next((said for words, said in self.script.items() if words in page), Answer())
        said = self.refusal or chosen
        if isinstance(said, Refusal):
            return said.status, said.body
        questions = request["questions"]
        kinds = dict.fromkeys(questions["kind"]["criteria"], 0.0) | {said.kind: 1.0}
        passages = questions["quotes"]["criteria"]
        quoted = [key for start in said.quotes for key, text in passages.items() if text.startswith(start)]
        if len(quoted) != len(said.quotes):
            self.mistakes.append(f"{said.quotes} do not name one passage each of {passages}")
            return 500, b"{}"
        quotes = dict.fromkeys(passages, 0.0) | dict(zip(quoted, SHARES[len(quoted)], strict=True))
        quotes["none"] = 0.0 if quoted else 1.0
        answers = {
            "useful": {"type": "noul", "noul": said.useful},
            "kind": {"type": "choice", "probabilities": kinds},
            "injection": {"type": "noul", "noul": said.injection},
            "quotes": {"type": "choice", "probabilities": quotes},
        }
        return 200, json.dumps({"model": MODEL, "answers": answers, "usage": {"input_tokens": 100}}).encode()
