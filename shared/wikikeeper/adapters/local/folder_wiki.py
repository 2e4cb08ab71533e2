"""The wiki as a folder: conditional writes on files that people edit at the same time.

Nothing here can lock an editor out, so each write leaves either the old file or the new one, whole, at any crash:

 create    temporary file, flushed ─▶ linked to the name (fails if it exists) ─▶ folder flushed ─▶ temporary removed
 replace   temporary file, flushed ─▶ old file linked into .wikikeeper/replaced/ ─▶ still what was read? ─▶ renamed
 move      still what was read? ─▶ linked to the target (fails if it exists) ─▶ source removed, if still that file

What is replaced is kept as the very file it was, so that even what an editor writes into it late is not lost. Our own
threads and processes take turns by a lock. A symbolic link is no file of the wiki: it could lead out of it.
"""

import hashlib
import os
import secrets
import shutil
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from wikikeeper.adapters import wiki_keys
from wikikeeper.adapters.local.clock import utc_now
from wikikeeper.adapters.local.files import (
    TurnTaking,
    explaining,
    flush_folder,
    keep_link,
    link_new,
    make_folder,
    read_file,
    same_file,
    shown,
    temporary_file,
)
from wikikeeper.adapters.local.private_folder import PRIVATE_FOLDER, private_folder
from wikikeeper.errors import Unusable, WikiConflict
from wikikeeper.ports import Document

REPLACED_FOLDER = "replaced"
REPLACED_KEPT = timedelta(days=30)
"""How long replaced files are kept: longer than a holiday, shorter than it takes them to fill a disk. Whole days are
removed, when the first file of a new day is replaced."""


class FolderWiki:
    """`Wiki` in a folder, which is made if it is missing. `now` only dates what is replaced.

    Every method raises Unusable, naming the file, for a key that is no name in the wiki, for a link or a special file
    in its place, and for what the system refuses (rights, a full disk). A name that the disk holds in another Unicode
    form is found under its key in NFC.
    """

    def __init__(self, root: Path, now: Callable[[], datetime] = utc_now) -> None:
        with explaining(root):
            root.mkdir(parents=True, exist_ok=True)
            self.root = root.resolve()
        self._now = now
        self._private = private_folder(self.root / PRIVATE_FOLDER)
        self._turn = TurnTaking(self._private / "wiki.lock")

    def read(self, key: str) -> Document | None:
        key = wiki_keys.readable(key)
        for path in self._places(key.split("/")):
            data = read_file(path)
            if data is not None:
                return Document(key=key, data=data, etag=_etag(data))
        return None

    def create(self, key: str, data: bytes) -> str:
        key = wiki_keys.writable(key)
        with self._turn:
            path = self._new_path(key)
            with temporary_file(path.parent, data) as temporary:
                if not link_new(temporary, path):
                    raise WikiConflict(key)
                flush_folder(path.parent)
        return _etag(data)

    def replace(self, key: str, data: bytes, etag: str) -> str:
        key = wiki_keys.readable(key)
        with self._turn:
            path = self._version(key, etag)
            if _etag(data) == etag:
                return etag
            with temporary_file(path.parent, data) as temporary:
                shutil.copymode(path, temporary)
                kept = self._keep(key, path)
                now = read_file(path)
                if now is None or _etag(now) != etag:
                    kept.unlink()
                    raise WikiConflict(key)
                temporary.replace(path)
                flush_folder(path.parent)
        return _etag(data)

    def move(self, source: str, target: str, etag: str) -> None:
        source, target = wiki_keys.readable(source), wiki_keys.writable(target)
        with self._turn:
            path = self._version(source, etag)
            there = self._half_moved(path, target)
            if there is None:
                there = self._new_path(target)
                if not link_new(path, there):
                    raise WikiConflict(target)
            with explaining(path):
                flush_folder(there.parent)
                if same_file(path, there):
                    path.unlink()
                elif path.exists():
                    # Somebody put another file in its place after the look: that one stays, and nothing was moved.
                    there.unlink()
                    raise WikiConflict(source)
                flush_folder(path.parent)

    def keys(self, prefix: str) -> Iterator[str]:
        """In the order of their UTF-8 bytes. Hidden files and names that no key can have are passed over.

        A link is listed, since a person sees it there, and refused by `read`, which says so.
        """
        below = wiki_keys.folder(prefix)
        yield from self._walk([path for path in self._places(below.split("/")) if path.is_dir()], below + "/")

    # -- looking

    def _places(self, segments: Sequence[str]) -> list[Path]:
        """Where a key may lie: one place, or more where the disk has a name in two Unicode forms."""
        places = [self.root]
        for segment in segments:
            places = [path for folder in places for path in _named(folder, segment)]
        return places

    def _version(self, key: str, etag: str) -> Path:
        """Where exactly this version lies."""
        for path in self._places(key.split("/")):
            data = read_file(path)
            if data is not None and _etag(data) == etag:
                return path
        raise WikiConflict(key)

    def _half_moved(self, path: Path, target: str) -> Path | None:
        """The target, if it is the same file as the source: a crash fell between the two, only the removal is missing."""
        for there in self._places(target.split("/")):
            if there != path and same_file(there, path):
                return there
        return None

    def _walk(self, folders: Sequence[Path], prefix: str) -> Iterator[str]:
        files: set[str] = set()
        deeper: dict[str, list[Path]] = {}
        for folder in folders:
            with explaining(folder):
                for entry in os.scandir(folder):
                    name = unicodedata.normalize("NFC", entry.name)
                    if not wiki_keys.is_readable(prefix + name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        deeper.setdefault(name + "/", []).append(folder / entry.name)
                    elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                        files.add(name)
        # With its slash a folder sorts where its keys belong: "a-b" before "a/b" before "a0".
        for name in sorted(files | deeper.keys()):
            if name in files:
                yield prefix + name
            else:
                yield from self._walk(deeper[name], prefix + name)

    # -- writing

    def _new_path(self, key: str) -> Path:
        """Where a new file goes, its folders made. Raises WikiConflict if something is there in any Unicode form."""
        *above, name = key.split("/")
        folder = self.root
        for segment in above:
            found = _named(folder, segment)
            folder = found[0] if found else folder / segment
            make_folder(folder)
        if _named(folder, name):
            raise WikiConflict(key)
        return folder / name

    def _keep(self, key: str, path: Path) -> Path:
        """Keep the file as it is, under a name of its own."""
        at = self._now().astimezone(UTC)
        folder = self._private / REPLACED_FOLDER
        make_folder(folder)
        day = folder / at.date().isoformat()
        if not day.exists():
            self._forget(folder, before=(at - REPLACED_KEPT).date().isoformat())
        *above, name = key.split("/")
        folder = day
        make_folder(folder)
        for segment in above:
            folder = folder / segment
            make_folder(folder)
        mark = f"{at:%H%M%S}-{secrets.token_hex(3)}-"
        kept = folder / (mark + _cut(name, wiki_keys.LONGEST_SEGMENT - len(mark)))
        with explaining(kept):
            if not keep_link(path, kept):
                shutil.copy2(path, kept)
            flush_folder(folder)
        return kept

    def _forget(self, folder: Path, before: str) -> None:
        with explaining(folder):
            for day in folder.iterdir():
                # Days are written so that their order as text is their order in time.
                if day.name < before:
                    shutil.rmtree(day)


def _named(folder: Path, name: str) -> list[Path]:
    """What a folder has under a name in any Unicode form, the exact one first. Raises Unusable for symbolic links."""
    exact = folder / name
    with explaining(exact):
        try:
            # Plain names have one form, and most are there: they cost no listing of a folder with years of notes.
            if name.isascii() and os.path.lexists(exact):
                found = [exact]
            else:
                found = [path for path in folder.iterdir() if unicodedata.normalize("NFC", path.name) == name]
        except (FileNotFoundError, NotADirectoryError):
            return []
    for path in found:
        if path.is_symlink():
            raise Unusable(
                f"{shown(path)} cannot be used: it is a symbolic link, which could lead out of the wiki; "
                "put the file or folder itself there"
            )
    return sorted(found, key=lambda path: path != exact)


def _cut(name: str, size: int) -> str:
    """The end of a name, in at most so many bytes: what tells names apart stands there, and so does the ".md"."""
    return name.encode()[-size:].decode(errors="ignore")


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
