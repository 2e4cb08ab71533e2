"""Saved pages: the files below a topic's folder, as a source like any other."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from wikikeeper.errors import SearchFailed
from wikikeeper.models import Found, Origin
from wikikeeper.policy.urls import folder_url

ENDINGS = frozenset({".html", ".htm", ".pdf", ".txt", ".md"})
"""What the extractor can read."""


class FolderSource:
    """The saved pages of one topic."""

    def __init__(self, root: Path, folder: str) -> None:
        """`root`: the wiki. `folder`: relative to it, checked when the topic was read."""
        self.name = f"folder {folder}"
        self.warnings: tuple[str, ...] = ()
        self._root = root
        self._folder = folder

    def find(self) -> list[Found]:
        """Every page that lies in the folder now, in the order of their paths. Titles are left to the extractor.

        Hidden files are passed over; what a link leads to outside the folder is left out with a warning.
        Raises SearchFailed: folder_missing, folder_unreadable.
        """
        self.warnings = ()
        top = self._root / self._folder
        if not top.is_dir():
            raise SearchFailed(
                "folder_missing", f"there is no folder {self._folder} in the wiki: make it or correct the topic"
            )
        # The folder itself may be reached through a link inside the wiki, never through one that leaves it.
        inside = top.resolve()
        if not inside.is_relative_to(self._root.resolve()):
            raise SearchFailed("folder_missing", f"the folder {self._folder} is a link that leads out of the wiki")
        try:
            pages = sorted(self._pages(top, inside))
        except OSError as error:
            raise SearchFailed("folder_unreadable", f"the folder {self._folder} cannot be read: {error}") from error
        return [Found(url=folder_url(page), origin=Origin.FOLDER) for page in pages]

    def _pages(self, top: Path, inside: Path) -> Iterator[PurePosixPath]:
        # A stack, not recursion: paths can be nested deeper than Python's calls.
        folders = [top]
        while folders:
            for entry in folders.pop().iterdir():
                key = PurePosixPath(entry.relative_to(self._root).as_posix())
                if entry.name.startswith("."):
                    continue
                # A linked folder could lead to its own parent, without end.
                if entry.is_symlink() and (entry.is_dir() or not _leads_into(entry, inside)):
                    self.warnings += (f"{_shown(key)} is a link and was left out",)
                elif entry.is_dir():
                    folders.append(entry)
                elif entry.suffix.casefold() in ENDINGS and entry.is_file():
                    yield key


def _leads_into(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder)
    except RuntimeError:  # how pathlib of Python 3.11 and 3.12 says that links lead in a circle
        return False


def _shown(path: PurePosixPath) -> str:
    """A file name may hold bytes that are no text."""
    return os.fsencode(path).decode("utf-8", "replace")
