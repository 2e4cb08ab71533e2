"""Who may see and change: Host, origin, token, session, headers. Each row with the status it gets."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.adapters.contracts.samples import a_run
from tests.web.on_socket import on_socket
from tests.web.pages import ORIGIN, OWN, PORT, TOKEN, World, world

from wikikeeper.fakes import SettableClock
from wikikeeper.policy.web_access import SESSION, Access, own_names
from wikikeeper.web.app import create_app
from wikikeeper.web.guard import COOKIE, MOST_BYTES

PAGES = ("/runs", "/topics", "/cycles", "/notes", "/attention", "/thresholds", "/label", "/calibrate", "/openapi.json")
HTTPS = "https://wiki.example.org"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (f"127.0.0.1:{PORT}", 200),
        (f"localhost:{PORT}", 200),
        (f"LOCALHOST:{PORT}", 200),
        (f"[::1]:{PORT}", 200),
        ("127.0.0.1", 421),
        ("127.0.0.1:80", 421),
        (f"evil.example:{PORT}", 421),
        (f"127.0.0.1.evil.example:{PORT}", 421),
        (f"localhost.evil.example:{PORT}", 421),
        (f"localhost:{PORT}@evil.example", 421),
        ("", 421),
    ],
)
def test_on_loopback_only_its_own_names_are_served(web: World, host: str, status: int) -> None:
    """A page elsewhere whose name is made to lead to 127.0.0.1 still sends its own name."""
    assert web.client.get("/runs", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OWN, 303),
        ({"origin": ORIGIN}, 303),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": f"http://127.0.0.1:{PORT + 1}"}, 403),
        ({"origin": f"http://127.0.0.1:{PORT}.evil.example"}, 403),
        ({"origin": f"file://127.0.0.1:{PORT}"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"origin": ORIGIN, "sec-fetch-site": "cross-site"}, 403),
        ([("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], 403),
        ([("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-origin")], 403),
        ([("origin", ORIGIN), ("origin", "https://evil.example")], 403),
        ([("origin", "https://evil.example"), ("origin", ORIGIN)], 403),
    ],
)
def test_what_changes_something_must_come_from_our_own_pages(
    web: World, headers: dict[str, str] | list[tuple[str, str]], status: int
) -> None:
    web.store.put_run(a_run())

    answer = web.client.post("/runs/r0001-2/label", data={"should": "kept"}, headers=headers)
    assert answer.status_code == status
    assert bool(web.store.labels_of(["r0001"])) == (status == 303)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE"])
def test_other_methods_are_held_to_the_same(web: World, method: str) -> None:
    assert web.client.request(method, "/runs").status_code == 403
    assert web.client.request(method, "/runs", headers=OWN).status_code == 405


@pytest.mark.parametrize("path", [*PAGES, "/runs/nobody", "/nothing", "/login", "/static/wikikeeper.css"])
def test_every_answer_tells_a_browser_what_to_allow(web: World, path: str) -> None:
    headers = web.client.get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == ("private, max-age=600" if path.startswith("/static") else "no-store")


def test_a_fault_of_ours_is_behind_the_guard_too(tmp_path: Path) -> None:
    with world(tmp_path) as web:
        web.client = type(web.client)(web.app, base_url=ORIGIN, raise_server_exceptions=False)
        web.store.put_run(a_run())
        web.store.database.change("UPDATE runs SET body = '{}'")

        answer = web.client.get("/runs")
        assert answer.status_code == 500
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "Traceback" not in answer.text


def test_the_body_of_a_form_is_bounded(web: World) -> None:
    web.store.put_run(a_run())
    large = {"should": "kept", "more": "x" * MOST_BYTES}

    assert web.client.post("/runs/r0001-2/label", data=large, headers=OWN).status_code == 413
    chunks = (b"x" * 1024 for _ in range(100))
    assert web.client.post("/runs/r0001-2/label", content=chunks, headers=OWN).status_code == 413
    assert web.store.labels_of(["r0001"]) == {}


def test_a_form_that_trickles_in_is_given_up(web: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikikeeper.web.guard.BODY_SECONDS", 0.1)
    with (
        on_socket(
            lambda port: create_app(replace(web.site, access=Access(names=own_names("127.0.0.1", port))))
        ) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as sender,
    ):
        origin = f"http://127.0.0.1:{port}"
        head = f"POST /logout HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {origin}\r\nContent-Length: 9\r\n\r\nx"
        sender.sendall(head.encode())
        answer = b"".join(iter(lambda: sender.recv(4096), b""))

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"default-src 'none'" in answer


@pytest.mark.parametrize("path", ["/runs/", "/login/", "/hooks/cycle/", "//evil.example/runs", "/static/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_answer_leads_to_the_host_that_a_request_named(guarded: World, method: str, path: str) -> None:
    there = {"host": "evil.example", "origin": "https://evil.example"}

    answer = guarded.client.request(method, path, headers=there)
    assert "evil.example" not in answer.headers.get("location", "").partition("?")[0]
    assert answer.status_code != 307


def test_no_get_changes_anything(web: World) -> None:
    web.store.put_run(a_run())
    paths = [path for path, methods in web.app.openapi()["paths"].items() if "get" in methods]
    before = web.store.database.read("SELECT total_changes() AS n, (SELECT count(*) FROM labels) AS l")[0]["l"]
    for path in paths:
        web.client.get(path.replace("{run}", "r0001-2").replace("{result}", "r0001"))
        web.client.get(path.replace("{run}", "r0001-2") + "?should=kept&drawn=true&token=x")

    assert web.store.database.read("SELECT count(*) AS l FROM labels")[0]["l"] == before == 0


# -- with a token


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, access=Access(token=TOKEN), base=HTTPS) as made:
        yield made


@pytest.mark.parametrize("path", PAGES)
def test_without_a_session_every_page_leads_to_the_form(guarded: World, path: str) -> None:
    answer = guarded.client.get(path)

    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=%2F")


def test_without_a_session_nothing_is_changed(guarded: World) -> None:
    guarded.store.put_run(a_run())

    answer = guarded.client.post("/runs/r0001-2/label", data={"should": "kept"}, headers={"origin": HTTPS})
    assert answer.status_code == 401
    assert guarded.store.labels_of(["r0001"]) == {}


def test_the_token_by_form_gives_a_session_and_leads_to_where_one_wanted(guarded: World) -> None:
    answer = guarded.client.post("/login", data={"token": TOKEN, "next": "/runs?topic=a"}, headers={"origin": HTTPS})

    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?topic=a")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    for said in ("HttpOnly", "Secure", "SameSite=strict", "Path=/"):
        assert said in cookie
    assert "Domain" not in cookie
    assert TOKEN not in cookie
    assert guarded.client.get("/runs").status_code == 200


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), "ü" * 32, "\x00"])
def test_a_wrong_token_gives_none(guarded: World, token: str) -> None:
    answer = guarded.client.post("/login", data={"token": token}, headers={"origin": HTTPS})

    assert answer.status_code in (401, 422)
    assert "set-cookie" not in answer.headers
    assert guarded.client.get("/runs").status_code == 303


def test_a_token_in_the_address_gives_none(guarded: World) -> None:
    assert guarded.client.get(f"/runs?token={TOKEN}").status_code == 303
    assert guarded.client.post(f"/login?token={TOKEN}", headers={"origin": HTTPS}).status_code == 422


def test_signing_in_from_elsewhere_is_refused(guarded: World) -> None:
    answer = guarded.client.post("/login", data={"token": TOKEN}, headers={"origin": "https://evil.example"})

    assert answer.status_code == 403


@pytest.mark.parametrize(
    "place", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/x"]
)
def test_signing_in_leads_to_no_other_site(guarded: World, place: str) -> None:
    answer = guarded.client.post("/login", data={"token": TOKEN, "next": place}, headers={"origin": HTTPS})

    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("value", ["", "x", TOKEN, "9999999999.", "9999999999." + "0" * 64, "9" * 40 + ".x", "-1.x"])
def test_a_made_up_session_is_none(guarded: World, value: str) -> None:
    guarded.client.cookies.set(COOKIE, value)

    assert guarded.client.get("/runs").status_code == 303


@pytest.mark.parametrize(
    "beside",
    [
        "a=b",
        "a[]=1",
        '{"j":1}',
        "a;;;=",
        "x=\xff",
        "=",
        "a b=c",
        "x" * 4000,
        f"{COOKIE}=bad",
        f"{COOKIE}2=bad",
        'q="a\\"b"',
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_cookies_of_other_programs_on_the_host_sign_nobody_out(guarded: World, beside: str, first: bool) -> None:
    """Cookies know no ports."""
    guarded.client.post("/login", data={"token": TOKEN}, headers={"origin": HTTPS})
    own = f"{COOKIE}={guarded.client.cookies[COOKIE]}"
    guarded.client.cookies.clear()

    sent = "; ".join([beside, own] if first else [own, beside])
    assert guarded.client.get("/runs", headers={b"cookie": sent.encode("latin-1")}).status_code == 200
    assert guarded.client.get("/runs", headers={b"cookie": beside.encode("latin-1")}).status_code == 303


def test_a_session_ends_by_itself_with_the_token_and_by_signing_out(tmp_path: Path, guarded: World) -> None:
    guarded.client.post("/login", data={"token": TOKEN}, headers={"origin": HTTPS})
    kept = guarded.client.cookies[COOKIE]
    with world(tmp_path / "other", access=Access(token="f" * 32), base=HTTPS) as other:
        other.client.cookies.set(COOKIE, kept)
        assert other.client.get("/runs").status_code == 303

    assert guarded.client.get("/runs").status_code == 200
    assert guarded.client.post("/logout", headers={"origin": HTTPS}).headers["location"] == "/login"
    assert guarded.client.get("/runs").status_code == 303

    guarded.client.cookies.set(COOKIE, kept)
    assert guarded.client.get("/runs").status_code == 200
    assert isinstance(guarded.site.clock, SettableClock)
    guarded.site.clock.advance(SESSION + timedelta(seconds=1))
    assert guarded.client.get("/runs").status_code == 303


def test_behind_a_proxy_a_given_name_is_one_of_ours(tmp_path: Path) -> None:
    access = Access(names=own_names("127.0.0.1", PORT, ["wiki.example.org"]), token=TOKEN)
    with world(tmp_path, access=access, base=HTTPS) as web:
        assert web.client.get("/login").status_code == 200
        assert web.client.get("/login", headers={"host": "evil.example"}).status_code == 421
