"""What workflows report, as lines of JSON for CloudWatch: ids, counts and causes; never a page, a brief or a secret.

Powertools writes the lines. What may stand in one is decided here.
"""

import logging
import re
from itertools import count
from typing import TextIO

from aws_lambda_powertools import Logger

SHOWN = frozenset(
    {
        "attempts", "cap_reached", "cause", "command", "count", "cycle", "drawn", "entries", "fence", "hook", "into", "kept",
        "kind", "mend", "message_id", "method", "note", "outcome", "reason", "request", "result", "run", "seconds", "sent",
        "should", "status", "subject", "topic", "until", "urls", "where",
    }
)  # fmt: skip
"""Fields that hold ids, numbers or closed words. Any other is left out and named: a new one is a decision."""
_PROBLEM = re.compile(r"[a-z_]+(:[a-z0-9_]+)?(?=:|$)")
"""The closed words that a problem begins with. What follows them is text from outside."""
LONGEST = 200
"""Characters of one value: longer than any id."""
_NUMBERS = count(1)


class JsonLog:
    """Implements `Reporter`. Threads may share one: a line is written at once."""

    def __init__(self, stream: TextIO | None = None, **always: str) -> None:
        """`always` stands in each line. The stream is standard output, which Lambda collects."""
        self._logger = Logger(
            service=f"wikikeeper-{next(_NUMBERS)}",  # loggers of one name would share their stream and what stands always
            level=logging.INFO,
            stream=stream,
            utc=True,
            use_rfc3339=True,
            location=None,  # always the same
            xray_trace_id=None,
        )
        self._logger.remove_keys(["service"])
        self._logger.append_keys(**always)

    def event(self, name: str, **fields: object) -> None:
        shown = {field: _plain(value) for field, value in fields.items() if field in SHOWN}
        if "problem" in fields:
            words = _PROBLEM.match(str(fields["problem"]))
            shown["problem"] = words[0] if words else "other"
        left_out = sorted(fields.keys() - SHOWN - {"problem"})
        # No message: a line is its event's name and fields, by which the template's filters count.
        self._logger.info(None, extra={"event": name, **shown, "left_out": left_out or None})


def _plain(value: object) -> str | int | float | bool | None:
    return value if isinstance(value, int | float | bool | None) else str(value)[:LONGEST]
