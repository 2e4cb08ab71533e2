"""The fake System One server that fails on purpose, and writes down who is at it at the same time.

A call counts from its arrival to the moment before its answer, and as long as somebody waits for it: a client that was
killed or lost its patience is gone, and its call with it.
"""

import json
import multiprocessing
import os
import random
import re
import select
import socket
import struct
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.chaos_parts.plan import BUSY_SHARE, CALL_SECONDS, DEADLINE, HANG_SHARE, RESET_SHARE
from bench.fake_server import MODEL, FakeServer, Slots, _Handler, answer

SHEET = re.compile(rb"Sheet (\d{6})")
PATIENCE = 30
"""Seconds for the answer about what was counted, on a loaded machine."""
HANG_LOOK = 0.01
PARENT_LOOK = 2
"""Seconds between looks whether anybody still needs the server."""

Fate = Literal["answer", "busy", "reset", "hang"]


@dataclass
class Call:
    page: int
    connection: socket.socket


@dataclass
class Ledger:
    """What is counted. Thread-safe."""

    limit: int
    seed: int | None
    """None: nothing fails."""
    here: dict[int, Call] = field(default_factory=dict)
    most: int = 0
    over: list[list[int]] = field(default_factory=list)
    """Whenever a call came in over the limit: the pages of all that were there."""
    calls: Counter[int] = field(default_factory=Counter)
    fates: Counter[Fate] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: int = 0

    def arrive(self, page: int, connection: socket.socket) -> tuple[int, Fate]:
        """Count a call in; its number, and what is to become of it: the same for the n-th call about a page."""
        with self._lock:
            for number in [number for number, call in self.here.items() if _hung_up(call.connection)]:
                del self.here[number]
            self._next += 1
            self.here[self._next] = Call(page, connection)
            self.most = max(self.most, len(self.here))
            if len(self.here) > self.limit:
                self.over.append([call.page for call in self.here.values()])
            self.calls[page] += 1
            fate = self._fate(page, self.calls[page])
            self.fates[fate] += 1
            return self._next, fate

    def leave(self, number: int) -> None:
        with self._lock:
            self.here.pop(number, None)

    def _fate(self, page: int, time_asked: int) -> Fate:
        if self.seed is None:
            return "answer"
        drawn = random.Random(f"{self.seed}-{page}-{time_asked}").random()
        fates: tuple[tuple[Fate, float], ...] = (("busy", BUSY_SHARE), ("reset", RESET_SHARE), ("hang", HANG_SHARE))
        for fate, share in fates:
            if drawn < share:
                return fate
            drawn -= share
        return "answer"

    def counted(self) -> dict[str, Any]:
        with self._lock:
            return {"most": self.most, "over": self.over, "calls": self.calls, "fates": self.fates}


def _hung_up(connection: socket.socket) -> bool:
    """The client has closed: on loopback that shows here before it can do anything else."""
    try:
        readable = select.select([connection], [], [], 0)[0]
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):  # reset, or closed by us
        return True


class ChaosServer(FakeServer):
    def __init__(self, ledger: Ledger) -> None:
        super().__init__(0, Slots(ledger.limit, CALL_SECONDS))
        self.RequestHandlerClass = _ChaosHandler
        self.ledger = ledger

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - its type in the base class
        if request.fileno() >= 0 and request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER):
            request.close()  # nothing is said before: the other side sees a reset
        else:
            super().shutdown_request(request)


class _ChaosHandler(_Handler):
    server: ChaosServer

    def do_GET(self) -> None:  # noqa: N802 - its name in the base class
        if self.path == "/counted":
            self._answer(200, self.server.ledger.counted())
        else:
            super().do_GET()

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sheet = SHEET.search(body)
        if self.path != "/v1/systemone" or sheet is None:
            self._refuse(400, "no question about a page of this bench", "invalid_request_error")
            return
        number, fate = self.server.ledger.arrive(int(sheet[1]), self.connection)
        try:
            self._meet(fate)
        finally:
            # Before the answer: once the caller has it, its next call may be here before this thread runs again.
            self.server.ledger.leave(number)
        match fate:
            case "answer":
                questions = json.loads(body)["questions"]
                answers = {name: answer(name, question, questions) for name, question in questions.items()}
                self._answer(200, {"model": f"fake-{MODEL}", "answers": answers, "usage": {"input_tokens": len(body)}})
            case "busy":
                self._refuse(503, "all slots are taken", "unavailable_error")
            case "reset" | "hang":
                self.close_connection = True

    def _meet(self, fate: Fate) -> None:
        """What comes before the answer, or instead of one."""
        match fate:
            case "answer":
                time.sleep(CALL_SECONDS)
            case "busy":
                pass  # said at once, as by a server whose queue is full
            case "reset":
                time.sleep(CALL_SECONDS / 2)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case "hang":
                # Until the client has had enough; a limit of its own for one that never closes.
                ended = time.monotonic() + 2 * DEADLINE
                while time.monotonic() < ended and not _hung_up(self.connection):
                    time.sleep(HANG_LOOK)

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that was killed: nobody is there to be answered
            super().handle()


@contextmanager
def chaos_server(limit: int, seed: int | None) -> Iterator[str]:
    """The base URL of a server in a forked process, ended afterwards; it also ends when its parent does."""
    with ChaosServer(Ledger(limit, seed)) as server:
        process = multiprocessing.get_context("fork").Process(target=_serve, args=(server,), daemon=True)
        process.start()
        try:
            yield server.base_url
        finally:
            process.kill()
            process.join()


def _serve(server: ChaosServer) -> None:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(PARENT_LOOK)


def ask_counted(base_url: str) -> dict[str, Any]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # past any proxy of the surroundings
    with direct.open(f"{base_url}/counted", timeout=PATIENCE) as reply:
        counted: dict[str, Any] = json.load(reply)
    return counted
