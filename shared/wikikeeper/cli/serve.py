"""`wikikeeper serve`: the pages, the ticks and the work of one machine, until it is stopped."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape

from wikikeeper.adapters.local.private_folder import PRIVATE_FOLDER
from wikikeeper.adapters.local.run_lock import run_lock
from wikikeeper.app import model_server, open_app
from wikikeeper.cli.common import OK, WikiOption, err, out, wiki_root
from wikikeeper.cli.cycles import workers
from wikikeeper.errors import Unusable
from wikikeeper.settings import Settings, Web, load


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    context: typer.Context,
    wiki: WikiOption = None,
    host: Annotated[
        str | None,
        typer.Option(help="The address to serve on; other than loopback needs web.token.", show_default="web.host"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="0 takes a free one.", show_default="web.port")
    ] = None,
) -> int:
    """Serve the pages, run the topics when they are due, and take webhooks, until Ctrl-C or SIGTERM."""
    from wikikeeper import serving

    root = wiki_root(wiki)
    settings = _with(load(root), host, port)
    log = Log(err, debug=context.obj["debug"])
    with (
        serving.listening(settings.web) as listener,
        run_lock(root / PRIVATE_FOLDER),
        model_server(settings) as server,
        open_app(root, settings, server, log) as app,
    ):
        shown = f"[{settings.web.host}]" if ":" in settings.web.host else settings.web.host
        out.print(f"Pages: http://{escape(shown)}:{listener.getsockname()[1]}/   (Ctrl-C ends)", soft_wrap=True)
        serving.serve(app, settings, listener, workers=workers(settings))
    log.event("stopped")
    return OK


def _with(settings: Settings, host: str | None, port: int | None) -> Settings:
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    try:
        web = Web.model_validate({**settings.web.model_dump(), **given})
    except ValidationError as error:
        raise Unusable(f"--host: {error.errors()[0]['msg']}") from None
    return settings.model_copy(update={"web": web})


class Log:
    """One line for each event: when, what, and its fields. Thread-safe, as consoles are."""

    def __init__(self, console: Console, *, debug: bool = False) -> None:
        self._console = console
        self._debug = debug

    def event(self, name: str, **fields: object) -> None:
        trace = fields.pop("trace", None)
        shown = " ".join(f"{key}={_one_line(value)}" for key, value in fields.items() if value is not None)
        self._console.print(escape(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {name} {shown}".rstrip()), soft_wrap=True)
        if self._debug and trace is not None:
            self._console.print(escape(str(trace)), soft_wrap=True)


def _one_line(value: object) -> str:
    """A stranger's text cannot pass for a line of the log."""
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text if text.isprintable() and " " not in text else repr(text)
