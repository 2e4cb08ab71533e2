r"""The one reader of http(s) addresses: what is judged safe, what is connected to and what is compared are the same parts.

Two readers that disagree on where a host ends are how `http://good\@127.0.0.1` gets past a check. So everything here
is strict where addresses are abused (user names, backslashes, control characters, odd hosts are refused) and lenient
where search engines are merely sloppy (raw spaces, umlauts, a lone `%`).
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote

import idna

MAX_LENGTH = 8192
"""Characters. Servers refuse request lines beyond 8 KiB, so a longer address could not be fetched anyway."""
MAX_HOST = 253
"""What DNS can carry (RFC 1035)."""
MAX_LABEL = 63
"""Likewise for one label."""
DEFAULT_PORTS = {"http": 80, "https": 443}
PATH_SAFE = "/:@!$&'()*+,;=~-._"
"""What RFC 3986 allows raw in a path."""
QUERY_SAFE = PATH_SAFE + "?"

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.I | re.S,
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LABEL = re.compile(r"[a-z0-9_-]+")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class Parts:
    """An http(s) address in a form that can go on the wire: all ASCII, no user name, no fragment."""

    scheme: str
    host: str
    """Lower-case ASCII name without a final dot, or an IP address (IPv6 without brackets)."""
    port: int
    path: str
    """Begins with "/"."""
    query: str | None

    @property
    def origin(self) -> str:
        """`host:port`, the form in which origins are listed in settings."""
        return f"{self._bracketed}:{self.port}"

    @property
    def authority(self) -> str:
        """What the Host header says: the port only where it is not the scheme's own."""
        return self._bracketed if self.port == DEFAULT_PORTS[self.scheme] else self.origin

    @property
    def target(self) -> str:
        """What the request line says."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The host as an address, when it is one and no lookup is needed."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def parse(url: str) -> Parts:
    """Read an address as found.

    White space around it is dropped, what may not stand raw in it is percent-encoded, dot segments are resolved, the
    fragment is dropped. Raises ValueError with one line that says what is wrong.
    """
    url = url.strip()
    if len(url) > MAX_LENGTH:
        raise ValueError(f"longer than {MAX_LENGTH} characters")
    if _CONTROL.search(url):
        raise ValueError("control characters in an address")
    try:
        url.encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair in an address") from None
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("not an http(s) address")
    scheme = match["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError(f"not an http(s) address but {scheme}:"[:80])
    host, port = _authority(match["authority"], DEFAULT_PORTS[scheme])
    query = match["query"]
    parts = Parts(
        scheme=scheme,
        host=host,
        port=port,
        path=without_dots(encoded(match["path"], PATH_SAFE)) or "/",
        query=encoded(query, QUERY_SAFE) if query else None,
    )
    if len(parts.url) > MAX_LENGTH:
        raise ValueError(f"longer than {MAX_LENGTH} characters")
    return parts


def parse_origin(origin: str) -> str:
    """A `host:port` as settings list it, in the form of `Parts.origin`. Raises ValueError."""
    if "/" in origin or not origin.rpartition(":")[2].isdecimal():
        raise ValueError(f"{origin!r} is not host:port, such as nas.lan:8080")
    return parse(f"http://{origin}/").origin


def encoded(text: str, safe: str) -> str:
    """Percent-encode what may not stand raw; what is encoded already stays as it is."""
    return _LONE_PERCENT.sub("%25", quote(text, safe=safe + "%"))


def without_dots(path: str) -> str:
    """Resolve "." and ".." as RFC 3986 5.2.4 does: never above the root, empty segments kept."""
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(kept) > 1:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def _authority(authority: str, default_port: int) -> tuple[str, int]:
    if "@" in authority:
        raise ValueError("a user name or password in an address")
    if "\\" in authority:
        raise ValueError("a backslash in the host")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise ValueError("host and port cannot be told apart")
    port = int(match["port"]) if match["port"] else default_port
    if not 0 < port < 2**16:
        raise ValueError(f"port {port} does not exist")
    return _host(match["host"]), port


def _host(host: str) -> str:
    if host.startswith("["):
        return _ipv6(host[1:-1])
    name = _ascii(host)
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # Resolvers read 2130706433, 0x7f.1 and 0177.0.0.1 as 127.0.0.1, so they are read here, before any check.
        return _ipv4(labels)
    if len(name) > MAX_HOST or any(len(label) > MAX_LABEL for label in labels):
        raise ValueError("a host name longer than DNS allows")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("not a host name")
    return name


def _ascii(host: str) -> str:
    """As browsers do it (UTS 46, non-transitional), without their check for confusable letters: DNS decides."""
    if "%" in host:
        raise ValueError("percent signs in the host")
    # Longer than that, no spelling of it fits into DNS; the mapping below can blow one character up to 18.
    if len(host) > MAX_HOST + 1:
        raise ValueError("a host name longer than DNS allows")
    try:
        mapped = idna.uts46_remap(host, std3_rules=False, transitional=False)
        labels = mapped.removesuffix(".").split(".")
        return ".".join(label if label.isascii() else "xn--" + label.encode("punycode").decode() for label in labels)
    except UnicodeError:
        raise ValueError("characters that no host name has") from None


def _ipv4(labels: list[str]) -> str:
    """inet_aton's reading: one to four numbers, decimal, octal or hexadecimal, the last filling what is left."""
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        raise ValueError("not an IPv4 address") from None
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise ValueError("not an IPv4 address")
    value = numbers[-1] + sum(number << 8 * (3 - index) for index, number in enumerate(numbers[:-1]))
    return str(ipaddress.IPv4Address(value))


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8 if len(label) > 1 and label.startswith("0") else 10)


def _ipv6(text: str) -> str:
    if "%" in text:
        raise ValueError("an address that names an interface of this machine")
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        raise ValueError("not an IPv6 address") from None
