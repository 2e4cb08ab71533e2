"""Runs, newest first, with what led to each verdict; a run's own page; and a person's word against a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import RedirectResponse

from wikikeeper.models import Kind, Label, Quote, Result, Run, Should, Thresholds, Trigger
from wikikeeper.policy.run_filter import Ended
from wikikeeper.policy.verdict import holds
from wikikeeper.web.queries import RunQuery
from wikikeeper.web.render import Html, page, segment
from wikikeeper.web.site import Site

A_PAGE = 50
MOST_READ = 5_000
"""Runs that one request looks through at most: some ten milliseconds. What matches few goes on from there."""
MOST_TOPICS = 500
"""Topics that the filter offers."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A run with what it is drawn beside."""

    run: Run
    thresholds: Thresholds
    """Those of its verdict; where there is none, those in use now."""
    label: Label | None

    @property
    def ended(self) -> str:
        verdict = self.run.verdict
        if self.run.outcome != "answered" or verdict is None:
            return self.run.outcome
        return "kept" if verdict.kept else "discarded"

    @property
    def injection(self) -> float | None:
        return None if self.run.verdict is None else self.run.verdict.injection


def shown(site: Site, runs: Sequence[Run]) -> list[Shown]:
    labels = site.store.labels_of([run.subject for run in runs])
    return [
        Shown(
            run=run,
            thresholds=(run.verdict and run.verdict.thresholds) or site.thresholds,
            label=labels.get(run.subject),
        )
        for run in runs
    ]


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["runs"])

    @routes.get("/runs", summary="Runs, newest first")
    def runs(request: Request, query: Annotated[RunQuery, Query()]) -> Html:
        found = site.store.run_page(query.chosen, after=query.after, most=A_PAGE, most_read=MOST_READ)
        older = None if found.next is None else urlencode({**query.filtered, "before": found.next.text})
        return page(
            request,
            "runs.html",
            query=query,
            rows=shown(site, found.runs),
            page=found,
            older=older,
            topics=[state.slug for state in islice(site.store.topics(), MOST_TOPICS)],
            triggers=list(Trigger),
            ends=list(Ended),
            kinds=list(Kind),
        )

    @routes.get("/runs/{run}", summary="One run with everything that led to its verdict")
    def one(request: Request, run: str) -> Html:
        found = _run(site, run)
        result = site.store.result(found.subject)
        verdict = found.verdict
        stored = site.store.page(verdict.text_hash) if verdict is not None and verdict.text_hash else None
        return page(
            request,
            "run.html",
            row=shown(site, [found])[0],
            result=result,
            repeats=_original(site, result),
            quotes=[(quote, _standing(quote, stored.paragraphs if stored else None)) for quote in verdict.quotes]
            if verdict
            else [],
            findings=verdict.findings.model_dump(exclude_defaults=True) if verdict else {},
            page_text=stored,
        )

    @routes.post(
        "/runs/{run}/label",
        status_code=303,
        response_class=RedirectResponse,
        summary="Say what should have become of it",
    )
    def correct(run: str, should: Annotated[Should, Form()]) -> str:
        found = _run(site, run)
        if found.verdict is None:
            raise HTTPException(409, "This run gave no verdict, so there is nothing to correct.")
        site.store.put_label(
            Label(
                result=found.subject, run=found.id, topic=found.topic, should=should, at=site.clock.now(), drawn=False
            )
        )
        site.reporter.event("labelled", topic=found.topic, run=found.id, should=should.value)
        return f"/runs/{segment(found.id)}#label"

    return routes


def _run(site: Site, run: str) -> Run:
    found = site.store.run(run)
    if found is None:
        raise HTTPException(404, "There is no such run. Runs are kept for a year.")
    return found


def _original(site: Site, result: Result | None) -> Result | None:
    return site.store.result(result.folded_into) if result is not None and result.folded_into else None


def _standing(quote: Quote, paragraphs: Sequence[str] | None) -> str:
    if paragraphs is None:
        return "its page is no longer stored"
    return "stands in the stored page" if holds(quote, paragraphs) else "does not stand in the stored page"
