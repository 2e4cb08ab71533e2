"""What a verified hook asks for: which topics, in which cycle, and whether that cycle has begun.

    (no item) ── a hook ──▶ asked: `open`, fence 1, leased to nobody in particular; its command is sent
                              │ the first worker that takes it over: fence 2, and on as any cycle
                              │ nobody did until the lease ran out: the reaper sends the command once more
                              ▼
                            open ─▶ draining ─▶ done

The item is there before the command is sent, so a hook that was answered is never lost, and a sender who asks again after
our failure finds the cycle not begun and has the command sent once more. Its tick is made from what the hook is known
by, so a repeat finds the cycle that the first one put.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from wikikeeper.models import Cycle, CycleState, Topic
from wikikeeper.policy.identity import cycle_id, digest

HOOK = "hook-"
PUSHED = f"{HOOK}pushed-"
"""Begins the ticks of cycles that judge what was pushed, and ask no source."""


def hook_tick(hook: str, known_by: str, *, pushed: bool = False) -> str:
    """The tick that a delivery causes: `hook` is the way it came, `known_by` its id or the hash of its body."""
    return f"{PUSHED if pushed else HOOK}{digest('hook', hook, known_by)[:32]}"


def asks_no_source(tick: str) -> bool:
    """Was the cycle asked for only to judge what was pushed?"""
    return tick.startswith(PUSHED)


def by_hook(tick: str) -> bool:
    return tick.startswith(HOOK)


def first_fence(tick: str) -> int:
    """The fence of the first worker that opens a cycle: of a hook's, the hook itself had the one before."""
    return 2 if by_hook(tick) else 1


def asked(cycle: Cycle) -> bool:
    """Did a hook put this cycle, and nobody begin it yet?"""
    return cycle.state is CycleState.OPEN and by_hook(cycle.tick) and cycle.fence < first_fence(cycle.tick)


def to_be_begun(cycle: Cycle) -> bool:
    """Is it still to be begun: a hook's that nobody has begun, or any whose worker went silent?"""
    return asked(cycle) or cycle.state is CycleState.EXPIRED


def asked_cycle(topic: str, tick: str, *, now: datetime, lease: timedelta, cap: int) -> Cycle:
    """What a hook stores. The lease is for the way of its command, a model that has to wake included."""
    return Cycle(
        id=cycle_id(topic, tick),
        topic=topic,
        tick=tick,
        state=CycleState.OPEN,
        started=now,
        lease_until=now + lease,
        cap=cap,
    )


def watching(topics: Iterable[Topic], repository: str, changed: Iterable[str] | None) -> list[Topic]:
    """The topics that a release (`changed` None) or a push that changed these paths concerns."""
    name = repository.casefold()
    watched = [(topic, watch.paths) for topic in topics for watch in topic.watch if watch.github.casefold() == name]
    if changed is not None:
        touched = _touched(changed, {path for _, paths in watched for path in paths})
        watched = [(topic, paths) for topic, paths in watched if not touched.isdisjoint(paths)]
    return list({topic.slug: topic for topic, _ in watched}.values())


def _touched(changed: Iterable[str], wanted: Collection[str]) -> set[str]:
    """Which of the wanted files and folders are among what changed, or hold some of it.

    Only beginnings that are as short as what is wanted are looked at: a path of a megabyte has as many folders as letters.
    """
    longest = max(map(len, wanted), default=0)
    found: set[str] = set()
    for path in changed:
        end = path.find("/")
        while 0 <= end <= longest:
            if path[:end] in wanted:
                found.add(path[:end])
            end = path.find("/", end + 1)
        if path in wanted:
            found.add(path)
    return found
