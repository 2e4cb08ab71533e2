"""The world that workflow tests run in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workflows.world import World, open_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as made:
        yield made
