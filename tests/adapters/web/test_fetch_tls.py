"""Encrypted connections: to the checked address, for the name in the URL, never back to an open one."""

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from tests.adapters.web.servers import PUBLIC, TLS, Names, Network, StubWeb, Visitor, redirect, reply


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for secure.example that nobody but these tests trusts, with its key, in one file."""
    if which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=secure.example", "-addext", "subjectAltName=DNS:secure.example",
         "-keyout", folder / "key", "-out", folder / "certificate"],
        check=True, capture_output=True,
    )  # fmt: skip
    both = folder / "both.pem"
    both.write_bytes((folder / "key").read_bytes() + (folder / "certificate").read_bytes())
    return both


@pytest.fixture
def server_names() -> list[str | None]:
    """The names that clients asked for during the handshake."""
    return []


@pytest.fixture
def web(certificate: Path, server_names: list[str | None]) -> Iterator[StubWeb]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: server_names.append(name)
    with StubWeb(tls=context) as web:
        web.on("secure.example/", reply(b"<p>secret"))
        yield web


@pytest.fixture
def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def test_the_name_is_kept_though_the_checked_address_is_connected_to(
    web: StubWeb, trusting: ssl.SSLContext, server_names: list[str | None]
) -> None:
    network = Network(**{PUBLIC: web.port})

    page = Visitor(web, network=network, tls=trusting).fetch("https://secure.example/")

    assert (page.url, page.body) == ("https://secure.example/", b"<p>secret")
    assert server_names == ["secure.example"]
    assert network.tried == [(PUBLIC, 443)]
    assert web.asked == ["secure.example/"]


def test_a_certificate_for_another_name_or_from_nobody_is_refused(web: StubWeb, trusting: ssl.SSLContext) -> None:
    assert Visitor(web, tls=trusting).refusal("https://other.example/").cause == "tls"
    assert Visitor(web, tls=TLS).refusal("https://secure.example/").cause == "tls"
    assert web.requests == []


def test_a_redirect_to_an_open_connection_is_refused(web: StubWeb, trusting: ssl.SSLContext) -> None:
    web.on("secure.example/down", redirect("http://secure.example/"))
    web.on("secure.example/same", redirect("//secure.example/"))

    assert Visitor(web, tls=trusting).refusal("https://secure.example/down").cause == "insecure_redirect"
    assert Visitor(web, tls=trusting).fetch("https://secure.example/same").body == b"<p>secret"


def test_a_redirect_to_an_encrypted_connection_is_followed(web: StubWeb, trusting: ssl.SSLContext) -> None:
    with StubWeb() as plain:
        plain.on("secure.example:8080/", redirect("https://secure.example/"))
        network = Network(**{PUBLIC: web.port, "1.1.1.1": plain.port})
        names = Names(**{"secure.example": [["1.1.1.1"], [PUBLIC]]})

        assert Visitor(web, names=names, network=network, tls=trusting).fetch("http://secure.example:8080/").body == (
            b"<p>secret"
        )


def test_a_server_that_speaks_no_tls_is_tried_later() -> None:
    with StubWeb() as plain:
        assert Visitor(plain).refusal("https://secure.example/").cause == "tls"
