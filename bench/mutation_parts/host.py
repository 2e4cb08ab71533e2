"""Runs tests against one mutant after the other: each in a fork, so that only the first pays for importing pytest.

    python -m bench.mutation_parts.host      reads jobs from standard input, one JSON object a line, answers each by a line

The working folder is the copy that mutants are written into: nothing of the work tree is imported. A fork that takes
longer than it may is killed with all that it started.
"""

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

PASSED, KILLED = 0, (1, 2, "timeout")
"""How pytest ends: all passed; a test failed, or could not be loaded. Any other end says that the tests were not run."""
LOOKS = 0.02
PRELOADED = ("pytest", "hypothesis.stateful", "pydantic", "httpx", "yaml", "botocore.session", "moto.server")
"""What every fork would import for itself; nothing that is altered."""


def serve() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    from hypothesis import Phase, settings  # noqa: PLC0415 - as those above: only here, not where forks are counted

    # One example that fails is enough, however long.
    settings.register_profile("ci", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate))
    for line in sys.stdin:
        print(json.dumps(tried(json.loads(line))), flush=True)


def tried(job: dict[str, Any]) -> dict[str, Any]:
    """`file` gets `text` for the time of the tests. Says how pytest ended, or "timeout"."""
    file = Path(job["file"])
    before = file.read_text()
    file.write_text(job["text"])
    try:
        return run(job["tests"], job["seconds"])
    finally:
        file.write_text(before)


def run(tests: list[str], seconds: float) -> dict[str, Any]:
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setsid()
        sys.dont_write_bytecode = True
        quiet = os.open("last-run.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            import pytest  # noqa: PLC0415 - imported before the fork

            os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])))
        except BaseException:  # noqa: BLE001 - whatever it is, a fork must not go on as its parent
            os._exit(99)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return {"ended": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - begun}
        if time.monotonic() - begun > seconds:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"ended": "timeout", "seconds": time.monotonic() - begun}
        time.sleep(LOOKS)


if __name__ == "__main__":
    serve()
