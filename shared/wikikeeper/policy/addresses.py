"""Which addresses, names and ports a fetch may connect to: what the public web stands on, nothing of the own network.

`ipaddress` alone is not enough: it calls NAT64 and 6to4 forms of private addresses, multicast, fec0::/10 and the
clouds' metadata addresses "global" (in some versions), and 100.64.0.0/10 neither private nor global.
"""

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

_V4_REFUSED: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("127.0.0.0/8", "this machine"),
        ("0.0.0.0/8", "this machine"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("10.0.0.0/8", "a private network"),
        ("172.16.0.0/12", "a private network"),
        ("192.168.0.0/16", "a private network"),
        ("100.64.0.0/10", "a provider's inner network"),  # 100.100.100.200 is Alibaba's metadata
        ("168.63.129.16/32", "Azure's host"),
        ("192.0.0.0/24", "a protocol assignment"),  # 192.0.0.192 is Oracle's metadata
        ("192.88.99.0/24", "a 6to4 relay"),
        ("198.18.0.0/15", "a benchmarking network"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved or broadcast"),
    )
)
_V6_REFUSED: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::1/128", "this machine"),
        ("::/128", "this machine"),
        ("fc00::/7", "a private network"),  # fd00:ec2::254 is AWS's metadata
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        ("64:ff9b:1::/48", "a local NAT64"),  # where the IPv4 address stands in it is known to its network alone
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
        ("2001::/23", "a protocol assignment"),  # with Teredo, should one unwrap to a public address
        ("2002::/16", "a 6to4 tunnel"),  # nothing public lives there any more
    )
)
_V6_PUBLIC = IPv6Network("2000::/3")
"""All of IPv6 that is handed out for public unicast."""
_MAPPED = IPv6Network("::ffff:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_LAST_32_BITS = 2**32 - 1
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""Third quarter of an ISATAP address (RFC 5214); the fourth is an IPv4 address."""

_PRIVATE_DOMAINS = ("localhost", "localdomain", "local", "lan", "internal", "intranet", "home.arpa", "onion")
"""Never public, whatever a resolver says: RFC 6761, 6762, 8375, ICANN's `internal`, and routers' habits."""

WEB_PORTS = frozenset({80, 443})
PRIVILEGED = 1024
"""Below it stand the internet's classic services; only the web's own two are asked."""
_OTHER_SERVICES = frozenset(
    # The WHATWG's "bad ports" from 1024 on: what an HTTP request could be mistaken for by another protocol.
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080}
    # Stores and control ports that answer to a stray line of text, or to anyone who can reach them.
    | {1433, 1521, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5672, 5900, 6379, 6443, 9042, 10250, 11211, 27017}
)


def is_forbidden(address: str | IPv4Address | IPv6Address) -> str | None:
    """Why no connection may go there, in a few words; None when it may.

    A text that is no address, or that names an interface (`fe80::1%eth0`), is forbidden too. Never raises.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "not an address"
    if isinstance(ip, IPv4Address):
        return _v4(ip)
    if ip.scope_id is not None:
        return "an interface of this machine"
    inner = wrapped(ip)
    refused = next((reason for v4 in inner if (reason := _v4(v4))), None)
    if refused is not None:
        return f"{refused}, wrapped in IPv6"
    if inner and (ip in _MAPPED or ip in _NAT64):
        return None  # the wrapped public address is what answers
    return _v6(ip)


def is_forbidden_name(host: str) -> str | None:
    """Why a host name can't be a public one, None when it can. Asked before any lookup, so nothing leaks to a resolver.

    `host`: lower case, without a final dot. A name without a dot is left to the search list of the machine's resolver,
    which makes it one of the own network.
    """
    if "." not in host:
        return "a name of the own network"
    return next(
        (f"a name under .{domain}" for domain in _PRIVATE_DOMAINS if host == domain or host.endswith(f".{domain}")),
        None,
    )


def is_forbidden_port(port: int) -> str | None:
    """Why no page is asked for at that port, None when it may be: 80, 443, and 1024 up without other known services."""
    if port in WEB_PORTS or (port >= PRIVILEGED and port not in _OTHER_SERVICES):
        return None
    return f"port {port} is for something else than web pages"


def wrapped(ip: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address may lead to: mapped, compatible, translated, NAT64, 6to4, Teredo
    (client and server), ISATAP.
    """
    last = IPv4Address(int(ip) & _LAST_32_BITS)
    found: list[IPv4Address] = []
    if any(ip in network for network in (_MAPPED, _COMPATIBLE, _TRANSLATED, _NAT64)):
        found.append(last)
    if int(ip) >> 32 & _LAST_32_BITS in _ISATAP:
        found.append(last)
    if ip.sixtofour is not None:
        found.append(ip.sixtofour)
    if ip.teredo is not None:
        found.extend(ip.teredo)
    return tuple(found)


def _v4(ip: IPv4Address) -> str | None:
    refused = next((reason for network, reason in _V4_REFUSED if ip in network), None)
    if refused is None and (not ip.is_global or ip.is_multicast):
        return "not a public address"
    return refused


def _v6(ip: IPv6Address) -> str | None:
    refused = next((reason for network, reason in _V6_REFUSED if ip in network), None)
    if refused is None and (ip not in _V6_PUBLIC or not ip.is_global or ip.is_multicast):
        return "not a public address"
    return refused
