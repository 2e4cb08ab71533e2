"""Servers on loopback that speak DynamoDB, S3 and SQS, each started once for a test run and stopped after it.

| server | speaks | used for |
|---|---|---|
| moto, in this process, one request at a time | all three | every function; and races, since each request is atomic |
| roto-server, a process | DynamoDB, S3 | races: many requests at once |
| weed, a process | S3 | races: many requests at once |
"""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from wikikeeper.adapters.aws.clients import Clients

START_SECONDS = 30
STOP_SECONDS = 3
"""Then it is killed: what it holds is thrown away anyhow."""
HOST = "127.0.0.1"
Application = Callable[[dict[str, Any], Any], Any]


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as AWS keeps them

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - werkzeug's name
        pass


def one_at_a_time(application: Application) -> Application:
    """moto keeps its tables in plain dictionaries, without a lock: two writes at once can both find a condition true."""
    turn = threading.Lock()

    def locked(environ: dict[str, Any], start_response: Any) -> Any:  # noqa: ANN401
        with turn:
            return list(application(environ, start_response))

    return locked


@contextmanager
def moto_server(wrap: Callable[[Application], Application] = one_at_a_time) -> Iterator[str]:
    """Its address. `wrap` stands around the whole application."""
    application = wrap(DomainDispatcherApplication(create_backend_app))
    server = make_server(HOST, 0, application, threaded=True, request_handler=_Quiet)
    server.daemon_threads = True  # type: ignore[attr-defined]  # of ThreadingMixIn: idle connections must not hold up the end
    server.block_on_close = False  # type: ignore[attr-defined]
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    serving.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        serving.join(STOP_SECONDS)
        server.server_close()


def tool(name: str) -> str | None:
    """A program of this environment, or of the system."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


@contextmanager
def process_server(command: list[str], port: int, folder: Path) -> Iterator[str]:
    """The address of a server program that takes connections. Raises TimeoutError when it does not, with what it said."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=_environment(folder),
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"{command[0]} did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def roto_command(program: str, port: int) -> list[str]:
    return [program, "--ephemeral", "--host", HOST, "--port", str(port)]


def weed_command(program: str, port: int) -> list[str]:
    """Every port is chosen, since its defaults lie 10,000 above another; nothing is reported to anybody."""
    ports = [
        f"-{service}={free_port()}"
        for service in (
            "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc",
            "s3.port.grpc",
        )
    ]  # fmt: skip
    return [
        program, "server", "-dir=.", f"-ip={HOST}", f"-ip.bind={HOST}", "-s3", f"-s3.port={port}", *ports,
        "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false", "-filer.localSocket=filer.sock",
        "-s3.localSocket=s3.sock", "-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=20",
    ]  # fmt: skip


def weed_sockets(command: list[str]) -> Iterator[Path]:
    """What it leaves behind outside its folder, for each of its ports."""
    for option in command:
        name, _, port = option.partition("=")
        if ".port" in name:
            yield from Path("/tmp").glob(f"seaweedfs-*-{port}.sock")


def clients(address: str) -> Clients:
    """Clients of a server on loopback. Its credentials are none: any pair is taken."""
    return Clients(address)


def when_it_stores(one: Clients) -> None:
    """Wait until a server takes objects, which some do seconds after they take connections."""
    deadline = time.monotonic() + START_SECONDS
    bucket = f"first-{uuid.uuid4().hex}"
    one.s3.create_bucket(Bucket=bucket)
    while True:
        try:
            one.s3.put_object(Bucket=bucket, Key="a", Body=b"a")
        except ClientError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex((HOST, port)) == 0


def _environment(folder: Path) -> dict[str, str]:
    """Of a server whose scratch files go with its folder: roto leaves its buckets, weed its logs."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return kept | {"TMPDIR": str(folder)}
