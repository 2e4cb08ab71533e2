"""What was given up, and whether it still needs a person: one rule for the pages and the command line."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile

from wikikeeper.models import Action, CycleState, Escalation, Result
from wikikeeper.policy import silence as policy
from wikikeeper.ports import RunStore
from wikikeeper.workflows.silences import PARKED, WAITING

MOST_ESCALATIONS = 50
"""Newest that are looked at: more than a person reads, and a year brings few."""


def standing(store: RunStore) -> Iterator[Escalation]:
    """Those that a person still has to do something about, newest first: of the same work the newest."""
    seen: set[str] = set()
    for escalation in islice(store.escalations(), MOST_ESCALATIONS):
        if escalation.subject not in seen and _stands(escalation, store):
            seen.add(escalation.subject)
            yield escalation


def _stands(escalation: Escalation, store: RunStore) -> bool:
    """It was not told everywhere, or what went silent did not go on since."""
    if escalation.delivered is None:
        return True
    kind, _, subject = escalation.subject.partition(":")
    match kind:
        case "result":
            result = store.result(subject)
            return result is not None and policy.was_given_up(result)
        case "note":
            silence = store.silence(escalation.subject)
            # A silence that began later has not been given up yet.
            return silence is not None and silence.nonresponses > 0 and silence.since <= escalation.raised
        case _:
            drained = store.silence(escalation.subject)
            if drained is not None and drained.cooldown_until is not None:
                return not _worked_on(escalation, store)
            return not _gone_on(escalation, store)


def _worked_on(escalation: Escalation, store: RunStore) -> bool:
    """Whether anybody took up the results of a cycle that drained: later ticks alone only send them again."""
    later = takewhile(lambda cycle: cycle.started > escalation.raised, store.cycles(topic=escalation.topic))
    if any(cycle.calls or cycle.fetched for cycle in later):
        return True
    waiting = store.results(topic=escalation.topic, states=WAITING)
    return all(result.cycle is None for result in waiting)


def _gone_on(escalation: Escalation, store: RunStore) -> bool:
    """Whether a later cycle of the topic searched for what the silent one did."""
    last_run = store.topic(escalation.topic).last_run
    if last_run is not None and last_run > escalation.raised:
        return True
    # One that only judges what was pushed is no run of its topic.
    later = takewhile(lambda cycle: cycle.started > escalation.raised, store.cycles(topic=escalation.topic))
    return any(cycle.state is CycleState.DONE for cycle in later)


def untold(store: RunStore) -> Iterator[Result]:
    """Given up by a reaper that died before it made the record: the next sweep makes it."""
    for result in store.results(states=PARKED):
        if policy.was_given_up(result) and store.escalation(policy.escalation_of(result)) is None:
            yield result


def unwritten(
    topics: Iterable[str], store: RunStore, *, left: bool, limit: int, cooldown: timedelta, now: datetime
) -> Iterator[str]:
    """Those of the topics that have kept pages in no note: those whose note is left to a person and the next kept page, or
    those that a sweep has written.
    """
    for topic in topics:
        if next(iter(store.unnoted(topic)), None) is None:
            continue
        silence = store.silence(f"note:{topic}")
        nonresponses, until = silence.nonresponses if silence else 0, policy.cools_until(silence, now, cooldown)
        if (policy.action(nonresponses, limit, now=now, cooldown_until=until) is Action.LEAVE) is left:
            yield topic


def bring_back_note(topic: str, store: RunStore) -> bool:
    """The next sweeps try its note again, as often as the limit says. False: it is not given up, or no longer."""
    silence = store.silence(f"note:{topic}")
    if silence is None or silence.nonresponses == 0 or silence.cooldown_until is None:
        return False
    again = silence.model_copy(update={"nonresponses": 0, "cooldown_until": None})
    return store.count_silence(again, instead_of=silence)


def note_comes_back(topic: str, store: RunStore, now: datetime) -> None:
    """A page was kept: a note that was given up is tried again, unless it still cools down. Its count holds else: what is
    kept meanwhile says nothing of whether the note can be written.
    """
    silence = store.silence(f"note:{topic}")
    if silence is not None and silence.cooldown_until is not None and silence.cooldown_until <= now:
        store.heard(silence.subject)
