"""Stores and queues on loopback, as the stack has them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from functions.web import handler as web
from tests.adapters.aws.conftest import _nobodys_account, moto, roto
from tests.functions.stack import Apart, Stack, make_stack
from tests.infra.test_build_function import build, uv

from wikikeeper import cloud_app
from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.cloud_app import FUNCTIONS

__all__ = ["_nobodys_account", "moto", "roto"]  # fixtures of the adapters' tests
Deploy = Callable[..., Stack]
BUILT = (*FUNCTIONS, "web")


@pytest.fixture(autouse=True)
def _patient_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy with something else, a second says nothing of the code."""
    monkeypatch.setattr("wikikeeper.web.hooks.ANSWER_SECONDS", 30)


@pytest.fixture
def stack(moto: Clients) -> Stack:
    return make_stack(moto)


@pytest.fixture(scope="session")
def servers(roto: Clients, moto: Clients) -> Clients:
    """Of stores that keep their promises when many ask at once; queues have one reader here."""
    return Apart(dynamodb=roto, s3=roto, sqs=moto)


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """By function: what goes into its image."""
    folder = tmp_path_factory.mktemp("trees")
    uv()  # skips here, not in a thread
    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(lambda function: build(function.replace("_", "-"), folder / function), BUILT):
            assert done.returncode == 0, done.stderr
    return {function: folder / function for function in BUILT}


@pytest.fixture
def deploy(moto: Clients, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deploy]:
    """A new stack with given settings; this process has its functions' environment, as if it were fresh containers."""

    def made(**settings: str) -> Stack:
        stack = make_stack(moto, **settings)
        for name, value in stack.environment().items():
            monkeypatch.setenv(name, value)
        fresh_containers()
        return stack

    yield made
    fresh_containers()


@pytest.fixture
def deployed(deploy: Deploy) -> Stack:
    return deploy()


def fresh_containers() -> None:
    for made in (cloud_app.settings, cloud_app._clients, cloud_app.sender, cloud_app.dead_letters, cloud_app.cloud_app):
        made.cache_clear()
    if web.pages.cache_info().currsize:
        web.pages.cache_clear()
        asyncio.get_event_loop().close()
        asyncio.set_event_loop(None)
