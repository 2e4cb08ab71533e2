"""Findings: what structure alone shows about a page, free of any model.

Concealed text is normal (menus, tabs, comments of developers), and so is text about AI. Concealed text that gives
orders to a model is an attack: that combination alone decides, everything else is shown beside the probability.
"""

import re
from collections.abc import Sequence

from wikikeeper.models import Findings
from wikikeeper.policy.address import addresses_model
from wikikeeper.policy.paragraphs import clean

SHOWN = 200
"""Characters of a concealed address that are kept: enough to see what it wants."""
_MOST_MARKERS = 10
"""Role markers that are listed: a page about chat templates has hundreds."""

_LETTER = "A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u052f"
"""Latin, Greek, Cyrillic: no word of theirs needs a zero-width character."""
_ZERO_WIDTH = re.compile(f"(?<=[{_LETTER}])[\u200b-\u200d\u2060-\u2064\ufeff\u180e]+(?=[{_LETTER}])")
_TAGS = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f|([\U000e0000-\U000e007f]+)")
"""The flag of a region (a black flag, then its letters), or in the group a run of tag characters that is none."""
_TAG_OFFSET = 0xE0000
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_ROLE_MARKER = re.compile(
    r"<[|｜][\w ▁]{1,40}[|｜]>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
    r"|^\s*#{2,3} ?(?:System|Instruction|Human|Assistant|User)(?: prompt)?:",
    re.M | re.I,
)


def find(visible: str, concealed: Sequence[str]) -> Findings:
    """The findings on a page: `visible` is its text before any cleaning, `concealed` what a reader does not see."""
    tagged = tagged_texts(visible)
    hidden = (*concealed, *tagged)
    address = next((text for text in dict.fromkeys(hidden) if addresses_model(text)), None)
    markers = dict.fromkeys(match[0].strip() for match in _ROLE_MARKER.finditer(visible))
    return Findings(
        zero_width=sum(len(match[0]) for match in _ZERO_WIDTH.finditer(visible)),
        tag_characters=sum(map(len, _tag_runs(visible))),
        concealed=len(hidden),
        role_markers=tuple(markers)[:_MOST_MARKERS],
        concealed_address=None if address is None else clean(address)[:SHOWN],
    )


def tagged_texts(visible: str) -> tuple[str, ...]:
    """What is spelled out in tag characters, which no font shows and every model can read."""
    decoded = ("".join(chr(ord(sign) - _TAG_OFFSET) for sign in run) for run in _tag_runs(visible))
    return tuple(text for text in (_CONTROL.sub("", text) for text in decoded) if text)


def _tag_runs(visible: str) -> list[str]:
    return [match[1] for match in _TAGS.finditer(visible) if match[1]]
