"""What judged results cost in the cloud: the functions over generated pages, every request counted where it leaves.

    python bench/cloud_cost.py [--json] [--results 200] [--call-ms 400]

One cycle of one topic, as deployed: batches of ten for judge-result, as many of them at once as the gate has permits, the
adapters of the cloud over a server on loopback (roto-server where it is installed, moto otherwise), a model that takes
`--call-ms` for a call. Prints, for 1,000 results:

    write_units_per_result   of DynamoDB, from the items before and after each write, indexes and refused writes included
    dollars_stores_per_1000  tables, files and queues
    dollars_compute_per_1000 Lambda: measured seconds of each function, times its memory in the template; and requests
    dollars_logs_per_1000    lines of log, by their bytes
    dollars_total_per_1000   all of it

What costs the same without any result is not in it: ticks, sweeps, polling of empty queues, alarms. Nor is the GPU.
"""

import argparse
import io
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "shared")]  # what lies here is measured, whatever is installed

import yaml
from bench.cycle import TOPIC, fake_server, page
from tests.adapters.aws.schema import make_bucket, make_table
from tests.adapters.aws.servers import free_port, moto_server, process_server, roto_command, tool
from tests.adapters.aws.units import CountingTable

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import DynamoGate
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Scalar
from wikikeeper.adapters.aws.json_log import JsonLog
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.adapters.aws.sqs_sender import SqsSender
from wikikeeper.cloud_app import build
from wikikeeper.handling import GB_SECOND, REQUEST, Cloud, Workflow, batch
from wikikeeper.models import CloseCycle, JudgeResult, ReapStale, ResultState, StartCycle, Value, WriteNote
from wikikeeper.policy.identity import cycle_id
from wikikeeper.settings import Settings
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle
from wikikeeper.workflows.write_note import write_note

T = TypeVar("T")

PRICES_OF = "2026-11-30, us-east-1, on demand, without free tiers"
MILLION = 1_000_000
WRITE_UNIT, READ_UNIT = 0.625 / MILLION, 0.125 / MILLION
PUT, GET = 0.005 / 1000, 0.0004 / 1000
"""S3: PUT, COPY and LIST; GET and HEAD."""
QUEUE_REQUEST = 0.40 / MILLION
LOG_GB = 0.50

MEMORY_GB = {"schedule_cycle": 0.5, "judge_result": 1.0, "write_note": 0.25, "reap_stale": 0.25}
"""As in infra/template.yaml."""
BATCH, LIMIT = 10, 2
READ_UNIT_BYTES = 4096
WORK: Mapping[str, tuple[Workflow, tuple[type[Value], ...], int]] = {
    "schedule_cycle": (schedule_cycle, (StartCycle, CloseCycle), 1),
    "judge_result": (judge_result, (JudgeResult,), BATCH),
    "write_note": (write_note, (WriteNote,), 1),
    "reap_stale": (reap_stale, (ReapStale,), 1),
}
_looking = threading.local()


class Looked(CountingTable):
    """Counts the units of writes; its own looks at items before and after are not requests of the functions.

    Of reads it counts what was asked for.
    """

    def __init__(self, client: Any, name: str) -> None:  # noqa: ANN401 - the base's
        super().__init__(client, name)
        self.asked: Counter[str] = Counter()

    def get(self, key: Key) -> Item | None:
        if not getattr(_looking, "on", False):
            self.asked[f"{key.pk.partition('#')[0]}.get"] += 1
        return super().get(key)

    def query(self, where: str, values: Mapping[str, Scalar], **more: Any) -> Iterator[Item]:  # noqa: ANN401 - the base's
        self.asked[f"{str(next(iter(values.values()))).partition('#')[0]}.query"] += 1
        return super().query(where, values, **more)

    def _counted(self, key: Any, write: Callable[[], T]) -> T:  # noqa: ANN401 - the base's
        def uncovered() -> T:
            _looking.on = False
            try:
                return write()
            finally:
                _looking.on = True

        _looking.on = True
        try:
            return super()._counted(key, uncovered)
        finally:
            _looking.on = False


@dataclass
class Requests:
    """What left for the stores."""

    by_operation: Counter[str] = field(default_factory=Counter)
    read_units: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, model: Any, http_response: Any, parsed: Any, **_: object) -> None:  # noqa: ANN401 - botocore's
        if getattr(_looking, "on", False):
            return
        service, operation = model.service_model.service_name, model.name
        with self.lock:
            self.by_operation[f"{service}.{operation}"] += 1
            if operation in {"GetItem", "Query", "BatchGetItem"}:
                # By the bytes of the answer, which is larger than the items in it; a consistent read of each unit.
                items = sum(map(len, parsed.get("Responses", {}).values())) if operation == "BatchGetItem" else 1
                self.read_units += max(-(-len(http_response.content) // READ_UNIT_BYTES), items)


class Queue:
    """SQS's client, as far as commands are sent: each call is a request."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[str]] = {function: [] for function in WORK}
        self.requests = 0

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803 - boto's names
        self.requests += 1
        self.bodies[QueueUrl] += [entry["MessageBody"] for entry in Entries]
        return {}


@dataclass
class Context:
    aws_request_id: str = "bench"


class Functions:
    """Containers of the functions, and what their invocations took."""

    def __init__(self, settings: Settings, clients: Clients) -> None:
        assert settings.aws.bucket is not None
        self.queue = Queue()
        self.log = io.StringIO()
        self.seconds = dict.fromkeys(WORK, 0.0)
        self.invocations: Counter[str] = Counter()
        self.table = Looked(clients.dynamodb, settings.aws.table)
        self._settings = settings
        self._clients = clients
        self._lock = threading.Lock()

    def container(self, function: str) -> Cloud:
        aws = self._settings.aws
        assert aws.bucket is not None
        app = build(function, self._settings, JsonLog(self.log, function=function), self._clients)
        measured = replace(
            app,
            store=DynamoRunStore(self.table, S3Pages(self._clients.s3, aws.bucket)),
            gate=DynamoGate(self.table, LIMIT),
        )
        urls: Any = dict(zip(("schedule", "judge", "note", "reap"), WORK, strict=True))
        client: Any = self.queue
        letters: Any = None  # nothing unreadable comes
        return Cloud(function, measured, SqsSender(client, urls), letters)

    def invoke(self, own: Cloud, bodies: Sequence[str]) -> None:
        workflow, kinds, threads = WORK[own.function]
        records = [{"messageId": str(number), "body": body} for number, body in enumerate(bodies)]
        began = time.monotonic()
        answer = batch({"Records": records}, Context(), own, workflow, *kinds, threads=threads)
        with self._lock:
            self.seconds[own.function] += time.monotonic() - began
            self.invocations[own.function] += 1
        if answer["batchItemFailures"]:
            sys.exit(f"{own.function} failed: {self.log.getvalue()[-2000:]}")

    def drain(self, function: str, workers: int = 1) -> None:
        """Until the queue of a function is empty, so many containers at once."""

        def work() -> None:
            own = self.container(function)
            while True:
                with self._lock:
                    waiting = self.queue.bodies[function]
                    bodies, waiting[:] = waiting[:BATCH], waiting[BATCH:]
                if not bodies:
                    return
                self.invoke(own, bodies)

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def measure(results: int, call_ms: float) -> dict[str, Any]:
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="wikikeeper-bench-") as folder,
        _stores(Path(folder)) as address,
        _pages(Path(folder) / "pages", results) as origin,
        fake_server(LIMIT, call_ms, 600) as model,
    ):
        clients = Clients(address)
        bucket = make_bucket(clients)
        settings = Settings.model_validate(
            {
                "aws": {"table": make_table(clients.dynamodb).name, "bucket": bucket, "endpoint_url": address},
                "llama": {"base_url": model},
                "fetch": {"allow_origins": origin},
                "gate": {"limit": LIMIT},
                "research": {"cycle_cap": results},
            }
        )
        topic = yaml.safe_load(TOPIC.split("---\n")[1])
        del topic["folder"]
        topic["links"] = [f"http://{origin}/{number}.html" for number in range(results)]
        text = f"---\n{yaml.safe_dump(topic)}---\n{TOPIC.split('---', 2)[2]}"
        clients.s3.put_object(Bucket=bucket, Key="wiki/topics/lockkeeper.md", Body=text.encode())
        requests, functions = Requests(), Functions(settings, clients)
        clients.dynamodb.meta.events.register("after-call", requests.count)
        clients.s3.meta.events.register("after-call", requests.count)
        quiet, sys.stdout = sys.stdout, functions.log  # metrics are lines of the log as well
        try:
            _cycle(functions)
        finally:
            sys.stdout = quiet
        states = Counter(result.state for result in functions.container("reap_stale").app.store.results())
    return _figures(functions, requests, states, results)


def _cycle(functions: Functions) -> None:
    start = StartCycle(topic="lockkeeper", tick=datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"))
    functions.invoke(functions.container("schedule_cycle"), [start.model_dump_json()])
    functions.drain("judge_result", LIMIT)
    functions.drain("write_note")
    close = CloseCycle(cycle=cycle_id(start.topic, start.tick))
    functions.invoke(functions.container("schedule_cycle"), [close.model_dump_json()])
    functions.invoke(functions.container("reap_stale"), [ReapStale().model_dump_json()])  # sweeps what the cycle found


def _figures(functions: Functions, requests: Requests, states: Counter[ResultState], results: int) -> dict[str, Any]:
    judged = states[ResultState.KEPT] + states[ResultState.DISCARDED]
    share = 1000 / judged if judged else 0.0
    writes = sum(functions.table.written.values())
    gets = sum(n for name, n in requests.by_operation.items() if name in {"s3.GetObject", "s3.HeadObject"})
    puts = sum(n for name, n in requests.by_operation.items() if name.startswith("s3.")) - gets
    batches = functions.invocations.total()
    stores = {
        "writes": writes * WRITE_UNIT,
        "reads": requests.read_units * READ_UNIT,
        "files": puts * PUT + gets * GET,
        "queues": (functions.queue.requests + 2 * batches) * QUEUE_REQUEST,  # each batch is received and deleted
    }
    compute = sum(functions.seconds[name] * MEMORY_GB[name] * GB_SECOND for name in WORK) + batches * REQUEST
    logs = len(functions.log.getvalue().encode()) / 1e9 * LOG_GB
    total = sum(stores.values()) + compute + logs
    figures: dict[str, Any] = {
        "write_units_per_result": round(writes / max(judged, 1), 2),
        "read_units_per_result": round(requests.read_units / max(judged, 1), 2),
        "dollars_stores_per_1000": round(sum(stores.values()) * share, 5),
        "dollars_compute_per_1000": round(compute * share, 5),
        "dollars_logs_per_1000": round(logs * share, 5),
        "dollars_total_per_1000": round(total * share, 5),
        "dollars_of": {name: round(dollars * share, 5) for name, dollars in stores.items()},
        "results": judged,
        "kept": states[ResultState.KEPT],
        "write_units": {f"{kind}.{what}": n for (kind, what), n in sorted(functions.table.written.items())},
        "asked": dict(sorted(functions.table.asked.items())),
        "requests": dict(sorted(requests.by_operation.items())) | {"sqs": functions.queue.requests + 2 * batches},
        "seconds": {name: round(seconds, 2) for name, seconds in functions.seconds.items()},
        "prices": PRICES_OF,
    }
    return figures | {"wrong": [] if judged == results else [f"{results} pages, {judged} judged"]}


@contextmanager
def _stores(folder: Path) -> Iterator[str]:
    program = tool("roto-server")
    if program is None:
        with moto_server() as address:
            yield address
        return
    port = free_port()
    with process_server(roto_command(program, port), port, folder) as address:
        yield address


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        pass


@contextmanager
def _pages(folder: Path, results: int) -> Iterator[str]:
    """host:port of so many generated pages."""
    folder.mkdir()
    for number in range(results):
        (folder / f"{number}.html").write_text(page(number), encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
    shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description="What judged results cost in the cloud.")
    parser.add_argument("--results", type=int, default=200, help="pages to judge")
    parser.add_argument("--call-ms", type=float, default=400, help="milliseconds that the model takes for a call")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    figures = measure(given.results, given.call_ms)
    if given.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:<25} {figure}")
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
