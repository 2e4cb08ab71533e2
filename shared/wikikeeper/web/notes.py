"""Research notes: which there are, one of them to read, and the mark that a person is done with it."""

import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from starlette.responses import Response

from wikikeeper.errors import Unusable
from wikikeeper.policy import notes as policy
from wikikeeper.ports import Document
from wikikeeper.web.queries import Maybe, Name
from wikikeeper.web.render import Html, page, segment
from wikikeeper.web.site import Site

A_PAGE = 100
_NAME = re.compile(r"[^/\\.\0][^/\\\0]*\.md")


class Folder(StrEnum):
    AWAITING = "awaiting"
    COMPLETED = "completed"


PREFIX = {Folder.AWAITING: policy.AWAITING, Folder.COMPLETED: policy.COMPLETED}


class NotesQuery(BaseModel):
    folder: Folder = Folder.AWAITING
    before: Maybe[Name] = None
    """The name that the page before ended with."""


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["notes"])

    @routes.get("/notes", summary="Research notes, newest first")
    def notes(request: Request, query: Annotated[NotesQuery, Query()]) -> Html:
        names = newest_names(site, query.folder)
        older = [name for name in names if query.before is None or name < query.before]
        shown = older[:A_PAGE]
        return page(
            request,
            "notes.html",
            query=query,
            folders=list(Folder),
            names=shown,
            count=len(names),
            next=shown[-1] if len(older) > len(shown) else None,
        )

    @routes.get("/notes/{folder}/{name}", response_class=Html, summary="One note, to read")
    def note(request: Request, folder: Folder, name: str) -> Response:
        try:
            document = _document(site, folder, name)
        except HTTPException:
            if folder is Folder.COMPLETED:
                raise
            _document(site, Folder.COMPLETED, name)
            return RedirectResponse(f"/notes/completed/{segment(name)}", 303)  # somebody was done with it since
        from wikikeeper.web.reading import read_note  # noqa: PLC0415 - renders Markdown, for who reads a note

        return page(request, "note.html", folder=folder, name=name, note=read_note(document.data), etag=document.etag)

    @routes.post(
        "/notes/awaiting/{name}/done",
        status_code=303,
        response_class=RedirectResponse,
        summary="Done with it: move it to inbox/completed/",
    )
    def done(name: str, etag: Annotated[str, Form(max_length=200)]) -> str:
        document = _document(site, Folder.AWAITING, name)
        if document.etag != etag:
            raise HTTPException(
                409, "The note was changed since you read it. Go back, read it again, and mark it then."
            )
        target = policy.completed_key(document.key)
        site.wiki.move(document.key, target, etag)
        site.reporter.event("note_done", note=target)
        return f"/notes/completed/{segment(name)}"

    return routes


def newest_names(site: Site, folder: Folder, most: int | None = None) -> Sequence[str]:
    """Of the notes in a folder. They begin with the day on which they were opened."""
    prefix = PREFIX[folder]
    names = [key.removeprefix(prefix) for key in site.wiki.keys(prefix)]
    fitting = sorted((name for name in names if _NAME.fullmatch(name)), reverse=True)
    return list(islice(fitting, most))


def _document(site: Site, folder: Folder, name: str) -> Document:
    missing = HTTPException(404, "There is no such note here. It may have been moved, renamed or deleted.")
    if not _NAME.fullmatch(name):
        raise missing
    try:
        document = site.wiki.read(PREFIX[folder] + name)
    except Unusable as error:
        raise HTTPException(404, str(error)) from error
    if document is None:
        raise missing
    return document
