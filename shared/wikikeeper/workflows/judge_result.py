"""Judge one waiting result: fetch, ask the Keeper once, record the verdict.

claim ── fetch ── fold? ── permit ── count + renew ── call ── permit back ── page, run ── verdict ── note due
  │        │        │        │         │                │                      │            │          └ a crash before:
  │        │        │        │         │                │                      │            │            the reaper
  │        │        │        │         │                │                      │            │            finds it kept,
  │        │        │        │         │                │                      │            │            not noted
  │        │        │        │         │                │                      │            └ a late verdict is
  │        │        │        │         │                │                      │              refused by its fence
  │        │        │        │         │                │                      └ a crash after: the run has its verdict,
  │        │        │        │         │                │                        the next claim uses it without a call
  │        │        │        │         │                └ a crash after: the reaper writes a `lost` run for
  │        │        │        │         │                  the counted call and frees the claim
  │        │        │        │         └ both or neither; no: the cap is reached or the cycle was stopped
  │        │        │        └ no permit within the patience: put back, comes again later; nothing was spent
  │        │        └ the same text is with another result: waits for it, then repeats it
  │        └ no text to judge: discarded without a call; not reachable: waits for the next cycle
  └ a second delivery finds no waiting result of its cycle and does nothing
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wikikeeper.errors import (
    AnswerMalformed,
    AnswerTimedOut,
    FetchFailed,
    ModelError,
    ModelUnavailable,
    ModelUnusable,
    PageRefused,
    Unfetchable,
)
from wikikeeper.models import (
    RUNNING_CYCLES,
    Claim,
    Failure,
    FailureKind,
    JudgeResult,
    Lane,
    Origin,
    Result,
    ResultState,
    Run,
    Send,
    StoredPage,
    Topic,
    Verdict,
    Wait,
    WriteNote,
)
from wikikeeper.policy import verdict as policy
from wikikeeper.policy.closing import REFUSALS_THAT_STOP
from wikikeeper.policy.identity import brief_hash, result_id, run_id
from wikikeeper.policy.paragraphs import text_hash
from wikikeeper.policy.runs import triage_run
from wikikeeper.ports import Judged
from wikikeeper.workflows import permits
from wikikeeper.workflows.context import App
from wikikeeper.workflows.given_up import note_comes_back
from wikikeeper.workflows.page_text import PageText, half, read
from wikikeeper.workflows.permits import OVER, GateFailed, HeldPermit
from wikikeeper.workflows.reap_stale import record_lost_call
from wikikeeper.workflows.schedule_cycle import WAKE_AGAIN, answered, see_model, stop

TWIN_AGAIN = timedelta(seconds=5)
"""How soon a result looks again whether the owner of its text has a verdict: about one call of a slow model."""

FAILURE_KINDS: dict[type[ModelError], FailureKind] = {
    PageRefused: FailureKind.REFUSED,
    AnswerMalformed: FailureKind.ANSWER,
    AnswerTimedOut: FailureKind.ANSWER,
    ModelUnavailable: FailureKind.SERVER,
    ModelUnusable: FailureKind.SERVER,
}


def judge_result(command: JudgeResult, app: App) -> list[Send]:
    """Bring one result to its verdict, or leave it waiting with the reason recorded."""
    now = app.clock.now()
    claim = app.store.claim(command.result, command.cycle, now, now + app.rules.judge_lease)
    if claim is None:
        return []
    judging = _Judging(command, claim, app)
    try:
        return judging.go()
    except GateFailed as failed:
        judging.broke(failed)
        raise failed.fault from None
    except Exception as error:
        judging.broke(error)
        raise


@dataclass(frozen=True, slots=True)
class _Call:
    """A counted call, and what came of it."""

    started: datetime
    seconds: float
    answer: Judged | ModelError


@dataclass(slots=True)
class _Judging:
    command: JudgeResult
    claim: Claim
    app: App

    @property
    def result(self) -> Result:
        return self.claim.result

    def go(self) -> list[Send]:
        if (run := self._answered_before()) is not None and run.verdict is not None:
            return self._finish(run.verdict, None, title=run.title, known=run.text_hash)
        topic = self.app.topic(self.command.topic)
        cycle = self.app.store.cycle(self.command.cycle)
        if topic is None or cycle is None or cycle.state not in RUNNING_CYCLES:
            return self._wait_for_next_cycle()
        try:
            text = read(self.result, topic, self.app)
        except Unfetchable as error:
            return self._finish(Verdict.unfetchable(error.cause), None)
        except FetchFailed as error:
            return self._wait_for_next_cycle(FailureKind.FETCH, error.cause, error.detail, after=error.after)
        if not cycle.fetched and self.result.origin is not Origin.FOLDER:
            self.app.store.mark_cycle(cycle.id, fetched=True)
        if text is None:
            before = result_id(self.result.topic, self.result.canonical, self.result.revision - 1)
            previous = self.app.store.result(before)
            return self._fold(previous.folded_into or before if previous else before, None)
        if (folded := self._fold_if_known(text)) is not None:
            return folded
        return self._with_permit(topic, text)

    def broke(self, error: Exception) -> None:
        """A fault of ours: the result waits with that as its failure, and a call that was counted has its run."""
        kind, cause, mend = FailureKind.ANSWER, f"internal:{type(error).__name__}", ""
        if isinstance(error, GateFailed):
            kind, cause, mend = FailureKind.SERVER, error.cause, error.mend
        called = self.claim.called
        if called is not None and self.app.store.run(run_id(self.result.id, self.claim.fence), called) is None:
            self._record(self._run(_Call(called, self._seconds_since(called), ModelError(cause)), 0.0))
        if mend:
            stop(self.command.cycle, "gate", mend, self.app)
        self._wait_for_next_cycle(kind, cause, mend)

    def _answered_before(self) -> Run | None:
        """The run of a call whose worker died between the run record and the verdict."""
        fence, started = self.result.call_fence, self.result.call_started
        if fence is None or started is None:
            return None
        # Where nobody wrote what came of it, the reaper died between freeing the claim and saying so.
        record_lost_call(self.result, fence, started, self.app)
        run = self.app.store.run(run_id(self.result.id, fence), started)
        return run if run is not None and run.outcome == "answered" else None

    def _fold_if_known(self, text: PageText) -> list[Send] | None:
        """Claim the text for this result, or follow the result that has it. None: the text is ours to judge."""
        store, mine, known = self.app.store, self.result.id, text_hash(text.paragraphs)
        owner = store.claim_text(self.result.topic, known, mine)
        if owner == mine:
            return None
        other = store.result(owner)
        if other is not None and other.state in (ResultState.KEPT, ResultState.DISCARDED) and other.text_hash == known:
            return self._fold(owner, text)
        if other is not None and other.state in (ResultState.WAITING, ResultState.JUDGING):
            if other.cycle != self.command.cycle:
                return self._wait_for_next_cycle()
            if other.state is ResultState.JUDGING:
                self._put_back(stay_in_cycle=True)
                return [Send(command=self.command, after=TWIN_AGAIN)]
        # The owner waits in this cycle, was parked or withdrawn, or ended without a verdict on this text. We have the
        # page in hand and take the text over: two that wait for each other would wait for ever.
        if store.claim_text(self.result.topic, known, mine, instead_of=owner) == mine:
            return None
        self._put_back(stay_in_cycle=True)
        return [Send(command=self.command, after=TWIN_AGAIN)]

    def _with_permit(self, topic: Topic, text: PageText) -> list[Send]:
        """Hold a permit for the call alone: what is recorded of a good answer needs no slot of the server."""
        asked = self.app.clock.now()
        held = permits.acquire(Lane.KEEPER, self.app)
        if isinstance(held, Wait):
            self._put_back(stay_in_cycle=True)
            return [Send(command=self.command, after=held.hint)]
        wait, paragraphs = self._seconds_since(asked), text.paragraphs
        try:
            call = self._ask(topic, text.title, paragraphs, held)
            if call is not None and isinstance(call.answer, PageRefused):
                # Half of it is asked about once more, under a fence of its own.
                self._record(self._run(call, wait))
                if not held.lasts():
                    self._put_back(stay_in_cycle=True)
                    return [Send(command=self.command)]
                paragraphs = half(paragraphs)
                call = self._ask(topic, text.title, paragraphs, held)
            if call is None:
                return self._wait_for_next_cycle()
            if isinstance(call.answer, ModelError):
                self._record(self._run(call, wait))
                return self._call_failed(call.answer)  # it may stop the cycle: before the next one may call
            answer = call.answer
        finally:
            held.give_back()
        return self._answered(topic, text, paragraphs, call, answer, wait)

    def _ask(self, topic: Topic, title: str, paragraphs: Sequence[str], held: HeldPermit) -> _Call | None:
        """One counted call. None: the cap is reached, the cycle stopped, or the claim lost."""
        started = self._begin_call()
        if started is None:
            return None
        try:
            # The count may have taken longer than the permit: then the slot is another's by now.
            answer: Judged | ModelError = self.app.keeper.judge(topic, title, paragraphs) if held.lasts() else OVER
        except ModelError as error:
            answer = error
        return _Call(started, self._seconds_since(started), answer)

    def _begin_call(self) -> datetime | None:
        """Count the call; its start."""
        now = self.app.clock.now()
        begun = self.app.store.begin_call(self.claim, self.command.cycle, now, now + self.app.rules.call_lease)
        if begun is not None:
            self.claim = begun
            return begun.called
        cycle = self.app.store.cycle(self.command.cycle)
        if cycle is not None and cycle.calls >= cycle.cap and not cycle.cap_reached:
            self.app.store.mark_cycle(cycle.id, cap_reached=True)
        return None

    def _answered(
        self,
        topic: Topic,
        text: PageText,
        paragraphs: Sequence[str],
        call: _Call,
        answer: Judged,
        gate_wait: float,
    ) -> list[Send]:
        rules = self.app.rules
        findings = text.findings.model_copy(
            update={"truncated": text.findings.truncated or len(paragraphs) < len(text.paragraphs)}
        )
        decided = policy.decide(
            answer.judgement, findings, paragraphs, rules.thresholds, quote_max_chars=rules.quote_max_chars
        )
        verdict = decided.model_copy(
            update={
                "model_asked": self.app.keeper.model,
                "model": answer.reply.model,
                "question_version": self.app.keeper.question_version,
                "brief_hash": brief_hash(topic.title, topic.brief),
                "option_order": answer.offered,
            }
        )
        if verdict.kept and verdict.text_hash is not None:
            self.app.store.put_page(
                StoredPage(text_hash=verdict.text_hash, paragraphs=tuple(paragraphs), stored=self.app.clock.now())
            )
        self._record(self._run(call, gate_wait, verdict=verdict, text=text))
        # Before the verdict: once this result is finished, the cycle may be closed by what it says of itself.
        cycle = self.app.store.cycle(self.command.cycle)
        if cycle is not None and (not cycle.answered or cycle.refusals):
            self.app.store.mark_cycle(cycle.id, answered=True)
            answered(self.app)
        return self._finish(verdict, text, started=call.started)

    def _call_failed(self, error: ModelError) -> list[Send]:
        """Leave the result waiting; stop the cycle where no page could do better."""
        if isinstance(error, PageRefused):
            if self.app.store.count_refusal(self.command.cycle) >= REFUSALS_THAT_STOP:
                stop(self.command.cycle, f"refused:{error.cause}", str(error), self.app)
        elif isinstance(error, ModelUnusable):
            stop(self.command.cycle, error.cause, error.detail, self.app)
        elif isinstance(error, ModelUnavailable):
            state = see_model(self.app)
            if state.state == "unhealthy":
                stop(self.command.cycle, state.cause, state.detail, self.app)
            elif state.state == "waking" and self._may_wait_for_the_model():
                self.app.decider.wake()
                self._put_back(stay_in_cycle=True)
                return [Send(command=self.command, after=WAKE_AGAIN)]
        return self._wait_for_next_cycle(FAILURE_KINDS[type(error)], error.cause, error.detail)

    def _may_wait_for_the_model(self) -> bool:
        cycle = self.app.store.cycle(self.command.cycle)
        return cycle is not None and self.app.clock.now() - cycle.started < self.app.rules.wake_timeout

    def _record(self, run: Run) -> None:
        if not self.app.store.put_run(run):
            self.app.reporter.event("run_known", run=run.id)
        self.app.reporter.event(
            "model_called", topic=run.topic, run=run.id, cycle=run.cycle, outcome=run.outcome, seconds=run.seconds
        )

    def _run(
        self, call: _Call, gate_wait: float, *, verdict: Verdict | None = None, text: PageText | None = None
    ) -> Run:
        error = call.answer if isinstance(call.answer, ModelError) else None
        return triage_run(
            self.result,
            self.claim.fence,
            "failed" if error else "answered",
            started=call.started,
            model_asked=self.app.keeper.model,
            question_version=self.app.keeper.question_version,
            seconds=call.seconds,
            gate_wait=gate_wait,
            error=str(error) if error else None,
            attempts=error.attempts if error else None,
            reply=None if isinstance(call.answer, ModelError) else call.answer.reply,
            verdict=verdict,
            title=text.title if text else "",
            text_hash=text_hash(text.paragraphs) if text else None,
        )

    def _finish(
        self,
        verdict: Verdict,
        text: PageText | None,
        *,
        title: str | None = None,
        known: str | None = None,
        started: datetime | None = None,
    ) -> list[Send]:
        """Record the verdict; a kept result makes the note due, and the one who set that sends WriteNote."""
        now = self.app.clock.now()
        finished = self.app.store.finish(
            self.claim,
            ResultState.KEPT if verdict.kept else ResultState.DISCARDED,
            now,
            verdict=verdict,
            title=text.title if text else title,
            # Of the whole text, also where only half was judged: by this hash other results are folded.
            text_hash=text_hash(text.paragraphs) if text else known,
            etag=text.fetched.etag if text else None,
            last_modified=text.fetched.last_modified if text else None,
        )
        if not finished:
            self._superseded(started)
            return []
        self.app.reporter.event(
            "result_judged",
            topic=self.result.topic,
            result=self.result.id,
            cycle=self.command.cycle,
            kept=verdict.kept,
            reason=verdict.reason,
        )
        if not verdict.kept or not self.app.store.set_note_due(self.result.topic, now):
            return []
        note_comes_back(self.result.topic, self.app.store, now)
        return [Send(command=WriteNote(topic=self.result.topic), after=self.app.rules.note_delay)]

    def _superseded(self, started: datetime | None) -> None:
        """The claim was lost. `started` is that of this claim's own call, where it made one."""
        self.app.reporter.event("verdict_superseded", topic=self.result.topic, result=self.result.id)
        now = self.app.store.result(self.result.id)
        # Where its call was known when it lost the claim, the next one repairs the verdict from its run.
        if started is not None and (now is None or self.claim.fence not in (now.fence, now.call_fence)):
            self.app.store.supersede_run(run_id(self.result.id, self.claim.fence), started)

    def _fold(self, into: str, text: PageText | None) -> list[Send]:
        self.app.store.finish(
            self.claim,
            ResultState.FOLDED,
            self.app.clock.now(),
            folded_into=into,
            title=text.title if text else None,
            text_hash=text_hash(text.paragraphs) if text else None,
            etag=text.fetched.etag if text else self.result.etag,
            last_modified=text.fetched.last_modified if text else self.result.last_modified,
        )
        self.app.reporter.event("result_folded", topic=self.result.topic, result=self.result.id, into=into)
        return []

    def _wait_for_next_cycle(
        self, kind: FailureKind | None = None, cause: str = "", detail: str = "", *, after: timedelta | None = None
    ) -> list[Send]:
        now = self.app.clock.now()
        failure = (
            Failure(at=now, cycle=self.command.cycle, kind=kind, cause=cause, detail=detail[:300]) if kind else None
        )
        self._put_back(stay_in_cycle=False, failure=failure, not_before=now + after if after else None)
        if failure is not None:
            self.app.reporter.event(
                "result_failed", topic=self.result.topic, result=self.result.id, cause=cause, kind=kind
            )
        return []

    def _put_back(
        self, *, stay_in_cycle: bool, failure: Failure | None = None, not_before: datetime | None = None
    ) -> None:
        self.app.store.put_back(self.claim, stay_in_cycle=stay_in_cycle, failure=failure, not_before=not_before)

    def _seconds_since(self, then: datetime) -> float:
        return max((self.app.clock.now() - then).total_seconds(), 0.0)
