"""All settings together. Environment `WIKIKEEPER_<GROUP>__<NAME>` over `wikikeeper.toml` beside the wiki.

The groups are in `setting_groups`; the README's table is made from here.
"""

import os
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from wikikeeper.errors import Unusable
from wikikeeper.setting_groups import (
    Aws,
    Extraction,
    Fetch,
    GateSettings,
    Hooks,
    Host,
    KeeperSettings,
    Llama,
    Model,
    Reaper,
    Research,
    Searxng,
    Slack,
    Web,
)

__all__ = [
    "CONFIG_FILE",
    "NESTED",
    "PREFIX",
    "Aws",
    "Extraction",
    "Fetch",
    "GateSettings",
    "Hooks",
    "KeeperSettings",
    "Llama",
    "Research",
    "Settings",
    "Web",
    "load",
    "markdown_table",
]

CONFIG_FILE = "wikikeeper.toml"
PREFIX, NESTED = "WIKIKEEPER_", "__"


class Settings(BaseSettings):
    """All settings. Frozen; read once by the composition root."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter=NESTED,
        env_ignore_empty=True,  # as shells and deploy workflows mean it: a variable that is empty is not set
        frozen=True,
        extra="forbid",
    )
    llama: Llama = Llama()
    keeper: KeeperSettings = KeeperSettings()
    research: Research = Research()
    fetch: Fetch = Fetch()
    extraction: Extraction = Extraction()
    searxng: Searxng = Searxng()
    gate: GateSettings = GateSettings()
    reaper: Reaper = Reaper()
    model: Model = Model()
    host: Host = Host()
    hooks: Hooks = Hooks()
    slack: Slack = Slack()
    web: Web = Web()
    aws: Aws = Aws()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def keeper_base_url(self) -> str | None:
        """Where the Keeper asks; None: the bundled judge."""
        url = self.keeper.base_url or self.llama.base_url
        return None if url is None else str(url)

    @property
    def keeper_model(self) -> str:
        return self.keeper.model or self.llama.model

    @property
    def keeper_api_key(self) -> SecretStr | None:
        """The Keeper's key; the shared server's key only where the Keeper asks the shared server.

        The bundled judge gets none: no key was given for it.
        """
        if self.keeper_base_url is None:
            return None
        return self.keeper.api_key or (self.llama.api_key if self.keeper.base_url is None else None)

    @property
    def keeper_proxy(self) -> tuple[SecretStr, SecretStr] | None:
        """The shared server's proxy token, key and secret, only where the Keeper asks the shared server."""
        llama = self.llama
        if self.keeper.base_url is not None or llama.base_url is None:
            return None
        return (llama.proxy_key, llama.proxy_secret) if llama.proxy_key and llama.proxy_secret else None

    @property
    def judge_lease(self) -> timedelta:
        """fetch deadline + 2 x extraction limit + longest gate wait + call deadline, and a tenth for our own work."""
        longest = self.fetch.deadline + 2 * self.extraction.seconds + self.gate.patience + self.keeper.timeout
        return timedelta(seconds=longest * 1.1)

    @property
    def silence_after(self) -> timedelta:
        """How long nothing may be heard of a draining cycle: a model that wakes, then a whole result."""
        return timedelta(seconds=self.model.wake_timeout) + self.judge_lease

    @property
    def permit_lease(self) -> timedelta:
        """Longer than a call can take, so that a permit never ends under a call that keeps to its deadline."""
        return timedelta(seconds=self.keeper.timeout * 1.1 + 1)


def load(wiki: Path) -> Settings:
    """The settings for a wiki: environment over `wikikeeper.toml` beside it, in the wiki's folder.

    Raises Unusable, naming each setting that is wrong, where it can be set and what is wrong with it.
    """
    file = wiki / CONFIG_FILE

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=file)

    # Never with its cause: what pydantic and json raise holds the values, and a value may be a key.
    try:
        settings = FromFile()
    except ValidationError as error:
        wrong = [
            f"{_named(fault['loc'])}: {_said(fault['type'], fault['msg'])}"
            for fault in error.errors(include_input=False)
        ]
        raise Unusable(f"settings ({_SOURCES}): {'; '.join([*wrong, *_unknown_variables()])}") from None
    except SettingsError:
        raise Unusable(
            f"settings: {PREFIX}<GROUP> as a whole must be a JSON object; better set {PREFIX}<GROUP>{NESTED}<NAME>"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise Unusable(f"{file}: not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise Unusable(f"{file}: not valid TOML: it is not in UTF-8") from None
    except OSError as error:
        raise Unusable(f"{file}: cannot be read: {error.strerror}") from None
    if unknown := list(_unknown_variables()):
        raise Unusable(f"settings ({_SOURCES}): {'; '.join(unknown)}")
    return settings


_SOURCES = f"{CONFIG_FILE} or {PREFIX}…"


def _named(path: tuple[int | str, ...]) -> str:
    return ".".join(map(str, path))


def _said(fault: str, message: str) -> str:
    return "there is no such setting" if fault == "extra_forbidden" else message


def _unknown_variables() -> Iterator[str]:
    """Variables that look like settings of a group that does not exist, which pydantic passes over without a word."""
    for variable in sorted(os.environ):
        group, nested, _ = variable.upper().removeprefix(PREFIX).partition(NESTED)
        if variable.upper().startswith(PREFIX) and nested and group.lower() not in Settings.model_fields:
            yield f"{variable}: there is no such setting"


def markdown_table() -> str:
    """Every setting with its environment variable, default and reason, as the README shows it."""
    lines = ["| setting | environment | default | what it is |", "|---|---|---|---|"]
    for group, field in Settings.model_fields.items():
        model = type(field.default)
        for name, setting in model.model_fields.items():
            default = getattr(field.default, name)
            shown = "none" if default is None else "none" if default == () else str(default)
            about = " ".join((setting.description or "").split())
            variable = f"WIKIKEEPER_{group}__{name}".upper()
            lines.append(f"| `{group}.{name}` | `{variable}` | {shown} | {about} |")
    return "\n".join(lines) + "\n"
