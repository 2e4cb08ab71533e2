"""Keeps a process on this machine: found by Python at start-up where this folder stands in PYTHONPATH.

An audit hook, so nothing is replaced: whatever looks a name up or connects does so as always, and is refused like on a
machine without a network.
"""

import sys

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def stay_here(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):  # a text is the path of a local socket
        host = arguments[1][0]
    else:
        return
    if host not in LOOPBACK:
        import socket  # noqa: PLC0415 - loaded by whoever raised the event, not by every process

        raise socket.gaierror(socket.EAI_AGAIN, f"no network in tests: {host}")


sys.addaudithook(stay_here)
