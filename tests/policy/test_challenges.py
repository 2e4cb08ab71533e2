"""Challenges are told from pages, and pages about challenges from challenges."""

import pytest

from wikikeeper.policy.challenges import START, challenge

CHALLENGES = [
    (403, {"cf-mitigated": "challenge"}, b"", "cloudflare"),
    (200, {}, b"<head><TITLE>Just a moment...</TITLE>", "cloudflare"),
    (403, {}, b"<title>Attention Required! | Cloudflare</title>", "cloudflare"),
    (503, {}, b"<script>window._cf_chl_opt={cvId: '3'}</script>", "cloudflare"),
    (202, {"x-amzn-waf-action": "challenge"}, b"", "aws_waf"),
    (429, {"x-vercel-mitigated": "challenge"}, b"", "vercel"),
    (200, {}, b"<title>Vercel Security Checkpoint</title>", "vercel"),
    (403, {"x-datadome": "protected"}, b"", "datadome"),
    (403, {}, b'<script src="https://ct.captcha-delivery.com/c.js">', "datadome"),
    (403, {}, b"<title>Access to this page has been denied.</title>", "perimeterx"),
    (200, {}, b"<body>Request unsuccessful. Incapsula incident ID: 1-2", "imperva"),
    (200, {}, b"<title>Making sure you&#39;re not a bot!</title>", "anubis"),
    (200, {}, "<title>Making sure you’re not a bot!</title>".encode(), "anubis"),
    (200, {}, b"<script>sucuri_cloudproxy_js='';", "sucuri"),
    (403, {}, b"<title>DDoS-Guard</title>", "ddos_guard"),
]
PAGES = [
    (200, {"server": "cloudflare", "cf-ray": "1"}, b"<title>Release notes</title>"),
    (200, {}, b"<title>Why you see Just a moment... on so many sites</title><p>Just a moment..."),
    (200, {}, b"<title>News</title><script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js>"),
    (200, {}, b"<title>News</title><script src=/_Incapsula_Resource?SWJIYLWA=7>"),
    (200, {"x-datadome": "protected"}, b"<title>News</title>"),
    (403, {}, b"<title>403 Forbidden</title>"),
    (200, {}, b"<p>" + b"x" * START + b"<title>Just a moment...</title>"),
    (200, {}, b""),
]


@pytest.mark.parametrize(("status", "headers", "start", "service"), CHALLENGES)
def test_a_challenge_is_known_by_its_service(status: int, headers: dict[str, str], start: bytes, service: str) -> None:
    assert challenge(status, headers, start) == service


@pytest.mark.parametrize(("status", "headers", "start"), PAGES)
def test_a_page_is_no_challenge_for_what_it_carries_or_tells(
    status: int, headers: dict[str, str], start: bytes
) -> None:
    assert challenge(status, headers, start) is None
