"""Slugs: names that can be a file name on every system, and stay the same on all of them."""

import hashlib
import re
import unicodedata

MAX_CHARS = 80
"""Long enough for a headline, short enough to read in a list of files."""
MAX_BYTES = 180
"""In UTF-8. File names end at 255 bytes on most systems; a note adds a date and a hash, a safe write its own ending."""
RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"}
)
"""Windows opens a device under these names, whatever the ending."""
HASH_CHARS = 6
"""Tells long names apart that begin alike; a wiki has hundreds of topics, not millions."""


def slugify(text: str) -> str:
    """Letters, marks and digits of any script in lower case and NFC, joined by single hyphens. "" where there are none.

    A slug is its own slug. What is too long is cut and ends in a hash of the whole, so different names stay different.
    """
    plain = _plain(text)
    if len(plain) > MAX_CHARS or len(plain.encode()) > MAX_BYTES:
        ending = "-" + hashlib.sha256(plain.encode()).hexdigest()[:HASH_CHARS]
        plain = _cut(plain, MAX_CHARS - len(ending), MAX_BYTES - len(ending)).rstrip("-") + ending
    return f"the-{plain}" if plain in RESERVED else plain


def twin_key(slug: str) -> str:
    """Equal for slugs that some file system takes for the same name (case, sharp s, final sigma)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", slug).casefold())


def _plain(text: str) -> str:
    lowered = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    # Zero-width and direction characters inside a word are no gap in it.
    kept = "".join(char if _belongs(char) else "-" for char in lowered if unicodedata.category(char) != "Cf")
    # A mark with no letter before it would join the hyphen.
    return re.sub(r"-+", "-", _without_stray_marks(kept)).strip("-")


def _belongs(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"


def _without_stray_marks(text: str) -> str:
    out: list[str] = []
    for char in text:
        if unicodedata.category(char)[0] == "M" and (not out or out[-1] == "-"):
            continue
        out.append(char)
    return "".join(out)


def _cut(text: str, chars: int, size: int) -> str:
    return text[:chars].encode()[:size].decode(errors="ignore")
