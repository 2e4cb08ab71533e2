"""What workflows report, as lines of JSON for CloudWatch: ids, counts and causes; never a page, a brief or a secret."""

import json
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

SHOWN = frozenset(
    {
        "attempts", "cap_reached", "cause", "command", "count", "cycle", "entries", "fence", "into", "kept", "kind",
        "mend", "message", "note", "outcome", "reason", "request", "result", "run", "seconds", "sent", "subject", "topic",
        "until", "where",
    }
)  # fmt: skip
"""Fields that hold ids, numbers or closed words. Any other is left out and named: a new one is a decision."""
_PROBLEM = re.compile(r"[a-z_]+(:[a-z0-9_]+)?(?=:|$)")
"""The closed words that a problem begins with. What follows them is text from outside."""
LONGEST = 200
"""Characters of one value: longer than any id."""


class JsonLog:
    """Implements `Reporter`. Threads may share one: a line is written at once."""

    def __init__(self, stream: TextIO | None = None, **always: str) -> None:
        """`always` stands in each line. The stream is standard output, which Lambda collects."""
        self._stream = stream
        self._always = always

    def event(self, name: str, **fields: object) -> None:
        shown = {field: _plain(value) for field, value in fields.items() if field in SHOWN}
        if "problem" in fields:
            words = _PROBLEM.match(str(fields["problem"]))
            shown["problem"] = words[0] if words else "other"
        left_out = sorted(fields.keys() - SHOWN - {"problem"})
        line: dict[str, object] = {"time": datetime.now(UTC).isoformat(), "event": name, **self._always, **shown}
        if left_out:
            line["left_out"] = left_out
        stream = self._stream or sys.stdout
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        stream.flush()


def _plain(value: object) -> str | int | float | bool | None:
    return value if isinstance(value, int | float | bool | None) else str(value)[:LONGEST]
