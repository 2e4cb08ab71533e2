"""Work whose worker went silent: taken back once, its call accounted for."""

from collections.abc import Sequence
from datetime import timedelta

from tests.workflows.world import World

from wikikeeper.fakes import judgement
from wikikeeper.models import (
    Claim,
    Cycle,
    CycleState,
    Judgement,
    JudgeResult,
    ReapStale,
    ResultState,
    StartCycle,
    WriteNote,
)
from wikikeeper.policy.identity import cycle_id, run_id
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import closes, reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle

LATER = timedelta(minutes=10)


def claimed(world: World, *, called: bool) -> tuple[Claim, str]:
    """A worker took a result, perhaps began its call, and was never heard of again."""
    world.pages(a="One.")
    [send] = schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    assert isinstance(send.command, JudgeResult)
    now = world.clock.now()
    claim = world.app.store.claim(send.command.result, send.command.cycle, now, now + timedelta(minutes=4))
    assert claim is not None
    if called:
        claim = world.app.store.begin_call(claim, send.command.cycle, now, now + timedelta(minutes=4))
        assert claim is not None
    return claim, send.command.cycle


def test_a_live_claim_is_left_alone(world: World) -> None:
    claimed(world, called=True)

    sends = reap_stale(ReapStale(), world.app)

    assert world.states() == {"a": ResultState.JUDGING}
    assert [send.command.kind for send in sends] == ["close_cycle"]


def test_an_expired_claim_waits_again_under_a_higher_fence_and_is_sent_once(world: World) -> None:
    claim, cycle = claimed(world, called=False)
    world.clock.advance(LATER)

    first, second = reap_stale(ReapStale(), world.app), reap_stale(ReapStale(), world.app)

    assert JudgeResult(topic="postgres", result=claim.result.id, cycle=cycle) in [send.command for send in first]
    assert [send.command.kind for send in second] == ["close_cycle"]
    result = world.result("a")
    assert (result.state, result.fence, result.nonresponses) == (ResultState.WAITING, claim.fence + 1, 1)
    assert world.runs() == []


def test_a_counted_call_without_a_run_gets_a_lost_one(world: World) -> None:
    claim, _ = claimed(world, called=True)
    world.clock.advance(LATER)

    world.run(*reap_stale(ReapStale(), world.app))

    world.run(*reap_stale(ReapStale(), world.app))  # closes the cycle, now that nothing of it is unfinished
    assert world.states() == {"a": ResultState.KEPT}
    assert sorted(run.outcome for run in world.runs()) == ["answered", "lost"]
    cycle = world.app.store.cycle(cycle_id("postgres", "t"))
    assert cycle is not None
    assert (cycle.calls, cycle.state) == (2, CycleState.DONE)
    lost = world.app.store.run(run_id(claim.result.id, claim.fence))
    assert lost is not None
    assert lost.outcome == "lost"


def test_a_run_with_its_answer_but_no_verdict_is_used_and_not_repeated(world: World) -> None:
    world.pages(a="One.")
    [send] = schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    finish = world.app.store.finish
    world.app.store.finish = lambda *_, **__: False  # type: ignore[method-assign]
    judge_result(JudgeResult.model_validate(send.command.model_dump()), world.app)
    world.app.store.finish = finish  # type: ignore[method-assign]
    assert world.states() == {"a": ResultState.JUDGING}
    world.clock.advance(LATER)

    world.run(*reap_stale(ReapStale(), world.app))

    assert world.states() == {"a": ResultState.KEPT}
    assert len(world.keeper.asked) == 1
    assert [run.outcome for run in world.runs()] == ["answered"]
    assert len(world.notes()) == 1


def test_a_late_workers_verdict_is_refused_and_its_run_says_superseded(world: World) -> None:
    """The worker is frozen in its call; meanwhile its claim is taken back and another one judges the page."""
    world.pages(a="One.")
    [send] = schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    command = JudgeResult.model_validate(send.command.model_dump())

    def frozen(title: str, paragraphs: Sequence[str]) -> Judgement:
        world.keeper.script = lambda title, paragraphs: judgement(useful=0.9)
        world.clock.advance(LATER)
        world.run(*reap_stale(ReapStale(), world.app))
        return judgement(useful=0.1)

    world.keeper.script = frozen
    judge_result(command, world.app)

    assert world.states() == {"a": ResultState.KEPT}
    assert sorted(run.outcome for run in world.runs()) == ["answered", "superseded"]
    assert "verdict_superseded" in world.reporter.names()


def test_kept_but_not_noted_is_noted(world: World) -> None:
    world.pages(a="One.")
    [send] = schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    [note] = judge_result(JudgeResult.model_validate(send.command.model_dump()), world.app)
    assert note.command == WriteNote(topic="postgres")
    assert WriteNote(topic="postgres") not in [s.command for s in reap_stale(ReapStale(), world.app)]
    world.clock.advance(LATER)  # the command was lost

    world.run(*reap_stale(ReapStale(), world.app))

    assert len(world.notes()) == 1


def test_one_that_is_alone_writes_a_note_that_became_due_just_now(world: World) -> None:
    """A killed run left its note due a second ago, and its command died with it: the next run does not wait."""
    world.pages(a="One.")
    [send] = schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    judge_result(JudgeResult.model_validate(send.command.model_dump()), world.app)

    world.run(*reap_stale(ReapStale(alone=True), world.app))

    assert len(world.notes()) == 1


def test_a_cycle_whose_worker_died_while_searching_is_sent_again_under_the_next_fence(world: World) -> None:
    now = world.clock.now()
    cycle = Cycle(
        id=cycle_id("postgres", "t"),
        topic="postgres",
        tick="t",
        state=CycleState.OPEN,
        started=now,
        lease_until=now + timedelta(minutes=2),
        cap=10,
    )
    assert world.app.store.start_cycle(cycle)
    world.clock.advance(LATER)

    [again] = reap_stale(ReapStale(), world.app)
    assert again.command == StartCycle(topic="postgres", tick="t")
    assert world.app.store.start_cycle(cycle.model_copy(update={"lease_until": world.clock.now() + LATER / 2}))
    world.clock.advance(LATER)

    assert reap_stale(ReapStale(), world.app) == [again]
    stored = world.app.store.cycle(cycle.id)
    assert stored is not None
    assert (stored.state, stored.fence) == (CycleState.EXPIRED, 2)


def test_what_a_killed_run_left_waiting_is_sent_again_by_one_that_is_alone(world: World) -> None:
    """All commands of a process are lost with it; the results still wait, on their way for a cycle that drains."""
    world.pages(a="One.", b="Two.")
    schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    assert world.run(*reap_stale(ReapStale(), world.app)) == []
    assert set(world.states().values()) == {ResultState.WAITING}, "somebody may still be on them"

    world.run(*reap_stale(ReapStale(alone=True), world.app))
    world.run(*closes(world.app))

    assert set(world.states().values()) == {ResultState.KEPT}
    old = world.app.store.cycle(cycle_id("postgres", "t"))
    assert old is not None
    assert (old.state, old.calls) == (CycleState.DONE, 2)


def test_one_that_is_alone_need_not_wait_for_leases(world: World) -> None:
    claim, _ = claimed(world, called=True)

    world.run(*reap_stale(ReapStale(alone=True), world.app))

    assert world.states() == {"a": ResultState.KEPT}
    lost = world.app.store.run(run_id(claim.result.id, claim.fence))
    assert lost is not None
    assert lost.outcome == "lost"


def test_an_open_cycle_that_a_person_began_in_a_dead_run_is_stopped_at_once(world: World) -> None:
    world.pages(a="One.")
    now = world.clock.now()
    left = Cycle(
        id=cycle_id("postgres", "manual-t"),
        topic="postgres",
        tick="manual-t",
        state=CycleState.OPEN,
        started=now,
        lease_until=now + timedelta(minutes=15),
        cap=10,
    )
    assert world.app.store.start_cycle(left)

    assert reap_stale(ReapStale(alone=True), world.app) == []

    stored = world.app.store.cycle(left.id)
    assert stored is not None
    assert stored.state is CycleState.STOPPED
