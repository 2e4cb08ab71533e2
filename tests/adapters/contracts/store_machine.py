"""One result's life in any order of events, against a model of a few fields. A test names a store by `open_store`."""

import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.adapters.contracts.samples import LEASE, NOW, VERDICT, a_cycle, a_failure, a_result, stored, stored_cycle

from wikikeeper.models import TERMINAL, Claim, CycleState, Result, ResultState
from wikikeeper.ports import RunStore

CYCLES = ("long", "short")
CAPS = {"long": 6, "short": 2}
RUNNING = frozenset({CycleState.OPEN, CycleState.DRAINING})


@dataclass(frozen=True)
class Expected:
    """What matters of a result."""

    state: ResultState = ResultState.WAITING
    cycle: str | None = None
    fence: int = 0
    lease_until: datetime | None = None
    call_fence: int | None = None
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
            call_fence=result.call_fence,
            nonresponses=result.nonresponses,
            attempts=result.attempts,
            not_before=result.not_before,
            failures=len(result.failures),
            settled_cycle=result.settled_cycle,
        )


class ResultLife(RuleBasedStateMachine):
    """Claims are kept when they are lost, and used again, as a worker would that was frozen meanwhile."""

    claims: Bundle[Claim] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = self.open_store(Path(self.folder.name))
        self.now = NOW
        self.id = ""
        self.results: dict[str, Expected] = {}
        self.calls = dict.fromkeys(CYCLES, 0)
        self.running = dict.fromkeys(CYCLES, True)

    def open_store(self, folder: Path) -> RunStore:
        raise NotImplementedError

    def teardown(self) -> None:
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
        assert self.store.add_result(a_result(id=self.id, revision=revision))
        self.results[self.id] = Expected()

    @rule(minutes=st.integers(1, 4))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

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

    @rule(target=claims, claim=claims, cycle=st.sampled_from(CYCLES))
    def begin_call(self, claim: Claim, cycle: str) -> Claim:
        counts = self.holds(claim) and self.running[cycle] and self.calls[cycle] < CAPS[cycle]
        renewed = self.store.begin_call(claim, cycle, self.now + LEASE)
        assert (renewed is not None) == counts
        if renewed is None:
            return claim
        self.calls[cycle] += 1
        self.change(claim.result.id, fence=renewed.fence, call_fence=claim.fence + 1, lease_until=self.now + LEASE)
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
            )

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

    @precondition(lambda self: self.running["short"])
    @rule()
    def stop(self) -> None:
        assert self.store.end_cycle("short", CycleState.STOPPED, self.now, only_from=RUNNING)
        self.running["short"] = False

    # -- what always holds

    @invariant()
    def every_result_is_as_expected(self) -> None:
        assert {result: Expected.of(stored(self.store, result)) for result in self.results} == self.results

    @invariant()
    def every_call_is_counted_and_none_over_the_cap(self) -> None:
        if self.results:
            assert {cycle: stored_cycle(self.store, cycle).calls for cycle in CYCLES} == self.calls
            assert all(self.calls[cycle] <= CAPS[cycle] for cycle in CYCLES)
