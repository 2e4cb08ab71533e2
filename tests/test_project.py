"""The project's own promises: layout, pins, import hygiene, glossary, set-up."""

import ast
import importlib
import importlib.metadata
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
import typing
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wikikeeper import workflows
from wikikeeper.models import CycleState, Kind, ResultState, RunOutcome, Send
from wikikeeper.models.commands import Command
from wikikeeper.workflows.context import App

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINS = ("requirements-uv.txt", "requirements.txt", "requirements-dev.txt")

TOP = {".ci", ".github", ".gitignore", "LICENSE", "Makefile", "README.md", "pyproject.toml",
       "bench", "docs", "functions", "infra", "shared", "tests", ".knowledge",
       *PINS}  # fmt: skip
"""docs/testing.md says why the pins lie here."""

MOST_LINES = 400
LONGER: dict[str, str] = {
    "shared/wikikeeper/ports.py": "every promise that the workflows rely on, in one place to read",
}
"""Python files that may be longer, each with its reason."""

GLOSSARY_OF_RESEARCH = "Topic Brief Cycle Tick Result Keeper Decider Verdict Triage Kind Quote Research_note Run Gate Permit Lane Pleb Parked Folded"

# Put together here, so that this file does not hold what it looks for.
REGISTRIES = re.compile("|".join(re.escape(".".join(parts)) for parts in [
    ("pypi", "org"), ("pythonhosted", "org"), ("pypi", "python", "org"), ("npmjs", "org"), ("deb", "debian", "org"), ("crates", "io"),
]))  # fmt: skip
MACHINE_PATHS = re.compile(
    r"(?<![\w.~$)}/-])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "tm" + "p"]) + ")/"
)


def ignored() -> list[str]:
    return [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line]


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Every file of the project, without what .gitignore names."""
    for path in sorted(folder.iterdir()):
        if path.name == ".git" or any(fnmatch(path.name, pattern) for pattern in ignored()):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def pinned(file: str) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for line in (ROOT / file).read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(line.removesuffix("\\"))
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def declared(*, dev: bool) -> dict[str, list[str]]:
    """What each file has to pin. Of the clouds' extras that is what tests run with; what a function is deployed with is
    pinned in infra/requirements, in the same versions: tests/infra/test_build_function.py.
    """
    groups, extras = PYPROJECT["dependency-groups"], PYPROJECT["project"]["optional-dependencies"]
    if dev:
        return {"requirements-dev.txt": [*groups["dev"], *extras["aws"], *extras["modal"]]}
    return {
        "requirements-uv.txt": groups["bootstrap"],
        "requirements.txt": [*PYPROJECT["project"]["dependencies"], *extras["model"], *groups["build"]],
    }


# -- layout


def test_nothing_lies_at_the_top_but_what_the_design_names() -> None:
    found = {path.name for path in ROOT.iterdir() if not any(fnmatch(path.name, pattern) for pattern in ignored())}

    assert found - TOP - {".git"} == set()


def test_no_python_file_outgrows_a_reader() -> None:
    long = {str(path.relative_to(ROOT)) for path in files() if path.suffix == ".py" and _lines(path) > MOST_LINES}

    assert long == set(LONGER)


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_every_module_of_the_package_says_what_it_is_for() -> None:
    silent = [
        path
        for path in files(ROOT / "shared")
        if path.suffix == ".py" and not ast.get_docstring(ast.parse(path.read_text()))
    ]

    assert names(silent) == []


def test_every_adapter_policy_and_workflow_is_in_the_package_that_gets_installed() -> None:
    """A folder without __init__.py is found from the source tree, but not in a wheel."""
    folders = {path.parent for path in files(ROOT / "shared" / "wikikeeper") if path.suffix == ".py"}

    assert names(sorted(folder for folder in folders if not (folder / "__init__.py").exists())) == []


@pytest.mark.parametrize("needle", [REGISTRIES, MACHINE_PATHS], ids=["registry", "machine path"])
def test_no_file_names_a_place_that_is_not_the_readers(needle: re.Pattern[str]) -> None:
    found = [path for path in files() if needle.search(path.read_text(errors="replace"))]

    assert names(found) == []


# -- pins


@pytest.mark.parametrize("file", PINS)
def test_pins_have_hashes_and_name_no_host(file: str) -> None:
    text = (ROOT / file).read_text()
    entries = re.split(r"\n(?=\S)", text.strip())

    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash=sha256:)", text, re.MULTILINE), "an option, such as an index"
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry or "==" not in entry] == []


@pytest.mark.parametrize(
    ("file", "direct"), [*declared(dev=False).items(), *declared(dev=True).items()], ids=lambda value: str(value)[:20]
)
def test_every_declared_dependency_is_pinned_to_a_version_that_it_allows(file: str, direct: list[str]) -> None:
    pins = pinned(file)
    amiss = []
    for line in direct:
        requirement = Requirement(line)
        found = pins.get(canonicalize_name(requirement.name), [])
        if not found or any(not requirement.specifier.contains(_version(pin), prereleases=True) for pin in found):
            amiss.append(line)

    assert amiss == [], "run `make lock`"


def test_what_both_files_pin_is_pinned_alike() -> None:
    run, dev = pinned("requirements.txt"), pinned("requirements-dev.txt")
    differing = [
        name for name in run.keys() & dev.keys() if not {*map(_version, dev[name])} <= {*map(_version, run[name])}
    ]

    assert differing == [], "run `make lock`"


def _version(pin: Requirement) -> str:
    return str(pin.specifier).removeprefix("==")


def test_every_import_of_the_package_is_a_declared_dependency() -> None:
    """One that only comes along with another may be gone with its next version."""
    aws = PYPROJECT["project"]["optional-dependencies"]["aws"]
    direct = _named([line for lines in declared(dev=False).values() for line in lines] + aws)
    typed = direct | _named(PYPROJECT["dependency-groups"]["dev"])
    providers = importlib.metadata.packages_distributions()
    undeclared = {
        (module, str(path.relative_to(ROOT)))
        for path in files(ROOT / "shared")
        if path.suffix == ".py"
        for allowed, modules in ((direct, _imports(path, typing_only=False)), (typed, _imports(path)))
        for module in modules
        if module not in sys.stdlib_module_names
        and module != "wikikeeper"
        and not allowed & {canonicalize_name(name) for name in providers.get(module, [])}
    }

    assert undeclared == set()


def _named(lines: list[str]) -> set[str]:
    """The distributions that requirements name, by themselves or by an extra."""
    found: set[str] = set()
    for requirement in map(Requirement, lines):
        found.add(canonicalize_name(requirement.name))
        for extra in requirement.extras:
            for each in map(Requirement, importlib.metadata.requires(requirement.name) or ()):
                if each.marker is not None and "extra" in str(each.marker) and each.marker.evaluate({"extra": extra}):
                    found.add(canonicalize_name(each.name))
    return found


def test_extractors_are_loaded_by_the_extraction_alone() -> None:
    """They are the heaviest imports, and they run in a child process because pages can make them hang or swell."""
    extractors = {"lxml", "pypdfium2", "readability", "resiliparse", "trafilatura"}
    extraction = ROOT / "shared" / "wikikeeper" / "adapters" / "web" / "extract"
    elsewhere = [
        path
        for path in files(ROOT / "shared")
        if path.suffix == ".py" and _imports(path) & extractors and not str(path).startswith(str(extraction))
    ]

    assert names(elsewhere) == []


def _imports(path: Path, *, typing_only: bool = True) -> set[str]:
    """What a file imports; without `typing_only` leaving out what stands under `if TYPE_CHECKING:`."""
    found = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree if typing_only else _AtRunTime().visit(tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


class _AtRunTime(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node


# -- workflows


def workflow_modules() -> list[str]:
    return [
        module.name
        for module in pkgutil.iter_modules(workflows.__path__)
        if module.name not in {"context", "given_up", "page_text", "permits", "silences"}
    ]


def commands_of(module: str) -> set[type]:
    """The commands that the module's function of its own name takes."""
    function = getattr(importlib.import_module(f"wikikeeper.workflows.{module}"), module)
    hints = typing.get_type_hints(function)
    first, second = list(hints)[:2]
    assert (hints[second], hints["return"]) == (App, list[Send]), f"{module} is no workflow"
    return set(typing.get_args(hints[first])) or {hints[first]}


def test_every_command_is_handled_by_exactly_one_workflow() -> None:
    handled = [command for module in workflow_modules() for command in commands_of(module)]
    union, *_ = typing.get_args(Command)

    assert sorted(command.__name__ for command in handled) == sorted(kind.__name__ for kind in typing.get_args(union))


# -- words


def glossary() -> dict[str, str]:
    text = (ROOT / "docs" / "ubiquitous-language.md").read_text()
    entries = re.split(r"^(?=\*\*[^*]+\.\*\*)", text, flags=re.MULTILINE)[1:]
    return {match[1]: entry for entry in entries if (match := re.match(r"\*\*([^*]+)\.\*\*", entry))}


def test_the_glossary_has_every_word_of_the_research_job() -> None:
    wanted = {word.replace("_", " ") for word in GLOSSARY_OF_RESEARCH.split()}

    assert wanted - glossary().keys() == set()


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        ("Kind", list(Kind)),
        ("Result", list(ResultState)),
        ("Cycle", list(CycleState)),
        ("Run", list(typing.get_args(RunOutcome))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_glossary_says_what_each_state_and_kind_means(entry: str, values: list[str]) -> None:
    assert [value for value in values if f"`{value}`" not in glossary()[entry]] == []


# -- set-up


def test_ci_runs_what_developers_run_with_actions_pinned_by_commit() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    uses = re.findall(r"uses: (.*)", workflow)

    assert [use for use in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", use)] == []
    assert yaml.safe_load(workflow)["permissions"] == {}
    assert "run: bash .ci/run" in workflow
    assert re.findall(r"^make ([\w-]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE) == [
        "check",
        "test-browser",
        "test-cloud",
        "test",
    ]


def make_venv(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not there")
    shutil.copy(ROOT / "Makefile", folder)
    # Without what a make around this test hands down.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        [make, ".venv/.stamp-venv", *arguments],
        cwd=folder, env=inherited | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_machine_without_venv_is_told_which_package_to_install(tmp_path: Path) -> None:
    (tmp_path / "ensurepip.py").write_text("raise ImportError\n")

    made = make_venv(tmp_path, f"PYTHON={sys.executable}", PYTHONPATH=str(tmp_path))

    assert made.returncode != 0
    assert "apt install python3-venv" in made.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_machine_without_python_is_told_which_package_to_install(tmp_path: Path) -> None:
    made = make_venv(tmp_path, "PYTHON=python-that-is-not-there")

    assert made.returncode != 0
    assert "apt install python3 python3-venv" in made.stderr


def test_a_python_that_is_too_old_is_named(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.version_info = (3, 10, 4)\n")

    made = make_venv(tmp_path, f"PYTHON={sys.executable}", PYTHONPATH=str(tmp_path))

    assert made.returncode != 0
    assert "needs Python 3.11 or newer" in made.stderr
    assert "is 3.10" in made.stderr
