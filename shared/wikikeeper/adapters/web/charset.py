"""From bytes to text, once: byte order mark, what the bytes are, what header and page declare, a guess, windows-1252."""

import codecs
import re

from charset_normalizer import from_bytes

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

_AS_BROWSERS_READ_IT = {
    # What pages call the left is, by the WHATWG's Encoding Standard, read as the right.
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
_OTHER_NAMES = {
    # Labels that browsers know and Python does not.
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-gbk": "gb18030",
    "gb_2312-80": "gb18030",
    "x-euc-jp": "euc_jp",
    "windows-949": "cp949",
    "ks_c_5601-1987": "cp949",
    "x-x-big5": "big5hkscs",
    "x-cp1250": "cp1250",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "dos-874": "cp874",
    "iso-8859-8-i": "iso8859-8",
    "iso-8859-6-e": "iso8859-6",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-roman": "mac-roman",
    "unicode-1-1-utf-8": "utf-8",
    "utf8": "utf-8",
}
_CODECS = frozenset(
    {"utf-8", "utf-16-le", "utf-16-be", "gb18030", "big5hkscs", "cp932", "euc_jp", "iso2022_jp", "cp949", "koi8-r"}
    | {"koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874"}
    | {f"cp{number}" for number in range(1250, 1259)}
    | {f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
)
"""What a page may ask for: the encodings of the web, none of Python's other codecs (rot13, unicode_escape, idna)."""

_META = re.compile(rb"<meta\b[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", re.I)
_XML = re.compile(rb"^\s*<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([\w:.-]{1,40})", re.I)
_TAG = re.compile(rb"<script\b.*?</script|<style\b.*?</style|<[^>]{0,2000}>", re.I | re.S)
_HEAD = 8192
"""Bytes in which a page declares its encoding. Browsers look at 1,024; pages with much in their head put it later."""
_SAMPLE = 65_536
"""Bytes of a page from which its encoding is guessed: more costs time and changes no guess."""
_BROKEN = 0.1
"""Share of the letters beyond ASCII that a declared encoding may fail on: pages glue foreign pieces and cut characters
in half. A wrong encoding fails on nearly all of them."""
_ESCAPE = b"\x1b"


def decode(body: bytes, declared: str | None = None) -> str:
    """The text of a body. `declared` is the charset parameter of its content type.

    Bytes that are valid UTF-8 are UTF-8, whatever anybody declares: no other text looks like that by chance. Never
    fails; what no encoding explains comes out as replacement characters.
    """
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    if _ESCAPE not in body and (text := _strict(body, "utf-8")) is not None:
        return text
    named = [codec for codec in (codec_of(declared), *_declared_inside(body)) if codec is not None]
    for codec in named:
        if (text := _strict(body, codec)) is not None:
            return text
    for codec in (*named, "utf-8"):
        text = body.decode(codec, "replace")
        if text.count("\ufffd") <= _BROKEN * (len(text) - len(text.encode("ascii", "ignore"))):
            return text
    return body.decode(_guess(body), "replace")


def codec_of(label: str | None) -> str | None:
    """The codec that browsers use for a label; None for none, an unknown one, or one that is not for the web."""
    label = (label or "").strip(" \t\r\n\"'").lower()
    try:
        name = codecs.lookup(_OTHER_NAMES.get(label, label)).name
    except (LookupError, ValueError, UnicodeError):  # ValueError: a NUL in the label
        return None
    name = _AS_BROWSERS_READ_IT.get(name, name)
    return name if name in _CODECS else None


def _declared_inside(body: bytes) -> list[str]:
    labels = [
        match[1].decode("ascii", "replace")
        for match in (_XML.search(body[:_HEAD]), _META.search(body[:_HEAD]))
        if match
    ]
    found = [codec for codec in map(codec_of, labels) if codec is not None]
    # A declaration that could be read as ASCII is not in UTF-16.
    return ["utf-8" if codec.startswith("utf-16") else codec for codec in found]


def _strict(body: bytes, codec: str) -> str | None:
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        return None


def _guess(body: bytes) -> str:
    # Markup is ASCII and would drown the few letters that tell encodings apart.
    sample = _TAG.sub(b" ", body[: 4 * _SAMPLE])[:_SAMPLE]
    best = from_bytes(sample).best()
    return (best is not None and codec_of(best.encoding)) or "cp1252"
