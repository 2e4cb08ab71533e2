"""Labelling pages drawn at random, and the thresholds that the labels speak for."""

import secrets
from collections.abc import Mapping
from itertools import islice
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from wikikeeper.models import Label, Should
from wikikeeper.policy.calibration import Calibration, calibrate
from wikikeeper.policy.curve import curve_svg
from wikikeeper.policy.sampling import draw, newest_judged
from wikikeeper.web.queries import Maybe, Name
from wikikeeper.web.render import Html, page
from wikikeeper.web.runs import MOST_TOPICS
from wikikeeper.web.site import Site
from wikikeeper.web.thresholds import NEWEST
from wikikeeper.workflows.context import read_topics

A_SAMPLE = 20
MOST = 200
Seed = Annotated[str, Field(pattern=r"^[0-9a-f]{1,32}$")]


class SampleQuery(BaseModel):
    sample: Annotated[int, Field(ge=1, le=MOST)] = A_SAMPLE
    topic: Maybe[Name] = None
    seed: Maybe[Seed] = None
    """The same seed draws the same pages for as long as no label comes; then the rest is drawn in its order."""


class LabelForm(BaseModel):
    run: Name
    should: Should
    sample: Annotated[int, Field(ge=1, le=MOST)] = A_SAMPLE
    topic: Maybe[Name] = None
    seed: Seed


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["labels"])

    @routes.get("/label", summary="Pages drawn at random, kept and discarded, to be labelled")
    def sample(request: Request, query: Annotated[SampleQuery, Query()]) -> Html:
        runs = islice(site.store.runs(topic=query.topic, outcome="answered"), NEWEST)
        judged = newest_judged(runs)
        labels = _labels(site)
        seed = query.seed or secrets.token_hex(8)
        briefs, _ = read_topics(site.wiki)
        return page(
            request,
            "label.html",
            query=query,
            seed=seed,
            judged=judged,
            drawn=draw(judged.pages, labels, most=query.sample, seed=seed),
            labelled=sum(1 for run in judged.pages if run.subject in labels and labels[run.subject].drawn),
            briefs={topic.slug: topic for topic in briefs},
            topics=[state.slug for state in islice(site.store.topics(), MOST_TOPICS)],
        )

    @routes.post("/label", status_code=303, response_class=RedirectResponse, summary="Label a drawn page")
    def label(form: Annotated[LabelForm, Form()]) -> str:
        run = site.store.run(form.run)
        if run is None or run.verdict is None or run.judgement is None:
            raise HTTPException(404, "There is no such judged page.")
        site.store.put_label(
            Label(result=run.subject, run=run.id, topic=run.topic, should=form.should, at=site.clock.now(), drawn=True)
        )
        site.reporter.event("labelled", topic=run.topic, run=run.id, should=form.should.value, drawn=True)
        again = {"sample": str(max(1, form.sample - 1)), "seed": form.seed}
        return "/label?" + urlencode(again if form.topic is None else {**again, "topic": form.topic})

    @routes.get("/calibrate", summary="The thresholds that the labels speak for")
    def calibration(request: Request, topic: Annotated[Maybe[Name], Query()] = None) -> Html:
        found = calibrated(site, topic)
        return page(
            request,
            "calibrate.html",
            topic=topic,
            found=found,
            used=site.thresholds,
            curve=curve_svg(found, used=site.thresholds.keep) if found.curve else None,
            topics=[state.slug for state in islice(site.store.topics(), MOST_TOPICS)],
        )

    return routes


def calibrated(site: Site, topic: str | None) -> Calibration:
    runs = islice(site.store.runs(topic=topic, outcome="answered"), NEWEST)
    return calibrate(runs, _labels(site), keep=site.thresholds.keep, injection=site.thresholds.injection)


def _labels(site: Site) -> Mapping[str, Label]:
    return {label.result: label for label in site.store.labels()}
