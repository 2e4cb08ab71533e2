import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.adapters.llama.health import from_health, from_models
from wikikeeper.models import ModelState

DECISIONS = {"input_modalities": ["text"], "output_modalities": ["decisions"]}
TEXT = {"input_modalities": ["text"], "output_modalities": ["text"]}
LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}


def entry(name: str, status: str | None = None, architecture: object = DECISIONS, **more: object) -> dict[str, object]:
    shown: dict[str, object] = {"id": name, "object": "model", "architecture": architecture}
    if status is not None:
        shown["status"] = {"value": status, "args": []} | more
    return shown


def listed(*entries: object) -> dict[str, object]:
    return {"object": "list", "data": list(entries)}


def shown(body: object, status: int = 200, model: str = "decider") -> str:
    state = from_models(model, status, json.dumps(body).encode())
    return text(state)


def text(state: ModelState | None) -> str:
    if state is None:
        return "ask /health"
    assert (state.state == "healthy") == (not state.cause) == (not state.detail), "trouble has a cause and a remedy"
    return f"{state.state} {state.cause}".strip()


@pytest.mark.parametrize(
    ("status", "more", "state"),
    [
        ("loaded", {}, "healthy"),
        ("loading", {}, "waking loading"),
        ("sleeping", {}, "waking sleeping"),
        ("unloaded", {}, "waking unloaded"),
        ("unloaded", {"failed": True, "exit_code": 1}, "unhealthy model_failed"),
        ("failed", {}, "unhealthy model_failed"),
        ("downloading", {}, "waking loading"),
    ],
)
def test_a_router_shows_the_state_of_each_model(status: str, more: dict[str, object], state: str) -> None:
    assert shown(listed(entry("other", "loaded", TEXT), entry("decider", status, **more))) == state


def test_a_chat_model_behind_a_router_is_of_the_wrong_kind_once_it_is_loaded() -> None:
    assert shown(listed(entry("decider", "loaded", TEXT))) == "unhealthy wrong_kind"


def test_the_kind_of_a_file_that_was_not_read_yet_is_not_believed() -> None:
    assert shown(listed(entry("decider", "unloaded", TEXT))) == "waking unloaded"


def test_a_router_without_the_model_misses_it() -> None:
    assert shown(listed(entry("other", "loaded"))) == "unhealthy model_missing"


def test_a_model_may_be_asked_for_by_its_alias() -> None:
    assert shown(listed(entry("other", "loaded"), entry("long-name", "loaded") | {"aliases": ["decider"]})) == "healthy"


def test_a_single_server_answers_to_any_name() -> None:
    assert shown(listed(entry("file.gguf"))) == "healthy"
    assert shown(listed(entry("file.gguf", architecture=TEXT))) == "unhealthy wrong_kind"


@pytest.mark.parametrize("architecture", [None, {}, {"output_modalities": None}, {"output_modalities": []}, "llama"])
def test_where_nothing_is_told_of_kinds_the_first_call_will_tell(architecture: object) -> None:
    assert shown(listed(entry("decider", architecture=architecture))) == "healthy"


@pytest.mark.parametrize(
    "body",
    [
        {"object": "list", "data": [{"id": "one:latest"}, {"id": "two:latest"}]},  # Ollama: names only
        {"models": [{"name": "jev-latest", "description": "", "release_date": "2026-09-24"}]},  # hosted
        {"status": "ok", "model": "sparrow-nano", "version": "0.2.0"},  # sparrow-decider, to any GET
    ],
)
def test_servers_that_tell_little_are_healthy(body: object) -> None:
    assert shown(body) == "healthy"


def test_a_server_without_any_model_misses_ours() -> None:
    assert shown(listed()) == "unhealthy model_missing"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (401, "unhealthy unauthorized"),
        (403, "unhealthy forbidden"),
        (404, "ask /health"),
        (405, "ask /health"),
        (429, "healthy"),
        (500, "unhealthy http_500"),
        (502, "unhealthy unreachable"),
        (503, "waking loading"),
        (504, "unhealthy unreachable"),
    ],
)
def test_a_status_tells_as_well(status: int, state: str) -> None:
    assert shown(LOADING, status) == state


@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "healthy"), (404, "healthy"), (401, "unhealthy unauthorized"), (503, "waking loading")],
)
def test_without_a_list_of_models_health_decides(status: int, state: str) -> None:
    assert text(from_health(status)) == state


def test_a_web_page_is_no_model_server() -> None:
    assert text(from_models("decider", 200, b"<!doctype html><title>Welcome</title>")) == "unhealthy wrong_kind"


ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("decider"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["data", "id", "status", "value", "aliases", "architecture", "output_modalities"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(body=ODD, status=st.integers(min_value=200, max_value=599))
def test_no_list_of_models_is_too_odd_to_be_read(body: object, status: int) -> None:
    shown(body, status)
