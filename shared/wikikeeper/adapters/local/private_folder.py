"""The folder `.wikikeeper` inside a wiki: what the machine remembers, for the eyes of its owner alone."""

import os
from pathlib import Path

from wikikeeper.errors import Unusable

PRIVATE_FOLDER = ".wikikeeper"


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter, if it is not there yet.

    A new one gets a `.gitignore`, so that a wiki under version control does not carry the machine's memory along.
    Raises Unusable when it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            (path / ".gitignore").write_text("*\n", encoding="ascii")
    except OSError as error:
        raise Unusable(f"{path} cannot be made: {os.strerror(error.errno or 0)}") from error
    return path
