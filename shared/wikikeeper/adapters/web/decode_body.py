"""Undoing Content-Encoding without ever holding more than was allowed: a bomb is noticed at the limit, not afterwards."""

import zlib
from collections.abc import Callable
from typing import Protocol

from wikikeeper.errors import FetchFailed, Unfetchable

ACCEPTED = "gzip, deflate, identity"
"""What servers are told. The standard library bounds these; brotli's and zstd's decoders are not in it."""


class _Inflater(Protocol):
    """What `zlib.decompressobj` returns; its class has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"


class BodyDecoder:
    """Decodes one body piece by piece, up to `limit` bytes in all."""

    def __init__(self, content_encoding: str, limit: int, pulse: Callable[[], object]) -> None:
        """`pulse` is called before each piece of work, to raise when time is up.

        Raises Unfetchable("unsupported_encoding") for anything but one layer of gzip or deflate.
        """
        layers = [name for name in (part.strip().lower() for part in content_encoding.split(",")) if name]
        layers = [name for name in layers if name != "identity"]
        if len(layers) > 1 or (layers and layers[0] not in ("gzip", "x-gzip", "deflate")):
            raise Unfetchable("unsupported_encoding", content_encoding[:80])
        self._layer = layers[0].removeprefix("x-") if layers else None
        self.decodes = self._layer is not None
        """False for a body that is sent as it is."""
        self._left = limit
        self._limit = limit
        self._pulse = pulse
        self._inflater: _Inflater | None = None
        self._head = b""
        """The first bytes of a stream, until there are enough to tell what it is."""
        self._streams = 0
        self._padding = False

    def feed(self, piece: bytes) -> bytes:
        """What a piece decodes to. Raises Unfetchable: too_large, broken_encoding."""
        self._pulse()
        if self._layer is None:
            return self._counted(piece)
        try:
            return self._inflate(piece)
        except zlib.error as error:
            raise Unfetchable("broken_encoding", f"{self._layer}: {error}") from error

    def finish(self) -> None:
        """The body has ended. Raises FetchFailed("interrupted") when the encoding had not."""
        if self._inflater is not None or (self._head and not self._streams):
            raise FetchFailed("interrupted", detail=f"the {self._layer} stream ends too early")

    def _inflate(self, piece: bytes) -> bytes:
        out = bytearray()
        while piece and not self._padding:
            if self._inflater is None:
                piece, self._head = self._head + piece, b""
                if len(piece) < 2:
                    self._head = piece
                    break
                # Files in gzip may follow one another; what else follows a stream is padding, which browsers skip too.
                self._padding = self._streams > 0 and not (self._layer == "gzip" and piece.startswith(_GZIP_MAGIC))
                if self._padding:
                    break
                self._inflater = zlib.decompressobj(self._window(piece))
                self._streams += 1
            out += self._counted(self._inflater.decompress(piece, self._left + 1))
            piece = b""
            if self._inflater.eof:
                piece, self._inflater = self._inflater.unused_data, None
                self._pulse()
        return bytes(out)

    def _window(self, head: bytes) -> int:
        if self._layer == "gzip":
            return _GZIP
        # RFC 9110 means zlib's format by "deflate", but servers send the bare one too.
        return _ZLIB if head[0] & 0x0F == zlib.DEFLATED and (head[0] << 8 | head[1]) % 31 == 0 else _RAW

    def _counted(self, decoded: bytes) -> bytes:
        self._left -= len(decoded)
        if self._left < 0:
            raise Unfetchable("too_large", f"more than {self._limit} bytes")
        return decoded
