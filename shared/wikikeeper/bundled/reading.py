"""What a question is about: which part of the state is looked through, and what is looked for in it.

A small encoder can't follow "does `page` help someone who researches the topic in `brief`". But the question names
its parts in backticks, and so the part that is looked through (the page) and what is looked for (the brief) can be
told apart. The words around them are left out: in trials they pulled every page in English closer and every page in
another language further away.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wikikeeper.policy.paragraphs import sentence_cut

PASSAGE_CHARS = 400
"""Of one passage at most. Shorter ones cost less in all (attention grows with the square) and say one thing each."""
MOST_PASSAGES = 64
"""Beyond that short neighbours are read together."""
MOST_CHARS = 12_000
"""Of the passages together: about two seconds on two cores. Of a longer text, passages are taken evenly."""
SOUGHT_CHARS = 600
"""Of what is looked for: more topics than fit in there would only blur each other."""

_HEAD = 60
"""Characters of a part by which it is recognised inside a criterion, which may hold it shortened."""
_SHORTEST = 3
"""Characters of a part that can be recognised: "en" is inside too many texts."""
_VERBATIM = 20
"""Characters from which an option is recognised as a piece of the text rather than a word that occurs in it."""

_NAMED = re.compile(r"`([^`\n]{1,80})`")
_BARRIER = re.compile(r"^[^\w\n]*<{2,}[^<>\n]*>{2,}[^\w\n]*$|^\W+$", re.MULTILINE)
"""Lines that only divide: `<<<page 7f3a>>>`, `-----`."""
_GAP = re.compile(r"\n\s*\n")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Subject:
    """What one question is about."""

    text: str
    """Looked through."""
    sought: str | None
    """The other parts of the state that the question is about; None when it speaks of the text alone."""


def as_text(value: object) -> str:
    """A JSON value as text: strings as they are, objects and lists as lines `key: value`."""
    match value:
        case str():
            return value
        case Mapping():
            return "\n".join(f"{key}: {as_text(inner)}" for key, inner in value.items())
        case list():
            return "\n".join(map(as_text, value))
        case None:
            return ""
    return str(value)


def parts(state: object) -> dict[str, str]:
    """The named parts of a state; a state that is not an object is one part without a name."""
    if isinstance(state, Mapping):
        return {key: as_text(value) for key, value in state.items()}
    return {"": as_text(state)}


def subject(state: Mapping[str, str], instructions: str, criterion: str | None, options: Iterable[str] = ()) -> Subject:
    """Which part a question looks through, and which it looks for.

    Candidates are the parts named in the instructions, or all. A part that the criterion names or holds is looked for;
    one that holds options word for word, or else the longest, is looked through.
    """
    asked = _named(state, instructions) or list(state)
    wanted = [name for name in state if criterion is not None and _is_in(name, state[name], criterion)]
    candidates = [name for name in asked if name not in wanted] or asked
    pieces = [option for option in options if len(option) >= _VERBATIM]
    flat = {name: flattened(state[name]) if pieces else "" for name in candidates}
    text = max(
        candidates, key=lambda name: (any(piece in flat[name] for piece in pieces), len(state[name])), default=""
    )
    others = wanted if criterion is not None else _named(state, instructions)
    sought = "\n".join(state[name] for name in others if name != text and state[name].strip())
    return Subject(text=state.get(text, ""), sought=shortened(sought) if sought else None)


def question(instructions: str) -> str:
    """Instructions reduced to what is asked: up to the first question mark, without the backticks."""
    asked, mark, _ = instructions.partition("?")
    return shortened((asked + mark).replace("`", ""))


def flattened(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def shortened(text: str) -> str:
    return sentence_cut(flattened(text), SOUGHT_CHARS)


def pieces(options: Sequence[str], flat: str) -> list[bool]:
    """Which options are pieces of the (flattened) text: stand in it word for word, and are not just words.

    Among pieces a short one is a piece too: a text has short sentences.
    """
    inside = [bool(option) and option in flat for option in options]
    long = [found and len(option) >= _VERBATIM for option, found in zip(options, inside, strict=True)]
    return inside if sum(long) > len(options) / 2 else long


def passages(text: str) -> list[str]:
    """The text in pieces of at most PASSAGE_CHARS, cut where sentences end; never none.

    A paragraph is cut from its beginning, so a quote of its beginning with the same limit is one of the pieces.
    """
    pieces = list(
        dict.fromkeys(piece for block in _GAP.split(_BARRIER.sub("", text)) for piece in _cut(flattened(block)))
    )
    if len(pieces) > MOST_PASSAGES:
        pieces = list(_joined(pieces))
    return _evenly(pieces) or [text[:PASSAGE_CHARS].strip() or "(empty)"]


def _cut(block: str) -> Iterator[str]:
    while block:
        piece = sentence_cut(block, PASSAGE_CHARS)
        yield piece
        block = block[len(piece) :].lstrip()


def _joined(pieces: Iterable[str]) -> Iterator[str]:
    """Neighbours together, as many as fit."""
    gathered = ""
    for piece in pieces:
        if gathered and len(gathered) + 1 + len(piece) > PASSAGE_CHARS:
            yield gathered
            gathered = piece
        else:
            gathered = f"{gathered}\n{piece}" if gathered else piece
    yield gathered


def _evenly(pieces: Sequence[str]) -> list[str]:
    """All of them, or as many as MOST_CHARS holds, at equal distances."""
    length = sum(map(len, pieces))
    if length <= MOST_CHARS:
        return list(pieces)
    room = max(1, len(pieces) * MOST_CHARS // length)
    return [pieces[i * len(pieces) // room] for i in range(room)]


def _named(state: Mapping[str, str], text: str) -> list[str]:
    named = set(_NAMED.findall(text))
    return [name for name in state if name in named]


def _is_in(name: str, value: str, criterion: str) -> bool:
    if f"`{name}`" in criterion:
        return True
    # A criterion may put the part in the middle of its own sentence.
    whole = flattened(value).rstrip(".!?").casefold()
    if len(whole) < _SHORTEST:
        return False
    # A beginning may end inside a word, a whole part ends where a word ends.
    end = r"(?!\w)" if len(whole) <= _HEAD else ""
    return re.search(rf"(?<!\w){re.escape(whole[:_HEAD])}{end}", flattened(criterion).casefold()) is not None
