"""How long functions take to start, against bare boto3 with the same clients.

    python bench/cold_start.py [--json] [--starts 15]

Each function starts from the tree that infra/build_function.sh makes, in a process that sees this tree and the standard
library only: its modules are loaded and a batch of nothing is answered (by the pages: the form that asks for the token), for
which its settings are read and its clients made. Bare boto3, compiled as well, is imported and makes the same clients. Starts are interleaved, since a machine is not
equally busy all the time, and the shortest of each counts. Prints for each function the ratio, then the milliseconds.

A server on loopback stands in for the one request that judge-result makes at its start.
"""

import argparse
import base64
import compileall
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "schedule-cycle": ("dynamodb", "s3"),
    "judge-result": ("dynamodb", "s3"),
    "write-note": ("dynamodb", "s3"),
    "reap-stale": ("dynamodb", "s3"),
    "web": ("dynamodb", "s3"),
}
"""And the clients that each makes at its start; that of SQS only comes with the first message that is sent."""
SECRET = json.dumps(
    {
        "Item": {
            "pk": {"S": "installation"},
            "sk": {"S": "secret"},
            "secret": {"B": base64.b64encode(b"s" * 32).decode()},
        }
    }
).encode()
END = "\nimport os; os._exit(0)"
"""Without taking everything apart: a container that is ready goes on to work."""
LOGIN = {
    "version": "2.0",
    "rawPath": "/login",
    "rawQueryString": "",
    "headers": {"host": "bench.example", "x-forwarded-proto": "https"},
    "requestContext": {"http": {"method": "GET", "path": "/login", "sourceIp": "198.51.100.7"}},
    "isBase64Encoded": False,
}
"""A request as a Function URL hands it over, as far as it is read."""
STARTED = (
    "import handler, types; answer = handler.handler(%r, types.SimpleNamespace(aws_request_id='1')); "
    f"assert answer.get('statusCode', 200) == 200{END}"
)
BARE = f"import boto3\nfor name in %r: boto3.client(name){END}"


class _Stub(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(SECRET)))
        self.end_headers()
        self.wfile.write(SECRET)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        pass


@contextmanager
def stub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Stub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def tree(function: str, folder: Path) -> Path:
    target = folder / function
    subprocess.run(
        [ROOT / "infra" / "build_function.sh", function, target],
        env=os.environ | {"PYTHON": sys.executable},
        check=True,
    )
    return target


def bare(folder: Path) -> Path:
    """boto3 alone in a folder, compiled, as links to what is installed here."""
    target = folder / "bare"
    target.mkdir()
    for name in ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            sys.exit(f"{name} is not installed here: boto3 is what is compared with")
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (target / source.name).symlink_to(source)
        compileall.compile_dir(source, quiet=2) if source.is_dir() else compileall.compile_file(source, quiet=2)
    return target


def start(path: Path, program: str, address: str) -> float:
    """Milliseconds of a whole process, that of Python itself included."""
    environment = {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_LAMBDA_FUNCTION_NAME": "bench",
        "WIKIKEEPER_AWS__BUCKET": "bench",
        "WIKIKEEPER_AWS__ENDPOINT_URL": address,
        "WIKIKEEPER_LLAMA__BASE_URL": address,
        "WIKIKEEPER_WEB__TOKEN": "bench-bench-bench",
    }
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(path)!r})\n{program}"],
        env=environment, cwd=path, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return (time.perf_counter() - began) * 1000


def measure(starts: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="wikikeeper-bench-") as made, stub() as address:
        folder = Path(made)
        programs = {
            function: (tree(function, folder), STARTED % (LOGIN if function == "web" else {"Records": []},))
            for function in FUNCTIONS
        }
        alone = bare(folder)
        programs |= {
            f"boto3 with {', '.join(clients)}": (alone, BARE % (clients,)) for clients in set(FUNCTIONS.values())
        }
        shortest = dict.fromkeys(programs, float("inf"))
        for _ in range(starts):
            for name, (path, program) in programs.items():
                shortest[name] = min(shortest[name], start(path, program, address))
    ratios = {
        function: round(shortest[function] / shortest[f"boto3 with {', '.join(clients)}"], 2)
        for function, clients in FUNCTIONS.items()
    }
    return {"ratios": ratios, "milliseconds": {name: round(took) for name, took in shortest.items()}}


def main() -> int:
    parser = argparse.ArgumentParser(description="How long functions take to start.")
    parser.add_argument("--starts", type=int, default=15, help="of each; the shortest counts")
    parser.add_argument("--json", action="store_true", help="print one JSON object of function to ratio")
    given = parser.parse_args()
    measured = measure(given.starts)
    if given.json:
        print(json.dumps(measured["ratios"]))
    else:
        for name, took in measured["milliseconds"].items():
            print(f"{name:<28} {took:>6.0f} ms  {measured['ratios'].get(name, '')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
