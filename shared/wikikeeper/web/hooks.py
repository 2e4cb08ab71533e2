"""Webhooks: what other programs may start over HTTP.

    read, bounded ─▶ verify the raw body ─▶ so many a minute ─▶ parse ─▶ store, send ─▶ 202
         408, 413        401; 404 without a secret      429       422     503: ask again

Only POST does anything. An answer says what was wrong and repeats nothing of what was sent; what is logged are names and
causes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import SecretStr

from wikikeeper.policy.webhooks import Fault, github_fault, slack_fault, standard_fault, standard_key
from wikikeeper.settings import Hooks
from wikikeeper.web.hook_bodies import SlackBody, read, read_ask
from wikikeeper.web.hook_door import Allowance, Door, HookRefused, header
from wikikeeper.web.hook_openapi import CYCLE, EITHER, GITHUB, SLACK, STORED
from wikikeeper.web.hook_work import Accepted, HookWork, Ignored

AGAIN_AFTER = timedelta(seconds=30)
"""When a sender may ask again after a failure of ours."""
ANSWER_SECONDS = 0.9
"""For storing and sending, milliseconds where nothing else holds the store: a sender is answered within a second."""
T = TypeVar("T")
SAID: Mapping[Fault, str] = {
    Fault.MISSING: "a header of the signature is missing, or is there twice",
    Fault.MALFORMED: "a header of the signature is not in its form",
    Fault.TOO_OLD: "the timestamp is too old: is it a repeat, or a clock that is slow?",
    Fault.TOO_NEW: "the timestamp is in the future: is the sender's clock right?",
    Fault.MISMATCH: "the signature does not fit: is the secret the same on both sides, and the body sent as it was signed?",
}


def router(work: HookWork, settings: Hooks) -> APIRouter:
    """`POST /hooks/cycle`, `/hooks/github` and `/hooks/slack`."""
    routes = APIRouter(prefix="/hooks", tags=["hooks"])
    door = Door(settings.max_bytes)
    tolerance = timedelta(seconds=settings.tolerance)
    _add_cycle(routes, _Way("cycle", work, door, Allowance(settings.per_minute), _cycle_keys(settings)), tolerance)
    _add_github(routes, _Way("github", work, door, Allowance(settings.per_minute), _github_keys(settings)))
    _add_slack(routes, _Way("slack", work, door, Allowance(settings.per_minute), _slack_keys(settings)), tolerance)
    return routes


@dataclass(frozen=True, slots=True)
class _Way:
    """One way in, and what all ways have in common."""

    name: str
    work: HookWork
    door: Door
    allowance: Allowance
    keys: Sequence[bytes]

    async def answer(
        self,
        request: Request,
        fault: Callable[[bytes], Fault | None],
        respond: Callable[[bytes], Awaitable[JSONResponse]],
    ) -> JSONResponse:
        """Let in what has no fault, and answer for whatever goes wrong."""
        reporter = self.work.app.reporter
        try:
            return await respond(await self._verified(request, fault))
        except HookRefused as refused:
            reporter.event("hook_refused", hook=self.name, status=refused.status, cause=refused.cause)
            return _refusal(refused)
        except Exception as error:  # noqa: BLE001 - the boundary: whatever fails here, the sender is asked to try again
            reporter.event("hook_failed", hook=self.name, status=503, cause=type(error).__name__)
            return _refusal(HookRefused(503, "failed", "it could not be stored or sent on: try again", AGAIN_AFTER))

    async def _verified(self, request: Request, fault: Callable[[bytes], Fault | None]) -> bytes:
        if not self.keys:
            raise HookRefused(404, "no_secret", f"no secret is set for this way (hooks.{self.name}_secret)")
        body = await self.door.read(request)
        if (why := fault(body)) is not None:
            raise HookRefused(401, why, SAID[why])
        self.allowance.take()
        return body

    async def work_off(self, work: Callable[[], T]) -> T:
        """On a thread, so that others are answered. What takes too long goes on behind the answer that it was late: stored or
        not, the sender's next try finds it as any repeat does.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asyncio.to_thread(work)
        except TimeoutError:
            raise HookRefused(503, "late", "the store did not answer in time: send it again", AGAIN_AFTER) from None

    def done(self, answered: Accepted | Ignored) -> JSONResponse:
        said = {"cycles": answered.cycles, "urls": answered.urls} if isinstance(answered, Accepted) else {}
        self.work.app.reporter.event(f"hook_{answered.status}", hook=self.name, **said)
        return JSONResponse(answered.model_dump(mode="json"), 202 if isinstance(answered, Accepted) else 200)


def _add_cycle(routes: APIRouter, way: _Way, tolerance: timedelta) -> None:
    @routes.post("/cycle", status_code=202, responses=STORED, openapi_extra=CYCLE)
    async def cycle(request: Request) -> JSONResponse:
        """Start a topic's cycle, or push addresses. Signed by Standard Webhooks: `webhook-id`, `-timestamp`, `-signature`."""
        delivery = header(request, "webhook-id")

        def fault(body: bytes) -> Fault | None:
            return standard_fault(
                body,
                delivery=delivery,
                timestamp=header(request, "webhook-timestamp"),
                signatures=header(request, "webhook-signature"),
                keys=way.keys,
                now=way.work.app.clock.now(),
                tolerance=tolerance,
            )

        async def respond(body: bytes) -> JSONResponse:
            assert delivery is not None  # verified
            ask = read_ask(body)
            return way.done(await way.work_off(lambda: way.work.cycle(ask, delivery)))

        return await way.answer(request, fault, respond)


def _add_github(routes: APIRouter, way: _Way) -> None:
    @routes.post("/github", status_code=202, responses=EITHER, openapi_extra=GITHUB)
    async def github(request: Request) -> JSONResponse:
        """Start the topics that watch a repository, for a release or a push. Signed by `X-Hub-Signature-256`."""

        def fault(body: bytes) -> Fault | None:
            return github_fault(body, signature=header(request, "x-hub-signature-256"), keys=way.keys)

        async def respond(body: bytes) -> JSONResponse:
            if request.headers.get("content-type", "").lower().startswith("application/x-www-form-urlencoded"):
                raise HookRefused(415, "not_json", 'set the webhook\'s "Content type" to application/json')
            event = header(request, "x-github-event") or ""
            return way.done(await way.work_off(lambda: way.work.github(event, body)))

        return await way.answer(request, fault, respond)


def _add_slack(routes: APIRouter, way: _Way, tolerance: timedelta) -> None:
    @routes.post("/slack", status_code=202, responses=EITHER, openapi_extra=SLACK)
    async def slack(request: Request) -> JSONResponse:
        """Events of Slack's Events API. Signed by `X-Slack-Signature` and `X-Slack-Request-Timestamp`."""

        def fault(body: bytes) -> Fault | None:
            return slack_fault(
                body,
                timestamp=header(request, "x-slack-request-timestamp"),
                signature=header(request, "x-slack-signature"),
                keys=way.keys,
                now=way.work.app.clock.now(),
                tolerance=tolerance,
            )

        async def respond(body: bytes) -> JSONResponse:
            said = read(body, SlackBody)
            if said.type == "url_verification":
                way.work.app.reporter.event("hook_address_verified", hook="slack")
                return JSONResponse({"challenge": said.challenge})
            return way.done(await way.work_off(lambda: way.work.slack(said)))

        return await way.answer(request, fault, respond)


def _cycle_keys(settings: Hooks) -> list[bytes]:
    return [standard_key(secret) for secret in _set(settings.cycle_secret, settings.cycle_old_secret)]


def _github_keys(settings: Hooks) -> list[bytes]:
    return [secret.encode() for secret in _set(settings.github_secret, settings.github_old_secret)]


def _slack_keys(settings: Hooks) -> list[bytes]:
    return [secret.encode() for secret in _set(settings.slack_secret, settings.slack_old_secret)]


def _set(*secrets: SecretStr | None) -> list[str]:
    return [secret.get_secret_value() for secret in secrets if secret is not None]


def _refusal(refused: HookRefused) -> JSONResponse:
    headers: dict[str, str] = {}
    if refused.after is not None:
        headers["Retry-After"] = str(max(1, round(refused.after.total_seconds())))
    if refused.status in (408, 413):
        headers["Connection"] = "close"  # the rest of a body that was not read cannot be followed by another request
    return JSONResponse({"error": refused.said, "cause": refused.cause}, refused.status, headers=headers)
