"""The groups of settings: every name, default and bound, once. A default that is a judgement has its reason beside it."""

import json
import os
import re
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import NoDecode

FEWEST_CHARACTERS = 16
"""Of a secret that signs: what a person makes up is rarely longer, and then can be guessed."""
DAY = 86_400.0
"""The longest that anything may take: leases are sums of these, and a machine that waits a day for one page is stuck."""
Seconds = Annotated[float, Field(gt=0, le=DAY, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]


def _without_key(url: HttpUrl | None) -> HttpUrl | None:
    # Addresses are shown in messages and records; what is in a secret's own setting never is.
    if url is not None and (url.username or url.password or url.query or url.fragment):
        raise ValueError("must have no user, password, query or fragment; a key belongs into api_key")
    return url


ServerUrl = Annotated[HttpUrl | None, AfterValidator(_without_key)]


class Group(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        # For tables and examples. Each class is looked for in its source, a tenth of a cold start, and no function shows any.
        use_attribute_docstrings="AWS_LAMBDA_FUNCTION_NAME" not in os.environ,
    )


class Llama(Group):
    base_url: ServerUrl = None
    """The shared model server (llama-server, single or router; any System One server). None: the bundled judge is started."""
    model: Name = "decider"
    """The name asked for; a router loads by it, others ignore it."""
    api_key: SecretStr | None = None
    """Sent as a bearer token."""
    proxy_key: SecretStr | None = None
    """For a proxy before the shared server that turns strangers away: Modal's `Modal-Key`."""
    proxy_secret: SecretStr | None = None
    """Modal's `Modal-Secret`. Both or neither."""

    @model_validator(mode="after")
    def proxy_is_whole(self) -> "Llama":
        if (self.proxy_key is None) != (self.proxy_secret is None):
            raise ValueError("proxy_key and proxy_secret belong together")
        return self


class KeeperSettings(Group):
    base_url: ServerUrl = None
    """A server of the Keeper's own; None: `llama.base_url`."""
    model: Name | None = None
    """None: `llama.model`."""
    api_key: SecretStr | None = None
    """None: `llama.api_key`, but only towards `llama.base_url`: a key never goes to a server it was not given for."""
    connect_timeout: Seconds = 10
    """Seconds. Generous for a busy machine, short enough to notice one that is off."""
    timeout: Seconds = 120
    """Seconds for a call with its retries. A model that is loaded on first use needs most of it."""
    max_chars: int = Field(default=6000, ge=200, le=100_000)
    """Characters of page text judged, in whole paragraphs. With the options a call stays under Ollama's 64 KiB body
    limit, in Chinese too, and fits a slot of 4,096 tokens in European languages; longer ones are halved once."""


class Research(Group):
    keep_threshold: Share = 0.6
    """`useful` at or above it keeps. Above one half: a wrong keep costs a reader's time every day, a wrong discard once."""
    injection_threshold: Share = 0.5
    """`injection` at or above it discards."""
    quote_max_chars: int = Field(default=400, ge=40, le=4000)
    """Characters of one quote: about what is read at a glance."""
    max_attempts: int = Field(default=3, ge=1, le=20)
    """Failures of the page itself before it is parked (bad answers) or discarded (fetching)."""
    cycle_cap: int = Field(default=200, ge=1, le=100_000)
    """Model calls per cycle of a topic, repeats included: about an hour of the bundled judge on a slow machine."""
    recheck_after_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after which a judged URL is looked at again. None: only a newer date in a feed opens a revision."""
    results_per_query: int = Field(default=20, ge=1, le=100)
    """Search hits taken per query, of the first page: most engines give ten, SearXNG joins several."""
    note_delay: float = Field(default=30, ge=0, le=DAY)
    """Seconds from a first kept page to writing the note, to gather more."""


_ORIGIN_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[^:/\\@*?#\[\],\"']+")
"""A name or an address, IPv6 in brackets. What it leads to is the guard's to judge."""


class Fetch(Group):
    deadline: Seconds = 20
    """Seconds for one page, redirects included."""
    max_bytes: int = Field(default=5_000_000, ge=10_000, le=1_000_000_000)
    """Decoded bytes of a body; twice as many are read from the wire at most."""
    allow_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Exact `host:port` of private addresses that links in topics may name, such as "nas.lan:8080"; in the environment
    apart by commas. Never for redirects, search results or feeds' entries."""
    user_agent: str = "wikikeeper/0.1 (personal research; honours Retry-After)"
    """What servers are told."""

    @field_validator("allow_origins", mode="before")
    @classmethod
    def listed(cls, origins: object) -> object:
        if not isinstance(origins, str):
            return origins
        if origins.lstrip().startswith(
            '["'
        ):  # JSON, as pydantic takes lists elsewhere; "[" alone begins an IPv6 address
            try:
                return json.loads(origins)
            except ValueError:
                raise ValueError("neither a list in JSON nor host:port apart by commas") from None
        return tuple(origin.strip() for origin in origins.split(",") if origin.strip())

    @field_validator("allow_origins")
    @classmethod
    def exact(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for number, origin in enumerate(origins, start=1):
            host, _, port = origin.rpartition(":")
            if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 2**16) or not _ORIGIN_HOST.fullmatch(
                host
            ):
                # Not repeated: what is wrong with it may be a password before an "@".
                raise ValueError(f"the {number}. entry is not host:port, such as nas.lan:8080")
        return tuple(origin.lower() for origin in origins)


class Extraction(Group):
    seconds: Seconds = 5
    """Seconds for the text of one page; then the child process is killed and the fast extractor tries."""
    max_memory_mb: int = Field(default=512, ge=128, le=65_536)
    """Address space of the child above what it starts with, in MiB."""


class Searxng(Group):
    url: HttpUrl | None = Field(default=None, repr=False)  # may carry a password for a proxy before it
    """A SearXNG with `json` under `search.formats`. Needed only by topics with queries."""
    timeout: Seconds = 20
    """Seconds for one query; SearXNG itself waits for its engines."""


class GateSettings(Group):
    limit: int = Field(default=2, ge=1, le=64)
    """Calls at the model server at once. Two keep a server fed while the next call is being prepared."""
    patience: Seconds = 120
    """Seconds to wait for a permit with the page in hand before the result is put back, to be fetched again later. With
    two permits and eight pages ahead it is enough for calls of half a minute."""
    max_wait: Seconds = 60
    """Seconds after which the oldest waiter of a lane gets the next permit, before higher lanes, so that none starves.
    Half the patience: it is let in before it gives up, and so it has to be below it. Shorter, and lanes mean less."""
    calls_per_permit: int = Field(default=10, ge=1, le=1000)
    """Calls that a process makes with a slot before it gives it back for others to have their turn: a batch of the cloud,
    for two writes. One: each call asks the store."""
    max_skew: float = Field(default=5, ge=0, le=60, allow_inf_nan=False)
    """Seconds that a machine's clock may be wrong by the table's before it refuses to take permits. Only in the cloud.
    What is less is corrected; a clock so wrong is not being set by anybody, and would get worse."""

    @model_validator(mode="after")
    def oldest_is_let_in(self) -> "GateSettings":
        if self.max_wait >= self.patience:
            raise ValueError(
                f"max_wait ({self.max_wait:g}) must be below patience ({self.patience:g}): who gives up before that is "
                "never let in past higher lanes"
            )
        return self


class Reaper(Group):
    limit: int = Field(default=3, ge=1, le=100)
    """Recoveries of work that went silent before it is given up and a person is told: a page that kills every worker
    costs one call more than this."""
    cooldown: Seconds = 21_600
    """Seconds after giving up in which the same work is neither sent again nor told again: six hours, a working day's
    half, so that one fault is one message."""


class Model(Group):
    wake_timeout: Seconds = 600
    """Seconds for a model to load before a cycle is skipped: a large model from a cold disk takes minutes."""


class Host(Group):
    pages_ahead: int = Field(default=8, ge=0, le=64)
    """Pages fetched and read while the model is busy: hides slow sites, bounds memory."""


class Web(Group):
    """The pages of `wikikeeper serve`."""

    host: Name = "127.0.0.1"
    """The address to serve on. One that other machines reach needs `web.token`, and TLS before it: browsers keep the
    sign-in over https only."""
    port: int = Field(default=8765, ge=0, le=65_535)
    """Of no well-known service. 0 takes a free one."""
    token: SecretStr | None = None
    """What a person signs in with, 16 characters or more. None: no sign-in, on a loopback address only."""
    names: Annotated[tuple[str, ...], NoDecode] = ()
    """Further `host` or `host:port` under which a proxy hands requests on, apart by commas in the environment."""

    @field_validator("names", mode="before")
    @classmethod
    def listed(cls, names: object) -> object:
        return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names


_BASE64_KEY = re.compile(
    r"(whsec_)?(?=[A-Za-z0-9+/]{32})([A-Za-z0-9+/]{4})+([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?"
)


class Hooks(Group):
    """What may start work over HTTP. A way whose secret is not set answers 404."""

    cycle_secret: SecretStr | None = None
    """Of `POST /hooks/cycle`, by Standard Webhooks: base64 of 24 bytes or more, with or without `whsec_` before it."""
    cycle_old_secret: SecretStr | None = None
    """The one before, accepted as well while senders change to the new one."""
    github_secret: SecretStr | None = None
    """Of `POST /hooks/github`: what is typed as "Secret" where the webhook is set up. At least 16 characters."""
    github_old_secret: SecretStr | None = None
    """The one before."""
    slack_secret: SecretStr | None = None
    """Of `POST /hooks/slack`: the app's "Signing Secret"."""
    slack_old_secret: SecretStr | None = None
    """The one before."""
    tolerance: Seconds = Field(default=300, le=3600)
    """Seconds that a delivery's timestamp may be away from our clock: what Slack and Standard Webhooks advise."""
    max_bytes: int = Field(default=1_000_000, ge=1000, le=5_000_000)
    """Bytes of a body. A push of a thousand commits is half of it; a function's URL takes six million at most."""
    per_minute: int = Field(default=60, ge=1, le=100_000)
    """Verified deliveries a minute that each way takes, in each process; then it answers 429."""

    @field_validator("cycle_secret", "cycle_old_secret")
    @classmethod
    def spells_a_key(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not _BASE64_KEY.fullmatch(secret.get_secret_value()):
            raise ValueError("is not base64 of 24 bytes or more: `openssl rand -base64 32` makes one")
        return secret

    @field_validator("github_secret", "github_old_secret", "slack_secret", "slack_old_secret")
    @classmethod
    def long_enough(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < FEWEST_CHARACTERS:
            raise ValueError(f"is shorter than {FEWEST_CHARACTERS} characters: `openssl rand -hex 32` makes one")
        return secret

    @model_validator(mode="after")
    def old_besides_new(self) -> "Hooks":
        for way in ("cycle", "github", "slack"):
            if getattr(self, f"{way}_old_secret") is not None and getattr(self, f"{way}_secret") is None:
                raise ValueError(f"{way}_old_secret is only for the time of a change: set {way}_secret")
        return self


class Slack(Group):
    webhook_url: SecretStr | None = Field(default=None)
    """The address of an incoming webhook, which messages for people are posted to. Whoever has it can post: a secret."""
    bot_user: Name | None = None
    """The member id of our own bot, such as "U0123ABCD": what it does itself in Slack starts nothing."""

    @field_validator("webhook_url")
    @classmethod
    def is_an_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            try:
                HttpUrl(url.get_secret_value())
            except ValidationError:
                raise ValueError("is no http(s) address") from None  # not repeated: it is a secret
        return url


class Aws(Group):
    """Only where the functions run in the cloud. Region and credentials are found as every AWS tool finds them."""

    table: Name = "wikikeeper"
    """The DynamoDB table that holds what the machine remembers, and the gate."""
    bucket: Name | None = None
    """The S3 bucket of the wiki (under `wiki/`) and of the texts of kept pages (under `pages/`)."""
    endpoint_url: HttpUrl | None = None
    """Another server that speaks DynamoDB, S3 and SQS. None: AWS."""
    schedule_queue: Name | None = None
    """Queue URL of commands for schedule-cycle."""
    judge_queue: Name | None = None
    """Queue URL of commands for judge-result."""
    note_queue: Name | None = None
    """Queue URL of commands for write-note."""
    reap_queue: Name | None = None
    """Queue URL of commands for reap-stale."""
