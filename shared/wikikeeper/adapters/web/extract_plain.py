"""Plain text and Markdown to blocks. Runs in the child process only."""

import re

from wikikeeper.adapters.web.extract_page import Page

_EMPTY_LINES = re.compile(r"\n[^\S\n]*\n")
_ITEM = re.compile(r"\n(?=[^\S\n]*(?:[-*+•]|\d{1,3}[.)])\s)")
_HEADING = re.compile(r"(?m)^#{1,6}\s+(.+?)\s*#*$")
_UNDERLINED = re.compile(r"(?m)^(\S.*)\n(?:=+|-{3,})\s*$")
_COMMENT = re.compile(r"<!--(.*?)-->", re.S)


def read_plain(text: str, *, markdown: bool) -> Page:
    """Blocks at empty lines and list items. Markdown stays as it was written; the title is its first heading.

    HTML comments in Markdown are concealed: whoever renders it does not show them.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    concealed = [comment.strip() for comment in _COMMENT.findall(text)] if markdown else []
    visible = _COMMENT.sub(" ", text) if markdown else text
    heading = _HEADING.search(visible) or _UNDERLINED.search(visible)
    blocks = [item for block in _EMPTY_LINES.split(visible) for item in _ITEM.split(block)]
    return Page(heading[1] if heading else "", blocks, visible, concealed, "plain")
