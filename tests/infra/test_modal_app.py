"""The Modal app as it is imported, without an account."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import modal
import pytest

from infra import modal_app
from wikikeeper.models import Command
from wikikeeper.settings import Settings, markdown_table
from wikikeeper.workflows.schedule_cycle import WAKE_AGAIN

ROOT = Path(__file__).parents[2]
FUNCTIONS = ("tick", "reap_stale", "schedule_cycle", "judge_result", "write_note")


def info(name: str) -> modal.types.FunctionInfo:
    function = getattr(modal_app, name)
    assert isinstance(function, modal.Function)
    return function.info()


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What Modal is told of the GPU server and does not show again: of how many containers there are, and of its port."""
    shows = """
import json, sys; sys.path[:0] = ['shared', '.']
import modal
told, function, web_server = {}, modal.App.function, modal.web_server
def noting_function(self, **options):
    if 'gpu' in options:
        told.update({name: value for name, value in options.items() if isinstance(value, int)}, env=options.get('env'))
    return function(self, **options)
def noting_web_server(port, **options):
    told['web_server'] = {'port': port, **options}
    return web_server(port, **options)
modal.App.function, modal.web_server = noting_function, noting_web_server
from infra import modal_app
print(json.dumps(told))
"""
    surroundings = {"PATH": "/usr/bin", "HOME": "/nonexistent", "WIKIKEEPER_MODEL__WAKE_TIMEOUT": "700.5"}
    done = subprocess.run(
        [sys.executable, "-c", shows], cwd=ROOT, env=surroundings, capture_output=True, text=True, check=True
    )
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


class TestTheGpuServer:
    def test_is_one_container_on_one_gpu_that_goes_away_when_idle(self, told: dict[str, Any]) -> None:
        assert info("llama_server").gpus == [(modal_app.GPU, 1)]
        assert (told["min_containers"], told["max_containers"]) == (0, 1)

    def test_stays_from_being_woken_until_the_cycle_looks_again(self, told: dict[str, Any]) -> None:
        assert WAKE_AGAIN.total_seconds() < told["scaledown_window"] <= 600

    def test_is_waited_for_at_its_port_as_long_as_a_cycle_waits_and_shown_to_nobody_else(
        self, told: dict[str, Any]
    ) -> None:
        assert told["web_server"] == {"port": modal_app.PORT, "startup_timeout": 701, "requires_proxy_auth": True}
        assert told["startup_timeout"] == 701

    def test_is_told_the_gates_limit_which_its_slots_follow_from(self, told: dict[str, Any]) -> None:
        assert told["env"] == {"WIKIKEEPER_GATE__LIMIT": str(Settings().gate.limit)}

    def test_turns_strangers_away_before_a_gpu_starts(self) -> None:
        web = info("llama_server").web_info

        assert web is not None
        assert web.unauthenticated is False

    def test_takes_the_gates_calls_and_one_look_at_its_state(self) -> None:
        concurrency = info("llama_server").concurrency_info

        assert concurrency is not None
        assert concurrency.max_inputs == Settings().gate.limit + 1

    def test_has_as_long_to_start_as_a_cycle_waits_for_it(self) -> None:
        assert info("llama_server").startup_timeout == Settings().model.wake_timeout

    def test_is_not_ended_by_modal_before_the_client_gives_up(self) -> None:
        assert info("llama_server").timeout >= Settings().keeper.timeout

    def test_reads_the_weights_and_cannot_change_them(self) -> None:
        assert info("llama_server").volumes["/weights"].read_only
        assert not info("fetch_weights").volumes["/weights"].read_only

    def test_gets_its_key_from_a_secret_and_no_secret_of_ours(self) -> None:
        secrets = " ".join(info("llama_server").secrets)

        assert "'wikikeeper-model'" in secrets
        assert "aws" not in secrets.lower()

    def test_image_and_packages_are_pinned(self) -> None:
        assert re.search(r"@sha256:[0-9a-f]{64}$", modal_app.LLAMA_IMAGE)
        locked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
        assert all(f"{pin} " in locked for pin in modal_app.SETTINGS_PINS)
        assert re.fullmatch(r"huggingface-hub==[\d.]+", modal_app.HUB_PIN)

    def test_is_imported_with_what_its_image_has(self) -> None:
        """The image of the GPU server has pydantic and our sources, but neither boto3 nor httpx nor extractors."""
        loads = (
            "import sys; sys.path[:0] = ['shared', '.']; "
            "from infra import modal_command, modal_due; import wikikeeper.settings; "
            "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
        )
        loaded = subprocess.run(
            [sys.executable, "-I", "-c", loads], cwd=ROOT, capture_output=True, text=True, check=True
        )

        ours = {"infra", "wikikeeper", "__main__"}
        brought = {"pydantic", "pydantic_core", "pydantic_settings", "annotated_types", "typing_extensions", "dotenv"}
        known = ours | brought | {"typing_inspection"}
        assert {name for name in loaded.stdout.split() if not name.startswith(("_", "sitecustomize"))} <= known


class TestTheFunctions:
    def test_are_an_app_of_their_own_so_that_a_gpu_server_alone_ticks_nothing(self) -> None:
        assert modal_app.app.name != modal_app.functions.name
        assert info("llama_server").schedule is None

    def test_tick_each_minute_and_reap_by_schedule(self) -> None:
        assert "* * * * *" in str(info("tick").schedule)
        assert f"*/{modal_app.REAP_EVERY} * * * *" in str(info("reap_stale").schedule)
        assert [name for name in FUNCTIONS if info(name).schedule is None] == [
            "schedule_cycle",
            "judge_result",
            "write_note",
        ]

    def test_a_judge_may_work_as_long_as_its_claim_holds(self) -> None:
        assert info("judge_result").timeout >= Settings().judge_lease.total_seconds()

    def test_judges_share_one_container_with_as_many_threads_as_on_one_machine(self) -> None:
        concurrency = info("judge_result").concurrency_info

        assert concurrency is not None
        assert concurrency.max_inputs == Settings().gate.limit + Settings().host.pages_ahead

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_get_the_settings_the_key_and_the_account_of_the_stores(self, name: str) -> None:
        settings, key, account = info(name).secrets

        assert "from_dict" in settings
        assert "'wikikeeper-model'" in key
        assert "'wikikeeper-aws'" in account

    def test_handle_every_kind_of_command(self) -> None:
        kinds = {kind.model_fields["kind"].default for kind in get_args(get_args(Command)[0])}

        assert set(modal_app.FUNCTION_OF) == kinds

    def test_have_the_packages_that_they_have_on_lambda(self) -> None:
        locked = {path.stem for path in (ROOT / "infra" / "requirements").glob("*.txt")}

        assert {"schedule-cycle", "judge-result", "write-note", "reap-stale", "web"} <= locked

    def test_every_setting_can_reach_them(self) -> None:
        assert list(modal_app.SETTING_NAMES) == re.findall(r"`(WIKIKEEPER_\w+)`", markdown_table())


def test_in_a_container_the_app_finds_its_models_although_the_repository_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    shutil.copy(ROOT / "infra" / "modal_app.py", tmp_path)
    for name in ("modal_command.py", "modal_due.py", "models.ini"):
        shutil.copy(ROOT / "infra" / name, tmp_path / "infra")
    (tmp_path / "wikikeeper").symlink_to(ROOT / "shared" / "wikikeeper")

    shown = subprocess.run(
        [sys.executable, "-c", "import modal_app; print(*(model.name for model in modal_app.shipped_models()))"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin", "PYTHONPATH": str(tmp_path), "WIKIKEEPER_GATE__LIMIT": "3"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert shown.stdout.split() == ["decider", "author", "reviewer", "embedder"]


def test_what_lies_beside_the_app_is_not_shipped() -> None:
    shipped = {path.name for path in (ROOT / "infra").iterdir() if path.is_file() and not modal_app.not_shipped(path)}

    assert "models.ini" in shipped
    assert {Path(name).suffix for name in shipped} == {".py", ".ini"}
    assert modal_app.not_shipped(Path("infra/settings.env"))  # filled in, it holds every secret


class TestTheDeployingEnvironment:
    def test_says_what_the_functions_are_told_and_how_many_calls_the_server_takes(self) -> None:
        shown = imported({"WIKIKEEPER_GATE__LIMIT": "5", "WIKIKEEPER_LLAMA__MODEL": ""})

        assert shown == [
            "Secret.from_dict([WIKIKEEPER_GATE__LIMIT])",
            "modal.Secret.from_name('wikikeeper-model')",
            "6",
        ]

    def test_may_hold_the_key_and_then_no_secret_has_to_be_made_by_hand(self) -> None:
        shown = imported({"WIKIKEEPER_LLAMA__API_KEY": "sk-canary"})

        assert shown == ["Secret.from_dict([WIKIKEEPER_LLAMA__API_KEY])"] * 2 + ["3"]

    def test_that_cannot_be_used_deploys_nothing(self) -> None:
        with pytest.raises(subprocess.CalledProcessError) as failed:
            imported({"WIKIKEEPER_GATE__LIMIT": "many"})

        assert "gate.limit" in failed.value.stderr


class TestThePages:
    def test_are_not_there_without_a_token(self) -> None:
        assert imported({}, shown="hasattr(m, 'web')") == ["False"]

    def test_are_at_an_address_that_everybody_reaches_and_in_one_container_at_most(self) -> None:
        """Modal's proxy asks nobody: browsers and senders of hooks have no token of it."""
        web = "m.web.info().web_info.unauthenticated, m.web.info().concurrency_info.max_inputs"

        shown = imported({"WIKIKEEPER_WEB__TOKEN": "0123456789abcdef"}, shown=web)

        assert shown == ["True", str(modal_app.READERS)]

    def test_are_shipped_with_what_they_are_made_of(self) -> None:
        web = ROOT / "shared" / "wikikeeper" / "web"
        made_of = [path for path in web.rglob("*") if path.is_file() and "__pycache__" not in path.parts]

        assert [path.name for path in made_of if modal_app.not_shipped(path)] == []
        assert {path.suffix for path in made_of} == modal_app.SHIPPED


def imported(
    environment: dict[str, str],
    shown: str = "*m.judge_result.info().secrets[:2], m.llama_server.info().concurrency_info.max_inputs",
) -> list[str]:
    """What is shown where the app is imported in this environment: the Secrets of settings and key, and the calls at once."""
    shows = f"import sys; sys.path[:0] = ['shared', '.']; from infra import modal_app as m; print({shown}, sep='\\n')"
    # HOME: Modal looks there for an account, which must not be needed.
    surroundings = {"PATH": "/usr/bin", "HOME": "/nonexistent", **environment}
    done = subprocess.run(
        [sys.executable, "-c", shows], cwd=ROOT, env=surroundings, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()
