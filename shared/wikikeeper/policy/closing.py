"""What the failures of a cycle come to when it closes.

Decided at the end, so that it never depends on the order of pages: a failed fetch says something of its page only if
another fetch of the cycle worked (an offline machine loses nothing), a bad answer only if another call was answered.

    kind      counts when            at the limit
    fetch     cycle.fetched          discarded, unfetchable:<last cause>
    answer    cycle.answered         parked
    refused   always                 parked at once: the page was already halved, and the server is sure
    server    never                  -
"""

from collections import Counter
from collections.abc import Iterable

from wikikeeper.models import Cycle, CycleState, FailureKind, Result, ResultState, Value, Verdict

REFUSALS_THAT_STOP = 3
"""Permanent errors with no good answer between them: then it is the server or the question, not three pages."""


class Settlement(Value):
    """What a result becomes."""

    attempts: int
    state: ResultState = ResultState.WAITING
    verdict: Verdict | None = None


def settle(result: Result, cycle: Cycle, max_attempts: int) -> Settlement | None:
    """What this cycle's failure means for a result; None if it had none here or was settled before.

    A stopped cycle settles nothing: its errors were the server's.
    """
    failure = next((f for f in reversed(result.failures) if f.cycle == cycle.id), None)
    if failure is None or result.settled_cycle == cycle.id or cycle.state is CycleState.STOPPED:
        return None
    match failure.kind:
        case FailureKind.REFUSED:
            return Settlement(attempts=result.attempts + 1, state=ResultState.PARKED)
        case FailureKind.FETCH if cycle.fetched:
            attempts = result.attempts + 1
            if attempts < max_attempts:
                return Settlement(attempts=attempts)
            return Settlement(
                attempts=attempts, state=ResultState.DISCARDED, verdict=Verdict.unfetchable(failure.cause)
            )
        case FailureKind.ANSWER if cycle.answered:
            attempts = result.attempts + 1
            return Settlement(
                attempts=attempts, state=ResultState.PARKED if attempts >= max_attempts else ResultState.WAITING
            )
        case _:
            return Settlement(attempts=result.attempts)


def without_an_answer(cycle: Cycle, left: Iterable[Result]) -> str | None:
    """A cycle that should have called and was never answered is no quiet success: the commonest cause, for a person to
    see. What is the page's own matter is none: one that cannot be fetched, or that the server refuses for good.
    """
    if cycle.answered:
        return None
    failures = (f for result in left for f in result.failures if f.cycle == cycle.id)
    causes = Counter(f.cause for f in failures if f.kind in {FailureKind.ANSWER, FailureKind.SERVER})
    return f"no_answer:{causes.most_common(1)[0][0]}" if causes else None
