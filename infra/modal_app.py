"""Modal: the GPU server, and, for people without AWS Lambda, the functions. Deployed from the repository's root:

    modal run infra/modal_app.py::fetch_weights   first, and after a change of infra/models.ini: no server fetches its own
    modal deploy infra/modal_app.py               the GPU server alone (app `wikikeeper-model`)
    modal deploy infra/modal_app.py::functions    the functions as well (app `wikikeeper`)

Nothing is loaded and no account is asked for when this is imported. docs/modal.md says which Secrets it needs.
"""

import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import modal

from infra import modal_command, modal_due
from wikikeeper.models import COMMAND, Command, ReapStale, Send
from wikikeeper.settings import NESTED, PREFIX, Settings, load

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HERE = Path(__file__).parent
ROOT = HERE.parent

SETTING_NAMES: tuple[str, ...] = tuple(
    f"{PREFIX}{group}{NESTED}{name}".upper()
    for group, field in Settings.model_fields.items()
    for name in type(field.default).model_fields
)
"""The variable of every setting. Those that the deploying environment has go to the functions, in one Secret."""
SETTINGS = load(HERE)  # from the environment: there is no wikikeeper.toml beside this file, here or in a container

GPU = "L40S"
"""48 GB: all models of models.ini at once. One that is smaller needs fewer models there."""


class Scaling(TypedDict):
    """How many containers there are, and how long one without work stays, in seconds."""

    min_containers: int
    max_containers: int
    scaledown_window: int


SCALING = Scaling(
    min_containers=0,
    max_containers=1,  # the gate counts calls at one server; a second would cost twice and hold no more of them
    # More than a tick, so that a model that was woken for a cycle is still there when the cycle looks again a minute
    # later; not much more, for every minute of it is paid.
    scaledown_window=300,
)
STARTUP_SECONDS = ceil(SETTINGS.model.wake_timeout)
"""A cycle waits so long for a model; what starts later is waited for by nobody."""
CALL_SECONDS = max(ceil(SETTINGS.keeper.timeout), 900)
"""Until Modal ends a call, where the client did not: a long article takes minutes."""
PORT = 8080
BINARY = "/app/llama-server"

LLAMA_IMAGE = "ghcr.io/ggml-org/llama.cpp@sha256:d68ec493c0ff9105ddfe2e909fff304117bc6e1fffbbd8d94182bd455983c264"
"""server-cuda of b12429 (16 November 2026). By digest: a tag would change what judges under the same question version."""
SETTINGS_PINS = ("pydantic==2.13.5", "pydantic-settings==2.16.3")
"""What reading settings takes, as requirements.txt has it."""
HUB_PIN = "huggingface-hub==2.4.0"  # resumes a broken download of many gigabytes (Apache-2.0)
PYTHON = "3.13"
"""As on Lambda (infra/Dockerfile says why); infra/requirements is locked for it, too."""
KEY_NAME = "WIKIKEEPER_LLAMA__API_KEY"
MODEL_SECRET = (
    modal.Secret.from_dict({KEY_NAME: os.environ[KEY_NAME]})
    if os.environ.get(KEY_NAME)
    else modal.Secret.from_name("wikikeeper-model", required_keys=[KEY_NAME])
)
"""The key that the GPU server wants and the functions show: from the deploying environment, as in the workflow, or from a
Secret made by hand. With neither, Modal refuses the deployment."""


SHIPPED = frozenset({".py", ".html", ".css", ".js", ".svg"})
"""Our code, and what pages are made of."""


def not_shipped(path: Path) -> bool:
    # Of infra nothing but what is named here: a filled-in settings.env may lie beside it, with every secret.
    return path.suffix not in SHIPPED and path.name != "models.ini"


def _with_sources(image: modal.Image) -> modal.Image:
    """Our own code comes last and is mounted, not built in: a change of it builds no image."""
    return image.add_local_python_source("wikikeeper", "infra", ignore=not_shipped)


def shipped_models() -> tuple[modal_command.Model, ...]:
    return modal_command.read_models(Path(modal_command.__file__).with_name("models.ini").read_text(encoding="utf-8"))


# -- the GPU server

app = modal.App("wikikeeper-model")
weights = modal.Volume.from_name("wikikeeper-weights", create_if_missing=True)


@app.function(
    image=_with_sources(
        modal.Image.from_registry(LLAMA_IMAGE, add_python=PYTHON).entrypoint([]).uv_pip_install(*SETTINGS_PINS)
    ),
    gpu=GPU,
    volumes={str(modal_command.WEIGHTS): weights.read_only()},
    secrets=[MODEL_SECRET],
    env={"WIKIKEEPER_GATE__LIMIT": str(SETTINGS.gate.limit)},
    **SCALING,
    startup_timeout=STARTUP_SECONDS,
    timeout=CALL_SECONDS,
)
@modal.concurrent(max_inputs=SETTINGS.gate.limit + 1)  # every call that the gate lets through, and a look at the state
@modal.web_server(PORT, startup_timeout=STARTUP_SECONDS, requires_proxy_auth=True)
def llama_server() -> None:
    """llama-server in router mode behind Modal's proxy, which turns strangers away before a container starts."""
    models = shipped_models()
    preset = Path(tempfile.mkdtemp()) / "models.ini"
    preset.write_text(modal_command.preset(models, SETTINGS.gate.limit), encoding="utf-8")
    server = subprocess.Popen(  # noqa: S603 - our own command line
        modal_command.command(BINARY, str(preset), len(models), host="0.0.0.0", port=PORT),  # noqa: S104 - Modal's proxy asks from outside the container
        env=modal_command.environment(os.environ, os.environ[KEY_NAME]),
    )
    threading.Thread(target=_end_with, args=(server,), daemon=True).start()


def _end_with(server: "subprocess.Popen[bytes]") -> None:
    # A container whose router died would go on answering 502, and be paid for; the next call starts another.
    os._exit(server.wait() or 1)


@app.function(
    image=_with_sources(modal.Image.debian_slim(python_version=PYTHON).uv_pip_install(*SETTINGS_PINS, HUB_PIN)),
    volumes={str(modal_command.WEIGHTS): weights},
    timeout=2 * 3600,  # 25 GB over a line that is slow for a data centre
)
def fetch_weights() -> list[str]:
    """Bring the weights that models.ini names and the Volume lacks. Returns what was brought."""
    from huggingface_hub import hf_hub_download

    def download(wanted: modal_command.Weights, folder: Path) -> Path:
        return Path(hf_hub_download(wanted.repository, wanted.file, revision=wanted.revision, local_dir=folder))

    brought = modal_command.fetch(shipped_models(), Path(modal_command.WEIGHTS), download)
    weights.commit()
    return brought


# -- the functions: the same workflows, stores and names as on Lambda

functions = modal.App("wikikeeper")
later = modal.Dict.from_name("wikikeeper-later", create_if_missing=True)


def _function_image(function: str) -> modal.Image:
    """With the packages that the function of this name has on Lambda, to the byte."""
    requirements = ROOT / "infra" / "requirements" / f"{function}.txt"
    return _with_sources(
        modal.Image.debian_slim(python_version=PYTHON).uv_pip_install(
            requirements=[str(requirements)], extra_options="--no-deps --only-binary :all: --require-hashes"
        )
    )


SECRETS = [
    modal.Secret.from_dict({name: os.environ[name] for name in SETTING_NAMES if os.environ.get(name)}),
    MODEL_SECRET,
    modal.Secret.from_name(
        "wikikeeper-aws", required_keys=["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"]
    ),
]
CYCLE_SECONDS = 900
"""As long as the lease of an open cycle: what works beyond it is refused by its fence."""
OWN_WORK_SECONDS = 30
"""For a cold start and for sending what follows."""
JUDGE_SECONDS = ceil(SETTINGS.judge_lease.total_seconds()) + OWN_WORK_SECONDS
NOTE_SECONDS = 300
"""A few requests to the stores; twenty conflicts with other writers at worst."""
PAGE_SECONDS = 30
"""A reader waits no longer."""
READERS = 20
"""Requests that one container answers at once: most of each is waiting for the stores."""
REAP_EVERY = 5
"""Minutes. What is silent is found at most so much later than its lease ends, which is minutes itself."""


@functions.function(
    image=_function_image("schedule-cycle"), secrets=SECRETS, schedule=modal.Cron("* * * * *"), timeout=CYCLE_SECONDS
)
def tick() -> None:
    """Each minute: send what was put aside for now, and one StartCycle for each topic that is due."""
    from wikikeeper.cloud_app import cloud_app
    from wikikeeper.workflows.schedule_cycle import due, withdraw_deleted

    cloud = cloud_app("schedule_cycle")
    now = datetime.now(UTC)
    if unreadable := modal_due.send_due(_start, later, now):
        cloud.reporter.event("commands_unreadable", count=len(unreadable))
    withdraw_deleted(cloud)
    modal_due.carry(due(cloud), _start, later, now)


@functions.function(image=_function_image("schedule-cycle"), secrets=SECRETS, timeout=CYCLE_SECONDS)
def schedule_cycle(command: str) -> None:
    _work("schedule_cycle", command)


@functions.function(
    image=_function_image("judge-result"),
    secrets=SECRETS,
    timeout=JUDGE_SECONDS,
    max_containers=1,  # pages are fetched ahead by threads of one container, as on one machine
)
@modal.concurrent(max_inputs=SETTINGS.gate.limit + SETTINGS.host.pages_ahead)
def judge_result(command: str) -> None:
    _work("judge_result", command)


@functions.function(image=_function_image("write-note"), secrets=SECRETS, timeout=NOTE_SECONDS)
def write_note(command: str) -> None:
    _work("write_note", command)


@functions.function(
    image=_function_image("reap-stale"),
    secrets=SECRETS,
    schedule=modal.Cron(f"*/{REAP_EVERY} * * * *"),
    timeout=CYCLE_SECONDS,
)
def reap_stale(command: str = ReapStale().model_dump_json()) -> None:
    _work("reap_stale", command)


# Anybody can reach its address: without a token to sign in with there are no pages at all. A container has it from SECRETS.
if SETTINGS.web.token is not None:

    @functions.function(
        image=_function_image("web"),
        secrets=SECRETS,
        timeout=PAGE_SECONDS,
        max_containers=1,  # what strangers can cost; a person and their hooks need no more
    )
    @modal.concurrent(max_inputs=READERS)
    @modal.asgi_app()
    def web() -> "ASGIApp":
        """The pages and hooks. What a hook begins is spawned like everything else."""
        from wikikeeper.cloud_web import application

        return application(_carry)


FUNCTION_OF: Mapping[str, "modal.Function[..., None, None]"] = {
    "start_cycle": schedule_cycle,
    "close_cycle": schedule_cycle,
    "judge_result": judge_result,
    "write_note": write_note,
    "reap_stale": reap_stale,
}
"""Kind of command -> who handles it."""


def _start(command: Command) -> None:
    FUNCTION_OF[command.kind].spawn(command.model_dump_json())


def _work(function: str, command: str) -> None:
    """Run the workflow of a command, and carry on what it returns.

    A command that fails is in Modal's log and is not repeated: the reaper finds what it was about.
    """
    from wikikeeper.cloud_app import cloud_app
    from wikikeeper.dispatch import dispatch

    _carry(dispatch(COMMAND.validate_json(command), cloud_app(function)))


def _carry(sends: Sequence[Send]) -> None:
    modal_due.carry(sends, _start, later, datetime.now(UTC))
