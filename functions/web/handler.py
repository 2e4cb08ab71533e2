"""web: the pages and hooks behind a Function URL. An event is a request, an answer its response."""

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any

from wikikeeper import cold_start  # isort: skip  # before all that is large

from mangum import Mangum

from wikikeeper.cloud_web import application


@cache
def pages() -> Mangum:
    """Those of this container, made at the first request. Raises Unusable for settings that are missing or wrong."""
    app = application()
    asyncio.set_event_loop(
        asyncio.new_event_loop()
    )  # Mangum runs requests on the thread's own, which Python makes for nobody
    made = Mangum(app, lifespan="off")
    cold_start.loaded()
    return made


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Mangum hands it on as it is
    return pages()(dict(event), context)
