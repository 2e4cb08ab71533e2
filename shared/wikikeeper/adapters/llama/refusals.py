"""What a status other than 200 means: the page's fault, the server's moment, or something a person must mend.

Three shapes of error bodies are in use: `{"error": {code, message, type}}` (llama-server), `{"error": "text"}` (Ollama,
sparrow-decider) and `{"detail": ...}` (hosted, FastAPI). Their texts decide the kind but are never shown: a server may
repeat the page in them.
"""

import re
from dataclasses import dataclass

from wikikeeper.adapters.llama.wire_json import Malformed, parse
from wikikeeper.errors import AnswerMalformed, ModelError, ModelUnavailable, ModelUnusable, PageRefused

BUSY = frozenset({429, 502, 503, 504, 529})
"""The only statuses after which the same call may well succeed. Not 500 and 501: llama-server means them."""

_LOOKED_AT = 2000
"""Characters of a message that are searched: the reason comes first, an echo of the page after it."""

_MODEL_MISSING = re.compile(
    r"(unknown|no such) model"
    r"|\bmodel\b[^\n]{0,200}\b(not found|not served|not loaded|does not exist|is missing|is required)",
    re.IGNORECASE,
)
# "tokens" in the plural: JSON parsers complain about a single "unexpected token".
_TOO_LONG = re.compile(
    r"too (long|large)|\btokens\b|context (size|length|window)|at most \d+ characters", re.IGNORECASE
)
_PLAIN_TYPE = re.compile(r"[a-z_]{1,40}")


@dataclass(frozen=True)
class Said:
    """An error body, whatever its shape."""

    type: str = ""
    message: str = ""
    tokens: int | None = None
    """Of the refused prompt, where the server counted them."""
    limit: int | None = None


def refusal(status: int, body: bytes, model: str, attempts: int) -> ModelError:
    """The error that says what to do next after `attempts` tries, the last of which ended with this status."""
    said = read(body)
    seen = f"the server answered {status}" + (f" {said.type}" if _PLAIN_TYPE.fullmatch(said.type) else "")
    if cause := _fault_of_the_page(status, said):
        counted = f": {said.tokens} tokens where {said.limit} fit" if said.tokens and said.limit else ""
        return PageRefused(cause, seen + counted, status=status, attempts=attempts)
    if status == 500 and "failed to load" not in said.message:
        return AnswerMalformed("server_error", seen, status=status, attempts=attempts)
    if status in BUSY or status > 501:
        return ModelUnavailable(f"http_{status}", seen, status=status, attempts=attempts)
    cause, detail = _for_a_person(status, said, model)
    return ModelUnusable(cause, f"{seen}: {detail}", status=status, attempts=attempts)


def _fault_of_the_page(status: int, said: Said) -> str | None:
    if status == 413 or (status == 500 and "too large" in said.message):  # laya beyond its batch
        return "too_long"
    if status == 422 or (status == 400 and not _MODEL_MISSING.search(said.message)):
        counted = said.type == "exceed_context_size_error"
        return "too_long" if counted or _TOO_LONG.search(said.message) else "invalid"
    return None


def _for_a_person(status: int, said: Said, model: str) -> tuple[str, str]:
    """Cause and how to mend it."""
    match status:
        case 401:
            return "unauthorized", "set api_key to the model server's key"
        case 403:
            return "forbidden", "check the API key and what it may do"
        case 400 | 404 if _MODEL_MISSING.search(said.message):
            return "model_missing", f"there is no model {model!r}, set model to one that the server lists"
        case 404 | 405:
            return "wrong_kind", "there is no /v1/systemone, base_url must name a System One server"
        case 500:
            return "model_failed", f"{model!r} failed to load, see the model server's log"
        case 501:
            return "wrong_kind", f"{model!r} is not a decision model, set model to one that is"
    if 300 <= status < 400:
        return "redirected", "set base_url to where the server really is"
    return f"http_{status}", "check base_url and the model server's log"


def read(body: bytes) -> Said:
    """What an error body says. A body of no known shape is taken as its own message."""
    text = body[: 4 * _LOOKED_AT].decode("utf-8", "replace")[:_LOOKED_AT]
    try:
        parsed = parse(body)
    except Malformed:
        return Said(message=text)
    if not isinstance(parsed, dict):
        return Said(message=text)
    error, detail = parsed.get("error"), parsed.get("detail")
    match error, detail:
        case dict(), _:
            return Said(
                type=_text(error.get("type")),
                message=_text(error.get("message")),
                tokens=_count(error.get("n_prompt_tokens")),
                limit=_count(error.get("n_ctx")),
            )
        case str(), _:
            return Said(message=_text(error))
        case _, dict():
            return Said(type=_text(detail.get("error_type")), message=_text(detail.get("message")))
        case _, list():
            faults = [fault for fault in detail if isinstance(fault, dict)]
            kinds = [_text(fault.get("type")) for fault in faults]
            return Said(type=kinds[0] if kinds else "", message="; ".join(_text(fault.get("msg")) for fault in faults))
        case _, str():
            return Said(message=_text(detail))
    return Said(message=text)


def _text(value: object) -> str:
    return value[:_LOOKED_AT] if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
