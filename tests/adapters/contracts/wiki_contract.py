"""What every `Wiki` promises. A test class names a wiki by a fixture:

class TestMyWiki(WikiContract):
    @pytest.fixture
    def wiki(self) -> Wiki: ...  # empty
"""

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest

from wikikeeper.errors import Unusable, WikiConflict
from wikikeeper.ports import Document, Wiki

COMPOSED = unicodedata.normalize("NFC", "notes/café.md")
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)

OUTSIDE = [
    "",
    "/",
    "/etc/passwd",
    "//server/share/a.md",
    "../a.md",
    "notes/../../a.md",
    "notes/..",
    "./a.md",
    "notes/./a.md",
    "notes//a.md",
    "notes/",
    "notes\\a.md",
    "..\\a.md",
    "notes/a\0.md",
    ".wikikeeper/state.db",
    "notes/.wikikeeper/a.md",
    ".git/config",
    "notes/.hidden.md",
    "notes/\ud800.md",
    "notes/" + "a" * 253 + ".md",
    "notes/" + "é" * 127 + ".md",
    "a/" * 512 + "a.md",
]
UNPORTABLE = [
    "CON",
    "notes/con.md",
    "notes/Aux.tar.gz",
    "notes/COM1",
    "notes/lpt¹.md",
    "nul/a.md",
    "notes/a.",
    "notes/a.md ",
    "notes./a.md",
    "notes/a:b.md",
    "notes/what?.md",
    "notes/a*b.md",
    'notes/"a".md',
    "notes/a|b.md",
    "notes/<a>.md",
    "notes/a\nb.md",
    "notes/a\x7fb.md",
]


def read(wiki: Wiki, key: str) -> Document:
    document = wiki.read(key)
    assert document is not None
    return document


class WikiContract:
    @pytest.fixture
    def wiki(self) -> Wiki:
        raise NotImplementedError

    # -- reading and creating

    @pytest.mark.parametrize("data", [b"", b"# A note\r\n", bytes(range(256)) * 400])
    def test_a_file_is_read_as_it_was_written(self, wiki: Wiki, data: bytes) -> None:
        etag = wiki.create("notes/2026/a note.md", data)

        assert wiki.read("notes/2026/a note.md") == Document(key="notes/2026/a note.md", data=data, etag=etag)

    def test_what_is_not_there_is_none(self, wiki: Wiki) -> None:
        wiki.create("notes/a.md/b.md", b"")

        for key in ("notes/b.md", "other/a.md", "notes", "notes/a.md", "notes/a.md/b.md/c.md"):
            assert wiki.read(key) is None

    def test_what_exists_is_not_created_again(self, wiki: Wiki) -> None:
        etag = wiki.create("notes/a.md", b"first")

        for data in (b"second", b"first"):
            with pytest.raises(WikiConflict, match=r"notes/a\.md"):
                wiki.create("notes/a.md", data)
        assert wiki.read("notes/a.md") == Document(key="notes/a.md", data=b"first", etag=etag)

    def test_an_etag_is_of_the_version(self, wiki: Wiki) -> None:
        first = wiki.create("a.md", b"first")
        second = wiki.replace("a.md", b"second", first)

        assert first != second == read(wiki, "a.md").etag

    # -- replacing

    def test_exactly_the_version_that_was_read_is_replaced(self, wiki: Wiki) -> None:
        first = wiki.create("notes/a.md", b"first")
        second = wiki.replace("notes/a.md", b"second", first)
        with pytest.raises(WikiConflict):
            wiki.replace("notes/a.md", b"third", first)

        assert read(wiki, "notes/a.md").data == b"second"
        wiki.replace("notes/a.md", b"third", second)
        assert read(wiki, "notes/a.md").data == b"third"

    def test_what_is_gone_is_not_replaced(self, wiki: Wiki) -> None:
        etag = wiki.create("notes/a.md", b"a")
        with pytest.raises(WikiConflict):
            wiki.replace("notes/b.md", b"b", etag)

        assert wiki.read("notes/b.md") is None

    def test_writing_the_same_again_is_no_conflict(self, wiki: Wiki) -> None:
        etag = wiki.create("a.md", b"a")

        assert wiki.replace("a.md", b"a", etag) == etag

    # -- moving

    def test_a_file_is_moved_never_copied(self, wiki: Wiki) -> None:
        etag = wiki.create("inbox/awaiting/a.md", b"a")
        wiki.move("inbox/awaiting/a.md", "inbox/completed/a.md", etag)

        assert wiki.read("inbox/awaiting/a.md") is None
        assert read(wiki, "inbox/completed/a.md").data == b"a"
        assert list(wiki.keys("inbox/")) == ["inbox/completed/a.md"]

    def test_a_version_that_changed_is_not_moved(self, wiki: Wiki) -> None:
        first = wiki.create("a.md", b"first")
        wiki.replace("a.md", b"second", first)
        with pytest.raises(WikiConflict):
            wiki.move("a.md", "b.md", first)

        assert read(wiki, "a.md").data == b"second"
        assert wiki.read("b.md") is None

    def test_nothing_is_moved_over_another_file(self, wiki: Wiki) -> None:
        etag = wiki.create("a.md", b"same")
        wiki.create("b.md", b"same")
        for target in ("b.md", "a.md"):
            with pytest.raises(WikiConflict):
                wiki.move("a.md", target, etag)

        assert (read(wiki, "a.md").data, read(wiki, "b.md").data) == (b"same", b"same")

    def test_what_is_gone_is_not_moved(self, wiki: Wiki) -> None:
        etag = wiki.create("a.md", b"a")
        wiki.move("a.md", "b.md", etag)
        with pytest.raises(WikiConflict):
            wiki.move("a.md", "c.md", etag)

        assert wiki.read("c.md") is None

    # -- listing

    def test_keys_below_a_prefix_are_listed_in_order(self, wiki: Wiki) -> None:
        keys = ["n/a-b.md", "n/a.md", "n/a/b.md", "n/a/c/d.md", "n/a0.md", "n/B.md", "n/é.md", "n/語.md", "n/🐘.md"]
        for key in (*keys, "nn/a.md", "n.md"):
            wiki.create(key, b"")

        assert list(wiki.keys("n/")) == sorted(keys, key=str.encode)
        assert list(wiki.keys("n/a/")) == ["n/a/b.md", "n/a/c/d.md"]

    def test_nothing_is_below_a_prefix_that_is_not_there(self, wiki: Wiki) -> None:
        wiki.create("notes/a.md", b"")

        assert list(wiki.keys("other/")) == []
        assert list(wiki.keys("notes/a.md/")) == []

    @pytest.mark.parametrize("prefix", ["notes", "", "/", "../", "notes/../", "notes//", ".wikikeeper/"])
    def test_a_prefix_is_a_folder_of_the_wiki(self, wiki: Wiki, prefix: str) -> None:
        with pytest.raises(Unusable):
            list(wiki.keys(prefix))

    # -- names

    def test_both_unicode_forms_of_a_name_are_one_file(self, wiki: Wiki) -> None:
        etag = wiki.create(DECOMPOSED, b"a")
        with pytest.raises(WikiConflict):
            wiki.create(COMPOSED, b"b")

        assert read(wiki, COMPOSED) == read(wiki, DECOMPOSED) == Document(key=COMPOSED, data=b"a", etag=etag)
        assert list(wiki.keys("notes/")) == [COMPOSED]
        etag = wiki.replace(DECOMPOSED, b"c", etag)
        wiki.move(DECOMPOSED, "notes/cafe.md", etag)
        assert list(wiki.keys("notes/")) == ["notes/cafe.md"]

    @pytest.mark.parametrize("key", OUTSIDE)
    def test_no_key_leads_out_of_the_wiki_or_into_what_is_hidden(self, wiki: Wiki, key: str) -> None:
        etag = wiki.create("a.md", b"a")

        with pytest.raises(Unusable):
            wiki.read(key)
        with pytest.raises(Unusable):
            wiki.create(key, b"")
        with pytest.raises(Unusable):
            wiki.replace(key, b"", etag)
        with pytest.raises(Unusable):
            wiki.move("a.md", key, etag)
        with pytest.raises(Unusable):
            wiki.move(key, "b.md", etag)

    @pytest.mark.parametrize("key", UNPORTABLE)
    def test_no_file_is_made_that_another_system_cannot_hold(self, wiki: Wiki, key: str) -> None:
        etag = wiki.create("a.md", b"a")

        with pytest.raises(Unusable):
            wiki.create(key, b"")
        with pytest.raises(Unusable):
            wiki.move("a.md", key, etag)
        assert wiki.read(key) is None

    def test_a_message_about_a_key_is_one_line(self, wiki: Wiki) -> None:
        with pytest.raises(Unusable) as caught:
            wiki.create("notes/\n" + "x" * 1000 + "\u202e.md", b"")

        assert str(caught.value).isascii()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize(
        "name", ["a" * 252 + ".md", "é" * 126 + ".md", "CONTENTS.md", "a.b.c", "👍🏽 - (x) [y] #z.md"]
    )
    def test_every_other_name_is_taken(self, wiki: Wiki, name: str) -> None:
        wiki.create(f"notes/{name}", b"a")

        assert list(wiki.keys("notes/")) == [f"notes/{name}"]

    # -- races

    def test_of_racing_writers_one_creates_a_file(self, wiki: Wiki) -> None:
        def create(number: int) -> bool:
            try:
                wiki.create("notes/a.md", b"%d" % number)
            except WikiConflict:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(create, range(8)))
        assert sum(made) == 1
        assert read(wiki, "notes/a.md").data == b"%d" % made.index(True)

    def test_of_racing_writers_one_replaces_a_version(self, wiki: Wiki) -> None:
        first = wiki.create("notes/a.md", b"first")

        def replace(number: int) -> bool:
            try:
                wiki.replace("notes/a.md", b"%d" % number, first)
            except WikiConflict:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(replace, range(8)))
        assert sum(made) == 1
        assert read(wiki, "notes/a.md").data == b"%d" % made.index(True)

    def test_of_racing_movers_one_moves_a_file(self, wiki: Wiki) -> None:
        etag = wiki.create("a.md", b"a")

        def move(number: int) -> bool:
            try:
                wiki.move("a.md", f"to/{number}.md", etag)
            except WikiConflict:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(move, range(8))) == 1
        assert len(list(wiki.keys("to/"))) == 1
