"""What of an address must not be written down: user names, passwords, tokens."""

import re
from urllib.parse import quote, unquote

HIDDEN = "redacted"
_USERINFO = re.compile(r"(?P<before>^\s*(?:[a-z][a-z0-9+.-]*:)?[/\\]*)[^/?#]*@", re.I)
_SECRET = re.compile(
    r"""(?x)
    (?: .*[_.-] )?                     # access_token, x-api-key, client.secret
    (?: token | key | apikey | sig | signature | secret | password | passwd | passphrase | pwd | auth | authorization
      | credential | credentials | jwt | sessionid | sid | phpsessid | jsessionid | assertion )
    | (?: x-amz- | x-goog- | x-oss- | x-cos- ) .*    # signed links to object stores
    | awsaccesskeyid | googleaccessid | key-pair-id
    | (?: access | auth | api | private | secret | id | refresh | bearer | csrf ) (?: token | key )
    """
)
"""Names of parameters whose value lets someone in. Compared in lower case. `code`, `session`, `policy` and the like are
left out: they choose a page more often than they open one, and notes link to what comes out here."""
_SEPARATORS = re.compile(r"([?&;#])")
MAX_DEPTH = 3
"""How far addresses inside parameters are looked into, and how often a value is percent-decoded for that; what is
deeper is hidden whole."""


def redact(url: str) -> str:
    """The address without user name and password, the values of token-like parameters replaced by "redacted".

    Addresses inside parameters are treated alike. Takes any text, also one that is no address, and never raises.
    """
    return _redact(url, MAX_DEPTH)


def _redact(url: str, depth: int) -> str:
    head, *rest = _SEPARATORS.split(_USERINFO.sub(lambda match: match["before"], url, count=1))
    # `rest` is separator, parameter, separator, parameter, ...; a fragment can carry tokens as a query does.
    return head + "".join(part if index % 2 == 0 else _parameter(part, depth) for index, part in enumerate(rest))


def _parameter(parameter: str, depth: int) -> str:
    name, equals, value = parameter.partition("=")
    if not value:
        return parameter
    if _SECRET.fullmatch(unquote(name).strip().lower()):
        return name + equals + HIDDEN
    inner = value
    for _ in range(MAX_DEPTH):
        inner = unquote(inner)
    hides_more = inner != unquote(inner)
    if "//" not in inner and not hides_more:
        return parameter
    if depth == 0 or hides_more:
        return name + equals + HIDDEN
    cleaned = _redact(inner, depth - 1)
    return parameter if cleaned == inner else name + equals + quote(cleaned, safe="", errors="replace")
