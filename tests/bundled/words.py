"""An encoder without a model: texts are alike when they share words. For what has to hold whatever the model says."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from wikikeeper.bundled.encoder import Vectors

SIZE = 256


class WordEncoder:
    """Counts words in hashed places; deterministic. Remembers what it was given to read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def queries(self, texts: Sequence[str]) -> Vectors:
        return np.stack([_row(text) for text in texts])

    def passages(self, texts: Sequence[str], *, remember: bool = False) -> Vectors:
        self.read += texts
        return np.stack([_row(text) for text in texts])

    def tokens(self, text: str) -> int:
        return len(text.split())


def _row(text: str) -> Vectors:
    row = np.full(SIZE, 0.01, dtype=np.float32)  # two texts without a common word are still a little alike
    for word in re.findall(r"\w+", text.casefold()):
        row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:2], "big") % SIZE] += 1
    return np.asarray(row / np.linalg.norm(row), dtype=np.float32)
