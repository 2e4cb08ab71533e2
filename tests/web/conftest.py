from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.pages import World, world


@pytest.fixture
def web(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def _patient_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy with something else, a second says nothing of the code."""
    monkeypatch.setattr("wikikeeper.web.hooks.ANSWER_SECONDS", 30)
