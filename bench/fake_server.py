"""A System One server without a model, for measuring what is around one: it waits instead of thinking, and counts.

    python bench/fake_server.py --slots 4 --call-ms 400

Prints one line of JSON with its `base_url`, then serves on loopback until its standard input is closed (so it never
outlives who started it) or its seconds are over. Answers are valid and depend only on the questions. `/stats` says what
was counted. A process of its own, so that its CPU time is not that of what it measures.
"""

import argparse
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "decider"
WAITING_CONNECTIONS = 64
"""Not yet accepted: far more than any gate lets through, so that none is refused while a burst comes in."""
CHARS_PER_TOKEN = 4


class Slots:
    """What runs at the same time, and for how long. Thread-safe."""

    def __init__(self, slots: int, call_seconds: float) -> None:
        self.slots = slots
        self._call_seconds = call_seconds
        self._free = threading.Semaphore(slots)
        self._lock = threading.Lock()
        self._here = 0
        self._most = 0
        self._over_limit = 0
        self._calls = 0
        self._busy = 0.0
        self._first: float | None = None
        self._last: float | None = None

    def serve(self) -> None:
        """One call: a slot for as long as a call takes. A call counts from its arrival, also while all are taken."""
        with self._lock:
            self._here += 1
            self._most = max(self._most, self._here)
            self._over_limit += self._here > self.slots
        with self._free:
            began = time.monotonic()
            with self._lock:
                self._first = began if self._first is None else self._first
            time.sleep(self._call_seconds)
            ended = time.monotonic()
        # Before the answer is sent: once the caller has it, its next call may be here before this thread runs again.
        with self._lock:
            self._here -= 1
            self._calls += 1
            self._busy += ended - began
            self._last = ended

    def stats(self) -> dict[str, float | None]:
        """Seconds are of a monotonic clock with an arbitrary beginning."""
        with self._lock:
            return {
                "slots": self.slots,
                "calls": self._calls,
                "max_concurrency": self._most,
                "over_limit": self._over_limit,
                "busy_seconds": self._busy,
                "first_start": self._first,
                "last_end": self._last,
            }


class FakeServer(ThreadingHTTPServer):
    """The server on 127.0.0.1; port 0 takes a free one."""

    daemon_threads = True
    request_queue_size = WAITING_CONNECTIONS

    def __init__(self, port: int, slots: Slots) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.slots = slots

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as by real servers
    wbufsize = -1  # an answer leaves in one piece: in two, the second waits for the other side's acknowledgement
    server: FakeServer

    def do_GET(self) -> None:
        match self.path:
            case "/health":
                self._answer(200, {"status": "ok"})
            case "/v1/models":
                self._answer(200, {"object": "list", "data": [_MODEL_ENTRY]})
            case "/stats":
                self._answer(200, self.server.slots.stats())
            case _:
                self._refuse(404, "File Not Found", "not_found_error")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/systemone":
            self._refuse(404, "File Not Found", "not_found_error")
            return
        try:
            questions = json.loads(body)["questions"]
            answers = {name: answer(name, question, questions) for name, question in questions.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._refuse(400, f"not a System One request: {error!r}", "invalid_request_error")
            return
        self.server.slots.serve()
        usage = {"input_tokens": len(body) // CHARS_PER_TOKEN, "output_tokens": 0}
        self._answer(200, {"model": f"fake-{MODEL}", "answers": answers, "usage": usage})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        """Nothing: a line per call would be work beside the measuring."""

    def _refuse(self, status: int, message: str, kind: str) -> None:
        self._answer(status, {"error": {"code": status, "message": message, "type": kind}})

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_MODEL_ENTRY = {
    "id": MODEL,
    "object": "model",
    "architecture": {"input_modalities": ["text"], "output_modalities": ["decisions"]},
}


def answer(name: str, question: dict[str, Any], questions: dict[str, Any]) -> dict[str, Any]:
    """A sound answer, the same whenever the same questions are asked; over many pages every probability occurs.

    The state is not looked at: it holds a mark that differs from one installation to the next.
    """
    chance = hashlib.sha256(json.dumps([name, questions], sort_keys=True).encode()).digest()
    if question["type"] == "noul":
        return {"type": "noul", "noul": int.from_bytes(chance[:4]) / 0xFFFF_FFFF}
    if question["type"] != "choice":
        raise ValueError(f"questions.{name}: type {question['type']!r}")
    options = list(question["criteria"])
    if len(options) < 2:
        raise ValueError(f"questions.{name}: fewer than two options")
    # Cubed, so that one option leads as it does with a model.
    weights = [(chance[index % len(chance)] + 1) ** 3 for index in range(len(options))]
    probabilities = {option: weight / sum(weights) for option, weight in zip(options, weights, strict=True)}
    return {
        "type": "choice",
        "choice": max(options, key=lambda option: probabilities[option]),
        "probabilities": probabilities,
        "confidence": (max(probabilities.values()) - 1 / len(options)) / (1 - 1 / len(options)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A System One server that waits instead of thinking, and counts.")
    parser.add_argument("--port", type=int, default=0, help="on loopback; 0 takes a free one")
    parser.add_argument("--slots", type=int, default=4, help="calls served at once; more wait")
    parser.add_argument("--call-ms", type=float, default=400, help="milliseconds of one call")
    parser.add_argument("--seconds", type=float, default=600, help="ends after this many in any case")
    given = parser.parse_args()

    over = threading.Event()

    def until_the_other_end_closes() -> None:
        # Past Python's own buffer: a thread that waits inside it makes the interpreter abort at its end.
        while os.read(sys.stdin.fileno(), 1):
            pass
        over.set()

    with FakeServer(given.port, Slots(given.slots, given.call_ms / 1000)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        threading.Thread(target=until_the_other_end_closes, daemon=True).start()
        print(json.dumps({"base_url": server.base_url}), flush=True)
        over.wait(given.seconds)
        server.shutdown()


if __name__ == "__main__":
    main()
