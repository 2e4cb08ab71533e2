"""Topic files: what a person wrote in `topics/<slug>.md`, read as a topic or refused with line and reason.

A file that cannot be read stops no other. Of two files whose names mean the same topic, the one that is named exactly
like the slug is read, so a copy that appears later changes nothing.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from wikikeeper.models import Topic, TopicFault, Watch
from wikikeeper.policy import url_parts
from wikikeeper.policy.front_matter import Broken, Field, FrontMatter, parse
from wikikeeper.policy.redaction import redact
from wikikeeper.policy.schedule import cron_fault, zone_fault
from wikikeeper.policy.slugs import slugify, twin_key

FOLDER = "topics/"
ENDING = ".md"
MAX_BYTES = 64_000
"""Of a topic file. A brief and a hundred links are a tenth of it, and YAML of this size is read in well under a second."""
MAX_BRIEF = 2000
"""Characters. The brief goes with every page, as part of the state and of the criteria: more would push the page out of
a 4,096-token slot, and a small model compares badly with a long text."""
MAX_TITLE = 200
"""Characters: it becomes a heading and a line in lists."""
DEFAULT_ZONE = "UTC"
LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
NAMES = ("title", "queries", "feeds", "links", "folder", "watch", "schedule", "zone", "language", "until")
SCHEDULE_NAMES = ("cron", "zone")
SOURCES = ("queries", "feeds", "links", "folder")
WATCH_NAMES = ("github", "paths")
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


class Schedule(NamedTuple):
    cron: str | None
    zone: str


def load(files: Iterable[tuple[str, bytes]]) -> tuple[list[Topic], list[TopicFault]]:
    """Read all topic files, given as key and content. Topics come in the order of their slugs, faults of their files.

    What is no Markdown file, or hidden, is none of ours and passed over.
    """
    topics: dict[str, Topic] = {}
    faults: list[TopicFault] = []
    taken: dict[str, str] = {}
    for key, data in sorted(files, key=lambda file: (not _named_like_its_slug(file[0]), file[0])):
        if not is_topic_key(key):
            continue
        twin = taken.setdefault(twin_key(slug_of(key)), key)
        if twin is not key:
            faults.append(TopicFault(key=key, line=1, reason=f"the same topic as {twin}: give one another name"))
            continue
        read = parse_topic(key, data)
        if isinstance(read, Topic):
            topics[read.slug] = read
        else:
            faults.extend(read)
    return [topics[slug] for slug in sorted(topics)], sorted(faults, key=lambda fault: (fault.key, fault.line))


def is_topic_key(key: str) -> bool:
    """Is this a Markdown file in the topics folder? Hidden files (editors leave them) are not."""
    name = key.removeprefix(FOLDER)
    return key.startswith(FOLDER) and name.casefold().endswith(ENDING) and not name.startswith(".")


def slug_of(key: str) -> str:
    """The slug that a file's name gives, also where the file has faults; "" where the name has no letter or digit."""
    return slugify(key.removeprefix(FOLDER)[: -len(ENDING)])


def parse_topic(key: str, data: bytes) -> Topic | list[TopicFault]:
    """Read one file. All its faults are found at once, in the order of their lines."""

    def whole(reason: str, line: int = 1) -> list[TopicFault]:
        return [TopicFault(key=key, line=line, reason=reason)]

    slug = slug_of(key)
    if not slug:
        return whole("the file's name has no letter or digit to call the topic by")
    if "/" in key.removeprefix(FOLDER):
        return whole(f"topic files lie directly in {FOLDER}")
    if len(data) > MAX_BYTES:
        return whole(f"larger than {MAX_BYTES // 1000} kB: a topic is a title, its sources and a brief")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return whole("not UTF-8: save the file as UTF-8", data.count(b"\n", 0, error.start) + 1)
    front = parse(text)
    if isinstance(front, Broken):
        return whole(front.reason, front.line)
    reader = _Reader(key, front)
    topic = reader.topic(slug)
    return topic if topic and not reader.faults else sorted(reader.faults, key=lambda fault: fault.line)


def url_fault(url: str) -> str | None:
    """Why a feed or a link cannot be used; None: it can."""
    if re.search(r"\s", url):
        return "has a space in it"
    try:
        url_parts.parse(url)
    except ValueError as error:
        return f"cannot be used: {error}"
    return None


def folder_fault(folder: str) -> str | None:
    """Why a folder cannot be used; None: it lies inside the wiki and may be read."""
    parts = folder.rstrip("/").split("/")
    if folder.startswith("/") or re.match(r"[A-Za-z]:", folder):
        return "must be relative to the wiki"
    if "\\" in folder:
        return "is written with / between its parts"
    if ".." in parts:
        return "must stay inside the wiki, so without .."
    if any(part.startswith(".") or not part for part in parts):
        return "must name a folder that is not hidden, such as saved/postgres"
    if any(unicodedata.category(char) == "Cc" for char in folder):
        return "has a control character in it"
    return None


def watched_path_fault(path: str) -> str | None:
    """Why a path in a repository cannot be watched; None: it can."""
    if any(char in path for char in "*?["):
        return "has a wildcard in it: name the file or the folder"
    if "\\" in path:
        return "is written with / between its parts"
    if any(part in ("", ".", "..") for part in path.removesuffix("/").split("/")):
        return "must be a file or folder as the repository has it, such as docs/changes.md"
    return None


def _named_like_its_slug(key: str) -> bool:
    return key == f"{FOLDER}{slug_of(key)}{ENDING}"


class _Reader:
    """Reads the fields of one file and collects what is wrong with them."""

    def __init__(self, key: str, front: FrontMatter) -> None:
        self.key = key
        self.front = front
        self.fields = front.fields
        self.faults: list[TopicFault] = []

    def topic(self, slug: str) -> Topic | None:
        self._unknown(self.fields, NAMES, "")
        title = self._title()
        brief = self._brief()
        queries = self._list("queries")
        feeds = self._urls("feeds")
        links = self._urls("links")
        folder = self._folder()
        watch = self._watches()
        schedule = self._schedule()
        language = self._language()
        until = self._until()
        if not any(_present(self.fields.get(name)) for name in SOURCES):
            self._fault(1, "no source: name at least one of queries, feeds, links, folder")
        if self.faults or title is None:
            return None
        return Topic(
            slug=slug,
            title=title,
            brief=brief,
            queries=queries,
            feeds=feeds,
            links=links,
            folder=folder,
            watch=watch,
            cron=schedule.cron,
            zone=schedule.zone,
            language=language,
            until=until,
        )

    def _fault(self, line: int, reason: str) -> None:
        self.faults.append(TopicFault(key=self.key, line=line, reason=reason))

    def _unknown(self, fields: dict[str, Field], names: tuple[str, ...], inside: str) -> None:
        for name, field in fields.items():
            if name not in names:
                close = difflib.get_close_matches(name.casefold(), names, n=1)
                hint = f"did you mean `{close[0]}`?" if close else f"known are {', '.join(names)}"
                self._fault(field.line, f"`{inside}{name}` is not known: {hint}")

    def _title(self) -> str | None:
        field = self.fields.get("title")
        title = self._text("title")
        if field is None or field.value is None or title == "":
            self._fault(field.line if field else 1, "no title: add a line `title: …`")
        elif title is not None and len(title) > MAX_TITLE:
            self._fault(field.line, f"the title is longer than {MAX_TITLE} characters")
        return title

    def _brief(self) -> str:
        brief = self.front.body.strip()
        if not brief:
            self._fault(self.front.body_line, "no brief: write below the front matter what you want to know")
        elif len(brief) > MAX_BRIEF:
            self._fault(
                self.front.body_line, f"the brief is longer than {MAX_BRIEF} characters: it goes with every page"
            )
        return brief

    def _text(self, name: str) -> str | None:
        """A single text, whitespace at its ends removed; None: not given, or no text (then that is a fault)."""
        field = self.fields.get(name)
        if field is None or field.value is None:
            return None
        if isinstance(field.value, str):
            return " ".join(field.value.split())
        self._fault(field.line, f"`{name}` must be a single text, not {_kind(field)}")
        return None

    def _list(self, name: str) -> tuple[str, ...]:
        return tuple(text for _, text in self._items(name))

    def _items(self, name: str, fields: dict[str, Field] | None = None, inside: str = "") -> list[tuple[int, str]]:
        """The lines and texts of a list, each once."""
        field = (self.fields if fields is None else fields).get(name)
        name = inside + name
        if field is None or field.value is None:
            return []
        if not isinstance(field.value, tuple):
            self._fault(field.line, f"`{name}` must be a list: each on its own line, after `- `")
            return []
        items: dict[str, int] = {}
        for item in field.value:
            text = item.value.strip() if isinstance(item.value, str) else None
            if text:
                items.setdefault(text, item.line)
            elif isinstance(item.value, dict):
                self._fault(item.line, f"an item of `{name}` has a colon and a space in it: put it in quotes")
            elif isinstance(item.value, tuple):
                self._fault(item.line, f"an item of `{name}` must be a single text, not {_kind(item)}")
            else:
                self._fault(item.line, f"an item of `{name}` is empty")
        return [(line, text) for text, line in items.items()]

    def _urls(self, name: str) -> tuple[str, ...]:
        items = self._items(name)
        for line, url in items:
            reason = url_fault(url)
            if reason:
                self._fault(line, f"{redact(url)!r} in `{name}` {reason}")
        return tuple(url for _, url in items)

    def _folder(self) -> str | None:
        folder = self._text("folder")
        if folder is None:
            return None
        reason = folder_fault(folder)
        if reason:
            self._fault(self.fields["folder"].line, f"the folder {folder!r} {reason}")
        return unicodedata.normalize("NFC", PurePosixPath(folder).as_posix())

    def _watches(self) -> tuple[Watch, ...]:
        """`watch:` with `- github: owner/repository` and, below it, `paths: [docs/, CHANGES.md]`."""
        field = self.fields.get("watch")
        if field is None or field.value is None:
            return ()
        if not isinstance(field.value, tuple):
            self._fault(field.line, "`watch` must be a list: each on its own line, after `- github: owner/repository`")
            return ()
        return tuple(watch for item in field.value if (watch := self._watch(item)) is not None)

    def _watch(self, item: Field) -> Watch | None:
        if not isinstance(item.value, dict):
            self._fault(item.line, "an item of `watch` must be `github: owner/repository`")
            return None
        self._unknown(item.value, WATCH_NAMES, "watch.")
        repository = item.value.get("github")
        name = repository.value.strip() if repository and isinstance(repository.value, str) else ""
        if not REPOSITORY.fullmatch(name):
            line = repository.line if repository else item.line
            self._fault(line, "`watch` names no repository: write `github: owner/repository`")
            return None
        paths = self._items("paths", item.value, "watch.")
        for line, path in paths:
            reason = watched_path_fault(path)
            if reason:
                self._fault(line, f"the path {path!r} in `watch` {reason}")
        return Watch(github=name, paths=tuple(path.rstrip("/") for _, path in paths))

    def _schedule(self) -> Schedule:
        """`schedule: "0 7 * * *"` with `zone:` beside it, or both as `schedule: {cron: …, zone: …}`."""
        field = self.fields.get("schedule")
        outer = self._zone(self.fields.get("zone"))
        if field is None or field.value is None:
            return Schedule(None, outer or DEFAULT_ZONE)
        if isinstance(field.value, str):
            return Schedule(self._cron(field), outer or DEFAULT_ZONE)
        if isinstance(field.value, tuple):
            self._fault(field.line, "`schedule` must be one schedule, not a list")
            return Schedule(None, DEFAULT_ZONE)
        self._unknown(field.value, SCHEDULE_NAMES, "schedule.")
        inner = self._zone(field.value.get("zone"))
        if inner and outer:
            self._fault(self.fields["zone"].line, "`zone` is given twice: here and in `schedule`")
        cron = field.value.get("cron")
        if cron is None or cron.value is None:
            self._fault(field.line, "`schedule` has no `cron`")
            return Schedule(None, DEFAULT_ZONE)
        return Schedule(self._cron(cron), inner or outer or DEFAULT_ZONE)

    def _cron(self, field: Field) -> str | None:
        if not isinstance(field.value, str):
            self._fault(field.line, f"the schedule must be a single text, not {_kind(field)}")
            return None
        reason = cron_fault(field.value)
        if reason:
            self._fault(field.line, reason)
        return " ".join(field.value.split())

    def _zone(self, field: Field | None) -> str | None:
        if field is None or field.value is None:
            return None
        if not isinstance(field.value, str):
            self._fault(field.line, f"`zone` must be a single text, not {_kind(field)}")
            return None
        reason = zone_fault(field.value)
        if reason:
            self._fault(field.line, reason)
        return field.value

    def _language(self) -> str | None:
        language = self._text("language")
        if language is not None and not LANGUAGE.fullmatch(language):
            self._fault(self.fields["language"].line, f"{language!r} is no language: write it as en, de or pt-BR")
        return language

    def _until(self) -> date | None:
        until = self._text("until")
        if until is None:
            return None
        try:
            # fromisoformat alone would also take 20261231 and 2026-W53-4, which a person reads as something else.
            if DAY.fullmatch(until):
                return date.fromisoformat(until)
        except ValueError:
            pass
        self._fault(self.fields["until"].line, f"{until!r} is no day: write it as 2026-12-31")
        return None


def _present(field: Field | None) -> bool:
    return field is not None and field.value not in (None, (), {}, "")


def _kind(field: Field) -> str:
    return "a list" if isinstance(field.value, tuple) else "a group of names"
