"""One run at a time on a wiki: whoever holds the lock knows that every earlier run is over, however it ended."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wikikeeper.adapters.local.files import explaining, shown
from wikikeeper.adapters.local.private_folder import private_folder
from wikikeeper.errors import AnotherRun, Unusable

if sys.platform != "win32":
    import fcntl

LOCK = "run.lock"
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""What disks without locks answer: some network and FUSE disks."""
_LONGEST = 20
"""Bytes: more digits than any system's process ids have."""


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a wiki's private folder. The system gives it back when this process ends, also by `kill -9`.

    Raises AnotherRun, naming its process, while another one holds it; Unusable where there are no such locks.
    """
    path = private_folder(folder) / LOCK
    with explaining(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        _lock(descriptor, path)
        with explaining(path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    if sys.platform == "win32":
        raise Unusable("runs need a lock that Windows does not have: run wikikeeper on Linux or macOS, or in WSL")
    with explaining(path):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnotherRun(os.read(descriptor, _LONGEST).decode("ascii", "replace").strip()) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise Unusable(
                f"{shown(path)} cannot be locked: this disk has no file locks; keep the wiki on a local disk"
            ) from error
