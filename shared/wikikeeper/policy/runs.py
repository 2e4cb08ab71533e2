"""The record of a model call: what is kept of it, whatever became of it."""

from datetime import datetime

from wikikeeper.models import Reply, Result, Run, RunOutcome, Trigger, Verdict
from wikikeeper.policy.identity import run_id
from wikikeeper.policy.redaction import redact


def triage_run(
    result: Result,
    fence: int,
    outcome: RunOutcome,
    *,
    started: datetime,
    model_asked: str,
    question_version: str,
    seconds: float | None = None,
    gate_wait: float | None = None,
    error: str | None = None,
    attempts: int | None = None,
    reply: Reply | None = None,
    verdict: Verdict | None = None,
    title: str = "",
    text_hash: str | None = None,
) -> Run:
    """The run of one call about one result. Secrets in the page's address stay out of it.

    `fence` is that of the call, `error` what went wrong, `reply` and `verdict` what came of a good answer.
    """
    return Run(
        id=run_id(result.id, fence),
        trigger=Trigger.TRIAGE,
        topic=result.topic,
        subject=result.id,
        title=title or result.title,
        url=redact(result.url),
        cycle=result.cycle,
        text_hash=text_hash,
        started=started,
        seconds=seconds,
        gate_wait=gate_wait,
        outcome=outcome,
        error=error,
        model_asked=model_asked,
        model=reply.model if reply else None,
        question_version=question_version,
        judgement=verdict.judgement if verdict else None,
        verdict=verdict,
        kept=verdict.kept if verdict else None,
        kind=verdict.kind if verdict else None,
        input_tokens=reply.input_tokens if reply else None,
        attempts=reply.attempts if reply else attempts,
    )
