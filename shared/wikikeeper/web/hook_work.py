"""What a verified hook does: it stores what is asked for, by what the delivery is known by, and then sends the command.

In this order, so that whatever fails, the sender's next try finishes it, and what was answered is never lost. A repeat
finds what is stored, gets the same answer, and changes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from wikikeeper.models import Found, Origin, Result, Send, StartCycle, Topic, Value
from wikikeeper.policy import schedule
from wikikeeper.policy.hooks import asked_cycle, hook_tick, to_be_begun, watching
from wikikeeper.policy.webhooks import body_key
from wikikeeper.ports_hooks import Deliveries
from wikikeeper.web.hook_bodies import (
    Ask,
    AskCycle,
    PushEvent,
    PushLinks,
    PushResults,
    Reaction,
    ReleaseEvent,
    SlackBody,
    read,
)
from wikikeeper.web.hook_door import HookRefused
from wikikeeper.workflows.context import App
from wikikeeper.workflows.schedule_cycle import unknown

OnReaction = Callable[[Reaction], Sequence[Send]]
"""Stores what a reaction means, by its key, and returns what follows. It may be asked twice for one."""


class Accepted(Value):
    """The answer to a hook: the same for every repeat of it."""

    status: str = "accepted"
    cycles: tuple[str, ...] = ()
    """Those that it started."""
    urls: int = 0
    """How many addresses the topic has of it now, those that it had before included."""


class Ignored(Value):
    """Verified, and nothing to do."""

    status: str = "ignored"
    reason: str


@dataclass(frozen=True, slots=True)
class HookWork:
    """Any number of threads may use one at once."""

    app: App
    send: Callable[[Sequence[Send]], None]
    """To the host's queue. What it could not take, it raises for."""
    deliveries: Deliveries
    bot_user: str | None = None
    on_reaction: OnReaction | None = None
    """None: reactions are acknowledged, and nothing follows."""

    def cycle(self, ask: Ask, delivery: str) -> Accepted:
        """Raises HookRefused: 404 without such a topic, 409 when its time is over."""
        topic = self._topic(ask.topic)
        match ask:
            case AskCycle():
                return Accepted(cycles=self._ask([topic], hook_tick("cycle", delivery)))
            case PushLinks():
                return Accepted(urls=self._push(topic, ask.urls))
            case PushResults():
                pushed = self._push(topic, ask.urls)
                return Accepted(cycles=self._ask([topic], hook_tick("cycle", delivery, pushed=True)), urls=pushed)

    def github(self, event: str, body: bytes) -> Accepted | Ignored:
        """`event` is what the unsigned header says, so it only decides what the body is held to.

        Raises HookRefused (422) for a body that is not of that event.
        """
        changed: Sequence[str] | None
        match event:
            case "release":
                release = read(body, ReleaseEvent)
                repository, counts, changed = release.repository, release.counts, None
            case "push":
                push = read(body, PushEvent)
                repository, counts, changed = push.repository, push.counts, push.changed
            case _:
                return Ignored(reason="only releases and pushes start anything")
        if not counts:
            return Ignored(reason="only a published release, and a push to the default branch, start anything")
        now = self.app.clock.now()
        topics = [
            topic
            for topic in watching(self.app.topics()[0], repository.full_name, changed)
            if not schedule.ended(topic.until, topic.zone, now)
        ]
        if not topics:
            return Ignored(reason="no topic watches that")
        return Accepted(cycles=self._ask(topics, hook_tick("github", body_key(body))))

    def slack(self, body: SlackBody) -> Accepted | Ignored:
        """One effect for all copies of a reaction; what is no reaction of a person to a message is acknowledged."""
        reaction = body.reaction
        if reaction is None:
            return Ignored(reason="only reactions to messages start anything")
        if reaction.user == self.bot_user or reaction.user in body.bots:
            return Ignored(reason="our own doing")
        now = self.app.clock.now()
        if self.deliveries.begin(reaction.key, now):
            sends = self.on_reaction(reaction) if self.on_reaction else ()
            if sends:
                self.send(sends)
            self.deliveries.finish(reaction.key, now)
        return Accepted()

    def _topic(self, slug: str) -> Topic:
        topic = self.app.topic(slug)
        if topic is None:
            raise HookRefused(404, "no_topic", "there is no topic of that name, or its file has a fault")
        if schedule.ended(topic.until, topic.zone, self.app.clock.now()):
            raise HookRefused(409, "ended", "the topic's last day (until) is over")
        return topic

    def _push(self, topic: Topic, urls: Sequence[str]) -> int:
        now, store = self.app.clock.now(), self.app.store
        new: dict[str, Result] = {}
        for place, url in enumerate(urls):
            find = Found(url=url, origin=Origin.HOOK)
            # A microsecond apart, so that they are judged in their order.
            at = now + timedelta(microseconds=place)
            result = unknown(topic.slug, find, store, at, self.app.rules.recheck_after)
            if result is not None:
                new.setdefault(result.id, result)
        store.add_results(None, list(new.values()))
        return len(urls)

    def _ask(self, topics: Sequence[Topic], tick: str) -> tuple[str, ...]:
        """Store the cycle of each topic, then send what begins it, unless somebody has begun it."""
        rules, store, now = self.app.rules, self.app.store, self.app.clock.now()
        cycles: list[str] = []
        sends: list[Send] = []
        for topic in topics:
            lease = rules.wake_timeout + rules.cycle_lease
            cycle = asked_cycle(topic.slug, tick, now=now, lease=lease, cap=rules.cycle_cap)
            cycles.append(cycle.id)
            stored = store.cycle(cycle.id)
            if stored is None and not store.start_cycle(cycle):
                stored = store.cycle(cycle.id)
            if stored is None or to_be_begun(stored):
                sends.append(Send(command=StartCycle(topic=topic.slug, tick=tick)))
        if sends:
            self.send(sends)
        return tuple(cycles)
