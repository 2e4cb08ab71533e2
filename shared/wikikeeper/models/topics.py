"""Topics: what a person asked wikikeeper to watch."""

from datetime import date, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from wikikeeper.models.values import Value

Slug = Annotated[str, Field(min_length=1, max_length=80)]


class Watch(Value):
    """A repository whose releases, and pushes to some paths, start the topic."""

    github: str
    """`owner/repository`, in either case."""
    paths: tuple[str, ...] = ()
    """Files and folders; a push that changes none of them starts nothing. None: only releases do."""


class Topic(Value):
    """One `topics/<slug>.md` that was read without a fault."""

    slug: Slug
    title: str
    brief: str
    """The body of the file: what the person wants to know, in their own words."""
    queries: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    folder: str | None = None
    """A folder of saved pages, relative to the wiki; nothing outside it is read."""
    watch: tuple[Watch, ...] = ()
    cron: str | None = None
    """Five fields, in `zone`. None: only started by hand."""
    zone: str = "UTC"
    language: str | None = None
    """As SearXNG and browsers write it: "en", "de", "pt-BR"."""
    until: date | None = None
    """The last day, in `zone`, on which the topic runs."""

    @property
    def tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone)


class TopicFault(Value):
    """Why a topic file cannot be used. It never stops the other topics."""

    key: str
    line: int
    """1-based line of the file; 1 where the fault is of the whole file."""
    reason: str


class TopicState(Value):
    """What the machine remembers of a topic."""

    slug: Slug
    last_check: datetime | None = None
    """When a tick last looked at the topic, even if it then skipped."""
    last_run: datetime | None = None
    """When a cycle last really searched."""
    open_note: str | None = None
    """Key of the note that new kept results join."""
    open_note_started: bool = False
    """True once some result was noted in it: from then on a missing file means that a person moved or deleted it."""
    note_due: datetime | None = None
    ended: date | None = None
    """The last day of which the notice that it has passed was given; a topic that goes on and ends again gets another."""
