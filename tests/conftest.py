"""What holds for the whole suite."""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from hypothesis import settings

# No deadline per example: on a machine that is busy with something else a slow example says nothing of the code.
settings.register_profile("here", deadline=None)
# Hypothesis' own profile for CI draws the same examples every time, so that a change is not blamed for a new draw.
settings.load_profile("ci" if os.environ.get("CI") else "here")

# A shell that starts tests in the background has them ignore Ctrl-C, and so would every process that they start: then
# what is promised of an interrupted run could not be tried.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start some hundred interpreters. Where none may keep what it compiled, each compiles every library once more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

MEMORY = Path("/dev/shm")
ROOM = 2 * 2**30
"""Bytes. The functions' images are the most that lies there, some 400 MB for each process of pytest."""


def in_memory() -> bool:
    """Whether Linux has a folder in memory that scratch files fit in, and from which scripts may be run."""
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK | os.X_OK):
        return False
    return not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC and shutil.disk_usage(MEMORY).free >= ROOM


# Stores flush each transaction, and no test takes away the power: on a disk that is most of what some of them take.
if "TMPDIR" not in os.environ and in_memory():
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # asked for before, it was kept
