"""How often silent work is sent again, what stops that, and that a person hears of it exactly once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.workflows.reaping import (
    LEASE,
    SILENT_CYCLE,
    Killed,
    cycle_of,
    escalations,
    just_before,
    killing,
    started,
    sweep,
    told,
    work_and_die,
)
from tests.workflows.world import World

from wikikeeper.fakes import judgement
from wikikeeper.models import (
    Action,
    CycleState,
    JudgeResult,
    ModelState,
    ReapStale,
    Result,
    ResultState,
    Send,
    StartCycle,
)
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle, see_model
from wikikeeper.workflows.silences import look

# -- claims


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("at", ["judge", "finish", "begin_call", "page", "put_run"])
def test_a_page_that_kills_every_worker_gets_the_limit_of_recoveries_and_one_escalation(
    world: World, limit: int, at: str
) -> None:
    world.app = replace(world.app, rules=replace(world.app.rules, recovery_limit=limit))
    sends = started(world, a="One.")
    at = "claim_text" if at == "page" else at
    recoveries = 0
    for _ in range(limit + 4):
        work_and_die(world, sends, at=at)
        world.clock.advance(LEASE)
        sends = sweep(world)
        recoveries += len(sends)
        assert sweep(world) == []

    result = world.result("a")
    assert recoveries == limit
    assert (result.state, result.nonresponses, result.failures[-1].cause) == (ResultState.PARKED, limit, "silent")
    [escalation] = escalations(world)
    assert escalation.subject == f"result:{result.id}"
    assert f"wikikeeper retry {result.id}" in escalation.detail
    assert told(world) == [escalation.id]
    assert cycle_of(world).calls == len(world.runs()), "every counted call has its run"
    assert {run.outcome for run in world.runs()} <= {"lost", "answered"}


def test_the_end_of_the_cooldown_starts_nothing(world: World) -> None:
    sends = started(world, a="One.")
    for _ in range(4):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)
    assert world.states() == {"a": ResultState.PARKED}

    for _ in range(5):
        world.clock.advance(world.app.rules.cooldown)
        assert sweep(world) == []
        world.cycle()

    assert world.states() == {"a": ResultState.PARKED}
    assert len(told(world)) == 1


def test_a_person_brings_back_what_was_given_up_and_hears_of_it_again_if_it_goes_silent_again(world: World) -> None:
    sends = started(world, a="One.")
    for _ in range(4):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)
    world.app.store.retry(world.result("a").id)

    sends = schedule_cycle(StartCycle(topic="postgres", tick="t2"), world.app)
    for _ in range(4):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)

    assert len({escalation.id for escalation in escalations(world)}) == 2
    world.app.store.retry(world.result("a").id)
    world.cycle()
    assert world.states() == {"a": ResultState.KEPT}


def test_a_recorded_failure_sets_the_counter_back(world: World) -> None:
    sends = started(world, a="One.")
    for _ in range(3):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)
    assert world.result("a").nonresponses == 3
    world.shelf.pages = {}

    world.run(*sends)

    assert world.result("a").nonresponses == 0


def test_being_put_back_for_want_of_a_permit_does_not_set_the_counter_back(world: World) -> None:
    sends = started(world, a="One.")
    work_and_die(world, sends)
    world.clock.advance(LEASE)
    [send] = sweep(world)
    permits = [world.app.gate.acquire(lane, "other", LEASE, timedelta()) for lane in ("keeper", "keeper")]  # type: ignore[arg-type]
    assert len(permits) == 2

    assert isinstance(send.command, JudgeResult)
    [later] = judge_result(send.command, world.app)

    assert later.command == send.command
    assert world.result("a").nonresponses == 1


def test_nothing_is_sent_when_the_counter_cannot_be_saved(world: World) -> None:
    work_and_die(world, started(world, a="One."))
    world.clock.advance(LEASE)

    with killing(world, "free"), pytest.raises(Killed):
        reap_stale(ReapStale(), world.app)

    assert world.result("a").nonresponses == 0
    assert len(sweep(world)) == 1


@pytest.mark.parametrize("at", ["free", "give_up", "put_run", "escalate", "escalation_delivered", "escalations"])
@pytest.mark.parametrize("after", [False, True])
def test_a_reaper_that_is_killed_anywhere_changes_no_outcome(world: World, at: str, after: bool) -> None:
    sends = started(world, a="One.")
    for _ in range(8):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        done = getattr(world.app.store, at)

        def die(*given: object, _done: Callable[..., object] = done, **named: object) -> object:
            if after:
                _done(*given, **named)
            raise Killed

        setattr(world.app.store, at, die)
        try:
            reap_stale(ReapStale(), world.app)
        except Killed:
            pass
        finally:
            setattr(world.app.store, at, done)
        sends = sweep(world) or [
            # The command died with the reaper that freed the claim: the cycle is found silent, or its next tick takes it.
            Send(command=JudgeResult(topic="postgres", result=world.result("a").id, cycle=cycle_of(world).id))
        ]
        sends = sends if world.states() == {"a": ResultState.WAITING} else []

    sweep(world)
    assert world.states() == {"a": ResultState.PARKED}
    assert world.result("a").nonresponses == 3
    [escalation] = escalations(world)
    assert set(told(world)) == {escalation.id}
    assert cycle_of(world).calls == len(world.runs()) == 4


def test_a_late_worker_of_a_page_that_was_given_up_is_refused(world: World) -> None:
    sends = started(world, a="One.")
    for _ in range(3):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)

    def frozen(*_: object) -> Any:  # noqa: ANN401
        world.clock.advance(LEASE)
        assert sweep(world) == []
        return judgement(useful=0.9)

    world.keeper.script = frozen
    assert isinstance(sends[0].command, JudgeResult)
    assert judge_result(sends[0].command, world.app) == []

    assert world.states() == {"a": ResultState.PARKED}
    assert sorted(run.outcome for run in world.runs()) == ["lost", "lost", "lost", "superseded"]
    assert len(told(world)) == 1


def test_what_died_together_twice_is_sent_one_by_one_so_that_the_guilty_page_is_alone_with_it(world: World) -> None:
    sends = started(world, **{name: f"Page {name}." for name in "abcd"})
    delays = []
    for _ in range(3):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)
        delays.append([send.after for send in sends])

    together, short, long = delays
    assert together == [timedelta()] * 4
    lease = world.app.rules.judge_lease
    assert short == [lease / 30 * place for place in range(4)]
    assert long == [lease / 5 * place for place in range(4)]


def test_no_command_is_delayed_for_longer_than_a_queue_takes(world: World) -> None:
    world.app = replace(world.app, rules=replace(world.app.rules, judge_lease=timedelta(hours=1)))
    sends = started(world, **{f"p{number}": f"Page {number}." for number in range(3)})
    for _ in range(3):
        work_and_die(world, sends)
        world.clock.advance(timedelta(hours=2))
        sends = sweep(world)

    assert max(send.after for send in sends) == timedelta(minutes=15)


# -- cycles


def test_a_cycle_whose_commands_were_lost_is_sent_again_three_times_and_then_stopped(world: World) -> None:
    started(world, a="One.", b="Two.")
    sent = []
    for _ in range(6):
        assert sweep(world) == []
        world.clock.advance(SILENT_CYCLE)
        sent.append(len(sweep(world)))

    assert sent == [2, 2, 2, 0, 0, 0]
    assert cycle_of(world).state is CycleState.STOPPED
    [escalation] = escalations(world)
    assert escalation.subject == f"cycle:{cycle_of(world).id}"
    assert told(world) == [escalation.id]
    world.cycle()
    assert set(world.states().values()) == {ResultState.KEPT}, "the next tick takes them along"


def test_a_call_sets_the_counter_of_its_cycle_back(world: World) -> None:
    first, _ = started(world, a="One.", b="Two.")
    for _ in range(3):
        world.clock.advance(SILENT_CYCLE)
        assert len(sweep(world)) == 2
    world.clock.advance(timedelta(minutes=1))
    assert isinstance(first.command, JudgeResult)
    judge_result(first.command, world.app)

    world.clock.advance(SILENT_CYCLE)
    again = [send for send in sweep(world) if isinstance(send.command, JudgeResult)]

    assert len(again) == 1
    assert escalations(world) == []


def test_a_model_that_was_seen_to_load_explains_a_silence_for_as_long_as_loading_may_take(world: World) -> None:
    started(world, a="One.")
    world.clock.advance(SILENT_CYCLE)
    world.decider.now = ModelState(state="waking", cause="loading")
    see_model(world.app)
    assert [sighting.condition for sighting in world.app.store.model_history()] == ["loading", "healthy"]

    assert sweep(world) == []
    assert look(world.app) == []
    world.clock.advance(world.app.rules.wake_timeout)
    assert len(sweep(world)) == 1


def test_of_two_reapers_at_once_one_sends(world: World) -> None:
    started(world, a="One.")
    world.clock.advance(SILENT_CYCLE)
    others: list[list[Send]] = []
    just_before(world, "count_silence", lambda: others.append(sweep(world)))

    assert sweep(world) == []
    assert [len(sends) for sends in others] == [1]


def test_a_tick_that_is_sent_once_more_waits_for_a_model_that_wakes(world: World) -> None:
    world.pages(a="One.")
    with killing(world, "drain_cycle"), pytest.raises(Killed):
        schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    world.clock.advance(LEASE)
    [again] = sweep(world)
    world.decider.now = ModelState(state="waking", cause="sleeping")
    assert isinstance(again.command, StartCycle)

    [later] = schedule_cycle(again.command, world.app)

    assert later.after == timedelta(minutes=1)
    world.decider.now = ModelState(state="healthy")
    world.run(later.model_copy(update={"after": timedelta()}))
    assert world.states() == {"a": ResultState.KEPT}


# -- looking


def test_looking_changes_nothing_and_shows_what_a_sweep_does(world: World) -> None:
    started(world, a="One.", b="Two.")
    assert look(world.app) == []
    world.clock.advance(SILENT_CYCLE)
    before: list[Result] = list(world.app.store.results())

    [silent] = look(world.app)

    assert (silent.subject, silent.action, silent.nonresponses) == (
        f"cycle:{cycle_of(world).id}",
        Action.RECOVER,
        0,
    )
    assert list(world.app.store.results()) == before
    assert look(world.app) == [silent]
    assert len(sweep(world)) == 2


def test_what_is_alive_is_left_alone(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)

    def looking(*_: object) -> Any:  # noqa: ANN401
        world.clock.advance(timedelta(seconds=90))
        assert look(world.app) == []
        assert sweep(world) == []
        return judgement(useful=0.9)

    world.keeper.script = looking
    judge_result(send.command, world.app)

    assert world.states() == {"a": ResultState.KEPT}
