"""Saved pages: files below a topic's folder, and nothing else on this machine."""

import os
import stat
from pathlib import Path, PurePosixPath

from wikikeeper.errors import FetchFailed, Unfetchable
from wikikeeper.models import Fetched
from wikikeeper.policy import media
from wikikeeper.policy.urls import saved_path

# Neither waits for a writer at the other end of a pipe nor follows a link that appeared since the path was resolved.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class SavedPages:
    """Reads `file:` addresses as `folder_url` makes them."""

    def __init__(self, wiki_root: Path, max_bytes: int) -> None:
        self._root = wiki_root
        self._max_bytes = max_bytes

    def get(self, url: str, folder: str | None) -> Fetched:
        """The page, if it lies in `folder` (relative to the wiki) and links don't lead out of it.

        Raises Unfetchable: bad_url, forbidden_path, missing_file, wrong_type, too_large. Raises FetchFailed: unreadable.
        """
        try:
            relative = saved_path(url)
        except ValueError as error:
            raise Unfetchable("bad_url", str(error)) from error
        if folder is None:
            raise Unfetchable("forbidden_path", "the topic has no folder")
        try:
            body = self._read(self._inside(relative, folder))
        except (FileNotFoundError, NotADirectoryError):
            raise Unfetchable("missing_file", str(relative)) from None
        except OSError as error:
            raise FetchFailed("unreadable", detail=error.strerror or str(error)) from error
        kind = media.saved_type(relative.suffix, body[: media.START])
        if kind is None:
            raise Unfetchable("wrong_type", relative.suffix or "no ending")
        return Fetched(url=url, status=200, content_type=kind, body=body)

    def _inside(self, relative: PurePosixPath, folder: str) -> Path:
        root = self._root.resolve(strict=True)
        allowed = (root / folder).resolve(strict=True)
        try:
            file = (root / relative).resolve(strict=True)
        except RuntimeError:  # how pathlib of Python 3.11 and 3.12 says that links lead in a circle
            raise Unfetchable("forbidden_path", "links that lead in a circle") from None
        if not allowed.is_relative_to(root) or not file.is_relative_to(allowed):
            raise Unfetchable("forbidden_path", "outside the topic's folder")
        return file

    def _read(self, file: Path) -> bytes:
        descriptor = os.open(file, _READ)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unfetchable("wrong_type", "not a regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as opened:
                body = opened.read(self._max_bytes + 1)
        finally:
            os.close(descriptor)
        if len(body) > self._max_bytes:
            raise Unfetchable("too_large", f"more than {self._max_bytes} bytes")
        return body
