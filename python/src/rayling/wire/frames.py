"""The frames between this program and a Node process of its own or of this machine.

A frame is `u32 head bytes, u32 buffers, u64 bytes of each buffer, head, buffers`, in little-endian.
The head is JSON text, and buffers are the memory of arrays and bytes. The other side is
`packages/rayling/src/python/wire/frames.ts`.
"""

from __future__ import annotations

import io
import json
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

__all__ = ["MAX_HEAD_BYTES", "Frame", "FrameReader", "FrameWriter", "encode_frame"]

_PREFIX = struct.Struct("<II")
_BUFFER_BYTES = 262_144
#: Strings of V8 are not longer than this.
MAX_HEAD_BYTES = 2**29 - 25

#: The decoded head, and the memory of each buffer.
Frame = tuple[list[Any], list[io.BytesIO]]


def encode_frame(head: str, buffers: Sequence[memoryview]) -> bytes:
    """Returns the bytes of a frame in front of its buffers.

    Raises:
        ValueError: the head is longer than a text in JavaScript may be.
    """
    text = head.encode("ascii")
    if len(text) > MAX_HEAD_BYTES:
        raise ValueError(
            f"the values take {len(text)} bytes as text, and at most {MAX_HEAD_BYTES} can travel "
            "at once: send bytes or NumPy arrays, or several calls"
        )
    if not buffers:
        return _PREFIX.pack(len(text), 0) + text
    lengths = struct.pack(f"<{len(buffers)}Q", *(buffer.nbytes for buffer in buffers))
    return _PREFIX.pack(len(text), len(buffers)) + lengths + text


class FrameWriter:
    """What is still to be written to a socket. Buffers are not copied."""

    def __init__(self) -> None:
        """Makes an empty one."""
        self._parts: deque[memoryview] = deque()
        self._small = bytearray()

    def add(self, frame: bytes, buffers: Sequence[memoryview]) -> None:
        """Adds a frame; buffers may not change until they are written."""
        self._small += frame
        if buffers:
            self._end_small()
            self._parts.extend(buffer for buffer in buffers if buffer.nbytes > 0)

    def pending(self) -> list[memoryview]:
        """Returns what is to be written next, for `sendmsg`; empty when all is written."""
        self._end_small()
        return [self._parts[index] for index in range(min(len(self._parts), 64))]

    def written(self, count: int) -> None:
        """Drops what was written."""
        while count > 0:
            part = self._parts[0]
            if part.nbytes > count:
                self._parts[0] = part[count:]
                return
            count -= part.nbytes
            self._parts.popleft()

    def _end_small(self) -> None:
        if self._small:
            self._parts.append(memoryview(self._small))
            self._small = bytearray()


class FrameReader:
    """Makes frames of what is read from a socket.

    The rest of a large buffer is read from the socket straight into the memory of its value.
    """

    def __init__(self) -> None:
        """Makes one at the begin of a frame."""
        self._memory = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._memory)
        self._start = 0
        self._end = 0
        self._head: list[Any] | None = None
        self._lengths: tuple[int, ...] = ()
        self._buffers: list[io.BytesIO] = []
        self._filling: memoryview | None = None

    def target(self) -> memoryview:
        """Returns the memory that the next bytes of the socket go to."""
        if self._filling is not None:
            return self._filling
        if self._start == self._end:
            self._start = self._end = 0
        return self._view[self._end :]

    def received(self, count: int) -> list[Frame]:
        """Takes as many bytes as were read into the target, and returns the frames they complete."""
        frames: list[Frame] = []
        if self._filling is None:
            self._end += count
        elif count < self._filling.nbytes:
            self._filling = self._filling[count:]
            return frames
        else:
            self._filling = None
        while self._step(frames):
            pass
        return frames

    def _step(self, frames: list[Frame]) -> bool:
        if self._head is None and not self._take_head():
            return False
        while len(self._buffers) < len(self._lengths):
            if not self._take_buffer(self._lengths[len(self._buffers)]):
                return False
        head = self._head
        if head is not None:
            frames.append((head, self._buffers))
        self._head = None
        self._lengths = ()
        self._buffers = []
        return True

    def _take_head(self) -> bool:
        available = self._end - self._start
        if available < _PREFIX.size:
            return self._make_room(_PREFIX.size)
        head_bytes, count = _PREFIX.unpack_from(self._memory, self._start)
        begin = _PREFIX.size + 8 * count
        whole = begin + head_bytes
        if available < whole:
            return self._make_room(whole)
        at = self._start
        if count > 0:
            self._lengths = struct.unpack_from(f"<{count}Q", self._memory, at + _PREFIX.size)
        # One that cannot be read is not read again.
        self._start = at + whole
        self._head = json.loads(str(self._view[at + begin : at + whole], "utf-8"))
        return True

    def _take_buffer(self, length: int) -> bool:
        # The value stands in these bytes: `getvalue` of a BytesIO that was filled in place, and
        # arrays on its memory, copy nothing.
        buffer = io.BytesIO(bytes(length))
        self._buffers.append(buffer)
        there = min(length, self._end - self._start)
        memory = buffer.getbuffer()
        memory[:there] = self._view[self._start : self._start + there]
        self._start += there
        if there == length:
            memory.release()
            return True
        self._filling = memory[there:]
        return False

    def _make_room(self, whole: int) -> bool:
        """Sees to it that a head of that many bytes fits behind the start."""
        rest = self._end - self._start
        if self._start + whole > len(self._memory):
            memory = bytearray(max(whole, _BUFFER_BYTES))
            memory[:rest] = self._view[self._start : self._end]
            self._memory = memory
            self._view = memoryview(memory)
            self._start = 0
            self._end = rest
        return False
