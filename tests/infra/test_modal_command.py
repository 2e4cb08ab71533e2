import hashlib
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from infra.modal_command import BadModels, Model, Weights, WrongFile

from infra import modal_command
from wikikeeper.models import Topic
from wikikeeper.policy import questions
from wikikeeper.settings import Settings

SHIPPED = modal_command.read_models(Path(modal_command.__file__).with_name("models.ini").read_text(encoding="utf-8"))
REVISION, DIGEST = "0" * 40, "a" * 64


def section(name: str = "decider", **keys: str) -> str:
    """A section that is in order but for `keys`; an underscore stands for a dash."""
    whole = {
        "kind": "openjev",
        "slot-tokens": "4096",
        "model": f"/weights/owner/repository/{REVISION}/file.gguf",
        "sha256": DIGEST,
    } | {key.replace("_", "-"): value for key, value in keys.items()}
    return "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in whole.items() if value)])


def rendered(text: str, gate_limit: int) -> ConfigParser:
    return parsed(modal_command.preset(modal_command.read_models(text), gate_limit))


def parsed(preset: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read_string(preset.removeprefix("version = 1\n"))
    return parser


class TestTheShippedModels:
    def test_have_a_decision_model_an_author_a_reviewer_and_an_embedder(self) -> None:
        assert {model.name: model.kind in modal_command.DECISION_KINDS for model in SHIPPED} == {
            "decider": True,
            "author": False,
            "reviewer": False,
            "embedder": False,
        }

    def test_author_and_reviewer_come_from_different_families(self) -> None:
        by_name = {model.name: model.weights.file.lower() for model in SHIPPED}

        assert by_name["author"].startswith("gpt-oss")
        assert by_name["reviewer"].startswith("qwen3")

    def test_answer_to_the_name_that_is_asked_for_by_default(self) -> None:
        names = {model.name for model in SHIPPED}

        assert Settings().llama.model in names

    def test_only_the_decision_model_is_loaded_before_it_is_asked(self) -> None:
        loaded = {model.name for model in SHIPPED if model.arguments.get("load-on-startup") == "true"}

        assert loaded == {"decider"}

    def test_a_slot_holds_the_page_that_is_judged_in_any_script(self) -> None:
        decider = next(model for model in SHIPPED if model.kind in modal_command.DECISION_KINDS)

        # One token a character at worst, and the questions besides.
        assert decider.slot_tokens >= Settings().keeper.max_chars


def test_the_number_of_questions_is_the_keepers() -> None:
    topic = Topic(slug="t", title="t", brief="b", language="en")

    assert len(questions.questions(topic, ["a passage"])) == modal_command.QUESTIONS


class TestThePreset:
    @pytest.mark.parametrize("kind", ["openjev", "lev", "nimble", "kev"])
    def test_gives_every_question_of_every_call_a_slot(self, kind: str) -> None:
        preset = rendered(section(kind=kind), 2)

        assert preset["decider"]["parallel"] == "8"
        assert preset["decider"]["ctx-size"] == str(8 * 4096)

    @pytest.mark.parametrize("kind", ["laya", "clef"])
    def test_gives_an_encoder_a_slot_for_each_call_and_a_batch_as_large_as_its_context(self, kind: str) -> None:
        preset = rendered(section(kind=kind), 2)

        assert preset["decider"]["parallel"] == "2"
        assert preset["decider"]["ctx-size"] == str(2 * 4096)
        assert preset["decider"]["ubatch-size"] == preset["decider"]["batch-size"] == "4096"

    def test_lets_kev_read_question_and_options_in_one_batch(self) -> None:
        assert rendered(section(kind="kev"), 1)["decider"]["ubatch-size"] == "4096"

    def test_leaves_the_batch_of_a_causal_model_to_the_server(self) -> None:
        assert "ubatch-size" not in rendered(section(kind="lev"), 1)["decider"]

    @pytest.mark.parametrize("kind", sorted(modal_command.DECISION_KINDS - {"openjev", "lev", "nimble"}))
    def test_gives_every_decision_type_that_is_not_causal_a_batch_as_large_as_a_slot(self, kind: str) -> None:
        lines = rendered(section(kind=kind), 2)["decider"]

        assert lines["ubatch-size"] == lines["batch-size"] == str(int(lines["ctx-size"]) // int(lines["parallel"]))

    def test_turns_an_embedding_model_into_one(self) -> None:
        preset = rendered(section("embedder", kind="embedding"), 3)

        assert preset["embedder"]["embeddings"] == "true"
        assert preset["embedder"]["parallel"] == "3"
        assert preset["embedder"]["ubatch-size"] == "4096"

    def test_holds_no_key_of_ours(self) -> None:
        preset = parsed(modal_command.preset(SHIPPED, 2))

        assert {key for name in preset.sections() for key in preset[name]}.isdisjoint({"kind", "slot-tokens", "sha256"})

    def test_passes_on_what_is_llama_servers_and_lets_a_model_overrule_what_is_shared(self) -> None:
        text = "[*]\nfit = off\nload-mode = none\n" + section(load_mode="mmap")

        assert rendered(text, 1)["decider"]["load-mode"] == "mmap"
        assert rendered(text, 1)["decider"]["fit"] == "off"

    def test_can_name_another_folder(self) -> None:
        preset = parsed(modal_command.preset(SHIPPED[:1], 1, root=PurePosixPath("/elsewhere")))

        assert preset["decider"]["model"].startswith("/elsewhere/ggml-org/")

    @given(st.sampled_from(SHIPPED), st.integers(1, 64))
    def test_every_slot_has_the_context_that_was_asked_for(self, model: Model, gate_limit: int) -> None:
        lines = parsed(modal_command.preset([model], gate_limit))[model.name]

        assert int(lines["ctx-size"]) == int(lines["parallel"]) * model.slot_tokens
        assert int(lines["parallel"]) >= gate_limit


class TestModelsThatCannotBeRun:
    @pytest.mark.parametrize("key", ["kind", "slot_tokens", "model", "sha256"])
    def test_one_that_lacks_a_key_is_named(self, key: str) -> None:
        with pytest.raises(BadModels, match=rf"\[decider\] lacks {key.replace('_', '-')}"):
            modal_command.read_models(section(**{key: ""}))

    @pytest.mark.parametrize(
        ("key", "value", "complaint"),
        [
            ("kind", "sorter", "none that llama-server is known to have"),
            ("slot_tokens", "0", "a number above 0"),
            ("slot_tokens", "4k", "a number above 0"),
            ("sha256", "abc", "hexadecimal"),
            ("model", f"/weights/owner/repository/{'g' * 40}/file.gguf", "a whole commit"),
            ("model", "/weights/owner/repository/main/file.gguf", "a whole commit"),
            ("model", f"/elsewhere/owner/repository/{REVISION}/file.gguf", "must be /weights/owner"),
            ("model", f"/weights/../etc/{REVISION}/file.gguf", "must be /weights/owner"),
            ("model", f"/weights/repository/{REVISION}/file.gguf", "must be /weights/owner"),
        ],
    )
    def test_one_with_a_wrong_value_is_named(self, key: str, value: str, complaint: str) -> None:
        with pytest.raises(BadModels, match=complaint):
            modal_command.read_models(section(**{key: value}))

    @pytest.mark.parametrize("text", ["kind = lev", "[a]\n[a]", "[a]\nkind = lev\nkind = clef"])
    def test_a_file_that_is_not_in_order_is_refused(self, text: str) -> None:
        with pytest.raises(BadModels):
            modal_command.read_models(text)


class TestTheCommandLine:
    LINE = modal_command.command("/app/llama-server", "/run/models.ini", 4, host="0.0.0.0", port=8080)

    def test_starts_a_router_that_serves_only_the_preset(self) -> None:
        assert self.LINE[:3] == ["/app/llama-server", "--models-preset", "/run/models.ini"]
        assert "--offline" in self.LINE
        assert "--no-ui" in self.LINE
        assert not {"--model", "-m", "--models-dir"} & set(self.LINE)  # any of them would end router mode or add models

    def test_lets_all_models_stay_loaded(self) -> None:
        assert self.LINE[self.LINE.index("--models-max") + 1] == "4"

    def test_holds_no_setting_that_would_overrule_a_models_own(self) -> None:
        assert not {"--parallel", "--ctx-size", "--ubatch-size"} & set(self.LINE)


class TestTheEnvironment:
    def test_carries_the_key_and_nothing_that_would_change_the_server(self) -> None:
        surroundings = {"PATH": "/bin", "LLAMA_ARG_HOST": "::", "LLAMA_API_KEY": "old"}

        assert modal_command.environment(surroundings, "k") == {"PATH": "/bin", "LLAMA_API_KEY": "k"}

    @pytest.mark.parametrize("key", ["", " ", "two,keys"])
    def test_a_server_without_a_key_of_its_own_is_not_started(self, key: str) -> None:
        with pytest.raises(ValueError, match="must be one key"):
            modal_command.environment({}, key)


class Hub:
    """A hub that has one content for every file."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[Weights] = []

    def __call__(self, weights: Weights, folder: Path) -> Path:
        self.asked.append(weights)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / weights.file).write_bytes(self.content)
        return folder / weights.file


class TestFetchingWeights:
    CONTENT = b"GGUF and so on"
    DIGEST = hashlib.sha256(CONTENT).hexdigest()

    @pytest.fixture
    def models(self) -> tuple[Model, ...]:
        models = modal_command.read_models(section("a", sha256=self.DIGEST) + "\n" + section("b", sha256=self.DIGEST))
        other = replace(models[1], name="c", weights=replace(models[1].weights, repository="owner/other"))
        return (*models, other)

    def test_brings_each_file_once_to_where_the_preset_looks_for_it(
        self, models: tuple[Model, ...], tmp_path: Path
    ) -> None:
        hub = Hub(self.CONTENT)

        brought = modal_command.fetch(models, tmp_path, hub)

        assert brought == [
            f"owner/repository@{REVISION}/file.gguf",
            f"owner/other@{REVISION}/file.gguf",
        ]
        preset = parsed(modal_command.preset(models, 1, root=PurePosixPath(tmp_path)))
        assert all(Path(preset[name]["model"]).read_bytes() == self.CONTENT for name in preset.sections())

    def test_brings_nothing_twice(self, models: tuple[Model, ...], tmp_path: Path) -> None:
        modal_command.fetch(models, tmp_path, Hub(self.CONTENT))
        hub = Hub(self.CONTENT)

        assert modal_command.fetch(models, tmp_path, hub) == []
        assert hub.asked == []

    def test_does_not_keep_a_file_that_is_another(self, models: tuple[Model, ...], tmp_path: Path) -> None:
        with pytest.raises(WrongFile, match=r"owner/repository/file\.gguf"):
            modal_command.fetch(models, tmp_path, Hub(b"something else"))

        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
