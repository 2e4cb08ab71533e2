"""What a workflow is given: the ports, and the settings it may apply as plain values."""

from dataclasses import dataclass
from datetime import timedelta

from wikikeeper.errors import Unusable
from wikikeeper.models import Thresholds, Topic, TopicFault
from wikikeeper.policy import topics as policy
from wikikeeper.ports import (
    Clock,
    Decider,
    Extractor,
    Fetcher,
    Gate,
    Keeper,
    Messenger,
    Reporter,
    RunStore,
    Search,
    Wiki,
)


def read_topics(wiki: Wiki) -> tuple[list[Topic], list[TopicFault]]:
    """All topic files as they are now. One that is bad, or cannot be read, is a fault and stops no other."""
    files: list[tuple[str, bytes]] = []
    unread: list[TopicFault] = []
    for key in wiki.keys(policy.FOLDER):
        try:
            document = wiki.read(key)
        except Unusable as error:
            unread.append(TopicFault(key=key, line=1, reason=str(error)))
            continue
        if document is not None:
            files.append((key, document.data))
    topics, faults = policy.load(files)
    return topics, sorted([*faults, *unread], key=lambda fault: (fault.key, fault.line))


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings as values, lease lengths already derived."""

    thresholds: Thresholds
    quote_max_chars: int
    max_chars: int
    max_attempts: int
    cycle_cap: int
    recheck_after: timedelta | None
    note_delay: timedelta
    judge_lease: timedelta
    call_lease: timedelta
    """From just before the call to the verdict."""
    cycle_lease: timedelta
    """From opening a cycle to having sent its results, besides the time for its sources."""
    source_deadline: timedelta
    """The longest that one query or feed can take."""
    call_deadline: timedelta
    """The longest that a call can take."""
    permit_lease: timedelta
    patience: timedelta
    wake_timeout: timedelta
    recovery_limit: int
    """Recoveries of one silence, each a call at most."""
    cooldown: timedelta
    """After giving up."""
    silence_after: timedelta
    """How long nothing may be heard of a draining cycle."""


@dataclass(frozen=True, slots=True)
class App:
    """Everything a workflow may touch. Built once by the composition root, shared by threads."""

    store: RunStore
    wiki: Wiki
    search: Search
    fetcher: Fetcher
    extractor: Extractor
    keeper: Keeper
    decider: Decider
    gate: Gate
    clock: Clock
    reporter: Reporter
    rules: Rules
    holder: str
    """Who asks for permits: names this process to a person."""
    messenger: Messenger | None = None
    """Where a person is told besides the log; None: nowhere."""

    def topics(self) -> tuple[list[Topic], list[TopicFault]]:
        """All topic files as they are now; a bad one is a fault and stops no other."""
        return read_topics(self.wiki)

    def topic(self, slug: str) -> Topic | None:
        """One topic, if its file is there, can be read and is in order."""
        try:
            return self._topic(slug)
        except Unusable:  # a fault of its file, which `topics` names: it stops no other here either
            return None

    def _topic(self, slug: str) -> Topic | None:
        # Of files that give the same slug, the one that is named like it counts: each result asks, so it is read at once.
        key = f"{policy.FOLDER}{slug}{policy.ENDING}"
        if policy.slug_of(key) == slug and (named_like_it := self.wiki.read(key)) is not None:
            read, _ = policy.load([(key, named_like_it.data)])
            return read[0] if read else None
        named = [
            key for key in self.wiki.keys(policy.FOLDER) if policy.is_topic_key(key) and policy.slug_of(key) == slug
        ]
        read, _ = policy.load((key, document.data) for key in named if (document := self.wiki.read(key)))
        return read[0] if read else None
