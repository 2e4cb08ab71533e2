"""What is shipped to the GPU, run by a real llama-server on this machine. Opt-in:

WIKIKEEPER_LLAMA_SERVER_BINARY   path of llama-server (b11434 or newer); any build, without a GPU nothing is offloaded
WIKIKEEPER_LLAMA_SERVER_GGUF     a small decision model, which stands for all the models
"""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import httpx
import pytest
from pydantic import SecretStr
from tests.adapters.decider_contract import KEEPER_LIKE
from tests.adapters.llama.servers import free_port

from infra import modal_command
from wikikeeper.adapters.llama.decide import LlamaDecider

BINARY = os.environ.get("WIKIKEEPER_LLAMA_SERVER_BINARY")
GGUF = os.environ.get("WIKIKEEPER_LLAMA_SERVER_GGUF")
KEY = "a-key-of-this-test"
LOAD_SECONDS = 120
"""For a small model from a slow disk."""
MODELS = modal_command.read_models(Path(modal_command.__file__).with_name("models.ini").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(
    BINARY is None or GGUF is None, reason="WIKIKEEPER_LLAMA_SERVER_BINARY and _GGUF name no llama-server to start"
)


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert BINARY is not None and GGUF is not None  # noqa: PT018
    root = tmp_path_factory.mktemp("weights")
    for model in MODELS:
        folder = root / model.weights.folder
        folder.mkdir(parents=True)
        (folder / model.weights.file).symlink_to(Path(GGUF).resolve())
    preset = root / "models.ini"
    preset.write_text(modal_command.preset(MODELS, 1, root=PurePosixPath(root)), encoding="utf-8")
    port = free_port()
    line = modal_command.command(BINARY, str(preset), len(MODELS), host="127.0.0.1", port=port)
    environment = modal_command.environment(os.environ, KEY)
    with (root / "log").open("wb") as log, subprocess.Popen(line, env=environment, stdout=log, stderr=log) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            _until_well(url, server, root / "log")
            yield url
        finally:
            server.terminate()
            server.wait(timeout=LOAD_SECONDS)


def _until_well(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    ends = time.monotonic() + LOAD_SECONDS
    while True:
        assert server.poll() is None, log.read_text(encoding="utf-8", errors="replace")
        try:
            if httpx.get(f"{url}/health", trust_env=False).is_success:
                return
        except httpx.TransportError:
            assert time.monotonic() < ends
        time.sleep(0.1)


def listed(base_url: str) -> dict[str, dict[str, object]]:
    answer = httpx.get(f"{base_url}/v1/models", headers={"Authorization": f"Bearer {KEY}"}, trust_env=False)
    return {entry["id"]: entry["status"] for entry in answer.raise_for_status().json()["data"]}


def test_the_router_lists_exactly_the_models_of_the_preset(base_url: str) -> None:
    assert set(listed(base_url)) == {model.name for model in MODELS}


def test_the_key_is_in_no_command_line(base_url: str) -> None:
    assert KEY not in str(listed(base_url))


def test_strangers_are_turned_away(base_url: str) -> None:
    assert httpx.get(f"{base_url}/v1/models", trust_env=False).status_code == httpx.codes.UNAUTHORIZED


def test_the_decision_model_loads_without_being_asked_and_then_answers(base_url: str) -> None:
    decider = LlamaDecider(base_url, "decider", SecretStr(KEY), connect_timeout=5, timeout=LOAD_SECONDS)
    try:
        ends = time.monotonic() + LOAD_SECONDS
        while (state := decider.state()).state == "waking":
            assert state.cause == "loading"
            assert time.monotonic() < ends
            time.sleep(0.2)
        assert state.state == "healthy", state

        reply = decider.decide(KEEPER_LIKE)
    finally:
        decider.close()

    assert set(reply.answers) == set(KEEPER_LIKE.questions)


def test_each_question_has_a_slot_with_the_context_it_was_promised(base_url: str) -> None:
    decider = next(model for model in MODELS if model.name == "decider")

    slots = httpx.get(
        f"{base_url}/slots", params={"model": "decider"}, headers={"Authorization": f"Bearer {KEY}"}, trust_env=False
    )

    assert [slot["n_ctx"] for slot in slots.raise_for_status().json()] == [decider.slot_tokens] * 4


@pytest.mark.parametrize(
    ("model", "path", "body"),
    [
        ("embedder", "v1/embeddings", {"input": "birds"}),
        ("author", "v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}),
        ("reviewer", "v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}),
    ],
)
def test_every_other_model_loads_with_its_arguments_when_it_is_asked(
    base_url: str, model: str, path: str, body: dict[str, object]
) -> None:
    answer = httpx.post(
        f"{base_url}/{path}",
        json={"model": model, **body},
        headers={"Authorization": f"Bearer {KEY}"},
        timeout=LOAD_SECONDS,
        trust_env=False,
    )

    # A decision model stands in for it and may refuse the task; that it answers at all means that it was loaded.
    assert listed(base_url)[model]["value"] == "loaded", answer.text
