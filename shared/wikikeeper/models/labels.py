"""Labels: what a person says should have become of a page, to measure verdicts against."""

from datetime import datetime
from enum import StrEnum

from wikikeeper.models.values import Value


class Should(StrEnum):
    """What should have become of a page."""

    KEPT = "kept"
    DISCARDED = "discarded"


class Label(Value):
    """A person's word on one result. A later one about the same result takes its place."""

    result: str
    run: str
    """The run whose verdict the person saw."""
    topic: str
    should: Should
    at: datetime
    drawn: bool
    """The result was drawn at random, so that it speaks for others like it. A correction was not: it was made because
    something looked wrong, and says nothing of how often that is so."""
