"""A function under Lambda's own runtime for Python, behind the runtime interface emulator that SAM's command line carries.

What runs is the tree that goes into the function's image, on an interpreter that has nothing installed: beside the tree
there is only the runtime, which AWS's own image brings.

The emulator always answers 200: a fault is in the body.
"""

import importlib.metadata
import json
import os
import platform
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.adapters.aws.servers import HOST, free_port
from tests.functions.template import TIMEOUTS

from wikikeeper.handling import Event

SAM = Path(os.environ.get("WIKIKEEPER_SAM", Path(sys.prefix) / "sam"))
"""Where SAM's command line is installed: `make .venv/.stamp-sam`."""
NO_SEM_OPEN = Path(__file__).parent / "no_sem_open"
START = """import sitecustomize, runpy, sys
sys.argv[0] = "awslambdaric"
runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)
"""
RUNTIME = ("awslambdaric", "simplejson", "snapshot-restore-py")
"""Distributions: of the runtime and what it needs."""
ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
START_SECONDS = 20
INVOKE_SECONDS = 180
STOP_SECONDS = 3


class Raised(Exception):
    """The function raised, was ended for taking too long, or its process died."""


def emulator() -> Path | None:
    name = f"aws-lambda-rie-{ARCHITECTURES.get(platform.machine().lower(), 'unknown')}"
    return next(SAM.glob(f"lib*/python*/site-packages/samcli/local/rapid/{name}"), None)


@dataclass(frozen=True)
class Runtime:
    """A function that waits for events."""

    url: str
    log: Path

    def invoke(self, event: Event) -> Any:  # noqa: ANN401 - whatever the function answers
        request = urllib.request.Request(self.url, json.dumps(event).encode())
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=INVOKE_SECONDS) as reply:
            body = reply.read()
        try:
            answer = json.loads(body)
        except ValueError:
            raise Raised(body.decode()) from None
        if isinstance(answer, dict) and "errorType" in answer:
            raise Raised(f"{answer['errorType']}: {answer.get('errorMessage')}")
        return answer

    def lines(self) -> list[dict[str, Any]]:
        """What the function wrote, line by line, where it is JSON."""
        lines = (line for line in self.log.read_text(errors="replace").splitlines() if line.startswith("{"))
        return [json.loads(line) for line in lines]


def link_runtime(folder: Path) -> None:
    """Make the folder one with the runtime alone, out of what is installed here."""
    for name in RUNTIME:
        files = importlib.metadata.distribution(name).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (folder / top).symlink_to(Path(str(importlib.metadata.distribution(name).locate_file(top))))


def bare_python() -> list[str]:
    """A command whose next word is a program. -S: nothing that is installed is seen, so also no sitecustomize."""
    return [sys.executable, "-S", "-c"]


def surroundings(tree: Path, runtime_folder: Path) -> dict[str, str]:
    """The environment of a function's interpreter, without its settings."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR", "LANG"}}
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, (NO_SEM_OPEN, tree, runtime_folder))),
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextmanager
def runtime(function: str, environment: Mapping[str, str], folder: Path, *, tree: Path) -> Iterator[Runtime]:
    """`tree` is what `infra/build_function.sh` made."""
    program = emulator()
    assert program is not None
    port, api, log = free_port(), free_port(), folder / f"{function}.log"
    command = [
        str(program), "--runtime-interface-emulator-address", f"{HOST}:{port}", "--runtime-api-address", f"{HOST}:{api}",
        *bare_python(), START, "handler.handler",
    ]  # fmt: skip
    beside = folder / f"{function}-runtime"
    beside.mkdir()
    link_runtime(beside)
    own = surroundings(tree, beside) | {
        "AWS_LAMBDA_FUNCTION_NAME": function.replace("_", "-"),
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(TIMEOUTS[function]),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
        "METRICS_NAMESPACE": "wikikeeper",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=tree, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            env={**own, **environment}, start_new_session=True,
        )  # fmt: skip
    try:
        _wait(process, port, log)
        yield Runtime(f"http://{HOST}:{port}/2015-03-31/functions/function/invocations", log)
    finally:
        # The whole session: the emulator leaves the runtime behind, and that the child that reads pages.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    last = time.monotonic() + START_SECONDS
    while True:
        try:
            # Any path but that of invocations: it must start nothing yet.
            with urllib.request.urlopen(f"http://{HOST}:{port}/ready", timeout=1):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > last:
                raise TimeoutError(f"the emulator did not start: {log.read_text(errors='replace')[-2000:]}") from None
            time.sleep(0.05)
