"""Addresses of pages: when two are the same page, how a sloppy one is mended, what of one may be written down.

`canonical` is an identity, not a place to connect to: what is fetched, and what notes link to, is the address as found.
"""

import re
import unicodedata
from pathlib import PurePosixPath
from urllib.parse import quote, unquote_to_bytes

from wikikeeper.policy.redaction import redact
from wikikeeper.policy.url_parts import (
    DEFAULT_PORTS,
    MAX_LENGTH,
    PATH_SAFE,
    QUERY_SAFE,
    Parts,
    parse,
    without_dots,
)

__all__ = ["canonical", "folder_url", "redact", "saved_path", "wellformed"]

TRACKING_PREFIXES = (
    "utm_",  # Google Analytics and everyone after it
    "pk_",  # Piwik
    "mtm_",  # Matomo
    "hsa_",  # HubSpot ads
    "_hs",  # HubSpot mail
    "vero_",  # Vero
    "oly_",  # Omeda
    "amp_",  # what AMP caches and viewers add
)
"""Parameters that begin so say where a reader came from, never which page it is. Compared in lower case."""

TRACKING = frozenset(
    """
    fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid twclid ttclid li_fat_id igshid igsh epik srsltid s_kwcid ef_id
    mc_cid mc_eid mkt_tok _ga _gl ref_src ref_url cmpid ncid smid xtor wt_mc wt.mc_id icid _openstat rb_clickid
    soc_src soc_trk guccounter guce_referrer guce_referrer_sig usqp __twitter_impression at_medium at_campaign
    """.split()
)
"""Whole names of the same kind. `ref`, `source`, `id` and the like are not among them: they often choose the page."""

AMP_VALUES = {
    "amp": ("", "1", "true"),
    "outputtype": ("amp",),
    "output": ("amp",),
}
"""Parameters that ask for the AMP variant by these values only."""

AMP_ENDINGS = (("/amp", ""), ("/amp.html", ""), (".amp.html", ".html"), (".amp", ""))
AMP_BEGINNING = "/amp/"
_SAME_SITE = ("www.", "amp.")
_CACHE = re.compile(r"/[a-z]+/(?P<tls>s/)?(?P<page>[^/]+\.[^/]+(?:/.*)?)")
"""`/c/s/www.example.com/x`: kind of content (c, v, i, wp; amp at Google), "s" for https, the page without its scheme."""
_GOOGLE = re.compile(r"(?:www\.)?google(?:\.[a-z]{2,3}){1,2}")
_CACHES = (".cdn.ampproject.org", ".bing-amp.com")

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_ASCII_ESCAPE = re.compile(r"(%[0-7][0-9A-F])")
_FILE = re.compile(r"file:///(?P<path>[^?#]+)", re.I)


def canonical(url: str) -> str:
    """The identity of a page within a topic.

    The scheme of default ports becomes https, and "www." goes: sites answer on either, and one page saved twice is
    what people complain of. Other ports keep their scheme. Host in lower-case ASCII, percent-encoding in one spelling
    (text in NFC), tracking parameters and fragment dropped, AMP variants mapped to their page, no trailing slash. The
    parameters that are left keep their order, for to some servers it matters: two pages taken for one lose one
    silently, one taken for two costs a call at most, since its text is folded.

    Idempotent. Raises ValueError, with one line that says why, for what is no http(s) or folder address.
    """
    if url.strip()[:5].lower() == "file:":
        return folder_url(PurePosixPath(unicodedata.normalize("NFC", str(saved_path(url)))))
    parts = parse(url)
    # A step may bare the next one (an AMP cache's copy of an AMP page); each makes the address shorter.
    while (simpler := _simpler(parts)) != parts:
        parts = simpler
    scheme = "https" if parts.port == DEFAULT_PORTS[parts.scheme] else parts.scheme
    port = DEFAULT_PORTS[scheme] if scheme != parts.scheme else parts.port
    result = Parts(scheme, parts.host, port, parts.path, parts.query).url
    if len(result) > MAX_LENGTH:
        raise ValueError(f"longer than {MAX_LENGTH} characters")
    return result


def wellformed(url: str) -> str:
    """The same address as a client may send it: trimmed, spaces and umlauts encoded, the fragment dropped.

    For what search engines and feeds hand out. Raises ValueError, with one line that says why, when there is no
    address or none that is http(s).
    """
    return parse(url).url


def folder_url(relative: PurePosixPath) -> str:
    """The `file:` address of a saved page by its path below the wiki's root.

    Raises ValueError for a path that is absolute, empty or climbs.
    """
    if relative.is_absolute() or not relative.parts or ".." in relative.parts or "\0" in str(relative):
        raise ValueError("not a path below the wiki")
    try:
        # Names that are not UTF-8 come from the system with surrogates in them, and go back to it the same way.
        return "file:///" + "/".join(quote(part.encode("utf-8", "surrogateescape"), safe="") for part in relative.parts)
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair in a path") from None


def saved_path(url: str) -> PurePosixPath:
    """The inverse of `folder_url`. Raises ValueError for any other `file:` address."""
    match = _FILE.fullmatch(url.strip())
    if match is None:
        raise ValueError("not the address of a saved page (file:///<path below the wiki>)")
    try:
        names = [unquote_to_bytes(name).decode("utf-8", "surrogateescape") for name in match["path"].split("/")]
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair in a path") from None
    if any(name in ("", ".", "..") or "/" in name or "\0" in name for name in names):
        raise ValueError("not a path below the wiki")
    return PurePosixPath(*names)


def _simpler(parts: Parts) -> Parts:
    inner = _cached_page(parts)
    if inner is not None:
        return inner
    path = _spelled(parts.path, PATH_SAFE)
    while (shorter := _without_amp(without_dots(path).rstrip("/"))) != path:
        path = shorter
    return Parts(parts.scheme, _site(parts.host), parts.port, path or "/", _without_tracking(parts.query))


def _without_amp(path: str) -> str:
    for ending, instead in AMP_ENDINGS:
        if path.lower().endswith(ending):
            return path[: -len(ending)] + instead
    return path[len(AMP_BEGINNING) - 1 :] if path.lower().startswith(AMP_BEGINNING) else path


def _site(host: str) -> str:
    for prefix in _SAME_SITE:
        rest = host.removeprefix(prefix)
        if rest != host and "." in rest:  # amp.dev is a site of its own
            return rest
    return host


def _cached_page(parts: Parts) -> Parts | None:
    """The page behind an AMP cache's address, None when it is not one."""
    viewer = _GOOGLE.fullmatch(parts.host) and parts.path.startswith(AMP_BEGINNING)
    match = _CACHE.fullmatch(parts.path) if viewer or parts.host.endswith(_CACHES) else None
    if match is None:
        return None
    page = f"{'https' if match['tls'] else 'http'}://{match['page']}"
    try:
        return parse(page if parts.query is None else f"{page}?{parts.query}")
    except ValueError:  # what follows is no address, so this is not a cache's page but one of its own
        return None


def _without_tracking(query: str | None) -> str | None:
    kept: list[str] = []
    for parameter in (query or "").split("&"):
        name, equals, value = parameter.partition("=")
        name, value = _spelled(name, QUERY_SAFE), _spelled(value, QUERY_SAFE)
        lower = name.lower()
        tracks = lower in TRACKING or lower.startswith(TRACKING_PREFIXES)
        if (name or value) and not tracks and value.lower() not in AMP_VALUES.get(lower, ()):
            kept.append(name + equals + value)
    return "&".join(kept) or None


def _spelled(text: str, safe: str) -> str:
    """One spelling of percent-encoded text: nothing encoded that may stand raw, capital hex digits, NFC."""
    text = _ESCAPE.sub(_unreserved, text)
    # Composed piece by piece, so that a combining mark never merges with the hex digits of an encoded "<" or "%".
    pieces = _ASCII_ESCAPE.split(text)
    return "".join(piece if index % 2 else _composed(piece, safe) for index, piece in enumerate(pieces))


def _unreserved(escape: re.Match[str]) -> str:
    byte = int(escape[0][1:], 16)
    return chr(byte) if byte in _UNRESERVED else escape[0].upper()


def _composed(piece: str, safe: str) -> str:
    text = unquote_to_bytes(piece).decode("utf-8", "surrogateescape")
    return quote(unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape"), safe=safe)
