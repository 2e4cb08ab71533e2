"""Which of two sightings of a model says how it is."""

from datetime import UTC, datetime, timedelta

import pytest

from wikikeeper.models import Condition, ModelSighting
from wikikeeper.policy.sightings import OVERTAKEN, was_ahead

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("later", "ahead"), [(-OVERTAKEN, False), (timedelta(), False), (OVERTAKEN, False), (OVERTAKEN + MOMENT, True)]
)
def test_only_a_clock_that_was_ahead_wrote_what_lies_far_after_what_is_seen_now(later: timedelta, ahead: bool) -> None:
    def at(since: datetime) -> ModelSighting:
        return ModelSighting(model="decider", condition=Condition.HEALTHY, cause="", detail="", since=since)

    assert was_ahead(at(NOW + later), at(NOW)) is ahead
