"""What kind of document a response is: what its first bytes show counts more than what its header says."""

import re

PDF = "application/pdf"
HTML = "text/html"
XHTML = "application/xhtml+xml"
XML = "application/xml"
PLAIN = "text/plain"
MARKDOWN = "text/markdown"

PAGES = frozenset({HTML, XHTML, PDF, PLAIN, MARKDOWN})
"""What text can be read from. Markdown counts: projects publish their release notes as such."""
FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml", XML, "text/xml", HTML, PLAIN})
"""What feeds are served as, rightly or wrongly."""

START = 1024
"""Bytes that decide: the marker of a PDF may come anywhere in them (PDF 1.7, implementation note 13)."""

_SAYS_NOTHING = frozenset(
    f"application/{name}" for name in ("octet-stream", "x-octet-stream", "download", "x-download", "force-download")
) | {"binary/octet-stream", "application/binary", "application/unknown", "unknown/unknown", "content/unknown", "*/*"}
_SAME_AS = {"text/x-markdown": MARKDOWN, "application/x-pdf": PDF, "text/xhtml": XHTML}
_SUFFIXES = {".html": HTML, ".htm": HTML, ".pdf": PDF, ".txt": PLAIN, ".md": MARKDOWN}

_BINARY = re.compile(
    rb"""(?xs)
      PK(?: \x03\x04 | \x05\x06 | \x07\x08 )                                            # zip, docx, epub, jar
    | \x1f\x8b | BZh[1-9] | \xfd7zXZ\x00 | 7z\xbc\xaf\x27\x1c | Rar!\x1a\x07 | \x28\xb5\x2f\xfd   # other archives
    | \x89PNG\r\n\x1a\n | \xff\xd8\xff | GIF8[79]a | II\*\x00 | MM\x00\* | \x00\x00\x01\x00 | RIFF.{4}(?:WEBP|WAVE|AVI\x20)
    | .{4}ftyp | \x1aE\xdf\xa3 | OggS\x00 | fLaC\x00 | ID3[\x02-\x04] | \xff[\xf2\xf3\xfb] | \x00\x00\x01[\xb3\xba]  # film, sound
    | \x7fELF | MZ.{0,60}\x00 | \xca\xfe\xba\xbe | \xcf\xfa\xed\xfe | \x00asm           # programs
    | wOF[F2] | OTTO\x00 | \x00\x01\x00\x00\x00 | \xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 | SQLite\x20format\x203\x00
    """
)
_BLANK = rb"(?:\xef\xbb\xbf)?\s*"
_PDF = re.compile(_BLANK + rb"%PDF-")
_XML = re.compile(_BLANK + rb"<\?xml\b")
_MARKUP = re.compile(
    _BLANK + rb"(?P<xml><\?xml\b[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|link|script|style|div|h1|p|table|article|main)[\s>/]",
    re.IGNORECASE | re.DOTALL,
)
_FEED = re.compile(_BLANK + rb"<(?:rss|feed|rdf:RDF)[\s>]")
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:+-]+)""", re.IGNORECASE)


def media_type(declared: str | None, start: bytes, accepted: frozenset[str]) -> str | None:
    """The type to treat a document as, None when it is none of the accepted ones.

    `declared`: the Content-Type header as it came. `start`: the first `START` bytes of the decoded body, or all there
    is. A PDF is one under any header; an archive, picture, film or program is never a page; a header that says nothing
    leaves it to the bytes.
    """
    if _BINARY.match(start):
        return None
    name = essence(declared)
    vague = name is None or name in _SAYS_NOTHING
    if _PDF.match(start) or ((vague or name == PDF) and b"%PDF-" in start):
        kind: str | None = PDF
    elif name == PDF:  # a login or error page sent under the PDF's header
        kind = _markup(start)
    elif vague:
        kind = _markup(start) or (PLAIN if name is None and _is_text(start) else None)
    elif name in (XML, "text/xml") and _markup(start) in (HTML, XHTML):
        kind = XHTML
    elif name in (PLAIN, MARKDOWN) and not _is_text(start):
        kind = None
    else:
        kind = name
    return kind if kind in accepted else None


def saved_type(suffix: str, start: bytes) -> str | None:
    """The same for a saved page, by the ending of its name (".html"), in any case."""
    declared = _SUFFIXES.get(suffix.lower())
    return None if declared is None else media_type(declared, start, PAGES)


def essence(declared: str | None) -> str | None:
    """The bare type of a Content-Type header in lower case; None where there is none that is one."""
    name = re.split("[;,]", declared or "", maxsplit=1)[0].strip().lower()
    return _SAME_AS.get(name, name) if "/" in name else None


def charset(declared: str | None) -> str | None:
    """The charset that a Content-Type header names, as it is spelled there."""
    match = _CHARSET.search(declared or "")
    return match[1] if match else None


def _markup(start: bytes) -> str | None:
    if match := _MARKUP.match(start):
        return XHTML if match["xml"] else HTML
    return XML if _XML.match(start) or _FEED.match(start) else None


def _is_text(start: bytes) -> bool:
    return b"\0" not in start or start.startswith(_WIDE_BOMS)
