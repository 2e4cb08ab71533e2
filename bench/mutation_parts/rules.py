"""Mutants of rules, made and tried by mutmut in a copy of the project.

mutmut names a module by its path, so the package lies at the top of the copy. Of its mutants one kind is not counted: a
text with a blank in it that reads otherwise. Those are sentences for people, which tests should leave free to be reworded.
"""

import ast
import difflib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.mutation_parts.copies import ENVIRONMENT, ROOT

CONFIGURATION = """
[tool.pytest.ini_options]
pythonpath = ["."]
addopts = "-q --import-mode=importlib"
filterwarnings = ["error"]

[tool.mutmut]
source_paths = ["wikikeeper/"]
only_mutate = [{files}]
pytest_add_cli_args_test_selection = [{tests}]
"""
KILLED = frozenset({"killed", "timeout"})
NUMBER = re.compile(r"\d+$")
WORDS = re.compile(r"Constant\(value=(?:'[^']* [^']*'|\"[^\"]* [^\"]*\")\)")


def altered_rules(
    folder: Path, files: Sequence[str], tests: Sequence[str], jobs: int
) -> dict[str, tuple[int, list[str]]]:
    """By file of the package: how many mutants there were, and those that lived, described."""
    paths = [f"wikikeeper/{file}" for file in files]
    shutil.copytree(ROOT / "shared" / "wikikeeper", folder / "wikikeeper", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text(CONFIGURATION.format(files=_quoted(paths), tests=_quoted(tests)))
    _mutmut(folder, "run", "--max-children", str(jobs))
    ends = dict(line.strip().rsplit(": ", 1) for line in _mutmut(folder, "results", "--all", "true").splitlines())
    if not ends:
        raise RuntimeError("mutmut made no mutants")

    found: dict[str, tuple[int, list[str]]] = {}
    for path, file in zip(paths, files, strict=True):
        functions = _functions(ast.parse((folder / "mutants" / path).read_text()))
        prefix = path.removesuffix(".py").replace("/", ".") + "."
        mutants = {name.removeprefix(prefix): end for name, end in ends.items() if name.startswith(prefix)}
        pairs = {name: (functions[NUMBER.sub("orig", name)], functions[name]) for name in mutants}
        counted = [name for name, pair in pairs.items() if not _only_words(*pair)]
        lived = [_described(name, *pairs[name]) for name in counted if mutants[name] not in KILLED]
        found[file] = len(counted), lived
    return found


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _only_words(before: ast.FunctionDef, after: ast.FunctionDef) -> bool:
    return _without_words(before) == _without_words(after)


def _without_words(function: ast.FunctionDef) -> str:
    """All that counts of a function."""
    shown = ast.dump(ast.Module(function.body, []))
    return WORDS.sub("Constant(value='words')", shown)


def _described(name: str, before: ast.FunctionDef, after: ast.FunctionDef) -> str:
    was, now = (ast.unparse(ast.Module(each.body, [])).splitlines() for each in (before, after))
    changed = [line for line in difflib.ndiff(was, now) if line[0] in "-+"]
    said = "  ->  ".join(" ".join(line[1:].strip() for line in changed if line[0] == sign) for sign in "-+")
    return f"{name.removeprefix('x_').replace('__mutmut_', ':')}: {said}"


def _mutmut(folder: Path, *arguments: str) -> str:
    # Its plugins for pytest are none of ours; the copy comes first, so nothing of the work tree is imported.
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    said = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode:
        raise RuntimeError(
            f"mutmut {arguments[0]} ended with {said.returncode}:\n{(said.stdout + said.stderr)[-2000:]}"
        )
    return said.stdout


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
