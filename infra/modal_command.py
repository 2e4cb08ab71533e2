"""What runs on the GPU: from models.ini to llama-server's preset, its command line and the weights to fetch.

Pure, but for `fetch`. It knows nothing of Modal, so that all of it can be tried on any machine.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

WEIGHTS = PurePosixPath("/weights")
"""Where the Volume is mounted. Below it: owner / repository / revision / file."""

QUESTIONS = 4
"""Of one call of the Keeper. Decision models answer each on a slot of its own, and all must be free at the same time."""

SHARED = "*"
"""The section of models.ini that holds for every model."""

_ONE_SLOT_PER_CALL = frozenset({"laya", "clef", "chat", "embedding"})
"""laya answers one question after the other, clef all in one prompt; the others are asked one thing at a time."""
_SLOT_PER_QUESTION = frozenset({"openjev", "lev", "nimble", "kev"})
_WHOLE_PROMPT = frozenset({"laya", "clef", "kev", "embedding"})
"""Not causal, or not for all of the prompt (kev: question and options): it must fit into one physical batch. Beyond it
laya refuses, and clef may judge by the end of the page alone without a word."""
DECISION_KINDS = frozenset({"openjev", "lev", "nimble", "kev", "laya", "clef"})
_OURS = frozenset({"kind", "slot-tokens", "sha256"})
_REVISION_DIGITS = 40
_SHA256_DIGITS = 64
_BLOCK = 1 << 20


class BadModels(ValueError):
    """models.ini says something that cannot be run; the message names the section."""


class WrongFile(Exception):
    """A downloaded file is not the one that models.ini names; it was removed."""


@dataclass(frozen=True)
class Weights:
    """One file of a repository on Hugging Face at one commit."""

    repository: str
    revision: str
    file: str
    sha256: str

    @property
    def folder(self) -> PurePosixPath:
        """Below the Volume. A new revision is a new folder, so no running server ever has its file replaced."""
        return PurePosixPath(self.repository) / self.revision


@dataclass(frozen=True)
class Model:
    """One model of the router."""

    name: str
    kind: str
    slot_tokens: int
    weights: Weights
    arguments: Mapping[str, str]
    """llama-server's own, shared ones included."""

    def slots(self, gate_limit: int) -> int:
        """As many as `gate_limit` calls at once can use."""
        return gate_limit * (QUESTIONS if self.kind in _SLOT_PER_QUESTION else 1)


def read_models(text: str) -> tuple[Model, ...]:
    """The models of a models.ini. Raises BadModels."""
    parser = _parser()
    try:
        parser.read_string(text)
    except ConfigParserError as error:
        raise BadModels(str(error)) from error
    shared = dict(parser[SHARED]) if parser.has_section(SHARED) else {}
    return tuple(_model(name, shared | dict(parser[name])) for name in parser.sections() if name != SHARED)


def preset(models: Sequence[Model], gate_limit: int, *, root: PurePosixPath = WEIGHTS) -> str:
    """The file for `--models-preset`: slots, context and batch worked out for `gate_limit` calls at once.

    `root` may be another folder with the weights, to try it on any machine: without a GPU nothing is offloaded.
    """
    parts = ["version = 1\n"]
    for model in models:
        lines = {"model": str(root / model.weights.folder / model.weights.file), **model.arguments}
        slots = model.slots(gate_limit)
        lines["parallel"] = str(slots)
        lines["ctx-size"] = str(slots * model.slot_tokens)
        if model.kind in _WHOLE_PROMPT:
            lines["batch-size"] = lines["ubatch-size"] = str(model.slot_tokens)
        if model.kind == "embedding":
            lines["embeddings"] = "true"
        parts.append("\n".join([f"[{model.name}]", *(f"{key} = {value}" for key, value in lines.items()), ""]))
    return "\n".join(parts)


def command(binary: str, preset_file: str, models: int, *, host: str, port: int) -> list[str]:
    """The command line of the router. The key is not in it, where every process could read it: see `environment`."""
    return [
        binary,
        "--models-preset",
        preset_file,
        "--models-max",
        str(models),  # all may stay loaded: they were chosen to fit together
        "--host",
        host,
        "--port",
        str(port),
        "--no-ui",
        "--offline",  # what it serves was fetched and checked before
    ]


def environment(surroundings: Mapping[str, str], key: str) -> dict[str, str]:
    """The environment of the router: `surroundings` with the key that callers must show.

    Raises ValueError for a key that is empty or would count as several: a server without a key serves everybody.
    """
    if not key.strip() or "," in key:
        raise ValueError("the key of the model server must be one key, not empty and without commas")
    inherited = {name: value for name, value in surroundings.items() if not name.startswith("LLAMA_ARG_")}
    return inherited | {"LLAMA_API_KEY": key}


def fetch(models: Sequence[Model], root: Path, download: Callable[[Weights, Path], Path]) -> list[str]:
    """Bring the weights that are not below `root` yet, and check each one brought. Returns what was brought.

    `download(weights, folder)` puts the file into the folder and returns where. Raises WrongFile.
    """
    brought = []
    for weights in dict.fromkeys(model.weights for model in models):
        folder = root / weights.folder
        if (folder / weights.file).exists():
            continue
        # Under another name until it is checked: a run that was cut short leaves nothing that a server would load.
        unchecked = download(weights, root / "unchecked" / weights.folder)
        if (found := _sha256(unchecked)) != weights.sha256:
            unchecked.unlink()
            raise WrongFile(f"{weights.repository}/{weights.file}: sha256 is {found}, not {weights.sha256}")
        folder.mkdir(parents=True, exist_ok=True)
        unchecked.rename(folder / weights.file)
        brought.append(f"{weights.repository}@{weights.revision}/{weights.file}")
    return brought


_PREAMBLE = "(before the first section)"


def _parser() -> ConfigParser:
    # As llama-server reads it: keys as they are written, no %(...)s, and no section that others inherit from.
    parser = ConfigParser(
        delimiters=("=",), comment_prefixes=(";", "#"), interpolation=None, default_section=_PREAMBLE, strict=True
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign] # the documented way to keep the case of keys
    return parser


def _model(name: str, keys: Mapping[str, str]) -> Model:
    missing = [key for key in ("kind", "slot-tokens", "sha256", "model") if not keys.get(key)]
    if missing:
        raise BadModels(f"[{name}] lacks {', '.join(missing)}")
    kind, tokens = keys["kind"], keys["slot-tokens"]
    if kind not in _ONE_SLOT_PER_CALL | _SLOT_PER_QUESTION:
        raise BadModels(f"[{name}] kind {kind!r} is none that llama-server is known to have")
    if not (tokens.isascii() and tokens.isdigit() and int(tokens) > 0):
        raise BadModels(f"[{name}] slot-tokens must be a number above 0")
    arguments = {key: value for key, value in keys.items() if key not in _OURS | {"model"}}
    return Model(name, kind, int(tokens), _weights(name, keys["model"], keys["sha256"]), arguments)


def _weights(name: str, path: str, sha256: str) -> Weights:
    parts = PurePosixPath(path).parts
    below = parts[len(WEIGHTS.parts) :]
    if parts[: len(WEIGHTS.parts)] != WEIGHTS.parts or len(below) != 4 or ".." in below:
        raise BadModels(f"[{name}] model must be {WEIGHTS}/owner/repository/revision/file")
    owner, repository, revision, file = below
    if not _hexadecimal(revision, _REVISION_DIGITS):
        raise BadModels(f"[{name}] the revision must be a whole commit, not a branch: it is what pins the file")
    if not _hexadecimal(sha256, _SHA256_DIGITS):
        raise BadModels(f"[{name}] sha256 must be {_SHA256_DIGITS} hexadecimal digits")
    return Weights(f"{owner}/{repository}", revision, file, sha256)


def _hexadecimal(text: str, digits: int) -> bool:
    return len(text) == digits and set(text) <= set("0123456789abcdef")


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
