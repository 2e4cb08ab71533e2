"""Pages that stand in front of the page that was asked for, and pages that only speak of such."""

import pytest

from wikikeeper.policy.walls import wall

CLOUDFLARE = "<script>window._cf_chl_opt = {}</script>"
ARTICLE = (
    "The company runs a network in front of millions of sites. It became known for the page that says it is checking "
    "your browser, and for the words just a moment that people see before a shop opens. Critics say that it decides "
    "who may read the web, and that people with rare browsers are told to enable cookies and come back.\n"
) * 4


@pytest.mark.parametrize(
    ("title", "visible", "html"),
    [
        ("Just a moment...", "Enable JavaScript and cookies to continue", CLOUDFLARE),
        ("Just a moment...", "", CLOUDFLARE),
        ("example.com", "Checking your browser before accessing example.com. This process is automatic.", ""),
        ("Attention Required! | Cloudflare", "Sorry, you have been blocked\nYou are unable to access example.com", ""),
        (
            "Access to this page has been denied",
            "Press & Hold to confirm you are a human (and not a bot).",
            "px-captcha",
        ),
        (
            "example.com",
            "Please solve the captcha to go on",
            '<script src="https://geo.captcha-delivery.com/x"></script>',
        ),
        (
            "Making sure you're not a bot!",
            "Loading...\nWhy am I seeing this?\n" + "The administrator protects the server against scraping. " * 20,
            '<script id="anubis_challenge" type="application/json">{}</script>',
        ),
        ("Nur einen Moment...", "Überprüfen Sie, ob Sie ein Mensch sind.", CLOUDFLARE),
        ("Robot Check", "Enter the characters you see below", ""),
    ],
)
def test_a_bot_challenge_is_no_content(title: str, visible: str, html: str) -> None:
    assert wall(title, visible, html) == "bot_challenge"


@pytest.mark.parametrize(
    ("title", "visible"),
    [
        ("Log in | Example", "Username\nPassword\nForgot your password?"),
        ("Example Forum", "You must log in to view this topic.\nHome\nForums\nRegister"),
        ("Members", "This content is only available to subscribers. Sign in to continue."),
        ("Anmelden", "E-Mail\nPasswort"),
        ("专栏", "请先登录后查看全文"),
    ],
)
def test_a_login_wall_is_no_content(title: str, visible: str) -> None:
    assert wall(title, visible, "") == "login_wall"


@pytest.mark.parametrize(
    ("title", "visible"),
    [
        (
            "Before you continue",
            (
                "We and our partners use cookies and data to deliver services and to measure advertising.\nIf you accept all, "
                "we will also use cookies to personalise content.\nReject all\nAccept all"
            ),
        ),
        ("Zeitung", "Mit Ihrer Zustimmung verwenden wir und unsere Partner Cookies für Werbung.\nAlle akzeptieren"),
    ],
)
def test_a_consent_wall_is_no_content(title: str, visible: str) -> None:
    assert wall(title, visible, "") == "consent_wall"


@pytest.mark.parametrize(
    ("title", "visible", "html"),
    [
        (
            "Just a moment: how one company guards the web",
            ARTICLE,
            "<script src='/cdn-cgi/challenge-platform/x'></script>",
        ),
        ("A short note", "The herd moved north today, and the river is still high. More tomorrow.", CLOUDFLARE),
        (
            "Question about geese",
            "Why do my geese hiss at the dog?\nPlease log in to reply.\nThey have done so since spring, and only at him.",
            "",
        ),
        (
            "Login failed on Debian: what to do",
            "Look at the log first. Then try this.\n" + "It may help to wait. " * 30,
            "",
        ),
        (
            "Baking",
            "We use cookies. Accept\n"
            + "Cookies are baked at 180 degrees until they are brown at the edges. " * 12
            + "\nButter and sugar are beaten until they are pale.\n" * 8,
            "",
        ),
        ("", "", ""),
    ],
)
def test_a_page_that_only_speaks_of_walls_is_content(title: str, visible: str, html: str) -> None:
    assert wall(title, visible, html) is None
