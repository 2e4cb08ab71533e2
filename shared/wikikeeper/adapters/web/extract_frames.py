"""Frames: how the parent and the child that extracts text speak over their pipes.

A frame is its length in four bytes, then that many bytes. A job is two frames (a JSON `Job`, the body), a reply is one
(a JSON `Reply`). Nothing is unpickled: the child has parsed hostile data and is not trusted with more than text.
"""

import struct
from typing import IO, Literal

from wikikeeper.models import Findings, Value

_LENGTH = struct.Struct(">I")
LONGEST_REPLY = 64_000_000
"""Bytes that are taken from a child: several times the text of the largest body that is fetched."""

READY = b"ready"
"""The child's first frame: it has loaded its parsers and lowered its limits."""


Form = Literal["html", "pdf", "plain", "markdown"]


class BrokenFrame(Exception):
    """The other side ended, or sent what is no frame."""


class Job(Value):
    """One page to read. The body follows in a frame of its own."""

    form: Form
    charset: str | None
    fast: bool
    """Leave out the better and slower extractor."""


class Reply(Value):
    """What came out of it: a text, or why there is none."""

    unfetchable: str | None = None
    failed: str | None = None
    """The extractor gave up; another may do better."""
    title: str = ""
    paragraphs: tuple[str, ...] = ()
    concealed: tuple[str, ...] = ()
    findings: Findings = Findings()
    extractor: str = ""


def send(pipe: IO[bytes], payload: bytes) -> None:
    pipe.write(_LENGTH.pack(len(payload)))
    pipe.write(payload)
    pipe.flush()


def receive(pipe: IO[bytes], longest: int) -> bytes:
    """The next frame. Raises BrokenFrame when there is none, or one of more than `longest` bytes."""
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    if length > longest:
        raise BrokenFrame(f"a frame of {length} bytes")
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    payload = pipe.read(length)
    if len(payload) < length:
        raise BrokenFrame("the other side has ended")
    return payload
