"""The store's whole life in any order of events, against a model of a few dictionaries. A test names a store by
`open_store` and runs so many steps:

    start (find, send, claim) ─ heartbeat (begin a call) ─ finish, put back ─ crash (nothing), late finish (an old claim)
    expire (time passes, clocks jump back) ─ free, send again ─ give up, escalate, deliver ─ retry, withdraw, purge
"""

import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.adapters.contracts.samples import (
    LEASE,
    NOW,
    TOPIC,
    VERDICT,
    a_cycle,
    a_failure,
    a_result,
    a_run,
    add,
    stored,
    stored_cycle,
)

from wikikeeper.models import (
    TERMINAL,
    Claim,
    CycleState,
    Escalation,
    FailureKind,
    Result,
    ResultState,
    RunOutcome,
    Silence,
)
from wikikeeper.policy import silence as policy
from wikikeeper.policy.identity import run_id
from wikikeeper.ports import RunStore

CYCLES = ("long", "short")
CAPS = {"long": 6, "short": 2}
RUNNING = frozenset({CycleState.OPEN, CycleState.DRAINING})
SEARCHING = frozenset({CycleState.OPEN, CycleState.EXPIRED})
SUBJECT = f"note:{TOPIC}"
STEPS_OF_ONE_LIFE = 50
UNFINISHED = frozenset({ResultState.WAITING, ResultState.JUDGING, ResultState.PARKED})


def live(machine: "type[ResultLife]", steps: int) -> None:
    """So many steps, in lives of up to fifty."""
    machine.steps = 0
    while machine.steps < steps:
        lives = max((steps - machine.steps) // STEPS_OF_ONE_LIFE, 1)
        each = settings(max_examples=lives, stateful_step_count=STEPS_OF_ONE_LIFE, deadline=None)
        run_state_machine_as_test(machine, settings=settings(each, suppress_health_check=[HealthCheck.too_slow]))


@dataclass(frozen=True)
class Expected:
    """What matters of a result."""

    state: ResultState = ResultState.WAITING
    cycle: str | None = None
    fence: int = 0
    lease_until: datetime | None = None
    nonresponses: int = 0
    attempts: int = 0
    not_before: datetime | None = None
    failures: int = 0
    settled_cycle: str | None = None

    @classmethod
    def of(cls, result: Result) -> "Expected":
        return cls(
            state=result.state,
            cycle=result.cycle,
            fence=result.fence,
            lease_until=result.lease_until,
            nonresponses=result.nonresponses,
            attempts=result.attempts,
            not_before=result.not_before,
            failures=len(result.failures),
            settled_cycle=result.settled_cycle,
        )


class ResultLife(RuleBasedStateMachine):
    """Claims are kept when they are lost, and used again, as a worker would that was frozen meanwhile."""

    steps = 0
    """Of all machines of a class."""
    claims: Bundle[Claim] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = self.open_store(Path(self.folder.name))
        self.now = NOW
        self.id = ""
        self.results: dict[str, Expected] = {}
        self.calls = dict.fromkeys(CYCLES, 0)
        self.cycles = dict.fromkeys(CYCLES, (CycleState.OPEN, 1))
        """State and fence."""
        self.runs: dict[str, RunOutcome] = {}
        self.silence: Silence | None = None
        self.escalations: dict[str, bool] = {}
        """Delivered?"""

    def open_store(self, folder: Path) -> RunStore:
        raise NotImplementedError

    def teardown(self) -> None:
        try:
            self.all_is_as_expected()
        finally:
            self.store.close()
            self.folder.cleanup()

    @property
    def result(self) -> Expected:
        return self.results[self.id]

    def change(self, result: str, **changes: object) -> None:
        self.results[result] = replace(self.results[result], **changes)  # type: ignore[arg-type]

    def holds(self, claim: Claim) -> bool:
        expected = self.results[claim.result.id]
        return expected.state is ResultState.JUDGING and expected.fence == claim.fence

    # -- events

    @initialize()
    def start(self) -> None:
        for cycle in CYCLES:
            assert self.store.start_cycle(a_cycle(id=cycle, cap=CAPS[cycle]))
        self.find()

    @precondition(lambda self: self.results and self.result.state in TERMINAL)
    @rule()
    def find(self) -> None:
        revision = len(self.results) + 1
        self.id = f"r{revision:04}"
        assert add(self.store, a_result(id=self.id, revision=revision))
        self.results[self.id] = Expected()

    @precondition(lambda self: self.results and self.result.state in TERMINAL)
    @rule(cycle=st.sampled_from(CYCLES))
    def find_together(self, cycle: str) -> None:
        revision = len(self.results) + 1
        self.id = f"r{revision:04}"
        known = a_result(id=f"r{revision - 1:04}", revision=revision - 1)
        added = a_result(id=self.id, revision=revision, cycle=cycle)
        assert self.store.add_results(cycle, [known, added]) == [added]
        self.results[self.id] = Expected(cycle=cycle)

    @rule(minutes=st.integers(1, 4))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(minutes=st.integers(1, 3))
    def the_clock_jumps_back(self, minutes: int) -> None:
        self.now -= timedelta(minutes=minutes)

    @rule(cycle=st.sampled_from(CYCLES))
    def send(self, cycle: str) -> None:
        waits = self.result.state is ResultState.WAITING
        was = self.result.cycle
        assert not self.store.send_result(self.id, cycle, instead_of="no such cycle")
        assert self.store.send_result(self.id, cycle, instead_of=was) == waits
        if waits:
            self.change(self.id, cycle=cycle)

    @rule(target=claims, cycle=st.sampled_from(CYCLES))
    def claim(self, cycle: str) -> Claim:
        ready = (
            self.result.state is ResultState.WAITING
            and self.result.cycle == cycle
            and (self.result.not_before is None or self.result.not_before <= self.now)
        )
        claim = self.store.claim(self.id, cycle, self.now, self.now + LEASE)
        assert (claim is not None) == ready
        if claim is None:
            # A bundle needs a value: the claim of somebody who believes to have one.
            return Claim(result=stored(self.store, self.id), fence=self.result.fence - 1, until=self.now)
        self.change(self.id, state=ResultState.JUDGING, fence=claim.fence, lease_until=self.now + LEASE)
        return claim

    @rule(target=claims, claim=claims)
    def begin_call(self, claim: Claim) -> Claim:
        # As a worker does: for the cycle that its claim is of, and with the claim as the last call returned it.
        cycle = claim.result.cycle
        assume(cycle is not None)
        assert cycle is not None
        assume(claim.called is not None or self.store.call_begun(claim.result) is None)
        held, until = self.holds(claim), self.now + LEASE
        assume(held or claim.until < until)  # nobody calls under a claim that they have just given back
        counts = held and self.cycles[cycle][0] in RUNNING and self.calls[cycle] < CAPS[cycle]
        renewed = self.store.begin_call(claim, cycle, self.now, until)
        assert (renewed is not None) == counts
        if renewed is None:
            return claim
        self.calls[cycle] += 1
        assert renewed.fence >= claim.fence
        assert renewed.until >= until
        assert self.store.call_begun(stored(self.store, claim.result.id)) == self.now
        self.change(claim.result.id, fence=renewed.fence, lease_until=renewed.until)
        return renewed

    @rule(claim=claims, state=st.sampled_from([ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED]))
    def finish(self, claim: Claim, state: ResultState) -> None:
        held = self.holds(claim)
        assert self.store.finish(claim, state, self.now, verdict=VERDICT) == held
        if held:
            self.change(claim.result.id, state=state, lease_until=None, not_before=None)

    @rule(claim=claims, stay=st.booleans(), failed=st.booleans(), later=st.booleans())
    def put_back(self, claim: Claim, stay: bool, failed: bool, later: bool) -> None:
        held = self.holds(claim)
        before = self.results[claim.result.id]
        failure = a_failure(before.failures) if failed else None
        not_before = self.now + timedelta(minutes=2) if later else None
        assert self.store.put_back(claim, stay_in_cycle=stay, failure=failure, not_before=not_before) == held
        if held:
            self.change(
                claim.result.id,
                state=ResultState.WAITING,
                lease_until=None,
                not_before=not_before,
                cycle=before.cycle if stay else None,
                failures=before.failures + failed,
                nonresponses=0 if failed else before.nonresponses,
            )
            then = stored(self.store, claim.result.id)
            assert claim.called is None or (then.call_fence, then.call_started) == (claim.fence, claim.called)

    @rule(behind=st.integers(0, 1), stay=st.booleans())
    def free(self, behind: int, stay: bool) -> None:
        lease = self.result.lease_until
        expired = lease is not None and lease <= self.now and behind == 0
        assert self.store.free(self.id, self.result.fence - behind, self.now, stay_in_cycle=stay) == expired
        if expired:
            self.change(
                self.id,
                state=ResultState.WAITING,
                lease_until=None,
                fence=self.result.fence + 1,
                nonresponses=self.result.nonresponses + 1,
                cycle=self.result.cycle if stay else None,
            )

    @rule(behind=st.integers(0, 1))
    def give_up(self, behind: int) -> None:
        lease = self.result.lease_until
        expired = lease is not None and lease <= self.now and behind == 0
        failure = a_failure(kind=FailureKind.SILENT, cause="silent")
        assert self.store.give_up(self.id, self.result.fence - behind, self.now, failure=failure) == expired
        if expired:
            self.change(
                self.id,
                state=ResultState.PARKED,
                lease_until=None,
                fence=self.result.fence + 1,
                cycle=None,
                failures=self.result.failures + 1,
            )

    @rule(claim=claims, outcome=st.sampled_from(["answered", "failed", "lost"]))
    def record_the_run(self, claim: Claim, outcome: RunOutcome) -> None:
        """By whoever had the claim, in time or late, or by the reaper."""
        assume(claim.called is not None)
        run = run_id(claim.result.id, claim.fence)
        had = self.runs.get(run)
        put = self.store.put_run(a_run(id=run, subject=claim.result.id, started=claim.called, outcome=outcome))
        assert put == (had is None or (had == "lost" and outcome != "lost"))
        if put:
            self.runs[run] = outcome if had is None else "superseded"

    @rule(seen=st.booleans(), lasts=st.booleans())
    def count_a_silence(self, seen: bool, lasts: bool) -> None:
        stale = Silence(subject=SUBJECT, nonresponses=9, since=NOW, counted=NOW)
        counted = policy.counted(self.silence, SUBJECT, self.now)
        if lasts:
            counted = counted.model_copy(update={"cooldown_until": self.now + LEASE})
        assert self.store.count_silence(counted, instead_of=self.silence if seen else stale) == seen
        if seen:
            self.silence = counted

    @rule()
    def hear_of_it(self) -> None:
        self.store.heard(SUBJECT)
        if self.silence is not None:
            self.silence = self.silence.model_copy(update={"nonresponses": 0})

    @rule(fence=st.integers(0, 3))
    def escalate(self, fence: int) -> None:
        identity = f"result:{self.id}:{fence}"
        made = self.store.escalate(
            Escalation(id=identity, subject=f"result:{self.id}", topic=TOPIC, detail="d", raised=self.now)
        )
        assert made == (identity not in self.escalations)
        self.escalations.setdefault(identity, False)

    @precondition(lambda self: self.escalations)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        identity = data.draw(st.sampled_from(sorted(self.escalations)))
        self.store.escalation_delivered(identity, self.now)
        self.escalations[identity] = True

    @rule(hours=st.integers(0, 2))
    def sweep(self, hours: int) -> None:
        """History of hours is kept; what a store does beside that hides nothing."""
        self.store.purge(self.now + timedelta(hours=hours))

    @rule(
        cycle=st.sampled_from(CYCLES),
        state=st.sampled_from([ResultState.WAITING, ResultState.PARKED, ResultState.DISCARDED]),
    )
    def settle(self, cycle: str, state: ResultState) -> None:
        before = self.result
        counts = before.state is ResultState.WAITING and before.cycle is None and before.settled_cycle != cycle
        attempts = before.attempts + 1
        settled = self.store.settle(self.id, cycle, attempts=attempts, state=state, verdict=None, at=self.now)
        assert settled == counts
        if counts:
            self.change(self.id, state=state, attempts=attempts, settled_cycle=cycle)

    @rule()
    def withdraw(self) -> None:
        idle = self.result.state in {ResultState.WAITING, ResultState.PARKED}
        assert self.store.withdraw(self.id, self.now) == idle
        if idle:
            self.change(self.id, state=ResultState.WITHDRAWN, not_before=None)

    @rule()
    def retry(self) -> None:
        parked = self.result.state is ResultState.PARKED
        assert self.store.retry(self.id) == parked
        if parked:
            self.change(self.id, state=ResultState.WAITING, attempts=0, nonresponses=0, cycle=None, not_before=None)

    @rule(state=st.sampled_from([CycleState.EXPIRED, CycleState.STOPPED]), behind=st.integers(0, 1))
    def end_the_search(self, state: CycleState, behind: int) -> None:
        """It went silent, or is given up: by who saw it as it is, or as it was."""
        was, fence = self.cycles["short"]
        only_from = SEARCHING - {state}
        ends = was in only_from and not behind
        assert self.store.end_cycle("short", state, self.now, only_from=only_from, fence=fence - behind) == ends
        if ends:
            self.cycles["short"] = (state, fence)

    @rule()
    def begin_the_search_again(self) -> None:
        was, fence = self.cycles["short"]
        assert self.store.start_cycle(a_cycle(id="short", cap=CAPS["short"])) == (was is CycleState.EXPIRED)
        if was is CycleState.EXPIRED:
            self.cycles["short"] = (CycleState.OPEN, fence + 1)

    # -- what always holds

    @invariant()
    def the_result_is_as_expected(self) -> None:
        if self.results:
            assert Expected.of(stored(self.store, self.id)) == self.result

    def all_is_as_expected(self) -> None:
        """What is dear, and holds at the end of a life or was broken before."""
        searching = {name: each for name, each in self.cycles.items() if each[0] in SEARCHING}
        assert {cycle.id: (cycle.state, cycle.fence) for cycle in self.store.cycles(states=SEARCHING)} == searching
        assert {result: Expected.of(stored(self.store, result)) for result in self.results} == self.results
        assert {run.id: run.outcome for run in self.store.runs()} == self.runs
        unfinished = [result for result, expected in sorted(self.results.items()) if expected.state in UNFINISHED]
        assert sorted(result.id for result in self.store.results(topic=TOPIC, states=UNFINISHED)) == unfinished
        assert {each.id: each.delivered is not None for each in self.store.escalations()} == self.escalations
        undelivered = {escalation.id for escalation in self.store.escalations(undelivered=True)}
        assert undelivered == {identity for identity, delivered in self.escalations.items() if not delivered}

    @invariant()
    def the_silence_is_as_expected(self) -> None:
        type(self).steps += 1  # once after each step
        assert self.store.silence(SUBJECT) == self.silence

    @invariant()
    def every_call_is_counted_and_none_over_the_cap(self) -> None:
        if self.results:
            assert {cycle: stored_cycle(self.store, cycle).calls for cycle in CYCLES} == self.calls
            assert all(self.calls[cycle] <= CAPS[cycle] for cycle in CYCLES)
