"""The stylesheet, the script and the icon: our own, read once."""

from enum import StrEnum
from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

from wikikeeper.web.site import Site


class Asset(StrEnum):
    STYLE = "wikikeeper.css"
    SCRIPT = "wikikeeper.js"
    ICON = "icon.svg"


_TYPES = {
    Asset.STYLE: "text/css; charset=utf-8",
    Asset.SCRIPT: "text/javascript; charset=utf-8",
    Asset.ICON: "image/svg+xml",
}
_KEPT = {"cache-control": "private, max-age=600"}
"""Ten minutes: an update is seen soon, and a walk through pages loads them once."""


def router(site: Site) -> APIRouter:  # noqa: ARG001 - as all routers are made
    routes = APIRouter(tags=["assets"])
    folder = files("wikikeeper.web") / "static"
    contents = {asset: (folder / asset.value).read_bytes() for asset in Asset}

    @routes.get("/static/{asset}", response_class=Response, summary="Style, script and icon")
    def static(asset: Asset) -> Response:
        return Response(contents[asset], headers=_KEPT, media_type=_TYPES[asset])

    return routes
