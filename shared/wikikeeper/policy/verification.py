"""Does every quote of a note still stand where it was taken from?

Three things can break: a person edits the quote in the note; the stored paragraphs are not what the verdict says (a
damaged store); the page on the web has changed (only known after fetching it again). Each is said apart. An entry or a
quote that a person deleted is theirs to delete and no fault.

Under an entry a block quote says "this stands on that page". So one that is none of the entry's quotes is reported,
whoever wrote it: a shortened quote can mean the opposite and still be on the page. A person's own quotes have their
place in a section of their own (a heading of level 1 or 2 ends the entry). How lines are wrapped says nothing.
"""

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum

from wikikeeper.models import Quote, Result, StoredPage, Value
from wikikeeper.policy.markdown import one_line
from wikikeeper.policy.notes import Entry
from wikikeeper.policy.ranking import UNSPACED
from wikikeeper.policy.verdict import holds


class Standing(StrEnum):
    HOLDS = "holds"
    EDITED = "edited"
    """The note has a block quote under this result that is none of its quotes: changed, shortened or added."""
    SOURCE_DIFFERS = "source_differs"
    """The stored paragraphs do not have the quote at its place."""
    SOURCE_GONE = "source_gone"
    """The quote is as it was taken, but the stored paragraphs are no longer kept; `--refetch` can still look."""
    UNKNOWN_RESULT = "unknown_result"
    """The run store knows no such result."""
    NOT_ON_PAGE = "not_on_page"
    """The page as it is on the web now does not have it."""
    UNREACHABLE = "unreachable"
    """The page could not be fetched again, so nothing is known."""


FAULTS = frozenset(Standing) - {Standing.HOLDS, Standing.SOURCE_GONE, Standing.UNREACHABLE}
"""What makes `verify` say that something does not hold. A page that is down, or no longer stored because its time was
over, says nothing of its quotes."""


class Check(Value):
    """What was found about one quote."""

    note: str
    result: str
    quote: str
    standing: Standing
    detail: str = ""


def check_entry(note: str, entry: Entry, result: Result | None, page: StoredPage | None) -> list[Check]:
    """Check one entry as it stands in the note against the verdict and the stored paragraphs."""
    if result is None or result.verdict is None:
        quotes = entry.quotes or ("",)
        return [Check(note=note, result=entry.result, quote=q, standing=Standing.UNKNOWN_RESULT) for q in quotes]
    by_text = {_unwrapped(quote.text): quote for quote in result.verdict.quotes}
    checks = []
    for shown in entry.quotes:
        quote = by_text.get(_unwrapped(shown))
        standing = Standing.EDITED if quote is None else _in_store(quote, page)
        checks.append(Check(note=note, result=result.id, quote=shown, standing=standing))
    return checks


def _in_store(quote: Quote, page: StoredPage | None) -> Standing:
    if page is None:
        return Standing.SOURCE_GONE
    return Standing.HOLDS if holds(quote, page.paragraphs) else Standing.SOURCE_DIFFERS


_WRAPPED = re.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


def _unwrapped(text: str) -> str:
    # An editor wraps between any two characters of these scripts, where a space stands for nothing.
    return _WRAPPED.sub("", one_line(text))


def on_page(quote: str, paragraphs: Sequence[str]) -> bool:
    """Is a quote on a page that was fetched anew?

    Typographic quotes, dashes and spaces may differ, and where paragraphs end; words may not.
    """
    wanted, page = fold(quote), fold(" ".join(paragraphs))
    # Whole words: "the cat" is not in "the category". Scripts without spaces have no such borders.
    before = f"(?<!{_LETTER})" if re.match(_LETTER, wanted) else ""
    after = f"(?!{_LETTER})" if re.match(_LETTER, wanted[-1:]) else ""
    return re.search(before + re.escape(wanted) + after, page) is not None


_LETTER = rf"[^\W{UNSPACED}]"
_SAME = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u2039\u203a\u00b4\u2032", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
)
_RAISED = re.compile("[\u00b2\u00b3\u00b9\u2070-\u209f]")
"""10² is not 102."""


def fold(text: str) -> str:
    """What stays of a text when a site changes its typography only."""
    text = _RAISED.sub(lambda match: f"^{match[0]}", text.translate(_SAME))
    return " ".join(unicodedata.normalize("NFKC", text).split())
