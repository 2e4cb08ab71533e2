"""The composition root of the cloud's functions: settings from the environment in, an App with AWS adapters out.

Each function gets what its workflow touches, and loads nothing else: a cold start is mostly imports. Everything is made
once for each container and shared by its threads and invocations.
"""

import os
import secrets
import socket
from collections.abc import Sequence
from datetime import timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dead_letters import DeadLetters
from wikikeeper.adapters.aws.dynamodb_gate import DynamoGate
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Key, Table
from wikikeeper.adapters.aws.json_log import JsonLog
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.adapters.aws.s3_wiki import S3Wiki
from wikikeeper.adapters.aws.sqs_sender import SqsSender, queues
from wikikeeper.errors import Unusable
from wikikeeper.models import Topic
from wikikeeper.parts import ModelServer, SystemClock, decider, rules, searxng, thresholds
from wikikeeper.ports import Decider, Extractor, Fetcher, Judged, Keeper, Messenger, Reporter, Search
from wikikeeper.settings import Settings, load
from wikikeeper.workflows.context import App

FUNCTIONS = ("schedule_cycle", "judge_result", "write_note", "reap_stale")
"""The workflows that run as functions, by name."""

NO_FOLDER = Path("/nonexistent")
"""Topics in a bucket have no folder of saved pages: one that names it is told that it is missing."""
SECRET = Key("installation", "secret")
SECRET_BYTES = 32
"""As long as the hash that it keys."""


@cache
def cloud_app(function: str) -> App:
    """The App of one of `FUNCTIONS`, or of `web`, made at the first call in a container.

    Raises Unusable, in one line, for settings that are missing or wrong.
    """
    return build(function, settings(), JsonLog(function=function), _clients())


@cache
def sender() -> SqsSender:
    """Where to send what a workflow returns, made at the first call in a container. Its client waits for a message."""
    return build_sender(settings(), _clients())


@cache
def dead_letters(function: str) -> DeadLetters:
    """Where a function puts what it cannot read, made at the first call in a container."""
    aws = settings().aws
    own = {
        "schedule_cycle": aws.schedule_queue,
        "judge_result": aws.judge_queue,
        "write_note": aws.note_queue,
        "reap_stale": aws.reap_queue,
    }
    return DeadLetters(lambda: _clients().sqs, own[function])


@cache
def settings() -> Settings:
    """The container's settings. Beside the code there may be a wikikeeper.toml of the image; the environment wins."""
    return load(Path())


@cache
def _clients() -> Clients:
    endpoint = settings().aws.endpoint_url
    return Clients(None if endpoint is None else str(endpoint))


def build(function: str, settings: Settings, reporter: Reporter, clients: Clients) -> App:
    """As `cloud_app`, of given settings and clients, which several functions in one process may share."""
    if settings.aws.bucket is None:
        raise Unusable("set aws.bucket to the bucket of the wiki")
    table = Table(clients.dynamodb, settings.aws.table)
    parts: Parts = {part: Absent(part) for part in PARTS} | _PARTS[function](settings, table)
    return App(
        store=DynamoRunStore(table, S3Pages(clients.s3, settings.aws.bucket)),
        wiki=S3Wiki(clients.s3, settings.aws.bucket),
        gate=DynamoGate(
            table,
            settings.gate.limit,
            calls_per_permit=settings.gate.calls_per_permit,
            max_wait=timedelta(seconds=settings.gate.max_wait),
            max_skew=timedelta(seconds=settings.gate.max_skew),
        ),
        clock=SystemClock(),
        reporter=reporter,
        rules=rules(settings, thresholds(settings, None)),
        holder=f"{function} {os.environ.get('AWS_LAMBDA_LOG_STREAM_NAME') or socket.gethostname()}:{os.getpid()}",
        **parts,
    )


def build_sender(settings: Settings, clients: Clients) -> SqsSender:
    """As `sender`, of given settings and clients."""
    aws = settings.aws
    return SqsSender(
        lambda: clients.sqs,
        queues(
            [
                ("schedule", aws.schedule_queue),
                ("judge", aws.judge_queue),
                ("note", aws.note_queue),
                ("reap", aws.reap_queue),
            ]
        ),
    )


class Absent:
    """Stands where a function has no use for a part; a workflow that touches it all the same is a fault of ours."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it stands for any port
        raise RuntimeError(f"this function has no {self._part}, and its workflow asked for {name}")


class NamedKeeper:
    """The Keeper of a function that never asks it: what the records of lost calls name."""

    def __init__(self, model: str) -> None:
        self.model = model

    @cached_property
    def question_version(self) -> str:
        from wikikeeper.policy.questions import VERSION  # with all that judging takes, for a call that was lost

        return VERSION

    def judge(self, topic: Topic, title: str, paragraphs: Sequence[str]) -> Judged:  # noqa: ARG002 - the port's
        raise RuntimeError("this function asks no model")


Parts = dict[str, Any]
"""What differs between functions: fields of `App`."""
PARTS = ("search", "fetcher", "extractor", "keeper", "decider")


def _schedule_cycle(settings: Settings, table: Table) -> Parts:  # noqa: ARG001 - one shape for all
    from wikikeeper.adapters.web.fetch import FeedFetcher
    from wikikeeper.adapters.web.guard_client import GuardedClient
    from wikikeeper.adapters.web.sources import TopicSearch

    search: Search = TopicSearch(
        web=searxng(settings),
        feeds=FeedFetcher(GuardedClient(settings.fetch)),
        root=NO_FOLDER,
        results_per_query=settings.research.results_per_query,
    )
    asked: Decider = decider(settings, _model_server(settings))
    return {"search": search, "decider": asked}


def _judge_result(settings: Settings, table: Table) -> Parts:
    from wikikeeper.adapters.web.extract import ChildExtractor
    from wikikeeper.adapters.web.fetch import GuardedFetcher
    from wikikeeper.keeper import QuestioningKeeper

    asked = decider(settings, _model_server(settings))
    keeper: Keeper = QuestioningKeeper(
        asked, secret=installation_secret(table), quote_max_chars=settings.research.quote_max_chars
    )
    fetcher: Fetcher = GuardedFetcher(settings.fetch, NO_FOLDER)
    extractor: Extractor = ChildExtractor(settings.extraction)
    return {"fetcher": fetcher, "extractor": extractor, "keeper": keeper, "decider": asked}


def _write_note(settings: Settings, table: Table) -> Parts:  # noqa: ARG001
    return {}


def _reap_stale(settings: Settings, table: Table) -> Parts:  # noqa: ARG001
    keeper: Keeper = NamedKeeper(settings.keeper_model)
    messenger: Messenger | None = None
    if settings.slack.webhook_url is not None:
        from wikikeeper.adapters.slack.messenger import SlackMessenger

        messenger = SlackMessenger(settings.slack.webhook_url)
    return {"keeper": keeper, "messenger": messenger}


def _web(settings: Settings, table: Table) -> Parts:  # noqa: ARG001
    return {}


_PARTS = {
    "schedule_cycle": _schedule_cycle,
    "judge_result": _judge_result,
    "write_note": _write_note,
    "reap_stale": _reap_stale,
    "web": _web,
}


def _model_server(settings: Settings) -> ModelServer:
    if settings.keeper_base_url is None:
        raise Unusable("set llama.base_url to the model server: functions start none of their own")
    return ModelServer(settings.keeper_base_url, settings.keeper_model)


def installation_secret(table: Table) -> bytes:
    """The key of the boundary around page text: made once, the same for all containers, known to this table alone."""
    item = table.get(SECRET)
    if item is None:
        table.put_new({"pk": SECRET.pk, "sk": SECRET.sk, "secret": secrets.token_bytes(SECRET_BYTES)})
        item = table.get(SECRET)
    if item is None or not isinstance(item["secret"], bytes):
        raise Unusable(f"table {table.name}: its item {SECRET.pk} is not ours")
    return item["secret"]
