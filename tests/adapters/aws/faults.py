"""Networks and services that fail in the ways that conditional writes have to outlive."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.adapters.aws.servers import Application, one_at_a_time

RETRYABLE = b"<Error><Code>InternalError</Code><Message>lost</Message></Error>"
CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code><Message>another write is under way</Message></Error>"
Matches = Callable[[dict[str, Any]], bool]


@dataclass
class Faults:
    """Stands around a server. Each list holds what is to go wrong next, once each."""

    lost_answers: list[Matches] = field(default_factory=list)
    """Requests that are carried out, and whose answer is an error that clients try again after."""
    then: list[Callable[[], object]] = field(default_factory=list)
    """What happens between such a request and the next try, once each."""
    conflicts: list[Matches] = field(default_factory=list)
    """Requests that are not carried out: S3's 409 while another write of the key is under way."""

    def around(self, application: Application) -> Application:
        inner = one_at_a_time(application)

        def faulty(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401
            if _takes(self.conflicts, environ):
                start_response(
                    "409 Conflict", [("Content-Type", "application/xml"), ("Content-Length", str(len(CONFLICT)))]
                )
                return [CONFLICT]
            if _takes(self.lost_answers, environ):
                list(inner(environ, lambda *_: None))
                while self.then:
                    self.then.pop()()
                start_response(
                    "500 Lost", [("Content-Type", "application/xml"), ("Content-Length", str(len(RETRYABLE)))]
                )
                return [RETRYABLE]
            return list(inner(environ, start_response))

        return faulty


def _takes(planned: list[Matches], environ: dict[str, Any]) -> bool:
    for number, matches in enumerate(planned):
        if matches(environ):
            del planned[number]
            return True
    return False


def target(operation: str) -> Matches:
    """A request to DynamoDB by its operation."""
    return lambda environ: environ.get("HTTP_X_AMZ_TARGET", "").endswith(f".{operation}")


def after(passed: int, matches: Matches) -> Matches:
    """The next but so many."""
    seen = itertools.count()
    return lambda environ: matches(environ) and next(seen) >= passed


def method(name: str) -> Matches:
    """A request to S3 by its method."""
    return lambda environ: environ["REQUEST_METHOD"] == name and "HTTP_X_AMZ_TARGET" not in environ


def careless(application: Application) -> Application:
    """A server that takes conditional writes and overlooks their conditions."""
    inner = one_at_a_time(application)

    def overlooks(environ: dict[str, Any], start_response: Any) -> Any:  # noqa: ANN401
        for header in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
            environ.pop(header, None)
        return inner(environ, start_response)

    return overlooks
