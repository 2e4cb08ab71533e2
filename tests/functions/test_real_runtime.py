"""The functions as Lambda runs them: a schedule's event leads to a note in S3 and runs in DynamoDB.

What runs is what is deployed, the trees of `infra/build_function.sh`; the stores are roto-server's.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.adapters.contracts.samples import a_run
from tests.functions.lambda_runtime import (
    Raised,
    Runtime,
    bare_python,
    emulator,
    link_runtime,
    runtime,
    surroundings,
)
from tests.functions.pages import linked, served
from tests.functions.requests import SETTINGS, TOKEN, cycle_hook, event, form, shown
from tests.functions.stack import Pump, Stack, make_stack, sqs_event

from wikikeeper import bundled, example
from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.cloud_app import FUNCTIONS
from wikikeeper.handling import Answer, Event
from wikikeeper.models import CycleState, ResultState

pytestmark = pytest.mark.skipif(
    emulator() is None or "WIKIKEEPER_RESULTS" not in os.environ,
    reason="builds five trees and needs SAM's command line: make test-lambda",
)

EXAMPLE = Path(example.__file__).parent
SECRET = "canary-5f1d-of-the-key"
TICK = {"kind": "tick", "time": "2026-11-30T07:00:00Z"}
"""As the rule of the template sends it."""
IDLE_SECONDS = 180
"""The judge is a real one, and reads ten pages."""
SWEEP = '{"kind": "reap_stale"}'


class Functions:
    """Each started with its first event, as containers are."""

    def __init__(self, stack: Stack, trees: Mapping[str, Path], folder: Path, stack_of: ExitStack) -> None:
        self._stack = stack
        self._trees = trees
        self._folder = folder
        self._open = stack_of
        self.running: dict[str, Runtime] = {}

    def __call__(self, function: str, event: Event) -> Answer:
        if function not in self.running:
            started = runtime(function, self._stack.environment(), self._folder, tree=self._trees[function])
            self.running[function] = self._open.enter_context(started)
        answer: Answer = self.running[function].invoke(event)
        return answer


@pytest.fixture
def judge() -> Iterator[bundled.BundledServer]:
    if bundled.missing():
        pytest.skip("the bundled judge is not installed")
    with bundled.BundledServer() as server:
        yield server


def test_a_tick_leads_to_a_note_and_runs(
    servers: Clients, trees: Mapping[str, Path], tmp_path: Path, judge: bundled.BundledServer
) -> None:
    kept_from = bundled.recommended()
    with served(EXAMPLE / "pages") as origin, ExitStack() as opened:
        stack = make_stack(
            servers,
            llama__base_url=judge.base_url,
            llama__model=bundled.MODEL,
            llama__api_key=SECRET,
            fetch__allow_origins=origin,
            research__keep_threshold=str(kept_from.keep),
            research__note_delay="2",
        )
        topic = (EXAMPLE / "topics" / "heronbase.md").read_text()
        minutely = {"cron": "* * * * *", "zone": "Europe/Berlin"}
        stack.write("topics/heronbase.md", linked(topic, EXAMPLE / "pages", origin, schedule=minutely))
        store = stack.app().store
        store.checked("heronbase", datetime.now(UTC) - timedelta(minutes=2), ran=False)
        functions = Functions(stack, trees, tmp_path, opened)
        pump = Pump(stack, functions)

        assert functions("schedule_cycle", TICK) == {"batchItemFailures": []}
        pump.until_idle(IDLE_SECONDS)
        stack.send("reap", SWEEP)
        pump.until_idle(IDLE_SECONDS)

        assert pump.failed == []
        assert set(functions.running) == set(FUNCTIONS)
        assert stack.dead_letters() == {}
        results = list(store.results())
        kept = {result.id for result in results if result.state is ResultState.KEPT}
        assert len(results) == len(list((EXAMPLE / "pages").iterdir()))
        assert {result.state for result in results} <= {ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED}
        assert kept
        ((key, note),) = stack.notes().items()
        assert key.startswith("inbox/awaiting/")
        assert {result for result in kept if f"<!-- result: {result} -->" in note.decode()} == kept
        runs = list(store.runs())
        assert {run.outcome for run in runs} == {"answered"}
        assert len({run.subject for run in runs}) == len(runs) >= len(kept)
        assert [cycle.state for cycle in store.cycles()] == [CycleState.DONE]
        assert [body for function, body in pump.delivered if function == "write_note"] == [
            json.dumps({"kind": "write_note", "topic": "heronbase"}, separators=(",", ":"))
        ]

        lines = {function: one.lines() for function, one in functions.running.items()}
        called = [line for line in lines["judge_result"] if line.get("event") == "model_called"]
        assert {line["run"] for line in called} == {run.id for run in runs}
        assert {line["cycle"] for line in called} == {cycle.id for cycle in store.cycles()}
        metrics = [line for line in lines["judge_result"] if "_aws" in line]
        assert sum(len(line.get("kept", [])) for line in metrics) == len(kept)
        assert sum(len(line["model_seconds"]) for line in metrics if "model_seconds" in line) == len(runs)
        assert all(line["cost_estimate"][0] > 0 for line in metrics)

        shown = "".join(one.log.read_text() for one in functions.running.values())
        assert SECRET not in shown
        assert "parcel lockers" not in shown  # the brief
        assert "Heronbase" not in shown  # every page, and the topic's title


def test_a_batch_of_nothing_is_answered(stack: Stack, trees: Mapping[str, Path], tmp_path: Path) -> None:
    for function in FUNCTIONS:
        with runtime(function, stack.environment(), tmp_path, tree=trees[function]) as one:
            assert one.invoke({"Records": []}) == {"batchItemFailures": []}
            assert one.invoke(sqs_event("no command")) == {"batchItemFailures": []}
    assert stack.dead_letters() == {name: ["no command"] for name in stack.dead}


def test_pages_are_served_behind_a_function_url(servers: Clients, trees: Mapping[str, Path], tmp_path: Path) -> None:
    stack = make_stack(servers, **SETTINGS)
    stack.write("topics/herons.md", "---\ntitle: Herons\nlinks: [https://example.org/]\n---\nWhat is new?\n")
    stack.app().store.put_run(a_run(topic="herons"))
    with runtime("web", stack.environment(), tmp_path, tree=trees["web"]) as one:
        assert shown(one.invoke(event("GET", "/login"))).status == 200
        stranger = shown(one.invoke(event("GET", "/runs")))
        assert (stranger.status, stranger.location) == (303, "/login?next=/runs")
        cookies = shown(one.invoke(form("/login", token=TOKEN))).cookies
        page = shown(one.invoke(event("GET", "/runs", cookies=cookies)))
        assert page.status == 200
        assert "herons" in page.text
        assert shown(one.invoke(cycle_hook({"kind": "cycle", "topic": "herons"}))).status == 202

        assert TOKEN not in one.log.read_text()
    [message] = stack.clients.sqs.receive_message(QueueUrl=stack.queues["schedule"])["Messages"]
    assert json.loads(message["Body"])["topic"] == "herons"


def test_pages_that_would_be_open_to_everybody_do_not_start(
    stack: Stack, trees: Mapping[str, Path], tmp_path: Path
) -> None:
    with (
        runtime("web", stack.environment(), tmp_path, tree=trees["web"]) as one,
        pytest.raises(Raised, match=r"Unusable: other machines can reach .*: set web\.token"),
    ):
        one.invoke(event("GET", "/login"))


def test_a_missing_setting_is_said_in_one_line(stack: Stack, trees: Mapping[str, Path], tmp_path: Path) -> None:
    without = stack.environment() | {"WIKIKEEPER_AWS__BUCKET": ""}
    with (
        runtime("write_note", without, tmp_path, tree=trees["write_note"]) as one,
        pytest.raises(Raised, match=r"Unusable: set aws\.bucket to the bucket of the wiki"),
    ):
        one.invoke({"Records": []})


def test_there_is_nothing_but_the_tree_the_runtime_and_no_named_semaphore(
    trees: Mapping[str, Path], tmp_path: Path
) -> None:
    """Else the tests above would prove less than they say."""
    link_runtime(tmp_path)
    asked = """
import sitecustomize, importlib.util, multiprocessing, wikikeeper
print(wikikeeper.__file__)
print([name for name in ("boto3", "pytest", "moto", "wikikeeper.fakes") if importlib.util.find_spec(name)])
try:
    multiprocessing.get_context("spawn").Lock()
except OSError as error:
    print(error)
"""
    done = subprocess.run(
        [*bare_python(), asked], cwd=tmp_path, env=surroundings(trees["judge_result"], tmp_path),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    package = trees["judge_result"] / "wikikeeper" / "__init__.py"
    assert done.stdout.splitlines() == [str(package), "[]", "[Errno 38] Function not implemented"], done.stderr
