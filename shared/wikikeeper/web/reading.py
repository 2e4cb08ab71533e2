"""A note as a page: CommonMark with HTML and pictures off, links to the web alone."""

import re
from collections.abc import MutableMapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from wikikeeper.models import Value
from wikikeeper.policy.front_matter import Broken, parse
from wikikeeper.web.render import linkable

MOST_BYTES = 2_000_000
"""Of a note that is rendered: a hundred times a full one."""
_MARK = re.compile(r"^<!-- result: [0-9a-f]{24} -->[ \t]*\r?\n?", re.MULTILINE)
"""By which an entry is found again; nothing for readers."""
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Turns the text after it round, beyond its own line. Right-to-left scripts need none of it."""
_DEEPEST = 6


class ReadNote(Value):
    """What a reader sees of a note."""

    fields: tuple[tuple[str, str], ...]
    """Front matter, as it is written."""
    html: Markup

    model_config = Value.model_config | {"arbitrary_types_allowed": True}


def read_note(data: bytes) -> ReadNote:
    """Never fails: a file that is no note is shown as the Markdown it is."""
    text = data[:MOST_BYTES].decode("utf-8", "replace")
    parsed = parse(text)
    fields: tuple[tuple[str, str], ...] = ()
    if not isinstance(parsed, Broken):
        fields = tuple((name, str(field.plain)) for name, field in parsed.fields.items())
        text = parsed.body
    # What the renderer makes is safe: it escapes all text, and our own rules below decide about links.
    return ReadNote(fields=fields, html=Markup(_MARKDOWN.render(_DIRECTION.sub("", _MARK.sub("", text)))))  # noqa: S704


def _link_open(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    if not linkable(str(token.attrGet("href") or "")):
        # A page of the wiki, or a scheme that does something: its text stays, and where it would lead is no longer said.
        token.attrs = {"class": "no-link"}
        token.tag = "span"
        _closing(tokens, index).tag = "span"
        return self.renderToken(tokens, index, options, env)
    token.attrSet("rel", "noopener noreferrer nofollow")
    return self.renderToken(tokens, index, options, env)


def _closing(tokens: Sequence[Token], index: int) -> Token:
    # Links do not nest in CommonMark.
    return next(token for token in tokens[index:] if token.type == "link_close")


def _image(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    # A picture would tell its server who reads what. What it shows in words is all that is shown.
    described = self.renderInlineAsText(tokens[index].children, options, env)
    return f'<span class="no-link">{escape(described)}</span>'


def _heading(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    # The page has its own first heading, so those of the note are one deeper.
    tokens[index].tag = f"h{min(int(tokens[index].tag[1]) + 1, _DEEPEST)}"
    return self.renderToken(tokens, index, options, env)


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    markdown.add_render_rule("image", _image)
    markdown.add_render_rule("link_open", _link_open)
    markdown.add_render_rule("heading_open", _heading)
    markdown.add_render_rule("heading_close", _heading)
    return markdown


_MARKDOWN = _markdown()
