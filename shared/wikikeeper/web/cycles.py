"""Cycles, newest first: what each tick came to."""

from itertools import islice
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from wikikeeper.policy.run_filter import Cursor
from wikikeeper.web.queries import Maybe, Name, Place
from wikikeeper.web.render import Html, page
from wikikeeper.web.runs import MOST_TOPICS
from wikikeeper.web.site import Site

A_PAGE = 50


class CycleQuery(BaseModel):
    topic: Maybe[Name] = None
    before: Place = None


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["cycles"])

    @routes.get("/cycles", summary="Cycles, newest first")
    def cycles(request: Request, query: Annotated[CycleQuery, Query()]) -> Html:
        after = None if query.before is None else Cursor.read(query.before)
        found = site.store.cycle_page(query.topic, after=after, most=A_PAGE)
        older = None
        if found.next is not None:
            chosen = {} if query.topic is None else {"topic": query.topic}
            older = urlencode({**chosen, "before": found.next.text})
        return page(
            request,
            "cycles.html",
            query=query,
            cycles=found.cycles,
            older=older,
            topics=[state.slug for state in islice(site.store.topics(), MOST_TOPICS)],
        )

    return routes
