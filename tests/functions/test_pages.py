"""The function behind the URL, in this process: requests as AWS hands them over, stores and queues on loopback."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from functions.web import handler
from starlette.types import Message, Receive, Scope, Send
from tests.adapters.contracts.samples import a_run
from tests.functions.conftest import Deploy
from tests.functions.requests import HOST, SETTINGS, TOKEN, Shown, cycle_hook, event, form, shown, slack_hook
from tests.functions.stack import Context, Stack

from wikikeeper.cloud_web import Decoded, Reported
from wikikeeper.errors import Unusable
from wikikeeper.fakes import RecordingReporter

TOPIC = "---\ntitle: Herons\nlinks: [https://example.org/]\n---\nWhat is new?\n"


def ask(request: Mapping[str, Any]) -> Shown:
    """As Lambda does: events and answers pass through JSON."""
    return shown(json.loads(json.dumps(handler.handler(json.loads(json.dumps(request)), Context()))))


def sent(stack: Stack, queue: str) -> list[dict[str, Any]]:
    taken = stack.clients.sqs.receive_message(QueueUrl=stack.queues[queue], MaxNumberOfMessages=10)
    return [json.loads(message["Body"]) for message in taken.get("Messages", [])]


@pytest.fixture
def stack(deploy: Deploy) -> Stack:
    return deploy(**SETTINGS)


@pytest.fixture
def session(stack: Stack) -> str:
    """The cookie of somebody who signed in."""
    [cookie] = ask(form("/login", token=TOKEN)).cookies
    return cookie


# -- who gets in


@pytest.mark.parametrize(("token", "said"), [("", "set web.token"), ("hunter2", "web.token has 7 characters")])
def test_it_does_not_start_without_a_token_that_nobody_guesses(deploy: Deploy, token: str, said: str) -> None:
    deploy(**{**SETTINGS, "web__token": token})

    with pytest.raises(Unusable, match=said):
        handler.handler(event("GET", "/login"), Context())


def test_a_stranger_sees_the_form_that_asks_for_the_token_and_nothing_else(stack: Stack) -> None:
    assert ask(event("GET", "/login")).status == 200
    for path in ("/", "/runs", "/topics", "/notes", "/openapi.json", "/nothing/here"):
        answer = ask(event("GET", path, query="topic=a"))
        assert (answer.status, answer.location) == (303, f"/login?next={path}?topic=a")
    assert ask(form("/results/1/retry")).status == 401


def test_the_token_opens_the_pages_and_the_cookie_is_kept_from_scripts_and_plain_http(stack: Stack) -> None:
    raw = handler.handler(form("/login", token=TOKEN, next="/runs"), Context())
    [cookie] = shown(raw).cookies

    assert (raw["statusCode"], raw["headers"]["location"]) == (303, "/runs")
    assert {part.strip().lower() for part in raw["cookies"][0].split(";")[1:]} >= {
        "httponly",
        "secure",
        "samesite=strict",
    }
    assert ask(event("GET", "/runs", cookies=["other=1", cookie])).status == 200
    assert ask(event("GET", "/runs", cookies=[cookie + "0"])).status == 303
    assert ask(form("/login", token=TOKEN + "0")).status == 401


def test_a_form_of_another_site_changes_nothing(session: str) -> None:
    request = form("/logout", [session])
    request["headers"] |= {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}

    assert ask(request).status == 403


# -- what is shown and done


def test_style_and_icon_arrive_byte_by_byte(stack: Stack) -> None:
    style, icon = ask(event("GET", "/static/wikikeeper.css")), ask(event("GET", "/static/icon.svg"))

    assert (style.status, style.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert icon.body.startswith(b"<svg")


def test_a_note_whose_name_is_in_another_script_is_read_and_marked_done(stack: Stack, session: str) -> None:
    name = "2026-11-30-größe-鷺-0a1b2c.md"
    stack.write(f"inbox/awaiting/{name}", "# Größe\n\nText.\n")

    note = ask(event("GET", f"/notes/awaiting/{name}", cookies=[session]))
    etag = stack.app().wiki.read(f"inbox/awaiting/{name}")
    assert etag is not None
    done = ask(form(f"/notes/awaiting/{name}/done", [session], etag=etag.etag))

    assert (note.status, "Größe" in note.text) == (200, True)
    assert (done.status, done.location) == (303, f"/notes/completed/{name}")
    assert set(stack.notes()) == {f"inbox/completed/{name}"}
    assert (
        f"/notes/completed/{quote(name)}"
        in ask(event("GET", "/notes", query="folder=completed", cookies=[session])).text
    )


def test_runs_of_the_table_are_shown(stack: Stack, session: str) -> None:
    stack.app().store.put_run(a_run(topic="herons"))

    page = ask(event("GET", "/runs", cookies=[session]))

    assert page.status == 200
    assert "herons" in page.text


# -- hooks


def test_a_hook_needs_a_signature_instead_of_a_session_and_sends_its_command_to_the_queue(stack: Stack) -> None:
    stack.write("topics/herons.md", TOPIC)

    first, again = (ask(cycle_hook({"kind": "cycle", "topic": "herons"})) for _ in range(2))
    altered = cycle_hook({"kind": "cycle", "topic": "herons"}, "msg_2")
    altered["headers"]["webhook-id"] = "msg_3"

    assert (first.status, again.status, ask(altered).status) == (202, 202, 401)
    assert first.text == again.text
    commands = sent(stack, "schedule")
    assert commands
    assert all((command["kind"], command["topic"]) == ("start_cycle", "herons") for command in commands)
    assert len({command["tick"] for command in commands}) == 1, "sent again until somebody begins it"


def test_slack_gets_its_challenge(stack: Stack) -> None:
    answer = ask(slack_hook({"type": "url_verification", "challenge": "c-1", "token": "t"}))

    assert (answer.status, json.loads(answer.text)) == (200, {"challenge": "c-1"})


# -- what goes wrong


def test_a_table_that_is_not_there_is_said_on_a_page_and_what_is_logged_names_no_secret(
    deploy: Deploy, capfd: pytest.CaptureFixture[str]
) -> None:
    deploy(**SETTINGS, aws__table="another")
    [cookie] = ask(form("/login", token=TOKEN)).cookies

    answer = ask(event("GET", "/runs", cookies=[cookie]))

    assert answer.status == 503
    assert "another: there is no such table" in answer.text
    assert TOKEN not in "".join(capfd.readouterr())


def served(app: Any, *, scope: Mapping[str, Any]) -> list[Message]:  # noqa: ANN401 - any ASGI app
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    asyncio.run(app({"type": "http", "method": "GET", "path": "/", "headers": [], **scope}, receive, send))
    return messages


def test_a_fault_is_reported_by_its_kind_and_place_and_never_by_what_it_quotes() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("canary of a page")

    reporter = RecordingReporter()
    start, body = served(Reported(broken, reporter), scope={})

    assert start["status"] == 500
    [fault] = reporter.of("page_failed")
    assert (fault["cause"], "broken" in str(fault["where"])) == ("ValueError", True)
    assert "canary" not in f"{fault}{body}"


def test_an_answer_that_broke_off_is_never_sent_as_if_it_were_whole() -> None:
    async def breaks_off(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError("canary of a page")

    with pytest.raises(RuntimeError, match="broke off") as raised:
        served(Reported(breaks_off, RecordingReporter()), scope={})
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("raw", "path"), [("/notes/a%20b%2Fc", "/notes/a b/c"), ("/%E9%B7%BA", "/鷺"), ("/100%25", "/100%")]
)
def test_a_path_is_decoded_once(raw: str, path: str) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    served(Decoded(app), scope={"path": raw, "raw_path": None, "aws.event": {"rawPath": raw}})

    assert (seen[0]["path"], seen[0]["raw_path"]) == (path, raw.encode())


def test_names_that_are_set_are_the_only_ones(deploy: Deploy) -> None:
    deploy(**SETTINGS, web__names="pages.example")
    own = event("GET", "/login", headers={"host": "pages.example"})

    assert ask(own).status == 200
    assert ask(event("GET", "/login", headers={"host": HOST})).status == 421
