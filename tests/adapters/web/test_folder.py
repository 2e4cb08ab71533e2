"""Saved pages below a topic's folder, and nothing outside it."""

import os
from pathlib import Path, PurePosixPath

import pytest

from wikikeeper.adapters.web.folder import FolderSource
from wikikeeper.errors import SearchFailed
from wikikeeper.models import Origin
from wikikeeper.policy.urls import saved_path


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    root = tmp_path / "wiki"
    (root / "saved" / "deeper").mkdir(parents=True)
    return root


def save(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


def paths(source: FolderSource) -> list[PurePosixPath]:
    found = source.find()
    assert all(page.origin is Origin.FOLDER and page.title == "" for page in found)
    return [saved_path(page.url) for page in found]


def test_saved_pages_are_found_in_order_also_in_folders_below(wiki: Path) -> None:
    save(wiki, "saved/b.HTML", "saved/a.pdf", "saved/deeper/c.htm", "saved/d.txt", "saved/e.md", "saved/ü #1.html")

    assert [str(path) for path in paths(FolderSource(wiki, "saved"))] == [
        "saved/a.pdf",
        "saved/b.HTML",
        "saved/d.txt",
        "saved/deeper/c.htm",
        "saved/e.md",
        "saved/ü #1.html",
    ]


def test_a_page_is_named_by_its_path_below_the_wiki(wiki: Path) -> None:
    save(wiki, "saved/a b.html")

    assert [page.url for page in FolderSource(wiki, "saved").find()] == ["file:///saved/a%20b.html"]


def test_hidden_and_other_files_are_passed_over(wiki: Path) -> None:
    save(
        wiki,
        "saved/.hidden.html",
        "saved/.git/a.html",
        "saved/picture.png",
        "saved/page",
        "saved/page.html~",
        "other/a.html",
    )

    source = FolderSource(wiki, "saved")

    assert paths(source) == []
    assert source.warnings == ()


def test_links_that_leave_the_folder_are_left_out_with_a_warning(wiki: Path, tmp_path: Path) -> None:
    save(tmp_path, "outside/secret.html")
    save(wiki, "saved/a.html", "topics/t.md")
    (wiki / "saved" / "secret.html").symlink_to(tmp_path / "outside" / "secret.html")
    (wiki / "saved" / "topic.md").symlink_to("../topics/t.md")
    (wiki / "saved" / "folder").symlink_to(tmp_path / "outside", target_is_directory=True)
    (wiki / "saved" / "same.html").symlink_to("a.html")
    (wiki / "saved" / "broken.html").symlink_to("nothing.html")
    source = FolderSource(wiki, "saved")

    assert [path.name for path in paths(source)] == ["a.html", "same.html"]
    assert sorted(warning.split()[0] for warning in source.warnings) == [
        "saved/folder",
        "saved/secret.html",
        "saved/topic.md",
    ]


def test_a_link_to_a_folder_above_is_no_endless_loop(wiki: Path) -> None:
    save(wiki, "saved/a.html")
    (wiki / "saved" / "loop").symlink_to(wiki / "saved", target_is_directory=True)
    (wiki / "saved" / "self.html").symlink_to("self.html")

    assert [path.name for path in paths(FolderSource(wiki, "saved"))] == ["a.html"]


def test_a_name_that_is_no_text_comes_back_as_it_is(wiki: Path) -> None:
    name = os.fsdecode(b"saved/\xff.html")
    try:
        save(wiki, name)
    except OSError:
        pytest.skip("this file system takes only names that are UTF-8")

    assert [str(path) for path in paths(FolderSource(wiki, "saved"))] == [name]


@pytest.mark.parametrize("folder", ["nothing", "file.html"])
def test_a_folder_that_is_not_there_is_an_outage(wiki: Path, folder: str) -> None:
    save(wiki, "file.html")

    with pytest.raises(SearchFailed) as failure:
        FolderSource(wiki, folder).find()

    assert failure.value.cause == "folder_missing"


def test_a_folder_that_is_a_link_out_of_the_wiki_is_an_outage(wiki: Path, tmp_path: Path) -> None:
    save(tmp_path, "outside/secret.html")
    (wiki / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)

    with pytest.raises(SearchFailed) as failure:
        FolderSource(wiki, "linked").find()

    assert failure.value.cause == "folder_missing"


def test_warnings_are_those_of_the_last_look(wiki: Path, tmp_path: Path) -> None:
    save(tmp_path, "secret.html")
    (wiki / "saved" / "secret.html").symlink_to(tmp_path / "secret.html")
    source = FolderSource(wiki, "saved")
    source.find()
    (wiki / "saved" / "secret.html").unlink()

    source.find()

    assert source.warnings == ()
