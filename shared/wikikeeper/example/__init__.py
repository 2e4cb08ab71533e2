"""The example wiki of `wikikeeper try`: one topic and twelve saved pages, with what becomes of each of them.

Heronbase, its people and its figures are invented, every address ends in `.example`, and all texts were written for
this project and stand under its licence. The facts about herons are real.
"""

import secrets
import shutil
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from wikikeeper.errors import Unusable
from wikikeeper.models import Kind
from wikikeeper.settings import CONFIG_FILE

_PARTS = ("pages", "topics")
"""In the order in which they are made: a wiki is known by its topics, so they come last."""


class Page(NamedTuple):
    """One saved page, and what a good judge makes of it."""

    path: str
    """Relative to the wiki."""
    language: str
    kind: Kind | None
    """None where there is no text to tell it by."""
    outcome: str
    """"kept", "folded", or the reason why it is discarded."""


PAGES = (
    Page("pages/a-year-of-heronbase-4.html", "en", Kind.OPINION, "kept"),
    Page("pages/best-hosting-deals.html", "en", Kind.SPAM, "not_useful"),
    Page("pages/graureiher.html", "de", Kind.UNRELATED, "not_useful"),
    Page("pages/heronbase-4-2-bittern.html", "en", Kind.RELEASE, "kept"),
    # The same text as the one above. Which of the two is kept depends on which one comes first.
    Page("pages/heronbase-4-2-print.html", "en", Kind.RELEASE, "folded"),
    # A useful page with a hidden text that tells AI readers how to rate it.
    Page("pages/heronbase-on-small-devices.html", "en", Kind.OPINION, "injection"),
    # Saved as it came over the wire, compressed, and cut off.
    Page("pages/heronbase-roadmap-2027.html", "en", None, "unfetchable:wrong_type"),
    Page("pages/heronbase-users-p99-after-4-2.html", "en", Kind.DISCUSSION, "kept"),
    Page("pages/langzeitpflege-heronbase-3-8.html", "de", Kind.ANNOUNCEMENT, "kept"),
    Page("pages/migrer-heronbase-3-vers-4.html", "fr", Kind.TUTORIAL, "kept"),
    Page("pages/python-n-est-pas-reconnu.html", "fr", Kind.BEGINNER_QUESTION, "not_useful"),
    # It quotes an attack in the open, which is no attack.
    Page("pages/what-a-prompt-injection-looks-like.html", "en", Kind.TUTORIAL, "not_useful"),
)


def copy_to(folder: Path) -> bool:
    """Make the example wiki in `folder`; True if it was made, False if a wiki is there already, which is left as it is.

    The folder is made if absent. Nothing is ever overwritten, also when two processes do this at once, and a copy that
    was interrupted is completed by the next. Raises Unusable for a folder with something else in it.
    """
    if (folder / "topics").exists():
        return False
    made = False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (stranger := _stranger(folder)) is not None:
            raise Unusable(f"{folder} holds {stranger} but no topics/: name a new or empty folder for the example wiki")
        for part in _PARTS:
            made = _put(part, folder)
    except OSError as error:
        raise Unusable(f"the example wiki cannot be made in {folder}: {error.strerror or error}") from error
    return made


def _contents(part: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (files(__name__) / part).iterdir() if file.is_file()}


def _stranger(folder: Path) -> str | None:
    """Something that is neither hidden, nor settings written before the first try, nor a part that we have made."""
    for entry in sorted(folder.iterdir()):
        # Topics may have come this moment, from another process. Pages may be somebody's own.
        is_ours = entry.name == "topics" or (
            entry.name == "pages" and entry.is_dir() and {p.name for p in entry.iterdir()} == _contents("pages").keys()
        )
        if not (is_ours or entry.name.startswith(".") or entry.name == CONFIG_FILE):
            return entry.name
    return None


def _put(part: str, folder: Path) -> bool:
    """Copy one part whole or not at all. False: it is there already."""
    target = folder / part
    making = folder / f".making-{secrets.token_hex(8)}"
    making.mkdir()
    try:
        for name, data in _contents(part).items():
            # Written, not copied: a package may be installed read-only, the wiki is there to be edited.
            (making / name).write_bytes(data)
        making.rename(target)
    except OSError:
        # Systems differ in what they call a folder that is in the way, but all of them refuse.
        if target.is_dir():
            return False
        raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return True
