"""Which keys a wiki takes: the same on a folder and in a bucket, so that one can become the other.

Reading is refused only what could lead out of the wiki; a person may name files as their system allows. What we write
must have a name that every system can hold.
"""

import re
import unicodedata

from wikikeeper.errors import Unusable

LONGEST_SEGMENT = 255
"""Bytes of one file or folder name on ext4, APFS and, for what is not Chinese or Japanese, NTFS."""
LONGEST_KEY = 1024
"""Bytes of a key in S3."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FORBIDDEN_ON_WINDOWS = re.compile(r'[<>:"|?*]')
_RESERVED_ON_WINDOWS = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)", re.IGNORECASE)


def readable(key: str) -> str:
    """The key in NFC, safe to look up.

    Raises Unusable for one that is absolute, climbs, is hidden, too long, or has an empty segment, a backslash or a NUL.
    """
    normal = unicodedata.normalize("NFC", key)
    fault = _fault(normal)
    if fault is not None:
        raise Unusable(f"{_shown(key)} cannot be a file of the wiki: {fault}")
    return normal


def writable(key: str) -> str:
    """The key in NFC, safe to make on every system. Raises Unusable as `readable` does, and for unportable names."""
    normal = readable(key)
    for segment in normal.split("/"):
        if _CONTROL.search(segment) or _FORBIDDEN_ON_WINDOWS.search(segment):
            raise Unusable(
                f'{_shown(key)} cannot be written: {_shown(segment)} has one of <>:"|?* or a control character'
            )
        if _RESERVED_ON_WINDOWS.match(segment):
            raise Unusable(f"{_shown(key)} cannot be written: {_shown(segment)} is a device on Windows")
        if segment[-1] in ". ":
            raise Unusable(f"{_shown(key)} cannot be written: {_shown(segment)} ends with a dot or a space")
    return normal


def folder(prefix: str) -> str:
    """A prefix in NFC, without its final slash. Raises Unusable where a key below it would."""
    if not prefix.endswith("/"):
        raise Unusable(f"{_shown(prefix)} is no folder of the wiki: it must end with a slash")
    return readable(prefix[:-1])


def is_readable(key: str) -> bool:
    """Whether `readable` takes a key that is in NFC."""
    return _fault(key) is None


def _fault(key: str) -> str | None:
    if "\0" in key:
        return "it has a NUL character"
    if "\\" in key:
        return "use forward slashes"
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if size > LONGEST_KEY:
        return f"it is longer than {LONGEST_KEY} bytes"
    for segment in key.split("/"):
        if not segment:
            return "it is empty, starts or ends with a slash, or has two in a row"
        if segment.startswith("."):
            return "a part of it is hidden, or climbs out of its folder"
        if len(segment.encode()) > LONGEST_SEGMENT:
            return f"a part of it is longer than {LONGEST_SEGMENT} bytes"
    return None


def _shown(name: str) -> str:
    """On one line and short, whatever it holds."""
    return ascii(name if len(name) <= 100 else name[:97] + "...")  # about a line of a terminal
