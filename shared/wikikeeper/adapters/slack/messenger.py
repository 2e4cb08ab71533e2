"""Messages for people, by an incoming webhook of Slack.

Its address is the secret: whoever has it can post. It is in no error and in no log of ours, and httpx, which names the
address of every request at INFO, is not let.
"""

import logging
import re
from datetime import UTC, datetime

import httpx
from pydantic import SecretStr

from wikikeeper.errors import NotDelivered, Unusable
from wikikeeper.policy.retry_after import retry_after

SECONDS = 10.0
"""For each step of a request. Slack answers within one."""
MOST_CHARACTERS = 40_000
"""What Slack keeps of a message."""
CUT = "…"
MOST_OF_ANSWER = 100
"""Characters of Slack's answer that are read: its errors are one word."""

HTTPX_LOG = logging.getLogger("httpx")
_PART_OF_ENTITY = re.compile(r"&[a-z]{0,3}$")

MEND = {
    "invalid_payload": "Slack could not read the message: this is a fault of wikikeeper",
    "invalid_token": "the webhook is not valid any more: make a new one",
    "no_service": "the webhook was removed or switched off: make a new one",
    "no_team": "the workspace is gone: make a webhook in another one",
    "team_disabled": "the workspace is not active any more",
    "no_text": "Slack saw no text: this is a fault of wikikeeper",
    "user_not_found": "the webhook's user is gone: make a new webhook",
    "channel_not_found": "the webhook's channel is gone: make a webhook for another one",
    "channel_is_archived": "the webhook's channel is archived: unarchive it, or make a webhook for another one",
    "action_prohibited": "an administrator of the workspace forbids it",
    "posting_to_general_channel_denied": "the workspace lets not everybody post there: make a webhook for another channel",
    "too_many_attachments": "Slack refused the message: this is a fault of wikikeeper",
}
"""What Slack says when nothing will be delivered until somebody does something about it."""


class _Without(logging.Filter):
    """Keeps lines that name an address out of a log."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    def filter(self, record: logging.LogRecord) -> bool:
        return self._address not in record.getMessage()


class SlackMessenger:
    """Implements the Messenger port. Any number of threads may use one at once."""

    def __init__(self, webhook_url: SecretStr, *, seconds: float = SECONDS) -> None:
        self._url = webhook_url
        self._client = httpx.Client(timeout=seconds, trust_env=False, follow_redirects=False)
        self._filter = _Without(str(httpx.URL(webhook_url.get_secret_value())))
        HTTPX_LOG.addFilter(self._filter)

    def send(self, text: str) -> None:
        """As the port says. Raises ValueError for a text without a visible character, which Slack does not take."""
        if not text.strip():
            raise ValueError("an empty message")
        try:
            answer = self._client.post(self._url.get_secret_value(), json={"text": escaped(text)})
        except httpx.TimeoutException:
            raise NotDelivered("deadline", detail="Slack did not answer in time") from None
        except httpx.HTTPError as error:  # never with its cause: it holds the request, and that the address
            raise NotDelivered("connect", detail=type(error).__name__) from None
        if answer.status_code == httpx.codes.OK:
            return
        raise _refused(answer)

    def close(self) -> None:
        self._client.close()
        HTTPX_LOG.removeFilter(self._filter)


def escaped(text: str) -> str:
    """The text as Slack shows it unchanged: no mention, no link and no markup of Slack's own comes out of it by `<`."""
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair has no form in JSON that Slack reads
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if len(safe) <= MOST_CHARACTERS:
        return safe
    return _PART_OF_ENTITY.sub("", safe[: MOST_CHARACTERS - len(CUT)]) + CUT


def _refused(answer: httpx.Response) -> NotDelivered | Unusable:
    status = answer.status_code
    if status in (408, 425, 429) or status >= 500:
        return NotDelivered(f"http_{status}", retry_after(answer.headers.get("retry-after"), datetime.now(UTC)))
    said = answer.text[:MOST_OF_ANSWER].strip()
    if said in MEND:
        return Unusable(f"slack.webhook_url: {MEND[said]} ({said})")
    return Unusable(f"slack.webhook_url: Slack answered HTTP {status}: is it the address of an incoming webhook?")
