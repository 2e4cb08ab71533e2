"""The app: every page behind one guard, every route in its OpenAPI, every error a page that says what to do."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wikikeeper import __version__
from wikikeeper.errors import Unusable, WikiConflict
from wikikeeper.web import assets, attention, cycles, labels, notes, runs, sign_in, thresholds, topics
from wikikeeper.web.guard import Guard
from wikikeeper.web.render import Html, page
from wikikeeper.web.site import Site

ROUTERS = (runs, topics, cycles, notes, attention, thresholds, labels, sign_in, assets)


class Pages(FastAPI):
    """Guarded from outside: what answers a fault of ours is behind the guard as well."""

    def guarded(self, site: Site) -> None:
        self._guard = Guard(super().__call__, site)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)


def create_app(site: Site, *, hooks: APIRouter | None = None) -> FastAPI:
    """The pages of a site, and the hooks that start work, where there are any."""
    app = Pages(
        title="wikikeeper",
        version=__version__,
        docs_url=None,  # their scripts come from another server
        redoc_url=None,
        default_response_class=Html,
        separate_input_output_schemas=False,
        redirect_slashes=False,  # such an answer leads to whatever host the request named, and takes a hook there too
    )
    app.state.access = site.access
    for module in ROUTERS:
        app.include_router(module.router(site))
    if hooks is not None:
        app.include_router(hooks)

    @app.get("/", response_class=RedirectResponse, status_code=307, summary="To the newest runs")
    def start() -> str:
        return "/runs"

    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(WikiConflict, _said(HTTPStatus.CONFLICT))
    app.add_exception_handler(Unusable, _said(HTTPStatus.SERVICE_UNAVAILABLE))
    app.add_exception_handler(Exception, _broken)
    app.guarded(site)
    return app


Handler = Callable[[Request, Exception], Awaitable[Response]]


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _error(request, HTTPStatus(error.status_code), str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [
        f"{'.'.join(map(str, fault['loc'][1:])) or 'the request'}: {fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors()
    ]
    return _error(request, HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(wrong))


def _said(status: HTTPStatus) -> Handler:
    async def answer(request: Request, error: Exception) -> Response:
        return _error(request, status, str(error))

    return answer


async def _broken(request: Request, error: Exception) -> Response:  # noqa: ARG001 - what went wrong is in the log
    return _error(request, HTTPStatus.INTERNAL_SERVER_ERROR, "This is a fault of wikikeeper; its log says more.")


def _error(request: Request, status: HTTPStatus, said: str) -> Response:
    return page(request, "error.html", status=status, heading=status.phrase, said=said)
