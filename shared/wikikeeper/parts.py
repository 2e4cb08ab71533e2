"""What every composition root builds alike: settings as the values and clients that workflows take.

Adapters are loaded by the function that makes them, so that a root pays only for those it asks for.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from wikikeeper.models import Thresholds
from wikikeeper.settings import Settings
from wikikeeper.workflows.context import Rules

if TYPE_CHECKING:
    from wikikeeper.adapters.llama.decide import LlamaDecider
    from wikikeeper.adapters.web.searxng import Searxng

CYCLE_LEASE = timedelta(minutes=5)
"""For storing what the sources of a topic have, which bring their own deadlines: thousands of finds on a slow disk."""
WRITE_SECONDS = 5
"""For our own writes between a call and its verdict, on a busy disk."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def rules(settings: Settings, thresholds: Thresholds) -> Rules:
    """The settings that workflows apply, as values."""
    research, keeper = settings.research, settings.keeper
    recheck = research.recheck_after_days
    return Rules(
        thresholds=thresholds,
        quote_max_chars=research.quote_max_chars,
        max_chars=keeper.max_chars,
        max_attempts=research.max_attempts,
        cycle_cap=research.cycle_cap,
        recheck_after=None if recheck is None else timedelta(days=recheck),
        note_delay=timedelta(seconds=research.note_delay),
        judge_lease=settings.judge_lease,
        call_lease=timedelta(seconds=keeper.timeout + WRITE_SECONDS),
        cycle_lease=CYCLE_LEASE,
        source_deadline=timedelta(seconds=max(settings.searxng.timeout, settings.fetch.deadline)),
        call_deadline=timedelta(seconds=keeper.timeout),
        permit_lease=settings.permit_lease,
        patience=timedelta(seconds=settings.gate.patience),
        wake_timeout=timedelta(seconds=settings.model.wake_timeout),
        recovery_limit=settings.reaper.limit,
        cooldown=timedelta(seconds=settings.reaper.cooldown),
        silence_after=settings.silence_after,
    )


@dataclass(frozen=True)
class ModelServer:
    """Where the Keeper asks, under which name, and the thresholds measured for it, if any were."""

    base_url: str
    model: str
    thresholds: Thresholds | None = None
    bundled: bool = False


def thresholds(settings: Settings, measured: Thresholds | None) -> Thresholds:
    """What a person set wins; then what was measured for the model; then the defaults."""
    research = settings.research
    own = research.model_fields_set
    return Thresholds(
        keep=research.keep_threshold if measured is None or "keep_threshold" in own else measured.keep,
        injection=(
            research.injection_threshold if measured is None or "injection_threshold" in own else measured.injection
        ),
    )


def decider(settings: Settings, server: ModelServer) -> "LlamaDecider":
    """The client of a model server with the Keeper's key and timeouts."""
    from wikikeeper.adapters.llama.decide import LlamaDecider

    return LlamaDecider(
        server.base_url,
        server.model,
        settings.keeper_api_key,
        proxy=settings.keeper_proxy,
        connect_timeout=settings.keeper.connect_timeout,
        timeout=settings.keeper.timeout,
    )


def searxng(settings: Settings) -> "Searxng | None":
    """The client of the configured SearXNG; None where none is."""
    from wikikeeper.adapters.web.searxng import Searxng

    if settings.searxng.url is None:
        return None
    return Searxng(str(settings.searxng.url), timeout=settings.searxng.timeout, user_agent=settings.fetch.user_agent)
