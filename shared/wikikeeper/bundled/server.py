"""The HTTP side of the judge: `POST /v1/systemone`, `GET /v1/models`, `GET /health`. On loopback only: it has no key."""

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from wikikeeper.bundled.calibration import MODEL, Calibration
from wikikeeper.bundled.judge import Judge
from wikikeeper.bundled.questions import Invalid, Unsupported, parse

MOST_BYTES = 1 << 20
"""Of a body: a hundred times a page with its questions."""

ABOUT = "Compares texts by the embeddings of multilingual-e5-small; does not read. See docs/bundled-judge.md."


class NotLoopback(ValueError):
    """The judge would be reachable from other machines."""


def on_loopback(host: str) -> str:
    """The host if it is an address of this machine alone. Raises NotLoopback."""
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = False  # a name, and names can be made to mean anything
    if not is_loopback:
        raise NotLoopback(f"the bundled judge has no key, so it serves only on a loopback address, not on {host!r}")
    return host


def application(judge: Judge, calibration: Calibration) -> Starlette:
    """The server without a socket."""

    async def systemone(request: Request) -> Response:
        body = await _body(request)
        # In a thread, so that /health answers while a page is being read.
        return _Json(await run_in_threadpool(lambda: judge.answer(parse(body))))

    async def models(_: Request) -> Response:
        return _Json(_models(calibration))

    async def health(_: Request) -> Response:
        return _Json({"status": "ok"})

    return Starlette(
        routes=[
            Route("/v1/systemone", systemone, methods=["POST"]),
            Route("/v1/models", models),
            Route("/health", health),
        ],
        exception_handlers={Invalid: _invalid, Unsupported: _unsupported, HTTPException: _refused},
    )


class _Json(Response):
    media_type = "application/json"

    def render(self, content: object) -> bytes:
        # Escaped to ASCII: option names come back as they came, and half a surrogate pair has no other form.
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _models(calibration: Calibration) -> dict[str, Any]:
    entry = {
        "id": MODEL,
        "object": "model",
        "owned_by": "wikikeeper",
        "description": ABOUT,
        "architecture": {"input_modalities": ["text"], "output_modalities": ["decisions"]},
    }
    named = {"name": MODEL, "description": ABOUT, "release_date": calibration.made.when.isoformat()}
    return {"object": "list", "data": [entry], "models": [named]}


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"The body is too large: at most {MOST_BYTES} bytes")
    return bytes(body)


_KINDS: Mapping[int, str] = {404: "not_found_error", 405: "method_not_allowed", 413: "request_too_large"}


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, _KINDS.get(error.status_code, "invalid_request_error"), str(error.detail))


async def _unsupported(_: Request, error: Exception) -> Response:
    return _error(501, "not_supported_error", str(error))


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, Invalid)
    return _Json({"detail": error.faults}, status_code=422)


def _error(status: int, kind: str, message: str) -> Response:
    # A body that was not read to its end can't be followed by another request.
    headers = {"connection": "close"} if status == 413 else None
    return _Json({"detail": {"error_type": kind, "message": message}}, status_code=status, headers=headers)
