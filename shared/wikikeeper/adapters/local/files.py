"""What it takes to write a file that is whole at any crash, and to say why the system refused."""

import errno
import os
import secrets
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from wikikeeper.errors import Unusable

if sys.platform != "win32":
    import fcntl

_TEMPORARY = ".wikikeeper-"
"""Hidden, so that editors, sync tools and our own listings pass it over in the moment that it is there."""

_MENDING = {
    errno.EACCES: "you lack the right to use it; change its owner or mode",
    errno.EPERM: "you lack the right to use it; change its owner or mode",
    errno.EROFS: "the disk can only be read; mount it for writing",
    errno.ENOSPC: "the disk is full; make room and start again",
    errno.EDQUOT: "your share of the disk is used up; make room and start again",
    errno.ELOOP: "it is a symbolic link, which could lead out of the wiki; put the file itself there",
    errno.EXDEV: "it would have to move to another disk; keep all folders of the wiki on one disk",
    errno.ENOTDIR: "a file stands where a folder is needed; rename it",
    errno.ENAMETOOLONG: "the name is too long for this disk; shorten it",
}
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK})
"""What disks without hard links answer: FAT, some network and FUSE disks."""

# Neither exists on Windows. A named pipe must not make the reader wait for a writer.
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn what the system refuses into one line that names the file and what to do."""
    try:
        yield
    except OSError as error:
        what = _MENDING.get(error.errno or 0) or os.strerror(error.errno or 0).lower()
        raise Unusable(f"{shown(path)} cannot be used: {what}") from error


def shown(path: Path) -> str:
    """A path on one line, whatever is in its name."""
    return str(path) if str(path).isprintable() else ascii(str(path))


def read_file(path: Path) -> bytes | None:
    """The bytes of a regular file. None: nothing there, or a folder. Raises Unusable for links and special files."""
    with explaining(path):
        try:
            descriptor = os.open(path, _READ_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                return None
            if not stat.S_ISREG(mode):
                raise Unusable(f"{shown(path)} cannot be used: it is a device or a pipe; put a file there")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)


@contextmanager
def temporary_file(folder: Path, data: bytes) -> Iterator[Path]:
    """A file with these bytes, safe on disk, under a hidden name in the folder; removed at the end if still there.

    To be used in turn only: what an earlier writer left behind when it was killed is removed here.
    """
    with explaining(folder):
        for entry in os.scandir(folder):
            if entry.name.startswith(_TEMPORARY):
                Path(entry.path).unlink(missing_ok=True)
        path = folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            with path.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield path
        finally:
            path.unlink(missing_ok=True)


def link_new(source: Path, target: Path) -> bool:
    """Give a file a second name that must not exist. False: it exists.

    On a disk without hard links the file is renamed instead, over an empty file that reserves the name: then a crash
    in that moment leaves an empty target, never a torn one, and never loses what was there before.
    """
    with explaining(target):
        try:
            os.link(source, target, follow_symlinks=False)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return _rename_new(source, target)
        return True


def keep_link(source: Path, target: Path) -> bool:
    """Give a file a second name if its disk can and is the same. False: it cannot."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS | {errno.EXDEV}:
            raise
        return False
    return True


def _rename_new(source: Path, target: Path) -> bool:
    try:
        target.open("xb").close()
    except FileExistsError:
        return False
    try:
        source.replace(target)
    except OSError:
        target.unlink()
        raise
    return True


def same_file(one: Path, other: Path) -> bool:
    """Two names of one file. False where either is missing."""
    try:
        return os.path.samestat(one.lstat(), other.lstat())
    except FileNotFoundError:
        return False


def make_folder(folder: Path) -> None:
    """Make one folder in an existing one, safe on disk. It may exist."""
    with explaining(folder):
        try:
            folder.mkdir()
        except FileExistsError:
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
            return
        flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure."""
    if sys.platform == "win32":
        return  # Windows opens no folders; its file system orders these writes by itself.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class TurnTaking:
    """One writer at a time, among threads and (except on Windows) among processes. A killed one frees it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._descriptor = -1

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if sys.platform != "win32":
                with explaining(self._path):
                    self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        # Closing gives the lock of the file up.
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._threads.release()
