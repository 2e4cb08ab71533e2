"""Signing in: the token by form, never in an address; and out again."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field
from starlette.responses import Response

from wikikeeper.policy import web_access
from wikikeeper.web.guard import COOKIE
from wikikeeper.web.render import Html, page
from wikikeeper.web.site import Site

LONGEST_PATH = 2_000


class SignIn(BaseModel):
    token: Annotated[str, Field(max_length=1_000, repr=False)]
    next: Annotated[str, Field(max_length=LONGEST_PATH)] = "/"


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["signing in"])

    @routes.get("/login", summary="The form that asks for the token")
    def form(request: Request, next: Annotated[str, Query(max_length=LONGEST_PATH)] = "/") -> Html:  # noqa: A002 - as it stands in the address
        return page(request, "login.html", next=web_access.local_path(next), wrong=False)

    @routes.post("/login", response_class=Html, summary="Sign in")
    def sign_in(request: Request, given: Annotated[SignIn, Form()]) -> Response:
        token = site.access.token
        wanted = web_access.local_path(given.next)
        if token is None:
            return RedirectResponse(wanted, 303)
        if not web_access.token_matches(given.token, token):
            site.reporter.event("sign_in_refused")
            return page(request, "login.html", status=401, next=wanted, wrong=True)
        answer = RedirectResponse(wanted, 303)
        answer.set_cookie(
            COOKIE,
            web_access.session(token, site.clock.now()),
            max_age=int(web_access.SESSION.total_seconds()),
            path="/",
            secure=True,
            httponly=True,
            samesite="strict",
        )
        return answer

    @routes.post("/logout", status_code=303, response_class=RedirectResponse, summary="Sign out")
    def sign_out() -> Response:
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
        return answer

    return routes
