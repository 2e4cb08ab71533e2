"""The folder wiki: the contract, and what a folder adds that people and editors also use."""

import errno
import os
import unicodedata
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.adapters.contracts.samples import NOW
from tests.adapters.contracts.wiki_contract import COMPOSED, DECOMPOSED, WikiContract, read

from wikikeeper.adapters.local import files
from wikikeeper.adapters.local.folder_wiki import REPLACED_KEPT, FolderWiki
from wikikeeper.errors import Unusable, WikiConflict
from wikikeeper.ports import Wiki

KEY = "notes/a.md"


class Days:
    """A clock that is set by days."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
def days() -> Days:
    return Days()


@pytest.fixture
def wiki(tmp_path: Path, days: Days) -> FolderWiki:
    return FolderWiki(tmp_path, days)


def replaced(wiki: FolderWiki) -> dict[str, bytes]:
    folder = wiki.root / ".wikikeeper" / "replaced"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestFolderWiki(WikiContract):
    @pytest.fixture
    def wiki(self, tmp_path: Path) -> Wiki:
        return FolderWiki(tmp_path / "wiki")


# -- beside a person


def test_a_file_that_a_person_edited_is_not_replaced(wiki: FolderWiki) -> None:
    etag = wiki.create(KEY, b"ours")
    (wiki.root / KEY).write_bytes(b"theirs")

    with pytest.raises(WikiConflict):
        wiki.replace(KEY, b"ours, again", etag)
    with pytest.raises(WikiConflict):
        wiki.move(KEY, "b.md", etag)
    assert (wiki.root / KEY).read_bytes() == b"theirs"
    assert replaced(wiki) == {}


def test_what_is_replaced_is_kept_under_its_day_and_folder(wiki: FolderWiki) -> None:
    etag = wiki.create(KEY, b"first")
    wiki.replace(KEY, b"second", wiki.replace(KEY, b"third", etag))

    kept = replaced(wiki)
    assert sorted(kept.values()) == [b"first", b"third"]
    assert {name.split("/")[0] for name in kept} == {"2026-03-01"}
    assert all(name.split("/")[1] == "notes" and name.endswith("-a.md") for name in kept)


def test_what_an_editor_still_writes_into_a_replaced_file_is_kept(wiki: FolderWiki) -> None:
    etag = wiki.create(KEY, b"first")
    with (wiki.root / KEY).open("ab") as editor:
        wiki.replace(KEY, b"second", etag)
        editor.write(b", and a late thought")

    assert list(replaced(wiki).values()) == [b"first, and a late thought"]
    assert read(wiki, KEY).data == b"second"


def test_the_longest_name_is_kept_too(wiki: FolderWiki) -> None:
    key = "notes/" + "é" * 126 + ".md"
    wiki.replace(key, b"b", wiki.create(key, b"a"))

    (name,) = replaced(wiki)
    assert name.endswith("é.md")


def test_replaced_files_are_forgotten_after_a_month(wiki: FolderWiki, days: Days) -> None:
    etag = wiki.create(KEY, b"0")
    for number in (1, 2):
        etag = wiki.replace(KEY, b"%d" % number, etag)
        days.time += REPLACED_KEPT
    assert sorted(replaced(wiki).values()) == [b"0", b"1"]

    days.time += timedelta(days=1)
    wiki.replace(KEY, b"3", etag)
    assert sorted(replaced(wiki).values()) == [b"2"]


def test_writing_the_same_touches_nothing(wiki: FolderWiki) -> None:
    etag = wiki.create(KEY, b"same")
    before = (wiki.root / KEY).stat()
    wiki.replace(KEY, b"same", etag)

    assert (wiki.root / KEY).stat() == before
    assert replaced(wiki) == {}


def test_a_replaced_file_keeps_its_mode(wiki: FolderWiki) -> None:
    etag = wiki.create(KEY, b"a")
    (wiki.root / KEY).chmod(0o640)
    wiki.replace(KEY, b"b", etag)

    assert (wiki.root / KEY).stat().st_mode & 0o777 == 0o640


def test_only_the_files_themselves_are_left_in_a_folder(wiki: FolderWiki) -> None:
    etag = wiki.replace(KEY, b"b", wiki.create(KEY, b"a"))
    with pytest.raises(WikiConflict):
        wiki.create(KEY, b"c")
    wiki.move(KEY, "notes/b.md", etag)

    assert [path.name for path in (wiki.root / "notes").iterdir()] == ["b.md"]


def test_a_move_that_a_crash_cut_in_half_is_finished(wiki: FolderWiki) -> None:
    etag = wiki.create(KEY, b"a")
    os.link(wiki.root / KEY, wiki.root / "notes" / "b.md")
    wiki.move(KEY, "notes/b.md", etag)

    assert list(wiki.keys("notes/")) == ["notes/b.md"]


# -- names on the disk


def test_a_name_in_another_unicode_form_is_found_under_its_key(wiki: FolderWiki) -> None:
    there = wiki.root / unicodedata.normalize("NFD", "nötes") / "é" / Path(DECOMPOSED).name
    there.parent.mkdir(parents=True)
    there.write_bytes(b"a")
    key = "nötes/é/café.md"

    assert list(wiki.keys("nötes/")) == [key]
    assert list(wiki.keys("nötes/é/")) == [key]
    wiki.replace(key, b"b", read(wiki, key).etag)
    assert there.read_bytes() == b"b"
    with pytest.raises(WikiConflict):
        wiki.create(key, b"c")
    wiki.create("nötes/é/other.md", b"")
    assert [path.name for path in wiki.root.iterdir() if not path.name.startswith(".")] == [there.parts[-3]]


def test_two_forms_of_one_name_are_one_key(wiki: FolderWiki) -> None:
    (wiki.root / "notes").mkdir()
    (wiki.root / COMPOSED).write_bytes(b"composed")
    (wiki.root / DECOMPOSED).write_bytes(b"decomposed")

    assert list(wiki.keys("notes/")) == [COMPOSED]
    assert read(wiki, DECOMPOSED).data == b"composed"


def test_folders_in_two_forms_are_read_as_one(wiki: FolderWiki) -> None:
    for form in ("NFC", "NFD"):
        folder = wiki.root / unicodedata.normalize(form, "é")
        folder.mkdir()
        (folder / f"{form}.md").write_bytes(form.encode())

    assert list(wiki.keys("é/")) == ["é/NFC.md", "é/NFD.md"]
    assert [read(wiki, key).data for key in wiki.keys("é/")] == [b"NFC", b"NFD"]


def test_a_person_may_name_files_as_their_system_allows(wiki: FolderWiki) -> None:
    (wiki.root / "topics").mkdir()
    (wiki.root / "topics" / "What's new?.md").write_bytes(b"a")

    (key,) = wiki.keys("topics/")
    assert wiki.replace(key, b"b", read(wiki, key).etag) == read(wiki, key).etag


def test_names_that_no_key_can_have_are_passed_over(wiki: FolderWiki) -> None:
    wiki.create(KEY, b"")
    for name in (b"back\\slash.md", b"not-utf8-\xff.md", b".hidden.md"):
        (wiki.root / "notes" / os.fsdecode(name)).write_bytes(b"")
    (wiki.root / "notes" / ".obsidian").mkdir()
    (wiki.root / "notes" / ".obsidian" / "a.md").write_bytes(b"")

    assert KEY in wiki.keys("notes/")
    assert "notes/folder/secret.md" not in wiki.keys("notes/")


# -- what is no file


def test_a_link_never_leads_out_of_the_wiki(tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_bytes(b"secret")
    wiki = FolderWiki(tmp_path / "wiki")
    wiki.create(KEY, b"")
    (wiki.root / "notes" / "file.md").symlink_to(secret)
    (wiki.root / "notes" / "folder").symlink_to(tmp_path)
    (wiki.root / "notes" / "dangling.md").symlink_to(tmp_path / "nothing")
    (wiki.root / "linked").symlink_to(tmp_path)

    assert KEY in wiki.keys("notes/")
    assert "notes/folder/secret.md" not in wiki.keys("notes/")
    for key in ("notes/file.md", "notes/folder/secret.md", "notes/dangling.md", "linked/secret.md"):
        with pytest.raises(Unusable, match="is a symbolic link"):
            wiki.read(key)
        with pytest.raises(Unusable, match="is a symbolic link"):
            wiki.create(key, b"")
        with pytest.raises(Unusable, match="is a symbolic link"):
            wiki.replace(key, b"", "etag")
    with pytest.raises(Unusable, match="is a symbolic link"):
        list(wiki.keys("linked/"))
    assert secret.read_bytes() == b"secret"
    assert not (tmp_path / "nothing").exists()


def test_the_wiki_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    FolderWiki(tmp_path / "link").create(KEY, b"a")

    assert (tmp_path / "real" / KEY).read_bytes() == b"a"


def test_a_pipe_is_refused_and_makes_nobody_wait(wiki: FolderWiki) -> None:
    wiki.create(KEY, b"")
    os.mkfifo(wiki.root / "notes" / "pipe.md")

    assert KEY in wiki.keys("notes/")
    assert "notes/folder/secret.md" not in wiki.keys("notes/")
    with pytest.raises(Unusable, match=r"notes/pipe\.md cannot be used: it is a device or a pipe"):
        wiki.read("notes/pipe.md")


def test_a_file_in_the_place_of_a_folder_is_said(wiki: FolderWiki) -> None:
    wiki.create("notes", b"")

    with pytest.raises(Unusable, match=r"notes cannot be used: a file stands where a folder is needed"):
        wiki.create(KEY, b"")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
def test_what_cannot_be_read_is_said_with_its_path(wiki: FolderWiki) -> None:
    wiki.create(KEY, b"")
    (wiki.root / KEY).chmod(0)

    with pytest.raises(Unusable, match=r"notes/a\.md cannot be used: you lack the right"):
        wiki.read(KEY)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "you lack the right to use it"),
        (errno.ENOSPC, "the disk is full; make room"),
        (errno.EIO, "input/output error"),
    ],
)
def test_what_the_system_refuses_is_said_in_one_line(number: int, said: str) -> None:
    with pytest.raises(Unusable, match=said), files.explaining(Path("notes/a\nb.md")):
        raise OSError(number, os.strerror(number))


# -- disks without hard links, and more than one disk. None can be mounted in a test: the system's answer is put in.


def link_answers(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    link_answers(errno.EPERM, monkeypatch)


def test_nothing_is_moved_to_another_disk(wiki: FolderWiki, monkeypatch: pytest.MonkeyPatch) -> None:
    etag = wiki.create(KEY, b"a")
    link_answers(errno.EXDEV, monkeypatch)

    with pytest.raises(Unusable, match="keep all folders of the wiki on one disk"):
        wiki.move(KEY, "other/a.md", etag)
    assert wiki.read("other/a.md") is None
    assert read(wiki, KEY).data == b"a"


def test_what_is_replaced_may_be_kept_on_another_disk(wiki: FolderWiki, monkeypatch: pytest.MonkeyPatch) -> None:
    etag = wiki.create(KEY, b"a")
    link_answers(errno.EXDEV, monkeypatch)
    wiki.replace(KEY, b"b", etag)

    assert list(replaced(wiki).values()) == [b"a"]


@pytest.mark.usefixtures("without_links")
class TestFolderWikiWithoutHardLinks(WikiContract):
    @pytest.fixture
    def wiki(self, tmp_path: Path) -> Wiki:
        return FolderWiki(tmp_path / "wiki")

    def test_what_is_replaced_is_kept_as_a_copy(self, tmp_path: Path) -> None:
        wiki = FolderWiki(tmp_path)
        wiki.replace(KEY, b"second", wiki.create(KEY, b"first"))

        assert list(replaced(wiki).values()) == [b"first"]
