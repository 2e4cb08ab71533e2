"""Text that a reader of the rendered page does not see: found, taken out of the tree, and handed over apart.

Only what the page itself says is looked at: attributes, inline style, and simple rules in its own style sheets. What
linked style sheets hide stays unknown, and stays in the text. Attributes such as `alt` are neither: they are never
part of the text, so nothing in them is judged or quoted.
"""

import re
from collections.abc import Iterator

from lxml.etree import Comment, strip_elements
from lxml.html import HtmlElement

from wikikeeper.adapters.web.extract_style import Hidden, Sheet, Style, declarations, hides

_NEVER_SHOWN = frozenset({"noscript", "template"})
_NOT_TEXT = frozenset({"script", "style"})
_WHOLE_PAGE = frozenset({"html", "head", "body"})
"""Hidden only until a script shows them: against flicker, or against being framed."""
_TAG = re.compile(r"<[^<>]{0,2000}>")
_SPACE = re.compile(r"\s+")
_FEWEST_WORDS = 3
"""Less is a label ("end header", "ad slot 3"), not text that could tell anybody anything."""


def take_hidden(root: HtmlElement) -> list[str]:
    """Remove from the tree what a reader does not see, comments included, and return the texts in page order.

    Text that only waits for a script (transparent, collapsed) is believed to be hidden unless it would be most of the
    page: then it is how the page fades in.
    """
    sheet = Sheet(style.text or "" for style in root.iter("style") if _is_for_screens(style))
    found = list(_hidden(root, sheet))
    outside = list(root.itersiblings(Comment, preceding=True))[::-1]
    found = [*((comment, Hidden.YES) for comment in outside), *found]
    surely = [element for element, hidden in found if hidden is Hidden.YES]
    waiting = [element for element, hidden in found if hidden is Hidden.UNTIL_SCRIPTED]
    pieces = [(element, text_of(element)) for element in surely]
    for element in surely:
        _blank(element)
    waiting_pieces = [(element, text_of(element)) for element in waiting]
    if 2 * sum(len(text) for _, text in waiting_pieces) <= len(text_of(root)):
        for element in waiting:
            _blank(element)
        pieces += waiting_pieces
    strip_elements(root, Comment, with_tail=False)
    order = {element: place for place, (element, _) in enumerate(found)}
    texts = (text for _, text in sorted(pieces, key=lambda piece: order[piece[0]]))
    return [text for text in texts if text.count(" ") >= _FEWEST_WORDS - 1 or (not text.isascii() and len(text) > 1)]


def _blank(element: HtmlElement) -> None:
    """Leave a comment in its place. All comments are stripped at once in the end: joining the texts around each would
    take time with the square of their number.
    """
    if element.tag is not Comment:
        placeholder = Comment()
        placeholder.tail = element.tail
        element.getparent().replace(element, placeholder)


def text_of(element: HtmlElement) -> str:
    """The text in an element, white space folded; of a comment, what is left without markup."""
    if element.tag is Comment:
        return _fold(_TAG.sub(" ", element.text or ""))
    return _fold(" ".join(_texts(element)))


def _texts(top: HtmlElement) -> Iterator[str]:
    for element in top.iter():
        if isinstance(element.tag, str) and element.tag not in _NOT_TEXT and element.text:
            yield element.text
        if element.tail and element is not top:
            yield element.tail


def _fold(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _is_for_screens(style: HtmlElement) -> bool:
    parent = style.getparent()
    return style.get("media", "all").strip().lower() in {"", "all", "screen"} and (
        parent is None or parent.tag not in _NEVER_SHOWN
    )


def _hidden(root: HtmlElement, sheet: Sheet) -> Iterator[tuple[HtmlElement, Hidden]]:
    """The outermost hidden elements, in page order; also surely hidden ones within those that wait for a script."""
    stack = [(root, Hidden.NO)]
    while stack:
        element, above = stack.pop()
        hidden = _is_hidden(element, sheet)
        if hidden > above and element is not root:
            yield element, hidden
        if hidden is not Hidden.YES:
            stack.extend((child, max(above, hidden)) for child in reversed(element))


def _is_hidden(element: HtmlElement, sheet: Sheet) -> Hidden:
    if element.tag is Comment:
        return Hidden.YES
    tag = element.tag
    if not isinstance(tag, str) or tag in _WHOLE_PAGE or tag in _NOT_TEXT:
        return Hidden.NO
    attributes = element.keys()
    if tag in _NEVER_SHOWN or "hidden" in attributes or (tag == "dialog" and "open" not in attributes):
        return Hidden.YES
    style: Style = {}
    if "class" in attributes or "id" in attributes:
        style = sheet.style_of(tag, element.get("class", ""), element.get("id", ""))
    if "style" in attributes:
        style = {**style, **declarations(element.get("style"))}
    return hides(style) if style else Hidden.NO
