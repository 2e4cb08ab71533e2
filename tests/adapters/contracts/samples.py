"""Values for the contract suites, and the short ways into a state."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from wikikeeper.models import (
    Claim,
    Cycle,
    CycleState,
    Failure,
    FailureKind,
    Findings,
    Judgement,
    Kind,
    Origin,
    Quote,
    Result,
    Run,
    Thresholds,
    Trigger,
    Verdict,
)
from wikikeeper.ports import RunStore

T = TypeVar("T")

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LEASE = timedelta(minutes=5)
SECOND = timedelta(seconds=1)
TOPIC = "postgres"
CYCLE = "postgres#2026-03-01T12:00"
HASH = "5f" * 32

VERDICT = Verdict(
    kept=True,
    reason=None,
    judgement=Judgement(
        useful=0.9, injection=0.1, kinds={Kind.RELEASE: 0.8, Kind.SPAM: 0.2}, quotes={0: 1 / 3, 7: 0.1}
    ),
    injection=0.1,
    kind=Kind.RELEASE,
    quotes=(Quote(text="Größer 🐘", paragraph=0, start=3, end=11, text_hash=HASH),),
    findings=Findings(zero_width=2, role_markers=("<|user|>",)),
    text_hash=HASH,
    model_asked="decider",
    model="decider-1",
    question_version="1",
    brief_hash="b",
    option_order=(7, 0),
    thresholds=Thresholds(keep=0.6, injection=0.5),
)


def a_result(number: int = 1, **changes: object) -> Result:
    url = f"https://example.org/{number}"
    values: dict[str, Any] = {
        "id": f"r{number:04}",
        "topic": TOPIC,
        "url": f"{url}?utm_source=x",
        "canonical": url,
        "revision": 1,
        "title": 'Neu: "18" 🐘',
        "origin": Origin.SEARCH,
        "published": NOW - timedelta(days=1),
        "found": NOW + number * SECOND,
    }
    return Result(**(values | changes))


def a_cycle(**changes: object) -> Cycle:
    values: dict[str, Any] = {
        "id": CYCLE,
        "topic": TOPIC,
        "tick": "2026-03-01T12:00",
        "state": CycleState.OPEN,
        "started": NOW,
        "lease_until": NOW + LEASE,
        "cap": 3,
    }
    return Cycle(**(values | changes))


def a_run(number: int = 1, **changes: object) -> Run:
    values: dict[str, Any] = {
        "id": f"r{number:04}-2",
        "trigger": Trigger.TRIAGE,
        "topic": TOPIC,
        "subject": f"r{number:04}",
        "cycle": CYCLE,
        "started": NOW + number * SECOND,
        "seconds": 0.4,
        "gate_wait": 0.01,
        "outcome": "answered",
        "judgement": VERDICT.judgement,
        "verdict": VERDICT,
        "kept": True,
        "kind": Kind.RELEASE,
        "input_tokens": 900,
        "attempts": 1,
    }
    return Run(**(values | changes))


def a_failure(minutes: int = 0, **changes: object) -> Failure:
    values: dict[str, Any] = {
        "at": NOW + timedelta(minutes=minutes),
        "cycle": CYCLE,
        "kind": FailureKind.FETCH,
        "cause": "dns",
    }
    return Failure(**(values | changes))


def add(store: RunStore, result: Result) -> bool:
    """Put one result. False: it was known."""
    return bool(store.add_results(result.cycle, [result]))


def claimed(store: RunStore, result: Result | None = None) -> Claim:
    """Add a result, send it and claim it; the cycle is there and open."""
    result = result or a_result()
    store.start_cycle(a_cycle())
    add(store, result)
    store.send_result(result.id, CYCLE, instead_of=None)
    claim = store.claim(result.id, CYCLE, NOW, NOW + LEASE)
    assert claim is not None
    return claim


def stored(store: RunStore, result: str = "r0001") -> Result:
    found = store.result(result)
    assert found is not None
    return found


def stored_cycle(store: RunStore, cycle: str = CYCLE) -> Cycle:
    found = store.cycle(cycle)
    assert found is not None
    return found


def in_parallel(write: Callable[[T], object], values: Iterable[T]) -> None:
    """Many writes on several threads, which a store may commit together."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, values))
