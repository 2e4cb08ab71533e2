"""HTML to text: a tidy tree without hidden parts, then trafilatura for the main text, or resiliparse where that fails.

Runs in the child process only: parsers of hostile input may hang, crash or eat memory.
"""

import re
from collections.abc import Iterator

from lxml.etree import ParserError, iterwalk, tostring
from lxml.html import HtmlElement, HTMLParser, document_fromstring
from resiliparse.extract.html2text import extract_plain_text
from trafilatura import bare_extraction
from trafilatura.settings import Document

from wikikeeper.adapters.web.extract_hidden import take_hidden, text_of
from wikikeeper.adapters.web.extract_page import Page

DEEPEST = 500
"""Levels of nesting that are kept. Browsers flatten at 512; lxml gives up at 2,048, and time grows with the square."""
_LONGEST_TITLE = 1000
"""Characters; more is no title."""
_LEAD = 40
"""Characters of a page's own description that must stand in its text, to be sure that they are the same thing."""
_HEADINGS = ("h1", "h2", "h3")

_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font hi i ins kbd label mark nobr q ref rp rt ruby s samp "
    "small span strike strong sub sup time tt u var wbr".split()
)
"""Elements that do not end a block, of HTML and of trafilatura's trees (hi, ref)."""
_CELLS = frozenset({"cell", "td", "th"})
_BREAKS = frozenset({"br", "lb"})
_PRINTED = frozenset({"code", "pre"})
_NOT_TEXT = frozenset({"script", "style", "noscript", "template"})

_NESTING = re.compile(
    r"<(/?)(?!(?:area|base|br|col|dd|dt|embed|hr|img|input|li|link|meta|option|p|param|source|td|th|tr|track|wbr)\b)"
    r"[a-z][^<>]*>",
    re.I,
)
"""Tags of elements that nest. The others are empty, or closed by the next of their kind."""
_PAGE_END = re.compile(r"</(?:html|body)\s*>", re.I)
"""Browsers read on after it, lxml does not; and templates glued together have several."""
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]"
    r"|&#0*(?:[0-8]|1[1245-9]|2\d|3[01]|127|65534|65535)(?!\d);?"
    r"|&#x0*(?:[0-8bcef]|1[0-9a-f]|7f|fff[ef])(?![0-9a-f]);?",
    re.I,
)
"""Characters that XML has no place for, plain or by number. One of them makes trafilatura give up the whole page."""
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
_ENDED = re.compile(r"[.!?:;…。！？：；][\"'”’»)\]」』）]*\s*$")
_SPACE = re.compile(r"\s+")


def read_html(text: str, *, fast: bool) -> Page:
    """The page in an HTML text. `fast` leaves out the better and slower extractor."""
    extractor = "resiliparse" if fast else "trafilatura"
    root = tree_of(text)
    if root is None:
        return Page("", [], "", [], extractor)
    title, description = _title(root), _description(root)
    concealed = take_hidden(root)
    if not title:
        title = next((heading for heading in map(text_of, root.iter(*_HEADINGS)) if heading), "")
    body = root.find("body")
    visible = list(blocks_of(root if body is None else body))
    if fast:
        blocks = _fast_blocks(root)
    else:
        blocks = _main_blocks(root)
        blocks = _lead(description, visible, blocks) + blocks
    return Page(title[:_LONGEST_TITLE], blocks, "\n".join(visible), concealed, extractor)


def flattened(text: str) -> str:
    """The text without the tags that nest deeper than `DEEPEST`."""
    depth = end = 0
    kept: list[str] = []
    for tag in _NESTING.finditer(text):
        closing = bool(tag[1])
        depth += not closing
        if depth > DEEPEST:
            kept.append(text[end : tag.start()])
            end = tag.end()
        depth = max(0, depth - closing)
    return "".join((*kept, text[end:]))


def tree_of(text: str) -> HtmlElement | None:
    """The tree of an HTML text, of bounded depth; None where there is nothing in it."""
    text = flattened(_PAGE_END.sub("", _CONTROLS.sub("", text)))
    parser = HTMLParser(encoding="utf-8", huge_tree=True, remove_pis=True)
    try:
        # Bytes, since lxml refuses text that says how it was encoded.
        return document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except ParserError:  # nothing but white space or comments
        return None


def _main_blocks(root: HtmlElement) -> list[str]:
    # Comments of readers are left out: they answer the page, they are not what it says.
    found = bare_extraction(root, include_comments=False)
    return list(blocks_of(found.body)) if isinstance(found, Document) else []


def _fast_blocks(root: HtmlElement) -> list[str]:
    html = tostring(root, encoding="unicode", method="html")
    for main_content in (True, False):
        text = extract_plain_text(
            html,
            preserve_formatting=True,
            main_content=main_content,
            list_bullets=False,
            alt_texts=False,
            comments=False,
        )
        if text.strip():
            return text.split("\n")
    return []


def blocks_of(root: HtmlElement) -> Iterator[str]:
    """The text of a tree, block by block: a paragraph, a heading, a list item, a table row, a stanza of code."""
    parts: list[str] = []
    for event, element in iterwalk(root, ("start", "end")):
        starts = event == "start"
        tag = element.tag if isinstance(element.tag, str) else ""
        printed = tag in _PRINTED and starts and "\n" in (element.text or "").strip()
        if tag in _CELLS:
            parts.append(" ")
        elif tag in _BREAKS:
            parts.append(" ")
            if starts and _ENDED.search("".join(parts[-4:])):
                yield from _flushed(parts)
        elif tag not in _INLINE or printed:
            yield from _flushed(parts)
        if printed:
            *stanzas, last = _EMPTY_LINE.split(element.text)
            yield from stanzas
            parts.append(last)
        elif starts and tag not in _NOT_TEXT:
            parts.append(element.text or "")
        elif not starts and element is not root:
            parts.append(element.tail or "")
    yield from _flushed(parts)


def _flushed(parts: list[str]) -> Iterator[str]:
    block = "".join(parts)
    parts.clear()
    if block and not block.isspace():
        yield block


def _lead(description: str, visible: list[str], blocks: list[str]) -> list[str]:
    """The block that the page itself names as its description, where it stands on the page and the text has missed it.

    Standfirsts and summaries often stand outside of what extractors take for the article.
    """
    start = _bare(description)[:_LEAD]
    if len(start) < _LEAD or start in _bare("".join(blocks)):
        return []
    return [block for block in visible if _bare(block).startswith(start)][:1]


def _bare(text: str) -> str:
    return _SPACE.sub("", text)


def _title(root: HtmlElement) -> str:
    titles = [text_of(title) for title in root.iterfind(".//head/title")]
    return next(filter(None, (*titles, _meta(root, "og:title"))), "")


def _description(root: HtmlElement) -> str:
    return _meta(root, "description") or _meta(root, "og:description")


def _meta(root: HtmlElement, name: str) -> str:
    for meta in root.iter("meta"):
        if name in {(meta.get("name") or "").lower(), (meta.get("property") or "").lower()}:
            return _SPACE.sub(" ", meta.get("content") or "").strip()
    return ""
