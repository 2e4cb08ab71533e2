"""`wikikeeper model serve`: the bundled judge as a server of its own."""

from typing import Annotated

import typer

from wikikeeper.errors import Unusable


def register(app: typer.Typer) -> None:
    model = typer.Typer(help="The bundled judge: a small System One server on this machine.", no_args_is_help=True)
    model.command("serve")(serve)
    app.add_typer(model, name="model")


def serve(port: Annotated[int, typer.Option(min=0, max=65535, help="On loopback; 0 takes a free one.")] = 8477) -> None:
    """Serve the bundled judge on loopback until interrupted."""
    from wikikeeper import bundled

    if (missing := bundled.missing()) is not None:
        raise Unusable(f"the bundled judge lacks {missing}: install wikikeeper[model]")
    try:
        bundled.serve(port)
    except OSError as error:
        raise Unusable(f"port {port} on loopback cannot be served: {error.strerror or error}") from error
