"""That the chaos bench finds what it looks for: a sound build passes at a small size, and a broken one does not."""

import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.chaos_parts.check import Left, check_notes
from bench.chaos_parts.plan import KILLING, NOTING, STOPPING, Broken, Run, pages, plan
from bench.chaos_parts.server import Fate, Ledger
from tests.workflows.world import World, open_world

SCRIPT = Path(__file__).parents[2] / "bench" / "chaos.py"


def bench(*arguments: str) -> tuple[int, dict[str, Any]]:
    size = ["--results=50", "--processes=6", "--disturbed-only"]
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", *size, *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.stdout, ran.stderr
    figures: dict[str, Any] = json.loads(ran.stdout)
    return ran.returncode, figures


def drawn(seed: int, results: int = 1000, broken: Broken | None = None) -> Any:  # noqa: ANN401 - compared only
    run = Run(Path("nowhere"), results, 8, seed, disturbed=True, broken=broken, base_url="http://127.0.0.1:9")
    return plan(run, pages(results))


def test_nothing_is_lost_or_done_twice_when_workers_are_killed_and_frozen() -> None:
    code, figures = bench()

    assert (code, figures["wrong"]) == (0, [])
    assert figures["results"] == 50
    assert figures["planted"] == figures["escalated_planted"] > 0
    assert sum(figures["kills"].values()) > figures["planted_kills"] >= figures["planted"]
    assert sum(figures["stops"].values()) > 0


def test_a_build_that_takes_verdicts_without_looking_at_the_fence_fails() -> None:
    code, figures = bench("--broken=fence")

    assert code == 1
    assert figures["duplicate_verdicts"] > 0
    assert any("held the claim" in why for why in figures["wrong"])


def test_the_same_seed_draws_the_same_orders_and_another_one_others() -> None:
    assert drawn(1) == drawn(1) != drawn(2)


def test_a_result_meets_one_thing_at_most_and_every_point_is_struck() -> None:
    orders = drawn(1, results=10_000)
    killed = [order for order in orders.judging.values() if order.do == "kill"]
    noting = [order for of_topic in orders.noting.values() for order in of_topic]
    stopped = {order.at for order in orders.judging.values() if order.do == "stop"}

    assert {order.at for order in killed} | {order.at for order in noting} == set(KILLING)
    assert {order.at for order in noting} == NOTING
    assert stopped == set(STOPPING)
    assert len(killed) + len(noting) == 500
    assert len(orders.planted) == 100
    assert not orders.planted.keys() & orders.judging.keys()


Connections = list[tuple[socket.socket, socket.socket]]


@pytest.fixture
def connections() -> Iterator[Connections]:
    """Two clients of a server: its ends and theirs."""
    pairs = [socket.socketpair() for _ in range(2)]
    yield pairs
    for end in (end for pair in pairs for end in pair):
        end.close()


def test_a_call_whose_client_is_gone_is_no_longer_at_the_server(connections: Connections) -> None:
    ledger, ((here, client), (other, _)) = Ledger(limit=1, seed=None), connections
    ledger.arrive(1, here)
    client.close()
    ledger.arrive(2, other)
    assert (ledger.most, ledger.over) == (1, [])


def test_calls_over_the_limit_are_written_down_with_all_that_are_there(connections: Connections) -> None:
    ledger, ((one, _), (two, _)) = Ledger(limit=1, seed=None), connections
    ledger.arrive(1, one)
    ledger.arrive(2, two)
    assert (ledger.most, ledger.over) == (2, [[1, 2]])


def test_what_becomes_of_a_call_depends_on_the_seed_the_page_and_how_often_it_was_asked(
    connections: Connections,
) -> None:
    def fates(seed: int) -> list[Fate]:
        ledger, here = Ledger(limit=1, seed=seed), connections[0][0]
        drawn = []
        for number in range(1000):
            call, fate = ledger.arrive(number // 2, here)
            ledger.leave(call)
            drawn.append(fate)
        return drawn

    assert fates(1) == fates(1) != fates(2)
    assert 0.1 < 1 - Counter(fates(1))["answer"] / 1000 < 0.22


def cut(note: bytes) -> bytes:
    return note[: len(note) // 2]


def noted_again(note: bytes) -> bytes:
    return note + note[note.index(b"\n## ") :]


@pytest.mark.parametrize(
    ("done", "torn", "twice"),
    [(bytes, 0, 0), (cut, 1, 0), (noted_again, 1, 2)],
    ids=["whole", "torn", "noted twice"],
)
def test_a_note_is_looked_at_byte_by_byte(
    tmp_path: Path, done: Callable[[bytes], bytes], torn: int, twice: int
) -> None:
    with open_world(tmp_path) as world:
        (note,) = _written(world)
        note.write_bytes(done(note.read_bytes()))
        left = Left()
        check_notes(left, tmp_path, world.app.topics()[0], {result.id: result for result in world.app.store.results()})
    assert (left.figures["torn_notes"], left.figures["duplicate_notes"]) == (torn, twice)
    assert bool(left.wrong) == bool(torn or twice)


def _written(world: World) -> list[Path]:
    world.pages(a="Locks are repaired in spring.", b="Another lock leaks.")
    world.cycle()
    return list((world.root / "inbox" / "awaiting").glob("*.md"))
