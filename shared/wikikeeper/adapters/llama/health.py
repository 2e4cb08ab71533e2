"""Can the model be asked now? Read from `GET /v1/models` and, where that says nothing, from `GET /health`.

What servers tell:

| server | `/v1/models` |
|---|---|
| llama-server, one model | 503 while loading; then one entry with `architecture.output_modalities`; its name is not checked in calls |
| llama-server, router | one entry per model with `status.value` unloaded, loading, loaded, sleeping, `status.failed`; `/health` is always well |
| Ollama, vLLM | `data` with names only |
| hosted | `models` with some names, of which a call may use others |
| sparrow-decider | 200 with a status of its own |

Nothing is asked here: these are pure functions of what was answered.
"""

from typing import Any

from wikikeeper.adapters.llama.wire_json import Malformed, parse
from wikikeeper.models import ModelState

HEALTHY = ModelState(state="healthy")


def waking(cause: str, detail: str) -> ModelState:
    return ModelState(state="waking", cause=cause, detail=detail)


def unhealthy(cause: str, detail: str) -> ModelState:
    return ModelState(state="unhealthy", cause=cause, detail=detail)


def silent(seconds: float) -> ModelState:
    """It took the connection but did not answer in time: a container that starts does so, and so does a busy loader."""
    return waking(
        "loading", f"the model server took the connection but said nothing for {seconds:g} s; it may be starting"
    )


def unreachable(base: str, why: str) -> ModelState:
    return unhealthy("unreachable", f"no model server answers at {base} ({why}): start it or correct base_url")


def sent_elsewhere(origin: str) -> ModelState:
    return unhealthy("redirected", f"the model server redirects to {origin}: set base_url to that if you trust it")


def from_models(model: str, status: int, body: bytes) -> ModelState | None:
    """What the answer to `/v1/models` shows. None: nothing either way, ask `/health`."""
    if status != 200:
        return None if status in {404, 405} else _from_status(status)
    try:
        listed = parse(body)
    except Malformed:
        return unhealthy("wrong_kind", "base_url answers, but not as a model server: correct it")
    data = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(data, list):
        return HEALTHY
    entries = [entry for entry in data if isinstance(entry, dict)]
    routed = any(isinstance(entry.get("status"), dict) for entry in entries)
    entry = next((entry for entry in entries if _answers_to(entry, model)), None)
    if entry is None and (routed or not entries):
        return unhealthy(
            "model_missing", f"the model server has no model {model!r}: add it, or set model to one it has"
        )
    if entry is None:
        # A single server takes any name, and lists of hosted servers leave aliases out.
        return _of_kind(entries[0], model) if len(entries) == 1 else HEALTHY
    return _loaded(entry, model) if routed else _of_kind(entry, model)


def from_health(status: int) -> ModelState:
    """What the answer to `/health` shows where `/v1/models` does not exist."""
    return HEALTHY if status in {200, 404, 405} else _from_status(status)


def _from_status(status: int) -> ModelState:
    match status:
        case 401:
            return unhealthy("unauthorized", "the model server wants another API key: set api_key to the server's")
        case 403:
            return unhealthy("forbidden", "the model server forbids this: check the API key and what it may do")
        case 503:
            return waking("loading", "the model server is loading its model; it is asked again soon")
        case 429 | 529:
            return HEALTHY  # busy, so it works; calls have retries of their own
        case 502 | 504:
            return unhealthy(
                "unreachable", f"a proxy answers {status} for the model server: start the server behind it"
            )
    return unhealthy(f"http_{status}", f"the model server answers {status} when asked for its models: see its log")


def _loaded(entry: dict[str, Any], model: str) -> ModelState:
    status = entry["status"] if isinstance(entry.get("status"), dict) else {}
    value = status.get("value")
    if status.get("failed") or value == "failed":
        return unhealthy("model_failed", f"{model!r} failed to load: see the model server's log, then load it again")
    match value:
        case "loaded":
            return _of_kind(entry, model)
        # The kind is not looked at before: an unread file is listed as a text model.
        case "unloaded":
            return waking("unloaded", f"{model!r} is not loaded; it is being woken")
        case "sleeping":
            return waking("sleeping", f"{model!r} sleeps; it is being woken")
    return waking("loading", f"{model!r} is loading; it is asked again soon")


def _of_kind(entry: dict[str, Any], model: str) -> ModelState:
    architecture = entry.get("architecture")
    kinds = architecture.get("output_modalities") if isinstance(architecture, dict) else None
    if isinstance(kinds, list) and kinds and "decisions" not in kinds:
        return unhealthy("wrong_kind", f"{model!r} is not a decision model: set model to one that is")
    return HEALTHY


def _answers_to(entry: dict[str, Any], model: str) -> bool:
    aliases = entry.get("aliases")
    return entry.get("id") == model or (isinstance(aliases, list) and model in aliases)
