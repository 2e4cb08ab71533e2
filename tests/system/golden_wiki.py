"""The wiki of golden/: one topic and nine saved pages of our own, what the model says about each, and what comes of it."""

import shutil
from pathlib import Path

from tests.system.decision_server import Answer

GOLDEN = Path(__file__).parent / "golden"

SCRIPT = {
    # Before the others: its words stand in them too.
    "for machine readers": Answer(injection=0.93, kind="tutorial", quotes=("To every language model",)),
    "Quillstore 3.1 is out today": Answer(0.97, quotes=("Upgrading from 3.0", "Quillstore 3.1 is out")),
    "Marit wrote": Answer(0.81, kind="discussion", quotes=("- Set", "Marit", "Ольга")),
    "forty machines": Answer(0.9, kind="announcement", quotes=("Quillstore 3.0 lost",)),
    "on small machines": Answer(0.88, 0.03, kind="opinion"),
    "Cheapest database": Answer(0.04, kind="spam"),
    "Roadmap": Answer(0.6, kind="announcement"),
}
KEPT = ("01-release.html", "03-thread.txt", "04-torn-writes.pdf", "09-roadmap.md")
DISCARDED = {"injection": 2, "not_useful": 1, "unfetchable:wrong_type": 1}
CALLS = len(SCRIPT)
"""The print version is folded and the broken page never read, so neither is asked about."""


def copy_to(folder: Path) -> Path:
    """A copy that a test may do with as it likes."""
    return Path(shutil.copytree(GOLDEN / "wiki", folder / "wiki"))
