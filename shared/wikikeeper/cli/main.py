"""The application object, and the one place where errors become lines and exit codes."""

import sys
import traceback
from typing import Annotated

import typer
from rich.markup import escape
from typer.exceptions import TyperException

from wikikeeper import __version__
from wikikeeper.bundled import DidNotStart
from wikikeeper.cli import cycles, labels, model, notes, reaping, records, serve, upkeep
from wikikeeper.cli.common import INTERRUPTED, OK, UNUSABLE, err
from wikikeeper.errors import WikikeeperError

app = typer.Typer(
    help="Keeps a Markdown wiki: researches topics, lets a decision model judge each page, writes notes with exact quotes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (cycles, serve, records, labels, notes, reaping, upkeep, model):
    module.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wikikeeper {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error and all events.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback answers and ends
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    context.obj = {"debug": debug}


def main() -> None:
    """Run the command line. Every expected error is one line; --debug shows where it came from."""
    sys.exit(_run(debug="--debug" in sys.argv))


def _run(*, debug: bool) -> int:
    try:
        code = app(standalone_mode=False)
    except (WikikeeperError, DidNotStart) as error:
        if debug:
            traceback.print_exc()
        return _say(str(error), UNUSABLE)
    except TyperException as error:  # an unknown command or option, a value out of range
        message = error.format_message()
        return _say(message, error.exit_code) if message else error.exit_code  # none: the help was the answer
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit):  # typer and rich answer the one with the other, and nothing else raises that
        sys.stderr.close()  # the reader of our output is gone: there is nobody left to tell
        return OK
    except OSError as error:  # what the system refuses where nobody could say more about it
        if debug:
            traceback.print_exc()
        return _say(_refused(error), UNUSABLE)
    if code == INTERRUPTED:
        err.print("interrupted: what waits is taken up by the next run")
    return code if isinstance(code, int) else OK


def _refused(error: OSError) -> str:
    what = error.strerror or str(error) or type(error).__name__
    line = what if error.filename is None else f"{error.filename}: {what}"
    return line if line.isprintable() else ascii(line)


def _say(message: str, code: int) -> int:
    err.print(f"[red]error:[/red] {escape(message)}", soft_wrap=True)
    return code
