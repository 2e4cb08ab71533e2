from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.pages import World, world


@pytest.fixture
def web(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made
