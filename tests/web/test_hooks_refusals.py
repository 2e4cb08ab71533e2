"""What is not let in: each row of the webhook attacks, with the status that it gets, and that nothing came of it."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from fastapi import Request
from tests.web.hook_world import (
    CYCLE_OLD_SECRET,
    CYCLE_SECRET,
    GITHUB_SECRET,
    SECRETS,
    SLACK_SECRET,
    HookWorld,
    github_headers,
    request,
    slack_headers,
)
from tests.workflows.world import open_world

from wikikeeper.settings import Hooks, Settings
from wikikeeper.web.hook_door import Allowance, Door, HookRefused

BODY = b'{"kind": "cycle", "topic": "postgres"}'
OTHER_SECRET = "whsec_" + "QQ" * 20


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookWorld]:
    with open_world(tmp_path) as world:
        yield HookWorld(world)


def nothing_came_of_it(hooks: HookWorld) -> bool:
    return not hooks.sent and not hooks.cycles() and not list(hooks.world.app.store.results()) and not hooks.reactions


Attack = Callable[[HookWorld], httpx.Response]


def resigned(hooks: HookWorld, body: bytes, secret: str = CYCLE_SECRET) -> httpx.Response:
    """`body`, with the headers that belong to BODY."""
    return hooks.post("cycle", body, hooks.standard(BODY, secret=secret))


def skewed(hooks: HookWorld, minutes: float) -> httpx.Response:
    return hooks.post("cycle", BODY, hooks.standard(BODY, at=hooks.now + timedelta(minutes=minutes)))


def without(hooks: HookWorld, name: str) -> httpx.Response:
    return hooks.post("cycle", BODY, {k: v for k, v in hooks.standard(BODY).items() if k != name})


def twice(hooks: HookWorld, name: str) -> httpx.Response:
    """A second header of the same name, before the one that was signed."""
    asked = request("cycle", BODY, hooks.standard(BODY))
    headers = [(name.encode(), b"x"), *asked.headers.raw]
    return hooks.ask(httpx.Request("POST", asked.url, content=BODY, headers=headers))[0]


def large(hooks: HookWorld, way: str) -> httpx.Response:
    return hooks.post(way, b" " * 10_000_000, {})


def endless(hooks: HookWorld) -> httpx.Response:
    async def body() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536

    return hooks.post("cycle", body(), {})


def lying(hooks: HookWorld) -> httpx.Response:
    return hooks.post("cycle", BODY, {"content-length": "9" * 30})


def of_github(hooks: HookWorld, body: bytes = BODY, signature: str | None = None) -> httpx.Response:
    """`body`, with the headers that belong to BODY."""
    signed = github_headers("release", BODY)
    return hooks.post("github", body, signed | ({"x-hub-signature-256": signature} if signature else {}))


def of_slack(hooks: HookWorld, body: bytes = BODY, minutes: float = 0, signature: str | None = None) -> httpx.Response:
    signed = slack_headers(BODY, hooks.now + timedelta(minutes=minutes))
    return hooks.post("slack", body, signed | ({"x-slack-signature": signature} if signature else {}))


ATTACKS: list[tuple[str, Attack, int, str]] = [
    ("wrong secret", lambda h: resigned(h, BODY, secret=OTHER_SECRET), 401, "mismatch"),
    ("no signature", lambda h: without(h, "webhook-signature"), 401, "missing"),
    ("no timestamp", lambda h: without(h, "webhook-timestamp"), 401, "missing"),
    ("no id", lambda h: without(h, "webhook-id"), 401, "missing"),
    ("two ids", lambda h: twice(h, "webhook-id"), 401, "missing"),
    ("two signatures in two headers", lambda h: twice(h, "webhook-signature"), 401, "missing"),
    ("signed over the body written anew", lambda h: resigned(h, json.dumps(json.loads(BODY), indent=1).encode()), 401, "mismatch"),
    ("another body", lambda h: resigned(h, BODY.replace(b"postgres", b"mysql")), 401, "mismatch"),
    ("six minutes old", lambda h: skewed(h, -6), 401, "too_old"),
    ("six minutes ahead", lambda h: skewed(h, 6), 401, "too_new"),
    ("10 MB", lambda h: large(h, "cycle"), 413, "too_large"),
    ("10 MB to GitHub's", lambda h: large(h, "github"), 413, "too_large"),
    ("10 MB to Slack's", lambda h: large(h, "slack"), 413, "too_large"),
    ("a body without end", endless, 413, "too_large"),
    ("a length of thirty digits", lying, 413, "too_large"),
    ("GitHub: wrong secret", lambda h: h.post("github", BODY, github_headers("push", BODY, "another secret")), 401, "mismatch"),
    ("GitHub: no signature", lambda h: h.post("github", BODY, {"x-github-event": "push"}), 401, "missing"),
    ("GitHub: by SHA-1", lambda h: of_github(h, signature="sha1=757107ea"), 401, "malformed"),
    ("GitHub: another body", lambda h: of_github(h, BODY + b" "), 401, "mismatch"),
    ("GitHub: Slack's signature", lambda h: h.post("github", BODY, slack_headers(BODY, h.now)), 401, "missing"),
    ("Slack: wrong secret", lambda h: h.post("slack", BODY, slack_headers(BODY, h.now, "another secret")), 401, "mismatch"),
    ("Slack: no signature", lambda h: h.post("slack", BODY, {}), 401, "missing"),
    ("Slack: another body", lambda h: of_slack(h, BODY + b" "), 401, "mismatch"),
    ("Slack: six minutes old", lambda h: of_slack(h, minutes=-6), 401, "too_old"),
    ("Slack: six minutes ahead", lambda h: of_slack(h, minutes=6), 401, "too_new"),
    ("Slack: not ASCII", lambda h: of_slack(h, signature="v0=\xff\xe4"), 401, "malformed"),
    ("Slack: address verification by a stranger", lambda h: h.post("slack", b'{"type":"url_verification","challenge":"x"}', {}), 401, "missing"),
]  # fmt: skip


@pytest.mark.parametrize(("attack", "status", "cause"), [row[1:] for row in ATTACKS], ids=[row[0] for row in ATTACKS])
def test_an_attack_is_refused_and_nothing_comes_of_it(
    hooks: HookWorld, attack: Attack, status: int, cause: str
) -> None:
    answer = attack(hooks)

    assert (answer.status_code, answer.json()["cause"]) == (status, cause)
    assert nothing_came_of_it(hooks)
    [logged] = hooks.world.reporter.of("hook_refused")
    assert (logged["status"], logged["cause"]) == (status, cause)


@pytest.mark.parametrize("way", ["cycle", "github", "slack"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_post_is_answered(hooks: HookWorld, way: str, method: str) -> None:
    headers = hooks.standard(BODY) | github_headers("release", BODY) | slack_headers(BODY, hooks.now)

    [answer] = hooks.ask(httpx.Request(method, f"http://127.0.0.1/hooks/{way}", content=BODY, headers=headers))

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert nothing_came_of_it(hooks)


@pytest.mark.parametrize("way", ["cycle", "github", "slack"])
def test_a_way_without_its_secret_is_not_there_and_says_so_in_the_log(hooks: HookWorld, way: str) -> None:
    bare = HookWorld(hooks.world, settings=Hooks())
    headers = hooks.standard(BODY) | github_headers("release", BODY) | slack_headers(BODY, hooks.now)

    answer = bare.post(way, BODY, headers)

    assert (answer.status_code, answer.json()["cause"]) == (404, "no_secret")
    assert f"hooks.{way}_secret" in answer.json()["error"]
    assert hooks.world.reporter.of("hook_refused") == [{"hook": way, "status": 404, "cause": "no_secret"}]
    assert nothing_came_of_it(bare)


def test_an_empty_key_signs_nothing_where_no_secret_is_set(hooks: HookWorld) -> None:
    bare = HookWorld(hooks.world, settings=Hooks())

    assert bare.post("github", BODY, github_headers("release", BODY, "")).status_code == 404
    assert bare.post("slack", BODY, slack_headers(BODY, hooks.now, "")).status_code == 404


@pytest.mark.parametrize("secret", [CYCLE_SECRET, CYCLE_OLD_SECRET])
def test_the_new_and_the_old_secret_are_both_accepted(hooks: HookWorld, secret: str) -> None:
    assert hooks.cycle(json.loads(BODY), secret=secret).status_code == 202


def test_no_secret_and_nothing_that_was_sent_is_in_an_answer_or_a_log(hooks: HookWorld) -> None:
    canary = "canary-7c2f"
    bodies = [
        {"kind": canary, "topic": "postgres"},
        {"kind": "cycle", "topic": canary},
        {"kind": "links", "topic": "postgres", "urls": [f"https://me:{canary}@example.org/"]},
        {
            "kind": "result",
            "topic": "postgres",
            "urls": ["https://example.org/?token=" + canary, "javascript:" + canary],
        },
        {"kind": "cycle", "topic": "postgres", "text": canary},
        canary,
    ]

    answers = [hooks.cycle(body, delivery=f"{canary}_{n}") for n, body in enumerate(bodies)]
    answers += [attack(hooks) for _, attack, _, _ in ATTACKS]
    answers.append(hooks.github("release", {"action": canary}))
    answers.append(hooks.slack({"type": 7, "text": canary}))

    seen = "".join(answer.text + str(answer.headers) for answer in answers) + str(hooks.world.reporter.events)
    secrets = [CYCLE_SECRET, CYCLE_SECRET.removeprefix("whsec_"), CYCLE_OLD_SECRET, GITHUB_SECRET, SLACK_SECRET, canary]
    assert [secret for secret in secrets if secret in seen] == []
    assert all(answer.status_code >= 400 for answer in answers)


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        ({"kind": "extract", "topic": "postgres"}, 422, "kind extract is not known to this version"),
        ({"kind": "article", "topic": "postgres"}, 422, "kind article is not known to this version"),
        ({"kind": "delete", "topic": "postgres"}, 422, "kind must be one of cycle, links, result"),
        ({"topic": "postgres"}, 422, "kind must be one of"),
        ({"kind": ["cycle"]}, 422, "kind: Input should be a valid string"),
        ([], 422, "should be an object"),
        ({"kind": "cycle"}, 422, "topic: Field required"),
        ({"kind": "cycle", "topic": "postgres", "text": "x"}, 422, "'text' is no field of this kind: hooks take addresses, never text"),
        ({"kind": "links", "topic": "postgres", "urls": []}, 422, "urls: "),
        ({"kind": "links", "topic": "postgres", "urls": ["https://example.org/"] * 101}, 422, "urls: "),
        ({"kind": "links", "topic": "postgres", "urls": ["https://example.org/", "a text"]}, 422, "urls.1: not an http(s) address"),
        ({"kind": "links", "topic": "postgres", "urls": ["file:///saved/x.html"]}, 422, "urls.0: not an http(s) address"),
        ({"kind": "links", "topic": "postgres", "urls": ["https://a@127.0.0.1/"]}, 422, "urls.0: "),
        ({"kind": "result", "topic": "postgres", "urls": ["http://ok\\@127.0.0.1"]}, 422, "urls.0: "),
        ({"kind": "result", "topic": "postgres", "urls": ["https://example.org/" + "x" * 9000]}, 422, "longer than"),
        ({"kind": "result", "topic": "postgres", "urls": [{"url": "https://example.org/"}]}, 422, "urls.0: "),
        ({"kind": "cycle", "topic": "mysql"}, 404, "no topic of that name"),
        ({"kind": "cycle", "topic": "../postgres"}, 404, "no topic of that name"),
        ({"kind": "cycle", "topic": "broken"}, 404, "its file has a fault"),
        ({"kind": "cycle", "topic": "over"}, 409, "last day"),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_used_is_told_what_is_wrong(
    hooks: HookWorld, content: object, status: int, said: str
) -> None:
    hooks.world.topic("broken", "---\ntitle: T\n---\n")
    hooks.world.topic("over", "---\ntitle: T\nqueries: [q]\nuntil: 2026-03-01\n---\nB\n")

    answer = hooks.cycle(content)

    assert answer.status_code == status
    assert said in answer.json()["error"]
    assert nothing_came_of_it(hooks)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"kind": "cycle", "topic": "\\ud800"}', b"nul\0"]
)
@pytest.mark.parametrize("way", ["cycle", "github", "slack"])
def test_a_signed_body_that_is_no_json_is_the_senders_fault(hooks: HookWorld, way: str, body: bytes) -> None:
    key = hooks.standard(b"")
    headers = github_headers("release", body) | slack_headers(body, hooks.now)
    if way == "cycle":
        signed = f"{key['webhook-id']}.{key['webhook-timestamp']}.".encode() + body
        raw = base64.b64decode(CYCLE_SECRET.removeprefix("whsec_"))
        headers = key | {
            "webhook-signature": "v1," + base64.b64encode(hmac.digest(raw, signed, hashlib.sha256)).decode()
        }

    assert hooks.post(way, body, headers).status_code == 422
    assert nothing_came_of_it(hooks)


def test_a_bad_address_is_named_and_nothing_is_said_of_the_list_that_lost_it(hooks: HookWorld) -> None:
    answer = hooks.cycle({"kind": "links", "topic": "postgres", "urls": ["a text"]})

    assert answer.json()["error"].startswith("urls.0: ")
    assert "Tuple" not in answer.json()["error"]


def test_githubs_form_encoding_is_told_what_to_change(hooks: HookWorld) -> None:
    body = b"payload=%7B%7D"
    headers = github_headers("release", body) | {"content-type": "application/x-www-form-urlencoded"}
    asked = httpx.Request("POST", "http://127.0.0.1/hooks/github", content=body, headers=headers)

    [answer] = hooks.ask(asked)

    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]


def test_a_sender_is_held_to_so_many_a_minute_and_a_stranger_takes_none_of_them(hooks: HookWorld) -> None:
    held = HookWorld(hooks.world, settings=Settings(hooks=SECRETS | {"per_minute": 3}).hooks)
    body = json.loads(BODY)

    for _ in range(10):
        assert without(held, "webhook-signature").status_code == 401
    answers = [held.cycle(body, delivery=f"m{n}") for n in range(5)]

    assert [answer.status_code for answer in answers] == [202, 202, 202, 429, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
    assert held.github("ping", {}).status_code == 200  # a way has an allowance of its own


def test_an_allowance_fills_up_again_to_one_minutes_worth() -> None:
    now = [0.0]
    allowance = Allowance(2, lambda: now[0])
    allowance.take()
    allowance.take()
    with pytest.raises(HookRefused):
        allowance.take()
    now[0] += 3600

    allowance.take()
    allowance.take()
    with pytest.raises(HookRefused) as refused:
        allowance.take()
    assert refused.value.after == timedelta(seconds=30)


def test_a_body_that_trickles_in_is_given_up_and_its_place_is_free_again() -> None:
    async def scenario() -> list[str]:
        door = Door(1000, seconds=0.05, most_at_once=1)

        async def trickle() -> AsyncIterator[bytes]:
            while True:
                yield b"x"
                await asyncio.sleep(0.02)

        first = asyncio.create_task(refusal(door, trickle()))
        await asyncio.sleep(0)
        second = await refusal(door, once())
        causes = [await first, second]
        assert await door.read(Streamed(once())) == b"x"
        return causes

    async def once() -> AsyncIterator[bytes]:
        yield b"x"

    async def refusal(door: Door, body: AsyncIterator[bytes]) -> str:
        with pytest.raises(HookRefused) as refused:
            await door.read(Streamed(body))
        return f"{refused.value.status} {refused.value.cause}"

    assert asyncio.run(scenario()) == ["408 slow", "503 busy"]


class Streamed(Request):
    """A request whose body comes as it is told."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        super().__init__({"type": "http", "headers": []})
        self._pieces = body

    async def stream(self) -> AsyncGenerator[bytes, None]:
        async for piece in self._pieces:
            yield piece
