"""What the readers of HTML, PDF and plain text have in common: the shape of what they find."""

from typing import NamedTuple


class Page(NamedTuple):
    """What a page holds."""

    title: str
    blocks: list[str]
    """The main text, raw: not cleaned, not yet paragraphs."""
    visible: str
    """All text that a reader sees, main or not, raw; no line holds text of two blocks."""
    concealed: list[str]
    """What a reader does not see."""
    extractor: str
    """What gave the text, as `Extract` names it."""
