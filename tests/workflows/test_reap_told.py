"""What a sweep writes down and tells of what it did, word for word where somebody goes by it."""

from datetime import timedelta
from typing import Any

import pytest
from tests.workflows.reaping import (
    LEASE,
    NOTE_LATE,
    SILENT_CYCLE,
    Killed,
    cycle_of,
    escalations,
    killing,
    started,
    sweep,
    work_and_die,
)
from tests.workflows.world import World

from wikikeeper.models import (
    CycleState,
    Escalation,
    Failure,
    FailureKind,
    JudgeResult,
    ReapStale,
    Result,
    ResultState,
    Send,
    Silence,
    StartCycle,
    WriteNote,
)
from wikikeeper.policy.identity import cycle_id, run_id
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle


def only(world: World) -> Escalation:
    """The one escalation there is: told at once, as it stands."""
    [escalation] = escalations(world)
    assert world.reporter.of("escalated") == [
        {
            "escalation": escalation.id,
            "subject": escalation.subject,
            "topic": "postgres",
            "detail": escalation.detail,
        }
    ]
    assert escalation.topic == "postgres"
    assert escalation.raised == escalation.delivered
    assert "None" not in escalation.detail
    return escalation


def given_up(world: World) -> Result:
    sends = started(world, a="One.")
    for _ in range(4):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)
    return world.result("a")


# -- claims


def test_a_freed_claim_is_told_and_its_call_has_its_run_before_anybody_else_has_the_page(world: World) -> None:
    work_and_die(world, started(world, a="One."))
    was, begun = world.result("a"), world.clock.now()
    world.clock.advance(LEASE)

    sweep(world)

    assert world.reporter.of("claim_freed") == [{"topic": "postgres", "result": was.id, "fence": was.fence}]
    [run] = world.runs()
    assert (run.id, run.outcome, run.started) == (run_id(was.id, was.fence), "lost", begun)
    asked = (world.app.keeper.model, world.app.keeper.question_version)
    assert (run.model_asked, run.question_version) == asked
    assert run.error == "the worker went silent during the call"


def test_a_page_that_is_given_up_says_why_and_how_to_try_it_again(world: World) -> None:
    result = given_up(world)

    now = world.clock.now()
    assert result.failures == (
        Failure(
            at=now,
            cycle=cycle_of(world).id,
            kind=FailureKind.SILENT,
            cause="silent",
            detail="silent again after 3 recoveries",
        ),
    )
    assert world.reporter.of("result_parked") == [{"topic": "postgres", "result": result.id, "reason": "silent"}]
    escalation = only(world)
    assert (escalation.id, escalation.raised) == (f"result:{result.id}:{result.fence}", now)
    assert "sent again 3 times" in escalation.detail
    assert f"'wikikeeper retry {result.id}'" in escalation.detail


@pytest.mark.parametrize(("recoveries", "write"), [(0, "free"), (3, "give_up")])
def test_the_store_is_told_of_the_call_that_was_begun(world: World, recoveries: int, write: str) -> None:
    """One that keeps calls with their cycle has nowhere else to know it from, once the result has left the cycle."""
    sends = started(world, a="One.")
    for _ in range(recoveries):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)
    work_and_die(world, sends)
    begun, named = world.clock.now(), {}
    done = getattr(world.app.store, write)

    def watched(*given: Any, **known: Any) -> bool:  # noqa: ANN401
        named.update(known)
        return bool(done(*given, **known))

    setattr(world.app.store, write, watched)
    world.clock.advance(LEASE)
    sweep(world)

    assert named["called"] == begun


def test_a_page_of_a_cycle_that_is_over_waits_outside_it_and_is_not_sent(world: World) -> None:
    work_and_die(world, started(world, a="One."))
    now = world.clock.now()
    assert world.app.store.end_cycle(
        cycle_of(world).id, CycleState.STOPPED, now, only_from=frozenset({CycleState.DRAINING})
    )
    world.clock.advance(LEASE)

    assert sweep(world) == []
    result = world.result("a")
    assert (result.state, result.cycle, result.nonresponses) == (ResultState.WAITING, None, 1)


def test_a_page_that_was_parked_for_its_failures_is_no_silence(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    store, now = world.app.store, world.clock.now()
    claim = store.claim(send.command.result, send.command.cycle, now, now + LEASE)
    assert claim is not None
    refused = Failure(at=now, cycle=send.command.cycle, kind=FailureKind.REFUSED, cause="too_long")
    store.put_back(claim, stay_in_cycle=False, failure=refused)
    store.settle(claim.result.id, send.command.cycle, attempts=1, state=ResultState.PARKED, verdict=None, at=now)

    sweep(world)

    assert world.states() == {"a": ResultState.PARKED}
    assert escalations(world) == []


def test_what_a_person_brought_back_at_that_moment_is_not_escalated(world: World) -> None:
    sends = started(world, a="One.")
    give_up = world.app.store.give_up

    def and_brought_back(*given: Any, **named: Any) -> bool:  # noqa: ANN401
        return give_up(*given, **named) and world.app.store.retry(world.result("a").id)

    world.app.store.give_up = and_brought_back  # type: ignore[method-assign]
    for _ in range(4):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)

    assert world.states() == {"a": ResultState.WAITING}
    assert escalations(world) == []


# -- cycles


def test_a_cycle_that_is_sent_again_and_one_that_is_stopped_are_told(world: World) -> None:
    started(world, a="One.")
    identity, begun = cycle_of(world).id, cycle_of(world).started
    for number in range(1, 4):
        world.clock.advance(SILENT_CYCLE)
        sweep(world)
        assert world.reporter.of("cycle_recovered")[-1] == {
            "topic": "postgres",
            "cycle": identity,
            "nonresponses": number,
        }
    assert escalations(world) == []
    world.clock.advance(SILENT_CYCLE)

    sweep(world)

    assert world.reporter.of("cycle_stopped") == [{"cycle": identity, "cause": "silent"}]
    stopped = cycle_of(world)
    assert (stopped.state, stopped.ended) == (CycleState.STOPPED, world.clock.now())
    assert str(stopped.reason).startswith("silent: ")
    escalation = only(world)
    assert (escalation.id, escalation.subject) == (f"cycle:{identity}:{begun.isoformat()}", f"cycle:{identity}")
    assert "sent again 3 times" in escalation.detail
    assert "next tick" in escalation.detail


def test_a_claim_that_is_freed_is_no_silence_of_its_cycle_and_ends_none(world: World) -> None:
    sends = started(world, a="One.")
    subject = f"cycle:{cycle_of(world).id}"
    work_and_die(world, sends, at="claim_text")
    world.clock.advance(SILENT_CYCLE)
    sweep(world)
    now = world.clock.now()
    assert world.app.store.silence(subject) == Silence(subject=subject, nonresponses=0, since=now, counted=now)

    for _ in range(2):
        world.clock.advance(SILENT_CYCLE)
        sends = sweep(world)
    twice = world.app.store.silence(subject)
    assert twice is not None
    assert twice.nonresponses == 2
    work_and_die(world, sends, at="claim_text")
    world.clock.advance(SILENT_CYCLE)
    sweep(world)

    assert world.app.store.silence(subject) == twice.model_copy(update={"counted": world.clock.now()})


def die_while_searching(world: World, tick: str = "t") -> str:
    world.pages(a="One.")
    with killing(world, "drain_cycle"), pytest.raises(Killed):
        schedule_cycle(StartCycle(topic="postgres", tick=tick), world.app)
    return cycle_id("postgres", tick)


def test_a_search_that_never_ended_is_told_of_by_when_it_was_first_found_silent(world: World) -> None:
    identity = die_while_searching(world)
    world.clock.advance(LEASE)
    since = world.clock.now()
    for _ in range(3):
        assert [send.command for send in sweep(world)] == [StartCycle(topic="postgres", tick="t")]
        assert escalations(world) == []
        assert (cycle_of(world).state, cycle_of(world).reason) == (CycleState.EXPIRED, "its worker went silent")
        die_while_searching(world)
        world.clock.advance(LEASE)

    assert sweep(world) == []
    assert only(world).id == f"cycle:{identity}:{since.isoformat()}"
    assert "sent again 3 times" in only(world).detail
    assert "Look whether the workers run" in only(world).detail


def test_a_tick_that_was_begun_again_meanwhile_is_not_expired_by_what_was_seen_before(world: World) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    count_silence = world.app.store.count_silence

    def overtaken(*given: Any, **named: Any) -> bool:  # noqa: ANN401
        world.app.store.count_silence = count_silence  # type: ignore[method-assign]
        assert len(sweep(world)) == 1
        die_while_searching(world)
        return True  # as if its own count had been the first

    world.app.store.count_silence = overtaken  # type: ignore[method-assign]

    assert sweep(world) == []
    assert (cycle_of(world).state, cycle_of(world).fence) == (CycleState.OPEN, 2)


def test_one_that_is_alone_sends_what_waits_for_a_cycle_that_drains_and_nothing_else(world: World) -> None:
    one, two = started(world, a="One.", b="Two.")
    assert isinstance(one.command, JudgeResult)
    judge_result(one.command, world.app)

    def sent() -> list[Send]:
        return [send for send in reap_stale(ReapStale(alone=True), world.app) if send.command.kind == "judge_result"]

    assert [send.command for send in sent()] == [two.command]
    world.app.store.end_cycle(
        cycle_of(world).id, CycleState.STOPPED, world.clock.now(), only_from=frozenset({CycleState.DRAINING})
    )
    assert sent() == []


# -- notes


def test_a_note_that_is_sent_again_is_due_from_then_on(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)
    world.clock.advance(NOTE_LATE)

    assert [send.command for send in sweep(world)] == [WriteNote(topic="postgres")]
    assert world.app.store.topic("postgres").note_due == world.clock.now()


def test_a_note_that_is_given_up_keeps_its_counter_and_the_end_of_its_cooldown(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)
    moments = []
    for _ in range(4):
        world.clock.advance(NOTE_LATE)
        moments.append(world.clock.now())
        sweep(world)

    first, now = moments[0], moments[-1]
    assert world.app.store.silence("note:postgres") == Silence(
        subject="note:postgres",
        nonresponses=3,
        since=first,
        counted=now,
        cooldown_until=now + world.app.rules.cooldown,
    )
    assert only(world).id == f"note:postgres:{first.isoformat()}"
    assert "sent again 3 times" in only(world).detail
    assert "next page" in only(world).detail
    assert world.app.store.topic("postgres").note_due is None, "so that the next kept page sends its command"
    world.clock.advance(timedelta(days=30))
    assert sweep(world) == []
    assert len(escalations(world)) == 1
    assert world.app.store.set_note_due("postgres", world.clock.now()), "the next page came before its cooldown ended"
    world.clock.advance(SILENT_CYCLE)
    sweep(world)
    assert world.app.store.topic("postgres").note_due is None, "and the one after it sends its command as well"
