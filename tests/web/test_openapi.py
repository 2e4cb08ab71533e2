"""The app's OpenAPI lists every route, and nothing that it allows makes the app fail, the hooks included: whether or not
what is sent is signed.
"""

import base64
import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation, BaseSchema
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send
from tests.adapters.contracts.samples import TOPIC, a_cycle, a_result, a_run
from tests.web.hook_world import CYCLE_SECRET, SECRETS, WATCHING, HookWorld, github_headers, slack_headers
from tests.web.pages import OWN, PORT, THRESHOLDS, World
from tests.workflows.world import open_world

from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.policy.web_access import Access, own_names
from wikikeeper.settings import Settings
from wikikeeper.web.app import create_app
from wikikeeper.web.site import Site

AnyCase = Case[Any]
Change = Callable[[AnyCase, st.DataObject], None]
HOST = {"host": f"127.0.0.1:{PORT}", **OWN}
EXAMPLES = 12
"""Of each operation, right ones and as many wrong ones."""
HOOKS = {"POST /hooks/cycle", "POST /hooks/github", "POST /hooks/slack"}
NOTE = "2026-03-01-x.md"
THERE: dict[str, object] = {
    "run": "r0001-2", "result": "r0001", "folder": "awaiting", "name": NOTE, "topic": TOPIC, "action": "published",
    "full_name": "acme/widgets", "default_branch": "main", "ref": "refs/heads/main", "draft": False,
}  # fmt: skip
"""What makes something generated be about what there is."""
EVENTS = st.sampled_from(["release", "push", "ping"])
WORDS = st.text(min_size=1)
REACTIONS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["reaction_added", "reaction_removed"]),
        **dict.fromkeys(("user", "reaction", "event_ts"), WORDS),
        "item": st.fixed_dictionaries({"type": st.just("message"), "channel": WORDS, "ts": WORDS}),
    }
)
"""Slack's bodies are mostly of other sorts: a generated one is hardly ever of this."""


class Sender:
    """Stands before the app and signs every delivery, on the bytes as they come: what is generated is what is signed."""

    def __init__(self, app: FastAPI, hooks: HookWorld) -> None:
        self._app = app
        self._hooks = hooks
        self.signs = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self.signs or not scope["path"].startswith("/hooks/"):
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        headers = MutableHeaders(raw=list(scope["headers"]))
        for name, value in self._signed(scope["path"], body, Headers(scope=scope)).items():
            headers[name] = value
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return given.pop() if given else await receive()

        await self._app({**scope, "headers": headers.raw}, again, send)

    def _signed(self, path: str, body: bytes, headers: Headers) -> dict[str, str]:
        if path == "/hooks/github":
            return github_headers(headers.get("x-github-event", ""), body)
        if path == "/hooks/slack":
            return slack_headers(body, self._hooks.now)
        stamp = str(int(self._hooks.now.timestamp()))
        key = base64.b64decode(CYCLE_SECRET.removeprefix("whsec_"))
        name = hashlib.sha256(body).hexdigest()[:16]
        digest = hmac.digest(key, f"{name}.{stamp}.".encode() + body, hashlib.sha256)
        return {
            "webhook-id": name,
            "webhook-timestamp": stamp,
            "webhook-signature": "v1," + base64.b64encode(digest).decode(),
        }


async def _whole(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


@dataclass
class Whole:
    """The app as it is served: pages and hooks."""

    app: FastAPI
    sender: Sender
    hooks: HookWorld
    schema: BaseSchema
    answered: dict[str, Counter[int]] = field(default_factory=dict)
    """By operation, and how often with which status."""

    def operations(self) -> dict[str, APIOperation[Any, Any, Any, Any]]:
        found = [each.ok() for each in self.schema.get_all_operations() if isinstance(each, Ok)]
        return {operation.label: operation for operation in found}

    def try_all(self, label: str, change: Change) -> None:
        """What the schema says of an operation, and what it does not."""
        operation = self.operations()[label]
        for mode in GenerationMode:
            # An operation without any field has nothing that can be wrong.
            with suppress(Unsatisfiable):
                self._try(operation, mode, change)

    def _try(
        self,
        operation: APIOperation[Any, Any, Any, Any],
        mode: GenerationMode,
        change: Change,
    ) -> None:
        @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
        @settings(
            max_examples=EXAMPLES,
            suppress_health_check=list(HealthCheck),
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.generate, Phase.shrink),
        )
        def check(case: AnyCase, data: st.DataObject) -> None:
            change(case, data)
            response = case.call(headers=HOST)
            self.answered.setdefault(operation.label, Counter())[response.status_code] += 1
            case.validate_response(response, checks=[not_a_server_error])

        check()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with open_world(Path(tmp_path_factory.mktemp("wiki"))) as made:
        made.topic("widgets", WATCHING.format(title="Widgets"))
        for number in range(60):
            made.app.store.put_run(a_run(number))
            made.app.store.add_results(None, [a_result(number)])
        made.app.store.start_cycle(a_cycle())
        (made.root / "inbox" / "awaiting").mkdir(parents=True)
        (made.root / "inbox" / "awaiting" / NOTE).write_text("---\ntype: research-note\n---\n# X\n")
        hooks = HookWorld(made, settings=Settings(hooks=SECRETS | {"per_minute": 10_000}).hooks)
        app = served(hooks)
        sender = Sender(app, hooks)
        yield Whole(app, sender, hooks, schemathesis.openapi.from_asgi("/openapi.json", sender, headers=HOST))


def served(hooks: HookWorld) -> FastAPI:
    app = hooks.world.app
    site = Site(
        store=SqliteRunStore(hooks.world.database),
        wiki=app.wiki,
        clock=app.clock,
        reporter=app.reporter,
        access=Access(names=own_names("127.0.0.1", PORT)),
        thresholds=THRESHOLDS,
        gate_limit=2,
    )
    return create_app(site, hooks=hooks.router)


def routes(app: FastAPI) -> set[str]:
    """All that the app answers, whichever way it was added."""
    found = set()
    for route in iter_route_contexts(app.routes):
        assert route.methods, f"{route.path} is no route of ours: a mount cannot be listed"
        found |= {f"{method} {route.path}" for method in route.methods}
    return found


def listed(app: FastAPI) -> set[str]:
    return {f"{method.upper()} {path}" for path, methods in app.openapi()["paths"].items() for method in methods}


def test_openapi_lists_every_route_and_no_other(whole: Whole) -> None:
    document = {"GET /openapi.json", "HEAD /openapi.json"}

    assert routes(whole.app) - document == listed(whole.app)
    assert listed(whole.app) >= HOOKS | {"GET /runs", "POST /runs/{run}/label", "POST /login"}
    assert set(whole.operations()) == listed(whole.app)
    assert all(isinstance(route.original_route, APIRoute) for route in iter_route_contexts(whole.app.routes) if route.path != "/openapi.json")  # fmt: skip


def test_what_openapi_says_of_a_hook_is_complete_in_itself(whole: Whole) -> None:
    for label in HOOKS:
        path = label.removeprefix("POST ")
        said = whole.app.openapi()["paths"][path]["post"]
        assert "#/defined/" not in str(said)
        assert "$defs" not in str(said)
        named = {each["name"] for each in said["parameters"] if each["in"] == "header" and each["required"]}
        assert len(named) == {"/hooks/cycle": 3}.get(path, 2)


def test_the_pages_of_the_api_itself_come_from_nowhere_else(web: World) -> None:
    assert web.client.get("/docs").status_code == 404
    assert web.client.get("/redoc").status_code == 404


def test_no_request_that_the_api_allows_makes_it_fail(whole: Whole) -> None:
    """Wrong values as well as right ones. Of the hooks what strangers send: none of it is let in."""
    whole.sender.signs, whole.answered = False, {}
    whole.hooks.sent.clear()
    for label in whole.operations():
        whole.try_all(label, about_what_is_there)

    assert set(whole.answered) == listed(whole.app)
    for label in HOOKS:
        assert set(whole.answered[label]) <= {401, 413}, label
    assert not whole.hooks.sent


@pytest.mark.parametrize("label", sorted(HOOKS))
def test_no_signed_delivery_makes_a_hook_fail(whole: Whole, label: str) -> None:
    whole.sender.signs, whole.answered = True, {}

    whole.try_all(label, about_what_is_there)

    answered = whole.answered[label]
    assert answered[401] == 0, "a signature of ours was refused, so what lies behind was not tried"
    assert answered[202] > 0, answered
    assert answered[422] > 0, answered


def about_what_is_there(case: AnyCase, data: st.DataObject) -> None:
    """In every second case all that names something names what there is; in the others now and then."""
    wholly = data.draw(st.booleans())
    if case.operation.label == "POST /hooks/github" and (wholly or data.draw(st.booleans())):
        pushed = isinstance(case.body, dict) and "commits" in case.body
        case.headers["x-github-event"] = ("push" if pushed else "release") if wholly else data.draw(EVENTS)
    if case.operation.label == "POST /hooks/slack" and wholly and isinstance(case.body, dict):
        case.body.update(type="event_callback", team_id=data.draw(WORDS), event=data.draw(REACTIONS))
    for part in (case.path_parameters, case.query, case.body):
        _rename(part, data, wholly=wholly)


def _rename(part: object, data: st.DataObject, *, wholly: bool) -> None:
    if isinstance(part, list):
        for each in part:
            _rename(each, data, wholly=wholly)
    elif isinstance(part, MutableMapping):
        for key, value in part.items():
            if key in THERE and isinstance(value, type(THERE[key])) and (wholly or data.draw(st.booleans())):
                part[key] = THERE[key]
            else:
                _rename(value, data, wholly=wholly)
