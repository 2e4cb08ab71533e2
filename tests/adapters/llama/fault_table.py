"""What goes wrong at a model server, and what the client makes of it: the data of the tests and of one page of docs.

PYTHONPATH=shared python -m tests.adapters.llama.fault_table > docs/model-server-faults.md
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

FINE = "answered"
HEALTHY = "healthy"


@dataclass(frozen=True)
class Fault:
    """One fault of `jevcompat mock`, how it is set up to show, and what came of it."""

    name: str
    call: str = FINE
    """"answered", or the error and its cause."""
    state: str = HEALTHY
    """Of `LlamaDecider.state`, with its cause."""
    server_key: str | None = None
    sent_key: str | None = None
    model: str = "mock"

    @property
    def setting(self) -> str:
        parts = []
        if self.sent_key != self.server_key or self.server_key:
            server = "takes a key" if self.server_key else "takes no key"
            sent = "another is" if self.sent_key else "none is"
            parts.append(f"{server}, {'it is' if self.sent_key == self.server_key else sent} sent")
        if self.model != "mock":
            parts.append(f"asked for `{self.model}`")
        return "; ".join(parts)


FAULTS = (
    Fault("wrong-route", "ModelUnusable wrong_kind"),
    Fault("xssi-200", "AnswerMalformed malformed:not_json", "unhealthy wrong_kind"),
    Fault("plain-content-type"),
    Fault("text-errors", "ModelUnusable model_missing", model="unknown"),
    Fault("models-404"),
    Fault("auth-rejects-header", "ModelUnusable unauthorized", "unhealthy unauthorized", None, "a-key"),
    Fault("auth-x-api-key", "ModelUnusable forbidden", "unhealthy forbidden", "a-key", "a-key"),
    Fault("auth-plain", "ModelUnusable unauthorized", "unhealthy unauthorized", "a-key", None),
    Fault("auth-invalid-403-text", "ModelUnusable unauthorized", "unhealthy unauthorized", "a-key", "not-it"),
    Fault("reject-array-state"),
    Fault("reject-jev-latest", "ModelUnusable model_missing", model="jev-latest"),
    Fault("first-question-only", "AnswerMalformed malformed:missing_question"),
    Fault("strict-ids"),
    Fault("nfd-keys"),
    Fault("forbid-extra"),
    Fault("string-only-text"),
    Fault("noul-two-sided"),
    Fault("noul-needs-instructions"),
    Fault("no-null-description"),
    Fault("cap-64"),
    Fault("cap-5-levels"),
    Fault("accept-map-score"),
    Fault("no-usage"),
    Fault("float-usage"),
    Fault("extra-answer"),
    Fault("boolean-type", "AnswerMalformed malformed:wrong_type"),
    Fault("nan", "AnswerMalformed malformed:not_finite"),
    Fault("unprefixed-extra"),
    Fault("noul-range", "AnswerMalformed malformed:out_of_range"),
    Fault("choice-no-confidence"),
    Fault("choice-key-case"),
    Fault("choice-sum", "AnswerMalformed malformed:sum"),
    Fault("choice-second"),
    Fault("score-no-legend"),
    Fault("legend-1-based"),
    Fault("score-keys-1-based"),
    Fault("score-sum"),
    Fault("score-argmax"),
    Fault("confidence-over"),
    Fault("confidence-margin"),
    Fault("500-on-unknown-type"),
    Fault("accept-boolean"),
    Fault("validation-400"),
    Fault("error-flat", "ModelUnusable model_missing", model="unknown"),
    Fault("id-leaks"),
    Fault("batch-leaks"),
    Fault("order-leaks"),
)


@dataclass(frozen=True)
class Refusal:
    """An answer other than 200, as a server really gives it."""

    server: str
    status: int
    body: dict[str, Any] | str
    error: str

    @property
    def raw(self) -> bytes:
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


def llama(status: int, type_: str, message: str, error: str, **more: int) -> Refusal:
    return Refusal("llama-server", status, {"error": {"code": status, "message": message, "type": type_} | more}, error)


def hosted(status: int, type_: str, message: str, error: str) -> Refusal:
    return Refusal("hosted", status, {"detail": {"error_type": type_, "message": message}}, error)


def fastapi(type_: str, message: str, error: str) -> Refusal:
    return Refusal("hosted", 422, {"detail": [{"loc": ["body", "state"], "msg": message, "type": type_}]}, error)


REFUSALS = (
    llama(
        400,
        "exceed_context_size_error",
        "the request exceeds the available context size",
        "PageRefused too_long",
        n_prompt_tokens=6033,
        n_ctx=4096,
    ),
    llama(
        400,
        "invalid_request_error",
        "the question and its options (900 tokens) are too large for the batch",
        "PageRefused too_long",
    ),
    llama(
        500,
        "server_error",
        "input (900 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
        "PageRefused too_long",
    ),
    llama(
        400,
        "invalid_request_error",
        "questions.q: too many options (60), this model supports at most 52",
        "PageRefused invalid",
    ),
    llama(400, "invalid_request_error", '"questions" must be a non-empty object', "PageRefused invalid"),
    llama(400, "invalid_request_error", "model 'x' not found", "ModelUnusable model_missing"),
    llama(400, "invalid_request_error", "model name is missing from the request", "ModelUnusable model_missing"),
    llama(400, "invalid_request_error", "model is not loaded", "ModelUnusable model_missing"),
    llama(500, "server_error", "model name=x failed to load", "ModelUnusable model_failed"),
    llama(500, "server_error", "the model could not evaluate the decision", "AnswerMalformed server_error"),
    llama(501, "not_supported_error", "This model is not a decision model", "ModelUnusable wrong_kind"),
    llama(401, "authentication_error", "Invalid API Key", "ModelUnusable unauthorized"),
    llama(404, "not_found_error", "File Not Found", "ModelUnusable wrong_kind"),
    llama(503, "unavailable_error", "Loading model", "ModelUnavailable http_503"),
    Refusal("Ollama", 400, {"error": "prompt too long"}, "PageRefused too_long"),
    Refusal("Ollama", 413, {"error": "request body too large"}, "PageRefused too_long"),
    Refusal("Ollama", 400, {"error": "choice needs 2 to 26 options"}, "PageRefused invalid"),
    Refusal("Ollama", 400, {"error": "model is required"}, "ModelUnusable model_missing"),
    Refusal("Ollama", 404, {"error": "model 'x' not found"}, "ModelUnusable model_missing"),
    Refusal("sparrow-decider", 422, {"error": "unknown question type 'x'"}, "PageRefused invalid"),
    Refusal("sparrow-decider", 404, {"error": "not found"}, "ModelUnusable wrong_kind"),
    hosted(400, "api_usage_error", "The state has 40000 tokens, at most 32000 fit", "PageRefused too_long"),
    hosted(400, "api_usage_error", "Unknown model: x", "ModelUnusable model_missing"),
    hosted(404, "not_found", "Model not served: x", "ModelUnusable model_missing"),
    hosted(403, "authentication_error", "Must supply an API key!", "ModelUnusable forbidden"),
    hosted(402, "billing_error", "Out of credit", "ModelUnusable http_402"),
    hosted(429, "rate_limit_error", "slow down", "ModelUnavailable http_429"),
    hosted(529, "overloaded_error", "overloaded", "ModelUnavailable http_529"),
    fastapi("string_too_long", "String should have at most 96000 characters", "PageRefused too_long"),
    fastapi("missing", "Field required", "PageRefused invalid"),
    Refusal("hosted", 400, {"detail": "The prompt is too long"}, "PageRefused too_long"),
    Refusal("a proxy", 502, "<html><h1>502 Bad Gateway</h1></html>", "ModelUnavailable http_502"),
    Refusal("a proxy", 504, "<html><h1>504 Gateway Time-out</h1></html>", "ModelUnavailable http_504"),
    Refusal("a proxy", 521, "Web server is down", "ModelUnavailable http_521"),
    Refusal("a proxy", 301, "<html><h1>301 Moved Permanently</h1></html>", "ModelUnusable redirected"),
    Refusal("a proxy", 500, "<html><h1>500 Internal Server Error</h1></html>", "AnswerMalformed server_error"),
    Refusal("another server", 405, {"detail": "Method Not Allowed"}, "ModelUnusable wrong_kind"),
    Refusal("another server", 204, "", "ModelUnusable http_204"),
)

HEAD = """# When the model server misbehaves

What the Keeper's client makes of an answer decides what happens to the page and to the cycle:

| error | meaning | what follows |
|---|---|---|
| `PageRefused` | the server will not take this page | the page is halved once, then marked for parking |
| `AnswerMalformed`, `AnswerTimedOut` | no answer that can be relied on | the page stays waiting; it counts against it if others got an answer |
| `ModelUnavailable` | the server's moment, not the page | the page stays waiting; it does not count |
| `ModelUnusable` | a person has to mend it | the cycle stops, with one alert per cause |

Only a connection that could not be made and 429, 502, 503, 504 and 529 are tried again inside one call: at most six
tries, with growing random pauses or what `Retry-After` asks, within `keeper.timeout`. Never 500 and 501, which
llama-server means, and never a call that may still be running there.

This page is made from the data of the tests (`tests/adapters/llama/fault_table.py`).
"""


def page() -> str:
    # Imported here, for its descriptions: the tests alone need the mock.
    from jevcompat.mock import FAULTS as DESCRIBED  # noqa: PLC0415

    lines = [HEAD, "## Faults of the specification's mock", ""]
    lines += [
        "Each fault of `jevcompat mock`, with four questions as the Keeper asks them. Many cannot reach us, since we",
        "neither send nor read what they break.",
        "",
        "| fault | what the server does | set-up | the call | the state |",
        "|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        does = DESCRIBED[fault.name][1].replace("|", "\\|")
        lines.append(f"| {fault.name} | {does} | {fault.setting} | {_code(fault.call)} | {_code(fault.state)} |")
    lines += ["", "## Answers other than 200", "", "| server | status | body | the call |", "|---|---|---|---|"]
    for refusal in REFUSALS:
        body = refusal.raw.decode().replace("|", "\\|")
        lines.append(
            f"| {refusal.server} | {refusal.status} | {f'`{body}`' if body else ''} | {_code(refusal.error)} |"
        )
    return "\n".join(lines) + "\n"


def _code(outcome: str) -> str:
    return outcome if outcome in {FINE, HEALTHY} else f"`{outcome}`"


if __name__ == "__main__":
    sys.stdout.write(page())
