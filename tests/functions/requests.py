"""Requests as a Function URL hands them to its function (payload 2.0), and its answers read as a browser does."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode

from standardwebhooks import Webhook
from tests.web.hook_world import CYCLE_SECRET, SLACK_SECRET, slack_headers

HOST = "abcdefghijklmnopqrstuvwxyz012345.lambda-url.us-east-1.on.aws"
TOKEN = "0123456789abcdef-canary-of-the-token"
SETTINGS = {
    "web__token": TOKEN,
    "hooks__cycle_secret": CYCLE_SECRET,
    "hooks__slack_secret": SLACK_SECRET,
}
OWN = {"origin": f"https://{HOST}", "sec-fetch-site": "same-origin"}
"""What a browser says of a form on our own pages."""


def event(
    method: str,
    path: str,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    cookies: Sequence[str] = (),
    body: bytes | None = None,
) -> dict[str, Any]:
    """`path` as a person reads it: the event has it as it went over the wire. Bodies always come in base64."""
    raw = quote(path)
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": raw,
        "rawQueryString": query,
        "headers": {"host": HOST, "x-forwarded-proto": "https", "x-forwarded-port": "443", **(headers or {})},
        "requestContext": {
            "accountId": "anonymous",
            "apiId": HOST.partition(".")[0],
            "domainName": HOST,
            "http": {"method": method, "path": raw, "protocol": "HTTP/1.1", "sourceIp": "198.51.100.7", "userAgent": "t"},
            "requestId": "request-1",
            "routeKey": "$default",
            "stage": "$default",
            "time": "01/Dec/2026:07:00:00 +0000",
            "timeEpoch": 1796108400000,
        },
        "isBase64Encoded": body is not None,
    }  # fmt: skip
    if cookies:
        made["cookies"] = list(cookies)
    if body is not None:
        made["body"] = base64.b64encode(body).decode()
    return made


def form(path: str, cookies: Sequence[str] = (), **fields: str) -> dict[str, Any]:
    """A form of our own pages that is sent."""
    headers = {**OWN, "content-type": "application/x-www-form-urlencoded"}
    return event("POST", path, headers=headers, cookies=cookies, body=urlencode(fields).encode())


def cycle_hook(ask: Mapping[str, object], delivery: str = "msg_1") -> dict[str, Any]:
    """Signed as senders sign by Standard Webhooks."""
    body, now = json.dumps(ask), datetime.now(UTC)
    signed = {
        "webhook-id": delivery,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(CYCLE_SECRET).sign(delivery, now, body),
    }
    return event("POST", "/hooks/cycle", headers=signed, body=body.encode())


def slack_hook(said: Mapping[str, object]) -> dict[str, Any]:
    body = json.dumps(said).encode()
    return event("POST", "/hooks/slack", headers=slack_headers(body, datetime.now(UTC)), body=body)


@dataclass(frozen=True)
class Shown:
    """An answer of the function."""

    status: int
    headers: Mapping[str, str]
    cookies: tuple[str, ...]
    """Each as a browser sends it back."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def location(self) -> str:
        return unquote(self.headers["location"])


def shown(answer: Mapping[str, Any]) -> Shown:
    body = answer.get("body", "")
    return Shown(
        answer["statusCode"],
        answer.get("headers", {}),
        tuple(cookie.partition(";")[0] for cookie in answer.get("cookies", ())),
        base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode(),
    )
