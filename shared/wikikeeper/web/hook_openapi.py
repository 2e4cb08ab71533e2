"""What the app's OpenAPI says of hooks: the headers that sign a delivery, what its body may be, and each answer.

Bodies are verified before they are parsed, so FastAPI never sees them; what it would say of them is said here, from the
models that they are held to.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from wikikeeper.web.hook_bodies import ASKS, PushEvent, ReleaseEvent, SlackBody
from wikikeeper.web.hook_work import Accepted, Ignored

Answers = dict[int | str, dict[str, Any]]
_DEFINED = "#/defined/"

REFUSALS: Answers = {
    400: {"description": "The sender hung up"},
    401: {"description": "Not verified"},
    404: {"description": "No secret is set for this way, or there is no such topic"},
    408: {"description": "The body came too slowly"},
    409: {"description": "The topic's time is over"},
    413: {"description": "The body is too large"},
    415: {"description": "Not JSON"},
    422: {"description": "The body does not say what this way takes"},
    429: {"description": "Too many in this minute"},
    503: {"description": "A failure of ours: send it again"},
}
STORED: Answers = {202: {"description": "Stored, and on its way", "model": Accepted}, **REFUSALS}
EITHER: Answers = {200: {"description": "Verified, and nothing to do", "model": Ignored}, **STORED}


def _operation(headers: Mapping[str, str], shapes: Sequence[type[BaseModel]]) -> dict[str, Any]:
    bodies = [_whole(shape.model_json_schema(ref_template=_DEFINED + "{model}")) for shape in shapes]
    schema = bodies[0] if len(bodies) == 1 else {"anyOf": bodies}
    return {
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": said, "schema": {"type": "string"}}
            for name, said in headers.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
    }


def _whole(schema: dict[str, Any]) -> dict[str, Any]:
    """With its parts in their places: a schema within a document cannot name parts of its own."""
    parts = schema.pop("$defs", {})

    def put(value: object) -> object:
        match value:
            case {"$ref": str(name)}:
                return put(parts[name.removeprefix(_DEFINED)])
            case dict():
                return {key: put(part) for key, part in value.items()}
            case list():
                return [put(part) for part in value]
            case _:
                return value

    return {key: put(part) for key, part in schema.items()}


CYCLE = _operation(
    {
        "webhook-id": "What the delivery is known by. The same one again changes nothing",
        "webhook-timestamp": "Seconds since 1970",
        "webhook-signature": "`v1,` and base64 of the HMAC-SHA256 over id.timestamp.body; several apart by spaces",
    },
    list(ASKS.values()),
)
GITHUB = _operation(
    {
        "x-github-event": "`release` and `push` start something; what else there is, is acknowledged",
        "x-hub-signature-256": "`sha256=` and the HMAC-SHA256 over the body, in hex",
    },
    [ReleaseEvent, PushEvent],
)
SLACK = _operation(
    {
        "x-slack-request-timestamp": "Seconds since 1970",
        "x-slack-signature": "`v0=` and the HMAC-SHA256 over v0:timestamp:body, in hex",
    },
    [SlackBody],
)
