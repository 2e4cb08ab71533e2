"""What is judged of a page: fetched, read, and cut to what fits a call."""

from collections.abc import Sequence
from dataclasses import dataclass

from wikikeeper.models import Extract, Fetched, Findings, Result, Topic
from wikikeeper.policy.paragraphs import judged
from wikikeeper.workflows.context import App


@dataclass(frozen=True, slots=True)
class PageText:
    """What is judged of a page."""

    fetched: Fetched
    title: str
    paragraphs: tuple[str, ...]
    findings: Findings


def read(result: Result, topic: Topic, app: App) -> PageText | None:
    """Fetch and extract. None: the server says that the page has not changed since the revision before.

    Raises what `Fetcher.fetch` and `Extractor.extract` raise.
    """
    fetched = app.fetcher.fetch(
        result.url,
        origin=result.origin,
        folder=topic.folder,
        etag=result.etag,
        last_modified=result.last_modified,
    )
    if fetched.not_modified:
        return None
    extract: Extract = app.extractor.extract(fetched)
    paragraphs, truncated = judged(extract.paragraphs, app.rules.max_chars)
    return PageText(
        fetched=fetched,
        title=result.title or extract.title,
        paragraphs=paragraphs,
        findings=extract.findings.model_copy(update={"truncated": truncated}),
    )


def half(paragraphs: Sequence[str]) -> tuple[str, ...]:
    """The first half by characters, in whole paragraphs where there are several."""
    return judged(paragraphs, max(sum(map(len, paragraphs)) // 2, 1))[0]
