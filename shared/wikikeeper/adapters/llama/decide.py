"""The client of the System One wire: one call, one deadline, and either a sound answer or an error that says what to do."""

import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

import httpx
from pydantic import SecretStr

from wikikeeper.adapters.llama import health, wire_json
from wikikeeper.adapters.llama.exchange import Answered, ModelServer, SentElsewhere, Unreadable
from wikikeeper.adapters.llama.refusals import BUSY, refusal
from wikikeeper.errors import AnswerMalformed, AnswerTimedOut, ModelUnavailable, ModelUnusable
from wikikeeper.models import ModelState, Noul, Reply, Request

MOST_TRIES = 6
"""With the pauses below about eight seconds. A server that needs longer is not busy but loading, and waiting for that
is the tick's job: a call holds a permit."""

FIRST_PAUSE = 0.5
"""Seconds, the most before the second try; doubled for each try after it."""

LONGEST_PAUSE = 8.0
"""Seconds, the most before any try unless the server asks for more."""

STATE_SECONDS = 5.0
"""For looking at the state: the answer needs no model, so a well server gives it in milliseconds."""

WAKE_SECONDS = 1.0
"""For the answer to a waking call, which nobody needs: long enough for a router on the same network to have begun."""

_WAKING = Request(
    state={"text": "-"},
    questions={"awake": Noul(instructions="Is this text empty?", true="It is empty.", false="It is not empty.")},
)


class LlamaDecider:
    """The `Decider` port over HTTP: llama-server (single or router), Ollama, hosted servers, sparrow-decider.

    One instance is used by all threads. Close it to give its connections back.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: SecretStr | None,
        *,
        connect_timeout: float,
        timeout: float,
        proxy: tuple[SecretStr, SecretStr] | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`base_url` may end in a slash, a path or `/v1`. `proxy` is key and secret of a Modal proxy before the
        server. Timeouts are seconds: for one connection, and for a whole call with its retries. `jitter` gives the share
        of a pause that is really waited, from 0 up to 1.

        Raises Unusable for a URL or a key that cannot be used.
        """
        self.model = model
        self._timeout = timeout
        self._sleep = sleep
        self._jitter = jitter
        self._clock = clock
        self._server = ModelServer(
            base_url, api_key, proxy=proxy, connect_timeout=connect_timeout, clock=clock, transport=transport
        )

    def decide(self, request: Request) -> Reply:
        """Ask once. Raises the ModelError that says what to do next."""
        body = wire_json.dump(self.model, request)
        started = self._clock()
        ends = started + self._timeout
        attempts = 1
        while True:
            outcome = self._try(body, ends, attempts)
            pause = self._pause(outcome, attempts)
            if pause is None or self._clock() + pause >= ends:
                break
            self._sleep(pause)
            attempts += 1
        if isinstance(outcome, httpx.TransportError):
            raise ModelUnavailable("unreachable", str(outcome), attempts=attempts)
        if outcome.status != httpx.codes.OK:
            raise refusal(outcome.status, outcome.body, self.model, attempts)
        try:
            answers = wire_json.load(outcome.body, request)
        except wire_json.Malformed as fault:
            raise AnswerMalformed(f"malformed:{fault.what}", fault.detail, status=200, attempts=attempts) from None
        return Reply(
            model=answers.model,
            answers=answers.answers,
            input_tokens=answers.input_tokens,
            seconds=self._clock() - started,
            attempts=attempts,
        )

    def state(self) -> ModelState:
        """Look at the model without waking it."""
        ends = self._clock() + STATE_SECONDS
        try:
            models = self._server.exchange("GET", "v1/models", ends=ends)
            shown = health.from_models(self.model, models.status, models.body)
            if shown is None:
                shown = health.from_health(self._server.exchange("GET", "health", ends=ends).status)
        except (httpx.ReadTimeout, httpx.WriteTimeout):
            return health.silent(STATE_SECONDS)
        except (httpx.TransportError, Unreadable) as error:
            return health.unreachable(str(self._server.base), str(error))
        except SentElsewhere as elsewhere:
            return health.sent_elsewhere(elsewhere.origin)
        return shown

    def wake(self) -> None:
        """Ask a sleeping or unloaded model to load, without waiting for it.

        By the smallest of calls, since that wakes every kind of server; a router's own `/models/load` refuses to wake
        a model that sleeps. The router goes on loading when we hang up. Nothing is raised and nothing repeated: what
        went wrong shows in the next `state`.
        """
        try:
            self._server.exchange(
                "POST", "v1/systemone", wire_json.dump(self.model, _WAKING), ends=self._clock() + WAKE_SECONDS
            )
        except (httpx.TransportError, Unreadable, SentElsewhere):
            return

    def close(self) -> None:
        self._server.close()

    def _try(self, body: bytes, ends: float, attempts: int) -> Answered | httpx.TransportError:
        """One try: an answer, or that there was no connection. Everything else ends the call here."""
        try:
            return self._server.exchange("POST", "v1/systemone", body, ends=ends)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return error
        except httpx.TimeoutException:
            # Not repeated, also if there were time: the server may still be at work on it, and llama-server has no
            # limit of its own. A second call would stand in the queue behind the first, as one more at the model.
            raise AnswerTimedOut("deadline", f"no answer in {self._timeout:g} s", attempts=attempts) from None
        except httpx.TransportError:
            # Counted against the page, not the server: a page that brings the server down would otherwise do so in
            # every cycle. Where the server is at fault no other page gets an answer, and then none is blamed.
            raise AnswerMalformed(
                "malformed:no_response", "the connection ended before an answer", attempts=attempts
            ) from None
        except Unreadable as fault:
            raise AnswerMalformed(
                f"malformed:{fault.what}", "the body could not be read", status=200, attempts=attempts
            ) from None
        except SentElsewhere as elsewhere:
            raise ModelUnusable(
                "redirected",
                f"the model server redirects to {elsewhere.origin}: set base_url to that if you trust it",
                status=elsewhere.status,
                attempts=attempts,
            ) from None

    def _pause(self, outcome: Answered | httpx.TransportError, attempts: int) -> float | None:
        """Seconds until the next try; None where another try would not help."""
        if attempts == MOST_TRIES or (isinstance(outcome, Answered) and outcome.status not in BUSY):
            return None
        pause = self._jitter() * min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempts - 1))
        return max(pause, _retry_after(outcome.headers)) if isinstance(outcome, Answered) else pause


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds that the server asks us to wait; 0 where it asks for nothing that can be read.

    A date is held against the server's own `Date`, so that the two clocks need not agree.
    """
    asked: str = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):  # no date, or one with a zone and one without
        return 0.0
    return wait.total_seconds()
