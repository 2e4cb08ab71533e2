"""The judge: questions about a text, answered by likeness.

- noul: how like is the best passage to what is looked for? The offset is where the odds are even.
- choice: how much more like the text is an option than it is like ordinary text? Some descriptions are close to
  everything; only what goes beyond that says something of this text. Options that are pieces of the text itself are
  compared with what is looked for, in the same way.
- score: a choice between the levels.

Nothing depends on the ids of questions, on their order or on each other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from wikikeeper.bundled import reading
from wikikeeper.bundled.calibration import MODEL, Calibration
from wikikeeper.bundled.encoder import Encoder, Vectors
from wikikeeper.bundled.questions import Asked, Question

Numbers = npt.NDArray[np.float64]

ORDINARY = "ordinary_text.json"
"""Short passages of many sorts in ten languages, written for this: what "ordinary text" is."""


@dataclass(frozen=True)
class Likeness:
    """What was measured for one question, before it becomes probabilities."""

    values: Numbers
    """noul: one cosine. choice and score: by option, the cosine above that of ordinary text."""
    among_pieces: bool = False
    """Most options were pieces of the text."""


class Judge:
    """Answers System One requests. Thread-safe if its encoder is; equal requests get equal answers."""

    def __init__(self, encoder: Encoder, calibration: Calibration) -> None:
        """Reads the ordinary text once, which takes the encoder a second or two."""
        self._encoder = encoder
        self._calibration = calibration
        ordinary = json.loads(files(__package__).joinpath(ORDINARY).read_text("utf-8"))
        self._ordinary_passages = encoder.passages(ordinary)
        self._ordinary_query = encoder.queries(ordinary).mean(axis=0)

    def answer(self, asked: Asked) -> dict[str, Any]:
        """The body of a 200."""
        measured = self.likenesses(asked)
        answers = {name: self._answer(question, measured[name]) for name, question in asked.questions.items()}
        usage = {"input_tokens": sum(map(self._encoder.tokens, _texts(asked))), "output_tokens": 0}
        return {"model": MODEL, "answers": answers, "usage": usage}

    def likenesses(self, asked: Asked) -> dict[str, Likeness]:
        """The measurements alone: what the calibration is fitted on."""
        state = reading.parts(asked.state)
        read = _Read(self._encoder)
        return {name: self._measure(state, question, read) for name, question in asked.questions.items()}

    def _measure(self, state: Mapping[str, str], question: Question, read: "_Read") -> Likeness:
        instructions = reading.as_text(question.instructions)
        if question.type == "noul":
            criterion = reading.as_text(question.criteria.get("true")) or None
            about = reading.subject(state, instructions, criterion)
            said = reading.shortened(criterion) if criterion is not None else reading.question(instructions)
            wanted = self._encoder.queries([about.sought or said])[0]
            return Likeness(np.array([float((read.passages(about.text) @ wanted).max())]))
        return self._measure_options(state, instructions, question, read)

    def _measure_options(
        self, state: Mapping[str, str], instructions: str, question: Question, read: "_Read"
    ) -> Likeness:
        described = [reading.shortened(reading.as_text(text)) for text in question.criteria.values()]
        about = reading.subject(state, instructions, None, described)
        pieces = np.array(reading.pieces(described, reading.flattened(about.text)))
        names = [_name(name) if question.type == "choice" else "" for name in question.criteria]
        values = np.zeros(len(described))
        if not pieces.all():
            # A piece is as like to the text as can be, whatever is looked for: that says nothing, so it stays 0.
            values += np.where(pieces, 0.0, self._above_ordinary(names, described, read.passages(about.text)))
        if about.sought is not None:
            wanted = self._encoder.queries([about.sought])[0]
            options = read.options([text or name or "-" for name, text in zip(names, described, strict=True)], pieces)
            values += options @ (wanted - self._ordinary_query)
        return Likeness(values, among_pieces=bool(pieces.mean() > 0.5))

    def _above_ordinary(self, names: Sequence[str], described: Sequence[str], passages: Vectors) -> Numbers:
        """How like the text is to each option, above how like ordinary text is to it.

        The mean over passages, not the best: what sort of text it is shows everywhere in it. Name and description
        count alike: descriptions are exact, but names are what others call the thing.
        """
        both = [
            [text for text in (name, description) if text] or ["-"]
            for name, description in zip(names, described, strict=True)
        ]
        wanted = np.stack([self._encoder.queries(texts).mean(axis=0) for texts in both])
        ordinary = np.median(self._ordinary_passages @ wanted.T, axis=0)
        return np.asarray((passages @ wanted.T).mean(axis=0) - ordinary, dtype=np.float64)

    def _answer(self, question: Question, likeness: Likeness) -> dict[str, Any]:
        numbers = self._calibration
        if question.type == "noul":
            return {"type": "noul", "noul": _logistic((likeness.values[0] - numbers.offset) / numbers.temperature)}
        temperature = numbers.pieces if likeness.among_pieces else numbers.descriptions
        probabilities = _softmax(likeness.values / temperature)
        by_key = dict(zip(question.criteria, probabilities, strict=True))
        if question.type == "choice":
            chosen = max(by_key, key=lambda key: by_key[key])
            confidence = _choice_confidence(probabilities)
            return {"type": "choice", "choice": chosen, "probabilities": by_key, "confidence": confidence}
        return {
            "type": "score",
            "score": sum(level * probability for level, probability in enumerate(probabilities)),
            "legend": dict(question.criteria),
            "probabilities": by_key,
            "confidence": _score_confidence(probabilities),
        }


class _Read:
    """The texts of one call: each is read once, however many questions look through it."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._rows: dict[str, Vectors] = {}

    def passages(self, text: str) -> Vectors:
        return self._get(reading.passages(text))

    def options(self, texts: Sequence[str], pieces: Sequence[bool] | npt.NDArray[np.bool_]) -> Vectors:
        fixed = [text for text, piece in zip(texts, pieces, strict=True) if not piece]
        if fixed:
            self._rows.update(zip(fixed, self._encoder.passages(fixed, remember=True), strict=True))
        return self._get(texts)

    def _get(self, texts: Sequence[str]) -> Vectors:
        if wanted := [text for text in dict.fromkeys(texts) if text not in self._rows]:
            self._rows.update(zip(wanted, self._encoder.passages(wanted), strict=True))
        return np.stack([self._rows[text] for text in texts])


def _texts(asked: Asked) -> Iterator[str]:
    yield from reading.parts(asked.state).values()
    for question in asked.questions.values():
        yield reading.as_text(question.instructions)
        yield reading.as_text(dict(question.criteria))


def _name(key: str) -> str:
    """A key as words; nothing where it is only a label, such as "p01"."""
    words = key.replace("_", " ").strip()
    return words if sum(map(str.isalpha, words)) > 1 else ""


def _logistic(x: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(x, -500, 500))))  # beyond that, exp leaves the range of floats


def _softmax(logits: Numbers) -> list[float]:
    powers = np.exp(logits - logits.max())
    return [float(power) for power in powers / powers.sum()]


def _choice_confidence(probabilities: Sequence[float]) -> float:
    """The wire's formula: 0 when all are alike, 1 when one has everything."""
    chance = 1 / len(probabilities)
    return max(0.0, (max(probabilities) - chance) / (1 - chance)) if len(probabilities) > 1 else 1.0


def _score_confidence(probabilities: Sequence[float]) -> float:
    """The wire's formula: 1 less the mean distance from the likeliest level, relative to that of a blind guess."""
    count = len(probabilities)
    if count == 1:
        return 1.0
    mode = int(np.argmax(probabilities))
    levels = np.arange(count)
    distance = float(np.abs(levels - mode) @ np.array(probabilities))
    blind = float(np.abs(levels - (count - 1) / 2).mean())
    return max(0.0, 1 - distance / blind)
