"""Small stand-ins for the ports that reach outside, for tests and for trying out a workflow: scripted, not patched.

The stores need none: the SQLite store and the folder wiki on a temporary folder are quick enough to be themselves.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from wikikeeper.errors import SearchFailed
from wikikeeper.models import (
    ChoiceAnswer,
    Extract,
    Fetched,
    Found,
    Judgement,
    Kind,
    ModelState,
    NoulAnswer,
    Origin,
    Reply,
    Request,
    Topic,
)
from wikikeeper.policy import questions
from wikikeeper.ports import Judged, Source


class SettableClock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: datetime = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)) -> None:
        self._at = at
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._at

    def advance(self, by: timedelta) -> None:
        with self._lock:
            self._at += by


@dataclass
class RecordingReporter:
    """Keeps every event."""

    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def event(self, name: str, **fields: object) -> None:
        self.events.append((name, fields))

    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    def of(self, name: str) -> list[dict[str, object]]:
        return [fields for seen, fields in self.events if seen == name]


def judgement(
    useful: float = 0.9, injection: float = 0.05, kind: Kind = Kind.RELEASE, quotes: Mapping[int, float] | None = None
) -> Judgement:
    """A judgement with the whole probability of `kind` on one kind, quoting the first paragraph unless told otherwise."""
    kinds = {each: 1.0 if each is kind else 0.0 for each in Kind}
    return Judgement(useful=useful, injection=injection, kinds=kinds, quotes=dict(quotes or {0: 1.0}))


Script = Callable[[str, Sequence[str]], Judgement]
"""Title and paragraphs in, judgement out; raise a ModelError to fail the call."""


class ScriptedKeeper:
    """Answers by a script, and remembers what it was asked."""

    question_version = questions.VERSION
    model = "scripted"

    def __init__(self, script: Script = lambda title, paragraphs: judgement()) -> None:
        self.script = script
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._lock = threading.Lock()

    def judge(self, topic: Topic, title: str, paragraphs: Sequence[str]) -> Judged:
        with self._lock:
            self.asked.append((title, tuple(paragraphs)))
        answer = self.script(title, paragraphs)
        offered = questions.offered(topic, paragraphs)
        return Judged(judgement=answer, reply=reply(answer, offered), offered=offered)


def reply(answer: Judgement, offered: Sequence[int], model: str = "scripted-1") -> Reply:
    """The reply of a server that gave this judgement."""
    quoted = {questions.option_key(n): answer.quotes.get(index, 0.0) for n, index in enumerate(offered)}
    return Reply(
        model=model,
        answers={
            "useful": NoulAnswer(noul=answer.useful),
            "kind": ChoiceAnswer(probabilities={kind.value: p for kind, p in answer.kinds.items()}),
            "injection": NoulAnswer(noul=answer.injection),
            "quotes": ChoiceAnswer(probabilities=quoted | {questions.NONE: max(1 - sum(quoted.values()), 0.0)}),
        },
        input_tokens=100,
        seconds=0.01,
    )


class ScriptedDecider:
    """A model in a given state that answers by a script."""

    model = "scripted"

    def __init__(self, script: Callable[[Request], Reply] | None = None) -> None:
        self.script = script
        self.now = ModelState(state="healthy")
        self.woken = 0

    def decide(self, request: Request) -> Reply:
        if self.script is None:
            raise AssertionError("this decider was not meant to be asked")
        return self.script(request)

    def state(self) -> ModelState:
        return self.now

    def wake(self) -> None:
        self.woken += 1


class PageShelf:
    """Fetcher over pages in memory. A page is its text, paragraphs apart by an empty line, or an error to raise."""

    def __init__(self, pages: Mapping[str, str | Exception] | None = None) -> None:
        self.pages: dict[str, str | Exception] = dict(pages or {})
        self.etags: dict[str, str] = {}
        self.fetched: list[str] = []

    def fetch(
        self, url: str, *, origin: Origin, folder: str | None, etag: str | None, last_modified: str | None
    ) -> Fetched:
        self.fetched.append(url)
        page = self.pages[url]
        if isinstance(page, Exception):
            raise page
        current = self.etags.get(url)
        unchanged = etag is not None and etag == current
        return Fetched(
            url=url,
            status=304 if unchanged else 200,
            content_type="text/plain",
            body=b"" if unchanged else page.encode(),
            etag=current,
            not_modified=unchanged,
        )


class PlainExtractor:
    """Paragraphs are what empty lines part."""

    def extract(self, page: Fetched) -> Extract:
        paragraphs = tuple(part.strip() for part in page.body.decode().split("\n\n") if part.strip())
        return Extract(title="", paragraphs=paragraphs, extractor="plain")

    def close(self) -> None:
        pass


class ListedSource:
    """A source that has what it is given, or is out."""

    def __init__(self, name: str, found: Sequence[Found] | SearchFailed) -> None:
        self.name = name
        self.found = found
        self.warnings: Sequence[str] = ()

    def find(self) -> Sequence[Found]:
        if isinstance(self.found, SearchFailed):
            raise self.found
        return self.found


class ListedSearch:
    """The same sources for every topic."""

    def __init__(self, *sources: Source) -> None:
        self.all: list[Source] = list(sources)
        self.asked = 0

    def sources(self, topic: Topic) -> Sequence[Source]:
        self.asked += 1
        return self.all
