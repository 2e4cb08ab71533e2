"""The token of a proxy before the model server: whole or not at all, and never for another server."""

from pathlib import Path

import pytest

from wikikeeper.errors import Unusable
from wikikeeper.settings import Settings, load

TOKEN = {"proxy_key": "wk-canary", "proxy_secret": "ws-canary"}


def settings(**groups: dict[str, str]) -> Settings:
    return Settings.model_validate(groups)


def test_goes_to_the_shared_server() -> None:
    found = settings(llama={"base_url": "https://model.test", **TOKEN}).keeper_proxy

    assert found is not None
    assert [part.get_secret_value() for part in found] == ["wk-canary", "ws-canary"]


@pytest.mark.parametrize(
    "groups",
    [
        {"llama": {"base_url": "https://model.test", **TOKEN}, "keeper": {"base_url": "https://other.test"}},
        {"llama": TOKEN},
        {"llama": {"base_url": "https://model.test"}},
    ],
    ids=["the Keeper asks another server", "the bundled judge is asked", "there is none"],
)
def test_goes_nowhere_else(groups: dict[str, dict[str, str]]) -> None:
    assert settings(**groups).keeper_proxy is None


@pytest.mark.parametrize("half", TOKEN)
def test_half_of_it_is_refused_and_not_shown(half: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"WIKIKEEPER_LLAMA__{half.upper()}", TOKEN[half])

    with pytest.raises(Unusable, match="proxy_key and proxy_secret belong together") as refused:
        load(tmp_path)

    assert "canary" not in str(refused.value)
