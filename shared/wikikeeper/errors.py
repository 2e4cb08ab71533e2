"""Everything that can go wrong, as data that decides what happens next.

WikikeeperError
├── Unusable                 a setting, a file or an argument is wrong: says what and how to mend it
│   └── AnotherRun           a run is working on this wiki already
├── Unfetchable              the page will never yield text: discarded without a call
├── NotNow                   nothing is wrong with the work itself, try again later
│   ├── FetchFailed          the page could not be reached this time
│   ├── ClockUnknown         the store answers too slowly to tell the time by
│   └── NotDelivered         a message did not reach its channel this time
├── SearchFailed             a source of results is out: a state of the cycle, never "no results"
├── ModelError               a call that gave no usable answer
│   ├── ModelUnavailable     connect, timeout, 429, 502-504, 529: the server, not the page
│   ├── AnswerTimedOut       the total deadline of the call passed
│   ├── AnswerMalformed      200 with an answer that breaks the wire's promises
│   ├── PageRefused          too long or invalid for this page: halving may help
│   └── ModelUnusable        model missing, wrong kind, 401, 403, 501: stops the cycle
├── WikiConflict             the file changed between reading and writing it
└── NotSent                  a queue did not take commands; state is the truth, so they are found and sent again
"""

from datetime import timedelta


class WikikeeperError(Exception):
    """Base of all errors that wikikeeper raises on purpose."""


class Unusable(WikikeeperError):
    """Something a person gave us cannot be used. The message is one line and says what to do."""


class AnotherRun(Unusable):
    """A run is working on this wiki already."""

    def __init__(self, process: str) -> None:
        super().__init__(f"another run works on this wiki (process {process or 'unknown'}): wait until it has ended")
        self.process = process


class Unfetchable(WikikeeperError):
    """A definite outcome: no later try would give text."""

    def __init__(self, cause: str, detail: str = "") -> None:
        super().__init__(f"the page cannot be used: {cause}" + (f" ({detail})" if detail else ""))
        self.cause = cause
        """Short and stable: http_404, http_410, forbidden_address, wrong_type, too_large, bot_challenge, login_wall,
        no_text, ..."""
        self.detail = detail


class NotNow(WikikeeperError):
    """Not a failure of the work: it is tried again after a while."""

    def __init__(self, cause: str, after: timedelta | None = None, detail: str = "") -> None:
        super().__init__(cause + (f" ({detail})" if detail else ""))
        self.cause = cause
        self.after = after
        """At the earliest then (Retry-After); None where nobody said."""
        self.detail = detail


class FetchFailed(NotNow):
    """Cause: dns, connect, tls, deadline, http_429, http_5xx, ..."""


class ClockUnknown(NotNow):
    """The store answers too slowly to tell by its clock when a permit ends."""


class NotDelivered(NotNow):
    """Cause: connect, deadline, http_429, http_5xx, ..."""


class SearchFailed(WikikeeperError):
    """A source of results is out."""

    def __init__(self, cause: str, detail: str, after: timedelta | None = None) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        """Short and stable: json_disabled, rate_limited, engines_unresponsive, not_json, unreachable, http_<status>."""
        self.detail = detail
        """One sentence for a person: what was seen and what to do."""
        self.after = after


class ModelError(WikikeeperError):
    """A call that gave no usable answer."""

    def __init__(self, cause: str, detail: str = "", *, status: int | None = None, attempts: int = 1) -> None:
        super().__init__(cause + (f": {detail}" if detail else ""))
        self.cause = cause
        self.detail = detail
        self.status = status
        self.attempts = attempts


class ModelUnavailable(ModelError):
    """The server could not take the call: unreachable, busy, loading, restarted."""


class AnswerTimedOut(ModelError):
    """No answer inside the total deadline."""


class AnswerMalformed(ModelError):
    """An answer that is incomplete, not finite, of the wrong type, or does not add up."""


class PageRefused(ModelError):
    """The server says that this page is too long or invalid for it. Asking again with less may help."""


class ModelUnusable(ModelError):
    """No page will get an answer until a person mends the model server or its settings."""


class WikiConflict(WikikeeperError):
    """Somebody else wrote the file first. Read it again."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} was changed by somebody else meanwhile")
        self.key = key


class NotSent(WikikeeperError):
    """Some commands did not reach their queue, although it was tried several times."""

    def __init__(self, count: int, cause: str) -> None:
        super().__init__(f"{count} commands were not sent: {cause}")
        self.count = count
        self.cause = cause
