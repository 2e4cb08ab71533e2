"""Stores and queues on loopback, as the stack has them."""

from collections.abc import Callable, Iterator

import pytest
from tests.adapters.aws.conftest import _nobodys_account, moto, roto
from tests.functions.stack import Stack, make_stack

from wikikeeper import cloud_app
from wikikeeper.adapters.aws.clients import Clients

__all__ = ["_nobodys_account", "moto", "roto"]  # fixtures of the adapters' tests
Deploy = Callable[..., Stack]


@pytest.fixture
def stack(moto: Clients) -> Stack:
    return make_stack(moto)


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
