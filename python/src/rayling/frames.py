"""Messages between this process and its Node process.

A frame is a length of 4 bytes (little endian, of what follows), one byte that says how the text is to
be read, and JSON. The other side is `packages/rayling/src/python/frames.ts`.

JavaScript's numbers have no integers beyond 2**53, and JSON has no number that is not finite. Where a
message has one, its text is marked, and the number stands there as `{"$int": "…"}` or
`{"$float": "…"}`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import Any

__all__ = ["FrameReader", "frame"]

_PLAIN = 0
_MARKED = 1

_HEAD = struct.Struct("<IB")

#: Integers up to this one, and down to its negative, are exact in JavaScript.
MAX_SAFE_INTEGER = 2**53 - 1

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def frame(message: object, *, marked: bool = False) -> bytes:
    """Returns the frame of a message of plain values.

    Args:
        message: plain values, as `values.plain` gives them.
        marked: whether its numbers have been marked by `mark`.
    """
    text = _encode(message).encode("ascii")
    return _HEAD.pack(len(text) + 1, _MARKED if marked else _PLAIN) + text


def mark(value: int | float) -> object:
    """Returns what stands for a number that JSON or JavaScript cannot carry."""
    if isinstance(value, int):
        return {"$int": str(value)}
    if math.isnan(value):
        return {"$float": "NaN"}
    return {"$float": "Infinity" if value > 0 else "-Infinity"}


def _unmark(pairs: dict[str, Any]) -> Any:
    if len(pairs) == 1:
        if "$int" in pairs:
            return int(pairs["$int"])
        if "$float" in pairs:
            return float(pairs["$float"])
    return pairs


class FrameReader:
    """Takes bytes as they come, and gives the messages that are whole."""

    def __init__(self) -> None:
        """Starts with no bytes."""
        self._bytes = bytearray()

    def read(self, data: bytes) -> Iterator[Any]:
        """Yields the messages that are whole with these bytes."""
        self._bytes += data
        while len(self._bytes) >= _HEAD.size:
            length, kind = _HEAD.unpack_from(self._bytes)
            end = 4 + length
            if len(self._bytes) < end:
                return
            text = bytes(self._bytes[_HEAD.size : end])
            del self._bytes[:end]
            yield json.loads(text, object_hook=_unmark if kind == _MARKED else None)
