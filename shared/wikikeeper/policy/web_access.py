"""Who may see the pages, and who may change something through them.

    a request ─▶ is its Host a name of ours?          no: refused (a page elsewhere whose name was made to lead here)
              ─▶ a POST: does it come from our pages? no: refused (a page elsewhere that posts in the reader's name)
              ─▶ is a token set, and no session?      to the form that asks for it

A session is an end and its signature by the token: nothing is stored for it, so any function can check it, and a new
token ends all. Hooks have signatures of their own and pass none of this.
"""

import hashlib
import hmac
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from wikikeeper.models import Value

SHORTEST_TOKEN = 16
"""Characters. There is no limit on tries: a token has to be beyond guessing."""
SESSION = timedelta(days=30)
"""How long a browser stays signed in: a person who looks each week signs in once a month."""
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_HTTPS, _HTTP = 443, 80
_MOST_DIGITS = 12
"""Of a time in seconds: thirty thousand years."""


class Access(Value):
    """What the pages are guarded by."""

    names: frozenset[str] = frozenset()
    """`host:port`, in lower case, under which they are reached; empty: any, since what they are behind names them."""
    token: str | None = None
    """What a person signs in with; None: nobody has to, which only a loopback address may offer."""


def is_loopback(host: str) -> bool:
    """Is an address to listen on one of this machine alone? A name other than localhost can be made to mean anything."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def start_fault(host: str, token: str | None) -> str | None:
    """Why pages must not be served on an address; None: they may."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        return f"web.token has {len(token)} characters: take {SHORTEST_TOKEN} or more, for example from 'openssl rand -hex 16'"
    if token is None and not is_loopback(host):
        return (
            f"other machines can reach {host}, and the pages would be open to them: set web.token "
            "(for example to what 'openssl rand -hex 16' prints), or serve on 127.0.0.1"
        )
    return None


def own_names(host: str, port: int, extra: Iterable[str] = ()) -> frozenset[str]:
    """Under which names the pages are reached. On a loopback address its own; elsewhere only those that are given, and
    without any every name passes: then the token decides alone.
    """
    # A proxy's name without a port is reached on whichever one the proxy has.
    given = {_with_port(name.lower(), at) for name in extra for at in (port, _HTTP, _HTTPS)}
    if not is_loopback(host):
        return frozenset(given)
    bare = host.lower().strip("[]")
    own = {*LOOPBACK_NAMES, f"[{bare}]" if ":" in bare else bare}
    return frozenset(given | {f"{name}:{port}" for name in own})


def host_allowed(host: str | None, names: frozenset[str], *, https: bool = False) -> bool:
    """Is the Host header one of our names? A host without a port means the scheme's."""
    if not host:
        return False
    return not names or _with_port(host.lower(), _HTTPS if https else _HTTP) in names


def same_origin(*, host: str | None, origin: str | None, fetch_site: str | None) -> bool:
    """Does a POST come from one of our own pages?

    Browsers say so in one of two headers. What sends neither is no browser, and could set both: for it the same rule.
    """
    if fetch_site is not None:
        return fetch_site == "same-origin"
    if not host or not origin:
        return False
    scheme, mark, rest = origin.lower().partition("://")
    if not mark or scheme not in ("http", "https"):
        return False
    port = _HTTPS if scheme == "https" else _HTTP
    return _with_port(rest, port) == _with_port(host.lower(), port)


def token_matches(given: str, token: str) -> bool:
    """In the same time whatever was given, its length included."""
    return hmac.compare_digest(_digest(given), _digest(token))


def session(token: str, now: datetime) -> str:
    """What a browser keeps after signing in: an end and its signature, never the token."""
    ends = int((now + SESSION).timestamp())
    return f"{ends}.{_signature(token, ends)}"


def session_holds(value: str, token: str, now: datetime) -> bool:
    ends, _, signature = value.partition(".")
    if not (ends.isascii() and ends.isdigit() and len(ends) <= _MOST_DIGITS):
        return False
    signed = hmac.compare_digest(signature.encode("utf-8", "replace"), _signature(token, int(ends)).encode())
    return signed and now.astimezone(UTC).timestamp() < int(ends)


def local_path(path: str) -> str:
    """Where to go after signing in: a place on these pages, never another site."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if safe else "/"


def _signature(token: str, ends: int) -> str:
    return hmac.new(token.encode("utf-8", "surrogatepass"), f"session {ends}".encode(), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _with_port(name: str, port: int) -> str:
    tail = name.rpartition("]")[2] if name.startswith("[") else name
    return name if ":" in tail else f"{name}:{port}"
