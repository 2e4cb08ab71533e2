r"""Foreign text into Markdown: harmless for what renders it, readable for who opens the file.

Text of strangers becomes one line without control, bidirectional or invisible characters, with every character that
Markdown, wiki links, tags, mathematics or front matter could take as markup escaped by a backslash, which CommonMark
promises to show as the character itself, and HTML's own as entities. Nothing is dropped that a reader would see.
"""

import html
import re
from urllib.parse import quote

from wikikeeper.policy.paragraphs import clean

_MARKUP = re.compile(r"([\\`*_{}\[\]#|~$^=%])")
"""`$`, `=`, `%`, `^` for Obsidian's mathematics, highlights, comments and block ids."""
_HTML: dict[str, str | int | None] = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""By entity, not by backslash: older dialects (Python-Markdown) take `\\<` for a backslash before a tag."""
_LEADING = re.compile(r"^([-+]|\d{1,9}(?=[.)]))")
"""What opens a list, a rule or a front matter fence at the start of a line."""
_BARE_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(:)|\b(www)(\.)")
"""What GitHub's dialect makes a link of without any brackets."""
_HTTP = re.compile(r"(?i)https?://[^/\\]")
_RELATIVE = re.compile(r"(?:\.\./)*[\w%~-][^:/\\]*(?:/|\Z)")
"""No scheme and no `//host`, however a browser might read it: no colon or backslash before the first slash."""
_ENTITY = re.compile(r"&(?=#?\w+;)")

TITLE_CHARS = 200
"""A heading longer than this is no longer read as one."""


def one_line(text: str) -> str:
    """NFC, one line, single spaces, nothing that a reader can't see: as paragraphs are stored."""
    return clean(text)


def escape(text: str) -> str:
    r"""`text` as Markdown that shows exactly `one_line(text)` and does nothing.

    A paragraph of it starts no block, opens no link, image, tag or HTML, and bare addresses stay text.
    """
    escaped = _MARKUP.sub(r"\\\1", one_line(text)).translate(str.maketrans(_HTML))
    escaped = _BARE_LINK.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"{m[3]}\\{m[4]}", escaped)
    return _LEADING.sub(_escape_leading, escaped)


def _escape_leading(match: re.Match[str]) -> str:
    # A digit cannot be escaped, the delimiter behind it can.
    return f"\\{match[1]}" if match[1] in "-+" else f"{match[1]}\\"


def unescape(markdown: str) -> str:
    """The text that an escaped line shows."""
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown))


def title(text: str) -> str:
    """A heading's text: escaped, cut at a word where it is very long, never empty."""
    line = one_line(text)
    if len(line) > TITLE_CHARS:
        head = line[:TITLE_CHARS]
        line = head.rsplit(" ", 1)[0] if " " in head[TITLE_CHARS // 2 :] else head
    return escape(line) or "(no title)"


def link(target: str, shown: str) -> str:
    """A link to an http(s) address or a relative path, percent-encoded so that it cannot end early.

    `target` has its own percent signs encoded already. Any other address is shown without a link.
    """
    if not _HTTP.match(target) and not _RELATIVE.match(target):
        return escape(shown)
    encoded = quote(target, safe="%/:?#@!&'*+,;=~-._$", errors="replace")
    # What reads like an entity would be taken for one, and another page would be linked.
    return f"[{escape(shown)}](<{_ENTITY.sub('&amp;', encoded)}>)"
