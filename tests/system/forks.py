"""A process that has loaded the command line once and forks for each command that it is told to run.

Loading takes most of a second, more than most commands do, and there are a hundred of them in these tests. A fork has
an environment, a folder and files of its own, ends with the command, and leaves nothing behind. One line of JSON in,
the exit code out.
"""

import json
import os
import signal
import sys
import threading
import traceback

from wikikeeper.cli import main

MOST_SECONDS = 180
"""Then the command is ended (exit code -14): it takes seconds, also on a machine that is busy with something else."""


def run(arguments: list[str], environment: dict[str, str], folder: str, out: str, err: str) -> int:
    """The code that the command ends with; 1 and a trace on `err` where Python itself would end so."""
    for descriptor, path in ((1, out), (2, err)):
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(target, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["wikikeeper", *arguments]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except BaseException:  # noqa: BLE001 - what nobody caught is what the tests are to see
        traceback.print_exc()
    return 1


def serve() -> None:
    """Until standard input ends."""
    for line in sys.stdin:
        assert threading.active_count() == 1, "a fork has no threads but the one that forked"
        process = os.fork()
        if process == 0:
            signal.alarm(MOST_SECONDS)
            code = run(**json.loads(line))
            for stream in (sys.stdout, sys.stderr):
                if not stream.closed:
                    stream.flush()
            os._exit(code)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
