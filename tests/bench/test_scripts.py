"""Every script in bench/ starts by its path, as its own first lines and the documents say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
SCRIPTS = sorted(path.name for path in BENCH.glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_starts_by_its_path_from_anywhere(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    said = subprocess.run(
        [sys.executable, str(BENCH / name), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env=environment,
    )

    assert said.returncode == 0, said.stderr
    assert name in said.stdout
