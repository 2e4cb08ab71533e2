"""Settings: where they come from, what is refused, what is never shown, what is derived."""

import os
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from wikikeeper.errors import Unusable
from wikikeeper.setting_groups import DAY, Extraction, Fetch, GateSettings, Group, KeeperSettings, Llama, Searxng
from wikikeeper.settings import CONFIG_FILE, Settings, load, markdown_table

CANARY = "canary-0123456789"
SERVER, OTHER = "http://models.example:8080", "http://keeper.example:8080"


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("WIKIKEEPER_")]:
        monkeypatch.delenv(name)


def written(folder: Path, toml: str | bytes) -> Path:
    (folder / CONFIG_FILE).write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    return folder


def refused(folder: Path) -> str:
    """The message of the refusal, which is one line."""
    with pytest.raises(Unusable) as caught:
        load(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def groups() -> dict[str, type[Group]]:
    return {name: type(field.default) for name, field in Settings.model_fields.items()}


# -- where they come from


def test_without_a_file_and_variables_everything_has_its_default(tmp_path: Path) -> None:
    assert load(tmp_path).model_dump() == Settings().model_dump()


def test_the_environment_wins_over_the_file_setting_by_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "[research]\nkeep_threshold = 0.7\ncycle_cap = 9\n[fetch]\nallow_origins = ['nas.lan:8080']\n")
    monkeypatch.setenv("WIKIKEEPER_RESEARCH__KEEP_THRESHOLD", "0.8")
    monkeypatch.setenv("WIKIKEEPER_FETCH__DEADLINE", "3")

    settings = load(tmp_path)

    assert (settings.research.keep_threshold, settings.research.cycle_cap) == (0.8, 9)
    assert (settings.fetch.deadline, settings.fetch.allow_origins) == (3, ("nas.lan:8080",))


@pytest.mark.parametrize("value", ["NAS.lan:8080, [fd00::1]:80,", '["nas.lan:8080", "[fd00::1]:80"]'])
def test_a_list_stands_in_a_variable_apart_by_commas_or_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("WIKIKEEPER_FETCH__ALLOW_ORIGINS", value)

    assert load(tmp_path).fetch.allow_origins == ("nas.lan:8080", "[fd00::1]:80")


@pytest.mark.parametrize("name", ["RESEARCH__KEEP_THRESHOLD", "LLAMA__MODEL", "LLAMA__BASE_URL", "LLAMA__API_KEY"])
def test_an_empty_variable_is_one_that_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"WIKIKEEPER_{name}", "")

    assert load(tmp_path).model_dump() == Settings().model_dump()


def test_every_setting_can_be_set_by_the_variable_that_the_readme_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [line.split("|") for line in markdown_table().splitlines()[2:]]
    secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
    values = {"url": "http://x.example/", "model": "m", "api_key": "k", "origins": "a:1", "agent": "a", "days": "7"}
    values |= {"_secret": secret}
    for _, setting, variable, default, _, _ in rows:
        value = next((v for ending, v in values.items() if setting.strip(" `").endswith(ending)), default.strip())
        monkeypatch.setenv(variable.strip(" `"), value)

    changed = load(tmp_path)

    for name, group in groups().items():
        assert getattr(changed, name).model_fields_set == set(group.model_fields)


def test_settings_cannot_be_changed_after_they_were_read() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().research.keep_threshold = 0.1  # type: ignore[misc]


# -- what is refused


def test_everything_that_is_wrong_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "[research]\nkeep_threshold = 'much'\nquote_max_chars = 1\nkeep = 1\n[reserch]\ncycle_cap = 1\n")
    monkeypatch.setenv("WIKIKEEPER_GATE__LIMIT", "0")
    monkeypatch.setenv("WIKIKEEPER_KEEPERS__MODEL", "m")

    message = refused(tmp_path)

    for name in ("research.keep_threshold", "research.quote_max_chars", "research.keep:", "reserch", "gate.limit"):
        assert name in message
    assert "WIKIKEEPER_KEEPERS__MODEL: there is no such setting" in message


def test_a_variable_of_a_group_that_does_not_exist_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("wikikeeper_reserch__keep_threshold", "0.9")

    assert "reserch__keep_threshold" in refused(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RESEARCH__KEEP_THRESHOLD", "1.1"),
        ("RESEARCH__KEEP_THRESHOLD", "nan"),
        ("RESEARCH__INJECTION_THRESHOLD", "-0.1"),
        ("RESEARCH__MAX_ATTEMPTS", "0"),
        ("RESEARCH__MAX_ATTEMPTS", "2.5"),
        ("RESEARCH__NOTE_DELAY", "inf"),
        ("RESEARCH__NOTE_DELAY", "-1"),
        ("RESEARCH__RECHECK_AFTER_DAYS", "10000000000"),
        ("KEEPER__TIMEOUT", "0"),
        ("KEEPER__TIMEOUT", "1e300"),
        ("KEEPER__TIMEOUT", "inf"),
        ("KEEPER__MAX_CHARS", "10"),
        ("GATE__LIMIT", "65"),
        ("LLAMA__BASE_URL", "models.example:8080"),
        ("LLAMA__BASE_URL", "ftp://models.example"),
        ("LLAMA__BASE_URL", "http://models.example/?key=x"),
        ("SEARXNG__URL", "search"),
        ("FETCH__ALLOW_ORIGINS", '["nas.lan:8080"'),
        ("RESEARCH", "3"),
        ("RESEARCH", "{"),
        ("RESEARCH__KEEP_THRESHOLD__X", "1"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"WIKIKEEPER_{name}", value)

    assert refused(tmp_path).startswith("settings")


@pytest.mark.parametrize(
    "origin",
    ["nas.lan", "nas.lan:", ":80", "nas.lan:0", "nas.lan:65536", "nas.lan:8²", "*.lan:80", "http://nas.lan:80",
     "nas.lan:80/x", "me@nas.lan:80", "fd00::1:80", "nas.lan:" + "9" * 5000],
)  # fmt: skip
def test_an_origin_that_is_not_exact_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str) -> None:
    monkeypatch.setenv("WIKIKEEPER_FETCH__ALLOW_ORIGINS", f"nas.lan:8080,{origin}")

    assert "fetch.allow_origins" in (message := refused(tmp_path))
    assert "2. entry" in message


@pytest.mark.parametrize("toml", [b"[llama\n", b"model = \n", b"[llama]\nmodel = '\xff'\n", b"[llama]\n[llama]\n"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, toml: bytes) -> None:
    assert CONFIG_FILE in refused(written(tmp_path, toml))


def test_an_empty_model_name_is_refused(tmp_path: Path) -> None:
    assert "llama.model" in refused(written(tmp_path, "[llama]\nmodel = ''\n"))


# -- secrets

SECRETS = [
    f'[llama]\nbase_url = "{SERVER}"\napi_key = "{CANARY}"\n[keeper]\napi_key = "{CANARY}"\n',
    f'[searxng]\nurl = "http://me:{CANARY}@search.example/"\n',
]


@pytest.mark.parametrize("toml", SECRETS)
def test_no_secret_is_in_what_settings_print(tmp_path: Path, toml: str) -> None:
    settings = load(written(tmp_path, toml))

    shown = [repr(settings), str(settings), f"{settings.llama!r}", f"{settings.searxng}", str(settings.keeper_api_key)]
    assert not any(CANARY in text for text in shown)


@pytest.mark.parametrize(
    "toml",
    [
        f'[llama]\napi_key = ["{CANARY}"]\n',
        f'[llama]\napi_keys = "{CANARY}"\n',
        f'[llama]\nbase_url = "http://me:{CANARY}@models.example/"\n',
        f'[keeper]\nbase_url = "{SERVER}/?key={CANARY}"\n',
        f'[searxng]\nurl = "nothttp://me:{CANARY}@search.example/"\n',
        f'[fetch]\nallow_origins = ["me:{CANARY}@nas.lan:80"]\n',
        f'[llama]\napi_key = "{CANARY}\n',
        f"[llama]\napi_key = {CANARY}\n",
        *[f"{toml}[gate]\nlimit = 0\n" for toml in SECRETS],
    ],
)
def test_no_secret_is_in_what_is_said_of_a_fault(tmp_path: Path, toml: str) -> None:
    with pytest.raises(Unusable) as caught:
        load(written(tmp_path, toml))

    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_no_secret_is_in_what_is_said_of_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKIKEEPER_LLAMA", f'{{"api_key": "{CANARY}"')

    assert CANARY not in refused(tmp_path)


def test_the_keepers_own_key_goes_to_the_keepers_server() -> None:
    settings = Settings(
        llama=Llama(base_url=SERVER, api_key="shared"), keeper=KeeperSettings(base_url=OTHER, api_key="own")
    )

    assert (settings.keeper_base_url, _key(settings)) == (f"{OTHER}/", "own")


def test_a_shared_key_goes_to_the_shared_server_only() -> None:
    llama = Llama(base_url=SERVER, api_key="shared")

    assert _key(Settings(llama=llama)) == "shared"
    assert _key(Settings(llama=llama, keeper=KeeperSettings(base_url=OTHER))) is None
    assert _key(Settings(llama=llama, keeper=KeeperSettings(api_key="own"))) == "own"


def test_the_bundled_judge_gets_no_key() -> None:
    settings = Settings(llama=Llama(api_key="shared"), keeper=KeeperSettings(api_key="own"))

    assert (settings.keeper_base_url, _key(settings)) == (None, None)


def _key(settings: Settings) -> str | None:
    key = settings.keeper_api_key
    return None if key is None else key.get_secret_value()


def test_the_keepers_model_is_its_own_or_the_shared_one() -> None:
    assert Settings(llama=Llama(model="a")).keeper_model == "a"
    assert Settings(llama=Llama(model="a"), keeper=KeeperSettings(model="b")).keeper_model == "b"


# -- leases

LENGTH = st.floats(min_value=0, max_value=DAY, exclude_min=True)


@given(fetch=LENGTH, extraction=LENGTH, patience=LENGTH.filter(lambda seconds: seconds / 2 > 0), call=LENGTH)
def test_leases_outlast_what_they_cover(fetch: float, extraction: float, patience: float, call: float) -> None:
    settings = Settings(
        fetch=Fetch(deadline=fetch),
        extraction=Extraction(seconds=extraction),
        gate=GateSettings(patience=patience, max_wait=patience / 2),
        keeper=KeeperSettings(timeout=call),
    )

    assert settings.judge_lease >= timedelta(seconds=fetch + 2 * extraction + patience + call)
    assert settings.permit_lease > timedelta(seconds=call)


# -- the table


@pytest.mark.parametrize(("name", "group"), groups().items())
def test_every_setting_says_what_it_is_and_has_a_default(name: str, group: type[Group]) -> None:
    for setting, field in group.model_fields.items():
        assert field.description, f"{name}.{setting} has no description"
        assert not field.is_required()
        assert "|" not in field.description
        assert f"| `{name}.{setting}` | `WIKIKEEPER_{name.upper()}__{setting.upper()}` |" in markdown_table()


def test_whatever_is_called_a_key_is_kept_secret() -> None:
    for group in groups().values():
        for setting, field in group.model_fields.items():
            if any(word in setting for word in ("key", "secret", "token", "password")):
                assert SecretStr in get_args(field.annotation), setting


def test_a_search_engine_behind_a_password_is_allowed() -> None:
    assert str(Searxng(url=f"http://me:{CANARY}@search.example/").url).startswith("http://me:")


@pytest.mark.parametrize(("patience", "max_wait"), [(60, 60), (30, 60)])
def test_who_waits_longest_is_let_in_before_it_gives_up(tmp_path: Path, patience: int, max_wait: int) -> None:
    written(tmp_path, f"[gate]\npatience = {patience}\nmax_wait = {max_wait}\n")

    with pytest.raises(Unusable, match=rf"max_wait \({max_wait}\) must be below patience \({patience}\)"):
        load(tmp_path)
