"""What failures of pages, answers and servers leave behind, and what they come to when the cycle closes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn

import pytest
from tests.workflows.world import World

from wikikeeper.adapters.local.gate import SqliteGate
from wikikeeper.errors import (
    AnswerMalformed,
    AnswerTimedOut,
    FetchFailed,
    ModelUnavailable,
    ModelUnusable,
    PageRefused,
)
from wikikeeper.fakes import judgement
from wikikeeper.models import (
    CycleState,
    FailureKind,
    Judgement,
    ModelState,
    Permit,
    ResultState,
    RunOutcome,
    Send,
    StartCycle,
)

LONG = "\n\n".join(f"Paragraph {n} of a long page, with a fact of its own." for n in range(12))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AnswerMalformed("malformed:nan"), FailureKind.ANSWER),
        (AnswerTimedOut("deadline"), FailureKind.ANSWER),
        (ModelUnavailable("http_503"), FailureKind.SERVER),
    ],
)
def test_a_failed_call_leaves_the_result_waiting_and_the_next_cycle_finishes_it(
    world: World, error: Exception, kind: FailureKind
) -> None:
    world.pages(a="Some text.")
    world.keeper.script = lambda title, paragraphs: _raise(error)
    world.cycle()
    waiting = world.result("a")
    assert (waiting.state, waiting.cycle, waiting.attempts) == (ResultState.WAITING, None, 0)
    assert [failure.kind for failure in waiting.failures] == [kind]

    world.keeper.script = lambda title, paragraphs: judgement()
    world.cycle()

    assert world.result("a").state is ResultState.KEPT
    assert _outcomes(world) == ["answered", "failed"]


def test_a_fault_of_ours_leaves_the_result_waiting_with_its_call_accounted_for(world: World) -> None:
    def broken(title: str, paragraphs: Sequence[str]) -> Judgement:
        raise ZeroDivisionError

    world.keeper.script = broken
    world.pages(a="The same text.", b="The same text.")

    errors = world.run(Send(command=StartCycle(topic="postgres", tick="t")))

    assert [type(error) for error in errors] == [ZeroDivisionError]
    assert set(world.states().values()) == {ResultState.WAITING}
    assert [(run.outcome, run.error) for run in world.runs()] == [("failed", "internal:ZeroDivisionError")]


@pytest.mark.parametrize(
    ("answer", "state", "outcome"),
    [
        (judgement(), ResultState.KEPT, "answered"),
        (AnswerMalformed("malformed:nan"), ResultState.WAITING, "failed"),
        (ZeroDivisionError(), ResultState.WAITING, "failed"),
    ],
)
def test_a_permit_that_cannot_be_given_back_takes_nothing_with_it(
    world: World,
    answer: Judgement | Exception,
    state: ResultState,
    outcome: RunOutcome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends by itself: what came of the call is recorded as it was."""
    monkeypatch.setattr(world.app.gate, "release", lambda permit: _raise(OSError("the store is locked")))
    world.keeper.script = lambda title, paragraphs: _raise(answer) if isinstance(answer, Exception) else answer
    world.pages(a="Some text.")

    errors = world.run(Send(command=StartCycle(topic="postgres", tick="t")))

    assert len(errors) == isinstance(answer, ZeroDivisionError)
    assert world.states() == {"a": state}
    [run] = world.runs()
    assert run.outcome == outcome
    assert "OSError" not in (run.error or "")
    assert [event["cause"] for event in world.reporter.of("permit_not_released")] == ["OSError"]


@pytest.mark.parametrize(
    ("answer", "recorded", "state"),
    [(judgement(), 0, CycleState.DRAINING), (ModelUnusable("unauthorized", "mend it"), 1, CycleState.STOPPED)],
)
def test_a_permit_goes_back_before_an_answer_is_recorded_but_not_before_a_failure_has_stopped_its_cycle(
    world: World, answer: Judgement | Exception, recorded: int, state: CycleState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written of an answer needs no slot of the server; the next call is not made to a server that refuses all."""
    release, seen = world.app.gate.release, []

    def released(permit: Permit) -> bool:
        [cycle] = world.app.store.cycles()
        seen.append((len(world.runs()), cycle.state))
        return release(permit)

    monkeypatch.setattr(world.app.gate, "release", released)
    world.keeper.script = lambda title, paragraphs: _raise(answer) if isinstance(answer, Exception) else answer
    world.pages(a="Some text.")
    world.cycle()

    assert seen == [(recorded, state)]


def test_a_cycle_of_which_no_call_was_answered_says_so(world: World) -> None:
    world.keeper.script = lambda title, paragraphs: _raise(AnswerMalformed("malformed:not_json"))
    world.pages(a="One text.", b="Another text.")

    first, second = world.cycle(), world.cycle()

    assert (first.state, first.reason) == (CycleState.DONE, "no_answer:malformed:not_json")
    assert second.reason == first.reason
    assert len(world.reporter.of("alert")) == 1


def test_pages_that_stop_every_cycle_do_not_keep_the_others_from_being_judged(world: World) -> None:
    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        if title in "ABC":
            raise PageRefused("too_long")
        return judgement()

    world.app = replace(world.app, gate=SqliteGate(world.database, 1))
    world.keeper.script = script
    world.pages(**{name: f"Text {name}." for name in "abcdef"})

    for _ in range(3):
        world.cycle()

    states = world.states()
    assert {states[name] for name in "def"} == {ResultState.KEPT}
    assert {states[name] for name in "abc"} <= {ResultState.WAITING, ResultState.PARKED}


def test_a_model_that_falls_asleep_in_a_cycle_is_woken_and_the_page_comes_again(world: World) -> None:
    def asleep(title: str, paragraphs: Sequence[str]) -> Judgement:
        world.decider.now = ModelState(state="waking", cause="sleeping")
        world.keeper.script = lambda title, paragraphs: judgement()
        raise ModelUnavailable("http_503")

    world.keeper.script = asleep
    world.pages(a="Some text.")

    world.cycle()

    assert world.states() == {"a": ResultState.KEPT}
    assert world.decider.woken == 1


def test_a_refused_page_is_halved_once_and_each_call_has_its_run(world: World) -> None:
    asked: list[int] = []

    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        asked.append(len(paragraphs))
        if len(asked) == 1:
            raise PageRefused("too_long")
        return judgement()

    world.keeper.script = script
    world.pages(a=LONG)

    cycle = world.cycle()

    assert asked == [12, 6]
    assert cycle.calls == 2
    assert _outcomes(world) == ["answered", "failed"]
    verdict = world.result("a").verdict
    assert verdict is not None
    assert verdict.findings.truncated


def test_three_refusals_with_no_good_answer_between_them_stop_the_cycle_and_park_none(world: World) -> None:
    world.keeper.script = lambda title, paragraphs: _raise(PageRefused("too_long"))
    world.pages(**{name: f"Text {name}." for name in "abcdef"})

    cycle = world.cycle()

    assert cycle.state is CycleState.STOPPED
    assert cycle.reason is not None
    assert cycle.reason.startswith("refused:too_long")
    assert set(world.states().values()) == {ResultState.WAITING}
    assert len(world.reporter.of("alert")) == 1


def test_a_refused_page_among_good_ones_is_parked_and_retry_brings_it_back(world: World) -> None:
    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        if title == "B":
            raise PageRefused("too_long")
        return judgement()

    world.keeper.script = script
    world.pages(a="One text.", b="Two texts.", c="Three texts.")
    world.cycle()
    parked = world.result("b")
    assert parked.state is ResultState.PARKED
    assert [failure.cause for failure in parked.failures] == ["too_long"]

    assert world.app.store.retry(parked.id)
    world.keeper.script = lambda title, paragraphs: judgement()
    world.cycle()

    assert world.result("b").state is ResultState.KEPT


@pytest.mark.parametrize("cause", ["model_missing", "wrong_kind", "unauthorized", "forbidden"])
def test_an_unusable_model_stops_the_cycle_with_one_alert_until_it_is_well(world: World, cause: str) -> None:
    world.keeper.script = lambda title, paragraphs: _raise(ModelUnusable(cause, "mend it"))
    world.pages(**{name: f"Text {name}." for name in "abcdefgh"})
    first, second = world.cycle(), world.cycle()
    assert (first.state, second.state) == (CycleState.STOPPED, CycleState.STOPPED)
    assert set(world.states().values()) == {ResultState.WAITING}
    assert all(result.attempts == 0 for result in world.app.store.results())
    assert len(world.reporter.of("alert")) == 1, "the server looks well, and refuses every call: told once"

    world.keeper.script = lambda title, paragraphs: judgement()
    world.cycle()

    assert set(world.states().values()) == {ResultState.KEPT}


def test_only_failures_of_the_page_itself_count_and_then_it_is_parked(world: World) -> None:
    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        if title == "A":
            raise AnswerMalformed("malformed:nan")
        return judgement()

    world.keeper.script = script
    world.pages(a="The bad page.")
    world.cycle()
    assert world.result("a").attempts == 0, "no other call was answered: it may be the server"

    for name in "bcd":
        world.pages(**{name: f"Good page {name}."})
        world.cycle()

    parked = world.result("a")
    assert (parked.state, parked.attempts, len(parked.failures)) == (ResultState.PARKED, 3, 4)


def test_an_offline_machine_loses_nothing_however_often_it_tries(world: World) -> None:
    world.pages(**{name: FetchFailed("dns") for name in "abc"})

    for _ in range(5):
        world.cycle()

    assert {(r.state, r.attempts) for r in world.app.store.results()} == {(ResultState.WAITING, 0)}


def test_a_page_that_fails_while_others_are_fetched_is_discarded_with_its_last_cause(world: World) -> None:
    world.pages(a=FetchFailed("http_503"))
    for name in "bcd":
        world.pages(**{name: f"Good page {name}."})
        cycle = world.cycle()
        assert cycle.reason is None, "what becomes of one page is no reason for its cycle's end"

    assert "alert" not in world.reporter.names()
    verdict = world.result("a").verdict
    assert world.result("a").state is ResultState.DISCARDED
    assert verdict is not None
    assert verdict.reason == "unfetchable:http_503"


def test_retry_after_is_honoured_across_cycles(world: World) -> None:
    world.pages(a=FetchFailed("http_429", timedelta(hours=2)), b="Good page.")
    world.cycle()
    world.shelf.pages["https://example.org/a"] = "Now it is there."

    world.cycle()
    assert world.result("a").state is ResultState.WAITING
    world.clock.advance(timedelta(hours=2))
    world.cycle()

    assert world.result("a").state is ResultState.KEPT


def test_a_server_that_goes_away_stops_the_cycle_instead_of_trying_every_page(world: World) -> None:
    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        world.decider.now = ModelState(state="unhealthy", cause="unreachable", detail="start it")
        raise ModelUnavailable("unreachable")

    world.keeper.script = script
    world.pages(**{name: f"Text {name}." for name in "abcdefghijkl"})

    cycle = world.cycle()

    assert (cycle.state, cycle.reason) == (CycleState.STOPPED, "unreachable: start it")
    assert len(world.keeper.asked) <= 4
    assert set(world.states().values()) == {ResultState.WAITING}


def _outcomes(world: World) -> list[RunOutcome]:
    return sorted(run.outcome for run in world.runs())


def _raise(error: Exception) -> NoReturn:
    raise error
