"""The bundled judge as a real server. One for the whole session: loading the model takes seconds."""

from collections.abc import Iterator

import pytest

from wikikeeper.bundled import BundledServer


@pytest.fixture(scope="session")
def bundled_server() -> Iterator[BundledServer]:
    # Three times the product's patience: the machine may be running other suites.
    with BundledServer(start_seconds=180) as server:
        yield server
