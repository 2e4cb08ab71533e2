"""Which of two sightings of a model says how it is. Apart from `silence`, so that stores load no schedules with it."""

from datetime import timedelta

from wikikeeper.models import ModelSighting

OVERTAKEN = timedelta(seconds=5)
"""How far before the last one a sighting may lie because it was stored late: then it says nothing new."""


def was_ahead(last: ModelSighting, seen: ModelSighting) -> bool:
    """Whether the clock of the last sighting was ahead, so that the one that is seen now takes its place."""
    return last.since - seen.since > OVERTAKEN
