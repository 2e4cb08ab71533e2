"""PDF to text, by pdfium. Runs in the child process only."""

import re
from collections.abc import Iterator

import pypdfium2

from wikikeeper.adapters.web.extract_page import Page

MOST_PAGES = 200
MOST_CHARS = 400_000
"""Pages and characters that are read: several times what is ever judged, within a small part of the time limit."""

_ENDED = re.compile(r"[.!?:。！？：][\"'”’»)\]」』）]*$")
_ITEM = re.compile(r"[•‣◦▪–*-]\s|\(?\d{1,3}[.)]\s")
_FULL = 0.8
"""A line shorter than this share of the longest on its page ends its paragraph, if a sentence ends there too."""
_CUT_WORD = re.compile("\ufffe\\s?|\u00ad\\s|\x02\\s?")
"""How pdfium marks a hyphen at the end of a line: the word goes on."""


class UnreadablePdf(Exception):
    """Damaged, or locked by a password."""


def read_pdf(body: bytes) -> Page:
    """The text of a PDF, page by page. Text that a PDF paints invisibly can't be told from the rest."""
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise UnreadablePdf(str(error)) from error
    try:
        title = str(document.get_metadata_dict().get("Title", ""))
        blocks: list[str] = []
        left = MOST_CHARS
        for number in range(min(len(document), MOST_PAGES)):
            page = document[number]
            text = page.get_textpage().get_text_range()
            blocks += _blocks(text[:left])
            left -= len(text)
            if left <= 0:
                break
    finally:
        document.close()
    return Page(title, blocks, "\n".join(blocks), [], "pdf")


def _blocks(text: str) -> Iterator[str]:
    """The paragraphs of one page, from its lines."""
    lines = [line.strip() for line in _CUT_WORD.sub("", text.replace("\r\n", "\n")).split("\n")]
    longest = max(map(len, lines), default=0)
    block: list[str] = []
    for line in lines:
        if block and (not line or _ITEM.match(line)):
            yield " ".join(block)
            block = []
        if line:
            block.append(line)
            if _ENDED.search(line) and len(line) < _FULL * longest:
                yield " ".join(block)
                block = []
    if block:
        yield " ".join(block)
