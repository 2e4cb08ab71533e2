"""The app's OpenAPI lists every route, and nothing that it allows makes the app fail."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema
from tests.adapters.contracts.samples import a_cycle, a_result, a_run
from tests.web.pages import OWN, PORT, World, world


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BaseSchema]:
    with world(Path(tmp_path_factory.mktemp("wiki"))) as web:
        for number in range(60):
            web.store.put_run(a_run(number))
            web.store.add_result(a_result(number))
        web.store.start_cycle(a_cycle())
        yield schemathesis.openapi.from_asgi("/openapi.json", web.app, headers={"host": f"127.0.0.1:{PORT}"})


def test_openapi_lists_every_route(web: World) -> None:
    listed = {(path, method.upper()) for path, methods in web.app.openapi()["paths"].items() for method in methods}
    answered = set()
    for path, method in listed:
        known = web.client.request(method, path.replace("{", "").replace("}", ""), headers=OWN)
        assert known.status_code != 405, (path, method)
        answered.add((path, method))
    assert {path for path, _ in answered} >= {
        "/", "/runs", "/runs/{run}", "/runs/{run}/label", "/cycles", "/topics", "/thresholds", "/label", "/calibrate",
        "/attention", "/results/{result}/retry", "/notes", "/notes/{folder}/{name}", "/notes/awaiting/{name}/done",
        "/login", "/logout", "/static/{asset}",
    }  # fmt: skip


def test_the_pages_of_the_api_itself_come_from_nowhere_else(web: World) -> None:
    assert web.client.get("/docs").status_code == 404
    assert web.client.get("/redoc").status_code == 404


def test_no_request_that_the_api_allows_makes_it_fail(api: BaseSchema) -> None:
    """Wrong values as well as right ones: each operation is tried with what its schema says, and with what it does not."""
    tried = 0
    for found in api.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        for mode in GenerationMode:
            # An operation without any field has nothing that can be wrong.
            with suppress(Unsatisfiable):
                _try(operation.as_strategy(generation_mode=mode))
        tried += 1
    assert tried >= 17


def _try(cases: SearchStrategy[schemathesis.Case[Any]]) -> None:
    @given(case=cases)
    @settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None, database=None)
    def check(case: schemathesis.Case[Any]) -> None:
        response = case.call(headers={"host": f"127.0.0.1:{PORT}", **OWN})
        case.validate_response(response, checks=[not_a_server_error])

    check()
