"""Topic files: what is read, and what is refused with which line and reason."""

import random
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.models import Topic, TopicFault, Watch
from wikikeeper.policy.topics import MAX_BRIEF, MAX_BYTES, load, parse_topic, slug_of

GOOD = """---
title: Postgres releases
queries:
  - postgres release notes
feeds: [https://www.postgresql.org/news.rss]
links:
  - https://wiki.postgresql.org/wiki/Roadmap
folder: saved/postgres/
schedule: {cron: "0 7 * * 1-5", zone: Europe/Berlin}
language: en
until: 2026-12-31
---

What is new in Postgres for people who run it?
"""
LEAST = "---\ntitle: T\nqueries: [q]\n---\nWhat is new?\n"


def read(text: str, key: str = "topics/t.md") -> Topic:
    topic = parse_topic(key, text.encode())
    assert isinstance(topic, Topic), topic
    return topic


def faults(text: str | bytes, key: str = "topics/t.md") -> list[tuple[int, str]]:
    found = parse_topic(key, text if isinstance(text, bytes) else text.encode())
    assert isinstance(found, list)
    assert all(fault.key == key for fault in found)
    return [(fault.line, fault.reason) for fault in found]


def with_line(line: str) -> str:
    """The least topic with one more line, which is line 3."""
    return LEAST.replace("queries", f"{line}\nqueries")


def test_a_complete_topic_is_read() -> None:
    assert read(GOOD, "topics/postgres.md") == Topic(
        slug="postgres",
        title="Postgres releases",
        brief="What is new in Postgres for people who run it?",
        queries=("postgres release notes",),
        feeds=("https://www.postgresql.org/news.rss",),
        links=("https://wiki.postgresql.org/wiki/Roadmap",),
        folder="saved/postgres",
        cron="0 7 * * 1-5",
        zone="Europe/Berlin",
        language="en",
        until=date(2026, 12, 31),
    )


def test_a_topic_without_a_schedule_is_started_by_hand() -> None:
    topic = read(LEAST)

    assert topic.cron is None
    assert topic.zone == "UTC"


@pytest.mark.parametrize(
    "lines",
    [
        'schedule: "0 7 * * *"\nzone: Asia/Tokyo',
        "schedule: 0 7 * * *\nzone: Asia/Tokyo",
        'schedule:\n  cron: "0  7 * * *"\n  zone: Asia/Tokyo',
        'zone: Asia/Tokyo\nschedule: {cron: "0 7 * * *"}',
    ],
)
def test_a_schedule_can_be_written_short_or_long(lines: str) -> None:
    topic = read(with_line(lines))

    assert (topic.cron, topic.zone) == ("0 7 * * *", "Asia/Tokyo")


def test_values_that_yaml_would_guess_at_are_texts() -> None:
    topic = read(LEAST.replace("T\n", "1e3\nlanguage: no\n").replace("[q]", "[2026-01-01, yes, 007, q, q]"))

    assert topic.title == "1e3"
    assert topic.language == "no"
    assert topic.queries == ("2026-01-01", "yes", "007", "q")


def test_the_slug_is_the_files_name_made_safe() -> None:
    assert read(LEAST, "topics/Was ist neu?.md").slug == "was-ist-neu"
    assert read(LEAST, "topics/cafe\u0301.md").slug == "caf\u00e9"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (LEAST.replace("title: T\n", ""), 1, "no title"),
        (LEAST.replace("T\n", "\n"), 2, "no title"),
        (LEAST.replace("T\n", "''\n"), 2, "no title"),
        (LEAST.replace("T\n", "[a]\n"), 2, "`title` must be a single text, not a list"),
        (LEAST.replace("T\n", "T" * 201 + "\n"), 2, "longer than 200"),
        (LEAST.replace("queries: [q]\n", ""), 1, "no source"),
        (LEAST.replace("[q]", ""), 1, "no source"),
        (LEAST.replace("[q]", "q"), 3, "must be a list"),
        (LEAST.replace("[q]", "\n  - a\n  - b: c"), 5, "put it in quotes"),
        (LEAST.replace("[q]", "\n  - a\n  - [b]"), 5, "a single text, not a list"),
        (LEAST.replace("[q]", "\n  - a\n  -"), 5, "is empty"),
        (LEAST.replace("What is new?\n", " \n"), 5, "no brief"),
        (LEAST.replace("What is new?", "x" * (MAX_BRIEF + 1)), 5, "longer than 2000"),
        (with_line("qeries: [a]"), 3, "did you mean `queries`?"),
        (with_line("Zone: UTC"), 3, "did you mean `zone`?"),
        (with_line("nonsense: 1"), 3, "known are title, queries"),
        (with_line("links: [ftp://example.org/]"), 3, "'ftp://example.org/' in `links`"),
        (with_line("links: [example.org]"), 3, "not an http(s) address"),
        (with_line("links: ['https://a b/']"), 3, "has a space in it"),
        (with_line("links:\n  - https://example.org/\n  - https://me:secret@example.org/"), 5, "password"),
        (with_line("feeds: ['http://[::1']"), 3, "in `feeds`"),
        (with_line("feeds: ['http://example.org:99999/']"), 3, "port"),
        (with_line("feeds: [file:///etc/passwd]"), 3, "not an http(s) address"),
        (with_line("folder: ../other"), 3, "without .."),
        (with_line("folder: saved/../../x"), 3, "without .."),
        (with_line("folder: /etc"), 3, "relative"),
        (with_line("folder: 'C:/x'"), 3, "relative"),
        (with_line("folder: 'saved\\x'"), 3, "with /"),
        (with_line("folder: .wikikeeper"), 3, "not hidden"),
        (with_line("folder: ."), 3, "not hidden"),
        (with_line("folder: a//b"), 3, "not hidden"),
        (with_line('folder: "a\\0b"'), 3, "control character"),
        (with_line("schedule: 0 25 * * *"), 3, "hour"),
        (with_line("schedule: * * * * *"), 3, "put the value in quotes"),
        (with_line("schedule: daily"), 3, "five fields"),
        (with_line("schedule: [a]"), 3, "not a list"),
        (with_line("schedule: {zone: UTC}"), 3, "no `cron`"),
        (with_line("schedule: {cron: [a]}"), 3, "single text"),
        (with_line("schedule:\n  cron: 0 0 31 2 *"), 4, "day of month"),
        (with_line("schedule:\n  cron: 0 7 * * *\n  zonne: UTC"), 5, "did you mean `zone`?"),
        (with_line("schedule: {cron: 0 7 * * *, zone: Mars/Base}"), 3, "not an IANA time zone"),
        (with_line("schedule: {cron: 0 7 * * *, zone: UTC}\nzone: UTC"), 4, "twice"),
        (with_line("zone: Berlin"), 3, "did you mean Europe/Berlin?"),
        (with_line("zone: [UTC]"), 3, "single text"),
        (with_line("language: german!"), 3, "is no language"),
        (with_line("until: tomorrow"), 3, "is no day"),
        (with_line("until: 2026-02-30"), 3, "is no day"),
        (with_line("until: 20261231"), 3, "is no day"),
        (with_line("title: again"), 3, "twice (first in line 2)"),
        ("What is new?\n", 1, "no front matter"),
    ],
)
def test_a_fault_is_reported_with_its_line_and_reason(text: str, line: int, reason: str) -> None:
    found = faults(text)

    assert [fault[0] for fault in found] == [line]
    assert reason in found[0][1]


def test_all_faults_of_a_file_are_reported_at_once_in_their_order() -> None:
    found = faults("---\nlinks: [nonsense]\nzone: Mars\nuntil: never\n---\n")

    assert [line for line, _ in found] == [1, 2, 3, 4, 6]


def test_bytes_that_are_no_text_are_reported_with_their_line() -> None:
    assert faults(LEAST.encode().replace(b"new", b"n\xe9w")) == [(5, "not UTF-8: save the file as UTF-8")]


def test_a_file_that_is_too_large_is_not_read() -> None:
    assert "larger than" in faults(LEAST + "x" * MAX_BYTES)[0][1]


@pytest.mark.parametrize(("key", "reason"), [("topics/!!!.md", "no letter"), ("topics/a/b.md", "directly in topics/")])
def test_a_name_that_makes_no_topic_is_a_fault(key: str, reason: str) -> None:
    assert reason in faults(LEAST, key)[0][1]


def test_half_a_character_in_a_title_is_replaced() -> None:
    assert read(LEAST.replace("T\n", '"a\\ud83d"\n')).title == "a\ufffd"


def test_a_bad_topic_stops_no_other() -> None:
    topics, found = load([("topics/b.md", LEAST.encode()), ("topics/bad.md", b"\xff"), ("topics/a.md", LEAST.encode())])

    assert [topic.slug for topic in topics] == ["a", "b"]
    assert [fault.key for fault in found] == ["topics/bad.md"]


@pytest.mark.parametrize(
    ("first", "copy"),
    [
        ("topics/foo.md", "topics/Foo.md"),
        ("topics/caf\u00e9.md", "topics/cafe\u0301.md"),
        ("topics/a-b.md", "topics/a b.md"),
        ("topics/foo.md", "topics/foo.MD"),
        ("topics/strasse.md", "topics/straße.md"),
    ],
)
def test_of_two_files_for_one_topic_the_one_named_like_the_slug_is_read(first: str, copy: str) -> None:
    files = [(first, LEAST.encode()), (copy, LEAST.encode())]
    for given_files in (files, files[::-1]):
        topics, found = load(given_files)

        assert [topic.slug for topic in topics] == [slug_of(first)]
        assert found == [TopicFault(key=copy, line=1, reason=f"the same topic as {first}: give one another name")]


def test_a_copy_of_a_topic_with_faults_does_not_take_its_place() -> None:
    topics, found = load([("topics/foo.md", b"\xff"), ("topics/Foo.md", LEAST.encode())])

    assert topics == []
    assert [fault.key for fault in found] == ["topics/Foo.md", "topics/foo.md"]


def test_what_is_no_topic_file_is_passed_over() -> None:
    keys = [
        "topics/.foo.md",
        "topics/._a.md",
        "topics/picture.png",
        "notes/a.md",
        "topics/x.md~",
        "topics/.obsidian/a.md",
    ]

    assert load([(key, b"\xff") for key in keys]) == ([], [])


@given(st.randoms(use_true_random=False))
def test_no_damage_to_a_file_makes_the_reader_raise(chance: random.Random) -> None:
    data = bytearray(GOOD.encode())
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 3)] = chance.choice(
            [b"", b"\n", b": ", b"\xff", b'"', b"- ", b"*", b"\0", b"{"]
        )

    topics, found = load([("topics/t.md", bytes(data))])

    assert len(topics) == (0 if found else 1)
    assert all(1 <= fault.line <= data.count(b"\n") + 1 for fault in found)


def test_a_topic_can_watch_repositories() -> None:
    topic = read(
        with_line("watch:\n  - github: acme/widgets\n    paths: [docs/, CHANGES.md]\n  - {github: Acme/x.y_z}")
    )

    assert topic.watch == (
        Watch(github="acme/widgets", paths=("docs", "CHANGES.md")),
        Watch(github="Acme/x.y_z"),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("watch: acme/widgets", "`watch` must be a list"),
        ("watch: [acme/widgets]", "must be `github: owner/repository`"),
        ("watch: [{paths: [docs]}]", "names no repository"),
        ("watch: [{github: https://github.com/acme/widgets}]", "names no repository"),
        ("watch: [{github: acme}]", "names no repository"),
        ("watch: [{github: [a/b]}]", "names no repository"),
        ("watch: [{gitlab: a/b, github: a/b}]", "`watch.gitlab` is not known: did you mean `github`?"),
        ("watch: [{github: a/b, paths: docs}]", "`watch.paths` must be a list"),
        ("watch: [{github: a/b, paths: ['docs/*.md']}]", "has a wildcard in it"),
        ("watch: [{github: a/b, paths: [/docs]}]", "must be a file or folder as the repository has it"),
        ("watch: [{github: a/b, paths: [../docs]}]", "must be a file or folder as the repository has it"),
        ("watch: [{github: a/b, paths: ['docs\\x']}]", "is written with / between its parts"),
    ],
)
def test_what_cannot_be_watched_is_a_fault_with_its_line(line: str, reason: str) -> None:
    [(where, said)] = faults(with_line(line))

    assert where == 3
    assert reason in said
