"""That the cycle bench measures what it says: its fake server counts right, and a small run comes to its end."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from bench.cycle import LARGEST, SMALLEST, ask_stats, fake_server, page
from bench.fake_server import MODEL, FakeServer, Slots

from wikikeeper.adapters.llama.decide import LlamaDecider
from wikikeeper.errors import PageRefused
from wikikeeper.models import Choice, ChoiceAnswer, Noul, NoulAnswer, Request

BENCH = Path(__file__).parents[2] / "bench"
CALL_SECONDS = 0.05


def request(page: str = "Herons nest in colonies.") -> Request:
    options = {"p01": page, "p02": "They eat frogs.", "none": "No passage fits."}
    return Request(
        state={"page": page},
        questions={
            "useful": Noul(instructions="Is it about herons?", true=f"It is: {page}", false="It is not."),
            "quotes": Choice(instructions="Which passage says most?", options=options),
        },
    )


@contextmanager
def client(base_url: str) -> Iterator[LlamaDecider]:
    with closing(LlamaDecider(base_url, MODEL, None, connect_timeout=5, timeout=20)) as decider:
        yield decider


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(0, Slots(2, CALL_SECONDS)) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_the_fake_server_looks_like_a_healthy_decision_model(server: FakeServer) -> None:
    with client(server.base_url) as decider:
        assert decider.state().state == "healthy"


def test_its_answers_are_sound_and_the_same_for_the_same_questions(server: FakeServer) -> None:
    with client(server.base_url) as decider:
        first, again, other = (decider.decide(request(text)) for text in ("Herons.", "Herons.", "Frogs."))
    assert isinstance(first.answers["useful"], NoulAnswer)
    assert isinstance(first.answers["quotes"], ChoiceAnswer)
    assert first.answers == again.answers != other.answers


def test_it_refuses_what_is_no_question(server: FakeServer) -> None:
    one = Choice.model_construct(type="choice", instructions="Which?", options={"only": "one"})
    with client(server.base_url) as decider, pytest.raises(PageRefused):
        decider.decide(Request.model_construct(state={"page": "x"}, questions={"quotes": one}))


def test_it_counts_calls_at_once_also_those_that_find_every_slot_taken(server: FakeServer) -> None:
    with client(server.base_url) as decider, ThreadPoolExecutor(5) as callers:
        list(callers.map(decider.decide, [request(str(number)) for number in range(5)]))
    stats = ask_stats(server.base_url)
    assert (stats["calls"], stats["slots"]) == (5, 2)
    assert stats["max_concurrency"] > 2
    assert stats["over_limit"] >= 1
    assert stats["busy_seconds"] <= 2 * (stats["last_end"] - stats["first_start"])


def test_calls_one_after_another_never_count_as_two_at_once(server: FakeServer) -> None:
    with client(server.base_url) as decider:
        for number in range(10):
            decider.decide(request(str(number)))
    stats = ask_stats(server.base_url)
    assert (stats["max_concurrency"], stats["over_limit"]) == (1, 0)
    assert stats["busy_seconds"] >= 10 * CALL_SECONDS


def test_its_process_ends_when_nobody_holds_its_input_any_more() -> None:
    with fake_server(slots=2, call_ms=1, seconds=60) as base_url:
        ask_stats(base_url)
        began = time.monotonic()
    assert time.monotonic() - began < 20


def test_its_process_ends_after_its_seconds_in_any_case() -> None:
    command = [sys.executable, str(BENCH / "fake_server.py"), "--seconds=0.1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.wait(timeout=20) == 0


def test_pages_are_always_the_same_and_none_repeats_another() -> None:
    pages = [page(number) for number in range(20)]
    assert pages == [page(number) for number in range(20)]
    assert len(set(pages)) == 20
    assert all(SMALLEST <= len(text) <= LARGEST + 2_000 for text in pages)  # the last piece may reach beyond


def test_a_small_run_judges_each_page_once_and_prints_its_figures() -> None:
    command = [sys.executable, str(BENCH / "cycle.py"), "--json", "--repeat-check"]
    size = ["--results=6", "--call-ms=50", "--slots=2", "--ahead=2"]
    ran = subprocess.run([*command, *size], capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert (figures["results"], figures["calls"], figures["repeat_calls"], figures["wrong"]) == (6, 6, 0, [])
    assert 0 < figures["busy_ratio"] <= 1
    assert 1 <= figures["max_concurrency"] <= 2
    assert figures["whole_cycle_ratio"] > 1
    assert figures["own_cpu_ms_per_result"] > 0
