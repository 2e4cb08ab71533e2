"""`python -m wikikeeper.bundled`: the judge as a process of its own."""

import argparse
import os
import sys
import threading

from wikikeeper.bundled.process import missing, serve


def main() -> int:
    """The exit code: 1 when it could not serve, with the reason in one line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m wikikeeper.bundled", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="a loopback address")
    parser.add_argument("--port", type=int, default=8477, help="0 takes a free one")
    parser.add_argument("--threads", type=int, help="processors to use; all by default")
    parser.add_argument("--until-stdin-ends", action="store_true", help="end when the parent closes stdin or dies")
    given = parser.parse_args()
    if (lacking := missing()) is not None:
        print(f"the bundled judge lacks {lacking}: install wikikeeper[model]", file=sys.stderr)  # noqa: T201
        return 1
    if given.until_stdin_ends:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        serve(given.port, host=given.host, threads=given.threads)
    except (ValueError, OSError) as error:
        print(f"the bundled judge cannot serve: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _end_with_stdin() -> None:
    # The file descriptor, not sys.stdin: a thread that waits inside a buffered reader holds its lock at exit.
    while os.read(0, 1024):
        pass
    os._exit(0)  # at once, even inside the model: nobody waits for the answer and there is nothing to save


if __name__ == "__main__":
    sys.exit(main())
