"""A world whose cycles are started over HTTP: signed deliveries in, commands out."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import httpx
from fastapi import FastAPI
from standardwebhooks import Webhook
from tests.workflows.world import World

from wikikeeper.adapters.local.sqlite_deliveries import SqliteDeliveries
from wikikeeper.errors import NotSent
from wikikeeper.models import Cycle, Send, StartCycle
from wikikeeper.policy.identity import cycle_id
from wikikeeper.settings import Hooks, Settings
from wikikeeper.web.hook_bodies import Reaction
from wikikeeper.web.hook_work import HookWork
from wikikeeper.web.hooks import router

CYCLE_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CYCLE_OLD_SECRET = "whsec_b2xkIGtleSBvZiB0d2VudHktZm91ciBieXRlcyE="
GITHUB_SECRET = "It's a Secret to Everybody"
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
SECRETS = {
    "cycle_secret": CYCLE_SECRET,
    "cycle_old_secret": CYCLE_OLD_SECRET,
    "github_secret": GITHUB_SECRET,
    "slack_secret": SLACK_SECRET,
}
WATCHING = """---
title: {title}
queries: [q]
watch:
  - github: Acme/Widgets
    paths: [docs/changes, CHANGES.md]
---
What is new?
"""
REPOSITORY = {"full_name": "acme/widgets", "default_branch": "main"}
Body = bytes | AsyncIterator[bytes]


@dataclass
class HookWorld:
    """`sent` is what went to the host's queue. It can be told to fail."""

    world: World
    settings: Hooks = field(default_factory=lambda: Settings(hooks=SECRETS).hooks)
    bot_user: str | None = None
    sent: list[Send] = field(default_factory=list)
    failures: int = 0
    reactions: list[Reaction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.router = router(
            HookWork(
                app=self.world.app,
                send=self.send,
                deliveries=SqliteDeliveries(self.world.database),
                bot_user=self.bot_user,
                on_reaction=self.react,
            ),
            self.settings,
        )
        self.app = FastAPI()
        self.app.include_router(self.router)

    def send(self, sends: Sequence[Send]) -> None:
        if self.failures:
            self.failures -= 1
            raise NotSent(len(sends), "the queue is out")
        self.sent.extend(sends)

    def react(self, reaction: Reaction) -> Sequence[Send]:
        if self.failures:
            self.failures -= 1
            raise NotSent(1, "the queue is out")
        self.reactions.append(reaction)
        return ()

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def ask(self, *requests: httpx.Request) -> list[httpx.Response]:
        """Deliver them at once."""

        async def all_at_once() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return list(await asyncio.gather(*map(client.send, requests)))

        return asyncio.run(all_at_once())

    def post(self, way: str, body: Body, headers: Mapping[str, str | bytes]) -> httpx.Response:
        return self.ask(request(way, body, headers))[0]

    def cycle(self, content: object, delivery: str = "msg_1", secret: str = CYCLE_SECRET) -> httpx.Response:
        body = json.dumps(content).encode()
        return self.post("cycle", body, self.standard(body, delivery, secret))

    def standard(
        self, body: bytes, delivery: str = "msg_1", secret: str = CYCLE_SECRET, at: datetime | None = None
    ) -> dict[str, str]:
        at = at or self.now
        return {
            "webhook-id": delivery,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": Webhook(secret).sign(delivery, at, body.decode()),
        }

    def github(self, event: str, content: object) -> httpx.Response:
        body = json.dumps(content).encode()
        return self.post("github", body, github_headers(event, body))

    def slack(self, content: object, headers: Mapping[str, str] | None = None) -> httpx.Response:
        body = json.dumps(content).encode()
        return self.post("slack", body, {**slack_headers(body, self.now), **(headers or {})})

    def stored(self, tick: str, topic: str = "postgres") -> Cycle:
        cycle = self.world.app.store.cycle(cycle_id(topic, tick))
        assert cycle is not None
        return cycle

    def cycles(self) -> list[Cycle]:
        return list(self.world.app.store.cycles())

    def work(self) -> None:
        """What the host does with what was sent."""
        sends, self.sent = self.sent, []
        assert self.world.run(*sends) == []


def request(way: str, body: Body, headers: Mapping[str, str | bytes]) -> httpx.Request:
    return httpx.Request(
        "POST",
        f"http://127.0.0.1/hooks/{way}",
        content=body,
        headers=[(b"content-type", b"application/json"), *((name.encode(), _bytes(headers[name])) for name in headers)],
    )


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def github_headers(event: str, body: bytes, secret: str = GITHUB_SECRET) -> dict[str, str]:
    return {
        "x-github-event": event,
        "x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }


def slack_headers(body: bytes, at: datetime, secret: str = SLACK_SECRET) -> dict[str, str]:
    stamp = str(int(at.timestamp()))
    signed = b"v0:" + stamp.encode() + b":" + body
    return {
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest(),
    }


def push(*changed: str, **fields: object) -> dict[str, object]:
    commits = [{"added": [path], "removed": [], "modified": []} for path in changed]
    return {"ref": "refs/heads/main", "deleted": False, "commits": commits, "repository": REPOSITORY} | fields


def started(sends: list[Send]) -> list[tuple[str, str]]:
    return [(send.command.topic, send.command.tick) for send in sends if isinstance(send.command, StartCycle)]
