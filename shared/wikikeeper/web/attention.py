"""What needs a person: alerts, silent and parked work, injections, quotes that do not hold. Each says what to do."""

from collections.abc import Iterator
from itertools import islice

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse

from wikikeeper.models import FailureKind, ResultState, StoredPage
from wikikeeper.policy.notes import entries
from wikikeeper.policy.run_filter import Ended, RunFilter
from wikikeeper.policy.verification import FAULTS, Check, Standing, check_entry
from wikikeeper.web.notes import PREFIX, Folder, newest_names
from wikikeeper.web.render import Html, page
from wikikeeper.web.runs import MOST_READ, Shown, shown
from wikikeeper.web.site import Site
from wikikeeper.workflows.context import read_topics
from wikikeeper.workflows.given_up import bring_back_note, standing

MOST_PARKED = 100
MOST_INJECTIONS = 20
NEWEST_INJECTIONS = 200
"""Among which those are looked for that nobody has said anything of."""
MOST_NOTES = 40
"""Newest notes of either folder whose quotes are checked with each look; `wikikeeper verify` checks all."""
PARKED = frozenset({ResultState.PARKED})

TO_DO = {
    Standing.EDITED: "It is none of the quotes of its entry. Put back the words, or move your own quote to a section of its own.",
    Standing.SOURCE_DIFFERS: "The store is damaged, or another one's note lies here. Read the page itself before you use the quote.",
    Standing.UNKNOWN_RESULT: "This store never judged it. If the note comes from another wiki, check it there.",
}


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["attention"])

    @routes.get("/attention", summary="What needs a person, and what to do about it")
    def attention(request: Request) -> Html:
        _, faults = read_topics(site.wiki)
        parked = list(islice(site.store.results(states=PARKED), MOST_PARKED + 1))
        return page(
            request,
            "attention.html",
            alerts=list(site.store.alerts()),
            faults=faults,
            escalations=list(standing(site.store)),
            parked=parked[:MOST_PARKED],
            more_parked=len(parked) > MOST_PARKED,
            injections=_injections(site),
            broken=list(_broken_quotes(site)),
            to_do=TO_DO,
            silent=FailureKind.SILENT,
            checked=MOST_NOTES,
        )

    @routes.post(
        "/results/{result}/retry",
        status_code=303,
        response_class=RedirectResponse,
        summary="Bring parked work back: it waits for the next cycle",
    )
    def retry(result: str) -> str:
        if site.store.result(result) is None:
            raise HTTPException(404, "There is no such result.")
        if not site.store.retry(result):
            raise HTTPException(409, "It is not parked: somebody brought it back, or its topic is gone.")
        site.reporter.event("retried", result=result)
        return "/attention#parked"

    @routes.post(
        "/topics/{topic}/note/retry",
        status_code=303,
        response_class=RedirectResponse,
        summary="Bring back a note that was given up: the reaper's next sweeps try it again",
    )
    def retry_note(topic: str) -> str:
        if not bring_back_note(topic, site.store):
            raise HTTPException(409, "It is not given up: it was written, or somebody brought it back.")
        site.reporter.event("note_retried", topic=topic)
        return "/attention"

    return routes


def _injections(site: Site) -> list[Shown]:
    """Those that nobody has labelled: a person who said what should become of one is done with it."""
    chosen = RunFilter(ended=Ended.INJECTION)
    newest = site.store.run_page(chosen, after=None, most=NEWEST_INJECTIONS, most_read=MOST_READ).runs
    return [row for row in shown(site, newest) if row.label is None][:MOST_INJECTIONS]


def _broken_quotes(site: Site) -> Iterator[tuple[str, str, Check]]:
    """Folder, name, and what was found."""
    for folder in Folder:
        for name in newest_names(site, folder, MOST_NOTES):
            document = site.wiki.read(PREFIX[folder] + name)
            for entry in entries(document.data) if document else ():
                result = site.store.result(entry.result)
                stored: StoredPage | None = None
                if result is not None and result.verdict is not None and result.verdict.text_hash is not None:
                    stored = site.store.page(result.verdict.text_hash)
                for check in check_entry(name, entry, result, stored):
                    if check.standing in FAULTS:
                        yield folder.value, name, check
