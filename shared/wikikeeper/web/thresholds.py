"""How stored probabilities are spread, and what other thresholds would have done: no call, nothing changes."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from wikikeeper.models import Thresholds
from wikikeeper.policy.histogram import histograms
from wikikeeper.policy.what_if import what_if
from wikikeeper.web.queries import Maybe, Name
from wikikeeper.web.render import Html, page
from wikikeeper.web.runs import MOST_TOPICS
from wikikeeper.web.site import Site

NEWEST = 5_000
"""Answered runs that are looked at: enough for a threshold, and a fifth of a second."""
MOST_FLIPS = 200
"""Pages listed: more are a number."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class TryQuery(BaseModel):
    keep: Maybe[Share] = None
    injection: Maybe[Share] = None
    topic: Maybe[Name] = None


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["thresholds"])

    @routes.get("/thresholds", summary="What other thresholds would have done")
    def thresholds(request: Request, query: Annotated[TryQuery, Query()]) -> Html:
        used = site.thresholds
        tried = Thresholds(
            keep=used.keep if query.keep is None else query.keep,
            injection=used.injection if query.injection is None else query.injection,
        )
        runs = list(islice(site.store.runs(topic=query.topic, outcome="answered"), NEWEST))
        spread = histograms(runs)
        found = what_if(runs, tried)
        return page(
            request,
            "thresholds.html",
            query=query,
            used=used,
            tried=tried,
            drawn=[(each, bars(each.useful), bars(each.injection)) for each in spread],
            found=found,
            flips=found.flips[:MOST_FLIPS],
            looked_at=len(runs),
            most=NEWEST,
            topics=[state.slug for state in islice(site.store.topics(), MOST_TOPICS)],
        )

    return routes


def bars(counts: Sequence[int]) -> list[tuple[float, int]]:
    """Each bar's height, the highest a hundred, and its count. What is not nothing can be seen."""
    highest = max(counts, default=0)
    return [(max(2.0, count / highest * 100) if count else 0.0, count) for count in counts]
