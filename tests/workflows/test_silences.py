"""What is silent just now, to the moment, and what is not."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.workflows.reaping import (
    LEASE,
    SILENT_CYCLE,
    answer_and_die_at_the_limit,
    cycle_of,
    started,
    sweep,
    work_and_die,
)
from tests.workflows.world import TOPIC, World

from wikikeeper.models import (
    Action,
    Condition,
    Cycle,
    CycleState,
    JudgeResult,
    ModelSighting,
    Origin,
    Result,
    ResultState,
    Silence,
    StartCycle,
)
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.schedule_cycle import schedule_cycle
from wikikeeper.workflows.silences import look

MOMENT = timedelta(microseconds=1)


def seen(world: World, *, alone: bool = False) -> list[tuple[str, str, Action, int, bool]]:
    found = look(world.app, alone=alone)
    assert all(silent.said for silent in found)
    return [(each.subject, each.topic, each.action, each.nonresponses, each.only_seen) for each in found]


def open_cycle(world: World, tick: str, lease: timedelta, **changes: object) -> str:
    now = world.clock.now()
    values = {"id": cycle_id("postgres", tick), "topic": "postgres", "tick": tick, "state": CycleState.OPEN, "cap": 9}
    cycle = Cycle.model_validate({**values, "started": now, "lease_until": now + lease, **changes})
    assert world.app.store.start_cycle(cycle)
    return f"cycle:{cycle.id}"


def test_an_open_cycle_is_silent_when_its_lease_ends_and_not_before(world: World) -> None:
    expected = (open_cycle(world, "t", LEASE), "postgres", Action.RECOVER, 0, False)

    assert seen(world, alone=True) == [expected]
    world.clock.advance(LEASE - MOMENT)
    assert seen(world) == []
    world.clock.advance(MOMENT)
    assert seen(world) == [expected]


@pytest.mark.parametrize(
    ("tick", "counted", "action"),
    [
        ("t", 0, Action.RECOVER),
        ("t", 2, Action.RECOVER),
        ("t", 3, Action.GIVE_UP),
        ("manual-1", 0, Action.GIVE_UP),
    ],
)
def test_a_search_is_begun_again_up_to_the_limit_and_only_by_its_schedule(
    world: World, tick: str, counted: int, action: Action
) -> None:
    subject = open_cycle(world, tick, timedelta())
    before = world.clock.now() - MOMENT
    silence = Silence(subject=subject, nonresponses=counted, since=before, counted=before)
    assert world.app.store.count_silence(silence, instead_of=None)

    assert seen(world) == [(subject, "postgres", action, counted, False)]


def test_one_that_is_alive_hides_none_that_is_not(world: World) -> None:
    world.topic("other")
    world.topic("lively")
    older = open_cycle(world, "older", timedelta(), id="other#older", topic="other")
    world.clock.advance(MOMENT)
    open_cycle(world, "alive", LEASE, id="lively#alive", topic="lively")
    world.clock.advance(MOMENT)
    newer = open_cycle(world, "newer", timedelta())

    assert {subject for subject, *_ in seen(world)} == {older, newer}


def test_a_claim_is_silent_when_its_lease_ends_and_not_before(world: World) -> None:
    one, two = started(world, a="One.", b="Two.")
    assert isinstance(one.command, JudgeResult) and isinstance(two.command, JudgeResult)  # noqa: PT018 - narrows both
    now, store = world.clock.now(), world.app.store
    assert store.claim(one.command.result, one.command.cycle, now, now + 2 * LEASE)
    assert store.claim(two.command.result, two.command.cycle, now, now + LEASE)
    expected = (f"result:{two.command.result}", "postgres", Action.RECOVER, 0, False)

    assert len(seen(world, alone=True)) == 2
    world.clock.advance(LEASE - MOMENT)
    assert seen(world) == []
    world.clock.advance(MOMENT)
    assert seen(world) == [expected]


def test_a_claim_is_given_up_at_the_limit(world: World) -> None:
    sends = started(world, a="One.")
    for number in range(4):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        action = Action.RECOVER if number < 3 else Action.GIVE_UP
        assert seen(world) == [(f"result:{world.result('a').id}", "postgres", action, number, False)]
        sends = sweep(world)


def test_a_claim_whose_answer_is_recorded_is_shown_as_what_the_sweep_does(world: World) -> None:
    """It died between the run and the verdict, at the limit: the next claim has its verdict without a call."""
    answer_and_die_at_the_limit(world)

    assert seen(world) == [(f"result:{world.result('a').id}", "postgres", Action.RECOVER, 3, False)]
    world.run(*sweep(world))
    assert world.result("a").state is ResultState.KEPT


# -- cycles that drain


def test_a_cycle_of_which_a_claim_has_to_be_settled_first_is_not_looked_at(world: World) -> None:
    one, _ = started(world, a="One.", b="Two.")
    work_and_die(world, [one])
    world.clock.advance(10 * SILENT_CYCLE)

    assert [subject.partition(":")[0] for subject, *_ in seen(world)] == ["result"]


def lost(world: World) -> None:
    """A cycle that drains, its commands lost; nobody ever looked at the model."""
    now = world.clock.now()
    open_cycle(world, "t", LEASE, state=CycleState.DRAINING, lease_until=None)
    url = "https://example.org/a"
    result = Result(id="r", topic="postgres", url=url, canonical=url, revision=1, origin=Origin.LINK, found=now)
    assert world.app.store.add_results(cycle_id("postgres", "t"), [result])
    assert world.app.store.send_result("r", cycle_id("postgres", "t"), instead_of=None)
    world.clock.advance(SILENT_CYCLE)


def two_cycles(world: World) -> tuple[str, str]:
    """One that is worked on, and one that has not had its turn."""
    world.topic("sqlite", TOPIC)
    work_and_die(world, started(world, a="One."))
    schedule_cycle(StartCycle(topic="sqlite", tick="t"), world.app)
    return cycle_id("postgres", "t"), cycle_id("sqlite", "t")


def test_a_cycle_waits_behind_another_while_that_is_worked_on_and_no_longer(world: World) -> None:
    first, second = two_cycles(world)
    claimed = world.result("a")
    assert claimed.cycle == first
    assert claimed.lease_until is not None
    world.app = replace(world.app, rules=replace(world.app.rules, silence_after=timedelta(seconds=10)))

    world.clock.advance(claimed.lease_until - world.clock.now() - MOMENT)
    assert seen(world) == []
    world.clock.advance(MOMENT)
    assert [subject for subject, *_ in seen(world)] == [f"result:{claimed.id}", f"cycle:{second}"]


def test_a_cycle_without_anything_that_waits_is_left_to_close(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)
    world.app.store.mark_noted([world.result("a").id], "note")
    world.clock.advance(10 * SILENT_CYCLE)

    assert cycle_of(world).state is CycleState.DRAINING
    assert seen(world) == []


def test_a_newer_cycle_that_is_done_with_its_pages_hides_none_that_is_not(world: World) -> None:
    lost(world)
    world.topic("sqlite", TOPIC)
    newer = Cycle(
        id=cycle_id("sqlite", "t"),
        topic="sqlite",
        tick="t",
        state=CycleState.DRAINING,
        started=world.clock.now(),
        cap=9,
    )
    assert world.app.store.start_cycle(newer)

    assert seen(world) == [(f"cycle:{cycle_id('postgres', 't')}", "postgres", Action.RECOVER, 0, False)]


def test_who_is_alone_finds_no_silence_in_what_waits(world: World) -> None:
    started(world, a="One.")
    world.clock.advance(10 * SILENT_CYCLE)

    assert seen(world, alone=True) == []
    assert len(seen(world)) == 1


def test_a_cycle_that_drains_for_a_day_is_warned_of(world: World) -> None:
    started(world, a="One.")
    world.clock.advance(timedelta(days=1) - MOMENT)
    look(world.app)
    assert world.reporter.of("stage_long") == []

    world.clock.advance(MOMENT)
    look(world.app)

    cycle = cycle_of(world)
    assert world.reporter.of("stage_long") == [
        {"topic": "postgres", "cycle": cycle.id, "since": cycle.started.isoformat()}
    ]


@pytest.mark.parametrize(
    ("model", "condition", "ago", "explains"),
    [
        (None, None, 0, False),
        ("scripted", Condition.LOADING, 1, True),
        ("scripted", Condition.HEALTHY, 1, False),
        ("another", Condition.LOADING, 1, False),
    ],
)
def test_only_its_own_model_as_it_was_last_seen_explains_a_silence(
    world: World, model: str | None, condition: Condition | None, ago: int, explains: bool
) -> None:
    lost(world)
    if model is not None and condition is not None:
        model = world.app.keeper.model if model == "scripted" else model
        since = world.clock.now() - timedelta(minutes=ago)
        world.app.store.saw_model(ModelSighting(model=model, condition=condition, cause="", detail="", since=since))

    assert (sweep(world) == []) is explains


# -- notes


def unnoted(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)


def test_a_note_is_silent_when_its_patience_ends_and_not_before(world: World) -> None:
    unnoted(world)
    expected = ("note:postgres", "postgres", Action.RECOVER, 0, False)

    assert seen(world, alone=True) == [expected]
    world.clock.advance(2 * world.app.rules.note_delay - MOMENT)
    assert seen(world) == []
    world.clock.advance(MOMENT)
    assert seen(world) == [expected]


def test_a_note_of_which_nothing_is_due_is_only_seen_unless_one_is_alone(world: World) -> None:
    unnoted(world)
    world.app.store.clear_note_due("postgres")

    assert seen(world) == [("note:postgres", "postgres", Action.RECOVER, 0, True)]
    assert seen(world, alone=True) == [("note:postgres", "postgres", Action.RECOVER, 0, False)]


@pytest.mark.parametrize("alone", [False, True])
def test_a_note_that_was_sent_just_now_has_its_time_to_be_written(world: World, alone: bool) -> None:
    unnoted(world)
    world.clock.advance(LEASE)
    now, delay = world.clock.now(), world.app.rules.note_delay
    world.app.store.count_silence(
        Silence(subject="note:postgres", nonresponses=2, since=now, counted=now), instead_of=None
    )

    world.clock.advance(2 * delay - MOMENT)
    assert seen(world, alone=alone) == []
    world.clock.advance(MOMENT)
    assert seen(world, alone=alone) == [("note:postgres", "postgres", Action.RECOVER, 2, False)]


@pytest.mark.parametrize(("nonresponses", "action"), [(2, Action.RECOVER), (3, Action.GIVE_UP)])
def test_a_note_is_given_up_at_the_limit_and_then_left_alone(world: World, nonresponses: int, action: Action) -> None:
    unnoted(world)
    now = world.clock.now()
    silence = Silence(subject="note:postgres", nonresponses=nonresponses, since=now, counted=now)
    world.app.store.count_silence(silence, instead_of=None)
    world.clock.advance(LEASE)
    assert seen(world) == [("note:postgres", "postgres", action, nonresponses, False)]

    cooling = silence.model_copy(update={"cooldown_until": world.clock.now() + LEASE})
    world.app.store.count_silence(cooling, instead_of=silence)
    assert seen(world) == [("note:postgres", "postgres", Action.LEAVE, nonresponses, False)]


def test_a_note_of_a_topic_that_is_gone_is_nobodys(world: World) -> None:
    unnoted(world)
    (world.root / "topics" / "postgres.md").unlink()
    world.clock.advance(LEASE)

    assert seen(world) == []


def test_a_topic_with_nothing_to_note_hides_none_that_has(world: World) -> None:
    for slug in ("aaa", "zzz"):
        world.topic(slug, TOPIC)
        world.app.store.set_note_due(slug, world.clock.now())
    unnoted(world)
    world.clock.advance(LEASE)

    assert [subject for subject, *_ in seen(world)] == ["note:postgres"]


def test_a_note_whose_time_has_not_come_hides_none_whose_time_has(world: World) -> None:
    unnoted(world)
    world.topic("aaa", TOPIC)
    [send] = schedule_cycle(StartCycle(topic="aaa", tick="t"), world.app)
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)
    world.app.store.clear_note_due("aaa")
    world.clock.advance(LEASE)
    assert [subject for subject, *_ in seen(world)] == ["note:aaa", "note:postgres"]
    assert world.app.store.set_note_due("aaa", world.clock.now())

    assert [subject for subject, *_ in seen(world)] == ["note:postgres"]


def test_a_note_may_be_queued_behind_what_is_worked_on_for_as_long_as_a_cycle(world: World) -> None:
    unnoted(world)
    long, now = 4 * SILENT_CYCLE, world.clock.now()
    world.pages(b="Two.")
    [send] = schedule_cycle(StartCycle(topic="postgres", tick="t2"), world.app)
    assert isinstance(send.command, JudgeResult)
    assert world.app.store.claim(send.command.result, send.command.cycle, now, now + long)

    world.clock.advance(world.app.rules.silence_after - MOMENT)
    assert seen(world) == []
    world.clock.advance(MOMENT)
    assert seen(world) == [("note:postgres", "postgres", Action.RECOVER, 0, False)]
