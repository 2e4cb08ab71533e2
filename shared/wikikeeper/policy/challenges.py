"""Pages that stand in front of a page: "are you human", not what was asked for.

Only what no ordinary page carries counts. Services put their scripts into every page they protect, and articles about
them name them, so a script's address or a name alone shows nothing: a header, the title or the page's own marker does.
"""

import re
from collections.abc import Mapping

START = 16_384
"""Bytes of a body that are looked at: these pages are small, and what shows them stands in the head or just below."""

_HEADERS = (
    ("cf-mitigated", re.compile("challenge"), "cloudflare"),
    ("x-vercel-mitigated", re.compile("challenge"), "vercel"),
    ("x-amzn-waf-action", re.compile("challenge|captcha"), "aws_waf"),
    ("x-datadome", re.compile("protected"), "datadome"),
)
"""On every answer with one of them the page itself was held back, except DataDome's, which needs a refusing status."""

_BODIES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (rb"<title>\s*(?:just a moment\.\.\.|attention required! \| cloudflare)\s*</title>", "cloudflare"),
        (rb"window\._cf_chl_opt\s*=", "cloudflare"),
        (rb"<title>\s*ddos-guard\s*</title>", "ddos_guard"),
        (rb"<title>\s*access to this page has been denied\.?\s*</title>", "perimeterx"),
        (rb"request unsuccessful\. incapsula incident id", "imperva"),
        (rb"<title>\s*sucuri website firewall - access denied\s*</title>|sucuri_cloudproxy_js\s*=", "sucuri"),
        (
            rb"<title>\s*making sure you(?:'|&#39;|\xe2\x80\x99)re not a bot!\s*</title>|id=\"anubis_challenge\"",
            "anubis",
        ),
        (rb"<title>\s*vercel security checkpoint\s*</title>", "vercel"),
        (rb"<script[^>]{0,200}src=\"https://(?:geo|ct)\.captcha-delivery\.com/", "datadome"),
        (rb"awswafcookiedomainlist\s*=", "aws_waf"),
    )
)
_REFUSING = frozenset({401, 403, 405, 429, 503})


def challenge(status: int, headers: Mapping[str, str], start: bytes) -> str | None:
    """Which service's challenge an answer is, None when it is none.

    `headers`: names in lower case. `start`: the first `START` bytes of the decoded body. Any status: some come with 200.
    """
    for name, value, service in _HEADERS:
        if value.search(headers.get(name, "").lower()) and (service != "datadome" or status in _REFUSING):
            return service
    head = start[:START].lower()
    return next((service for pattern, service in _BODIES if pattern.search(head)), None)
