from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy import web_access
from wikikeeper.policy.web_access import SESSION, SHORTEST_TOKEN

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_no_token(host: str) -> None:
    assert web_access.is_loopback(host)
    assert web_access.start_fault(host, None) is None


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.2", "10.0.0.1", "nas.lan", "localhost.lan", "", "127.0.0.1.example"]
)
def test_any_other_address_is_refused_without_a_token_and_the_message_says_what_to_do(host: str) -> None:
    fault = web_access.start_fault(host, None)

    assert fault is not None
    assert "web.token" in fault
    assert "127.0.0.1" in fault
    assert web_access.start_fault(host, TOKEN) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_that_can_be_guessed_is_refused(host: str) -> None:
    assert SHORTEST_TOKEN == 16
    assert "15 characters" in (web_access.start_fault(host, "x" * 15) or "")


def test_the_names_of_a_loopback_address_are_its_own_and_those_that_are_given() -> None:
    names = web_access.own_names("127.0.0.2", 8765, ["Wiki.example.org", "nas.lan:9000"])

    for host in ("localhost:8765", "127.0.0.1:8765", "127.0.0.2:8765", "[::1]:8765", "nas.lan:9000"):
        assert web_access.host_allowed(host, names)
    assert web_access.host_allowed("wiki.example.org", names, https=True)
    assert web_access.host_allowed("wiki.example.org", names)
    for stranger in ("nas.lan", "nas.lan:8765", "evil.example", "localhost", "", None):
        assert not web_access.host_allowed(stranger, names)


def test_elsewhere_any_name_passes_unless_some_are_given() -> None:
    assert web_access.host_allowed("a.example", web_access.own_names("0.0.0.0", 80))
    assert not web_access.host_allowed("a.example", web_access.own_names("0.0.0.0", 80, ["b.example"]))
    assert not web_access.host_allowed(None, frozenset())


@pytest.mark.parametrize(
    ("host", "origin", "same"),
    [
        ("a.example", "https://a.example", True),
        ("a.example:443", "https://a.example", True),
        ("a.example:80", "http://a.example", True),
        ("a.example:8080", "http://a.example:8080", True),
        ("A.example", "https://a.EXAMPLE", True),
        ("[::1]:8765", "http://[::1]:8765", True),
        ("a.example", "https://b.example", False),
        ("a.example", "https://a.example:8443", False),
        ("a.example", "https://a.example.evil", False),
        ("a.example", "null", False),
        ("a.example", "", False),
        ("", "https://", False),
        ("a.example", "ftp://a.example", False),
    ],
)
def test_an_origin_is_ours_where_scheme_name_and_port_agree(host: str, origin: str, same: bool) -> None:
    assert web_access.same_origin(host=host, origin=origin, fetch_site=None) is same


def test_what_a_browser_says_of_the_site_goes_first() -> None:
    assert web_access.same_origin(host="a", origin=None, fetch_site="same-origin")
    assert not web_access.same_origin(host="a", origin="http://a", fetch_site="cross-site")


@given(given_token=st.text(), token=st.text(min_size=16))
def test_only_the_token_itself_matches(given_token: str, token: str) -> None:
    assert web_access.token_matches(given_token, token) is (given_token == token)
    assert web_access.token_matches(token, token)


def test_a_session_holds_until_its_end_and_for_its_token_alone() -> None:
    value = web_access.session(TOKEN, NOW)

    assert TOKEN not in value
    assert web_access.session_holds(value, TOKEN, NOW)
    assert web_access.session_holds(value, TOKEN, NOW + SESSION - timedelta(seconds=1))
    assert not web_access.session_holds(value, TOKEN, NOW + SESSION)
    assert not web_access.session_holds(value, TOKEN + "0", NOW)


@given(value=st.text() | st.from_regex(r"[0-9]{1,20}\.[0-9a-f]{0,64}", fullmatch=True))
def test_no_made_up_session_holds(value: str) -> None:
    assert not web_access.session_holds(value, TOKEN, NOW)


@given(moved=st.integers(1, 10**9))
def test_an_end_that_was_moved_breaks_the_signature(moved: int) -> None:
    ends, _, signature = web_access.session(TOKEN, NOW).partition(".")

    assert not web_access.session_holds(f"{int(ends) + moved}.{signature}", TOKEN, NOW)


@given(path=st.text(alphabet="/\\:.ab?\n\t ") | st.text())
def test_after_signing_in_one_stays_on_these_pages(path: str) -> None:
    place = web_access.local_path(path)

    assert place.startswith("/")
    assert not place.startswith(("//", "/\\"))
    assert "\\" not in place
    assert place.isprintable()
    assert place in (path, "/")
