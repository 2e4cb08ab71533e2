"""Where no fetch may connect to, by example and by property."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.addresses import is_forbidden, wrapped

FORBIDDEN = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:10.0.0.1",
    "::ffff:0:8.8.8.8",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "100::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:0:7f00:1::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "2002:808:808::1",
    "2606:4700:1:2:0:5efe:10.0.0.1",
    "2606:4700:1:2:200:5efe:7f00:1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "localhost",
    "",
    "1.2.3",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.0.1.1",
    "198.17.0.1",
    "2606:4700:4700::1111",
    "2a00:1450:4001:82b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]
V4 = st.ip_addresses(v=4).map(ipaddress.IPv4Address)
WRAPPERS = {
    "mapped": lambda v4: 0xFFFF << 32 | v4,
    "compatible": lambda v4: v4,
    "translated": lambda v4: 0xFFFF << 48 | v4,
    "NAT64": lambda v4: 0x64FF9B << 96 | v4,
    "local NAT64": lambda v4: 0x64FF9B0001 << 80 | v4,
    "6to4": lambda v4: 0x2002 << 112 | v4 << 80,
    "Teredo server": lambda v4: 0x20010000 << 96 | v4 << 64,
    "Teredo client": lambda v4: 0x20010000 << 96 | (v4 ^ 0xFFFFFFFF),
    "ISATAP": lambda v4: 0x26064700 << 96 | 0x5EFE << 32 | v4,
}


@pytest.mark.parametrize("address", FORBIDDEN)
def test_an_address_that_is_not_public_is_refused_with_a_reason(address: str) -> None:
    assert is_forbidden(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_connected_to(address: str) -> None:
    assert is_forbidden(address) is None


@pytest.mark.parametrize("wrapper", WRAPPERS)
@given(v4=V4)
def test_wrapping_makes_no_forbidden_address_reachable(wrapper: str, v4: ipaddress.IPv4Address) -> None:
    v6 = ipaddress.IPv6Address(WRAPPERS[wrapper](int(v4)))

    assert wrapper == "local NAT64" or v4 in wrapped(v6)
    assert is_forbidden(v4) is None or is_forbidden(v6) is not None


@given(st.ip_addresses())
def test_nothing_is_allowed_that_python_knows_to_be_private_or_multicast(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    known = ip.is_private or ip.is_multicast or ip.is_link_local or ip.is_loopback or ip.is_reserved
    wraps_public = isinstance(ip, ipaddress.IPv6Address) and any(is_forbidden(v4) is None for v4 in wrapped(ip))

    assert not known or wraps_public or is_forbidden(ip) is not None


@given(st.text(max_size=60))
def test_no_text_makes_the_check_fail(text: str) -> None:
    assert is_forbidden(text) is None or isinstance(is_forbidden(text), str)
