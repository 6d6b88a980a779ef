"""What a Node process prints, line by line, on an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import IO

__all__ = ["Output"]

_OUTPUT_BYTES = 65_536


class Output:
    """Lines of one standard stream of the process."""

    def __init__(
        self,
        stream: IO[bytes],
        level: int,
        on_line: Callable[[int, str], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Reads from now on.

        Args:
            stream: the end of a pipe.
            level: of `logging`, given to `on_line` with each line.
            on_line: called on the event loop.
            loop: the event loop.
        """
        self._stream: IO[bytes] | None = stream
        self._level = level
        self._on_line = on_line
        self._loop = loop
        self._rest = b""
        os.set_blocking(stream.fileno(), False)
        loop.add_reader(stream.fileno(), self._read)

    def _read(self) -> bool:
        """Returns whether there may be more at once."""
        if self._stream is None:
            return False
        try:
            data = os.read(self._stream.fileno(), _OUTPUT_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._end()
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(self._level, line.decode("utf-8", "replace"))
        return True

    def close(self) -> None:
        """Reads what is there, and no more: processes that the class started may hold the pipe."""
        while self._read():
            pass
        self._end()

    def _end(self) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            return
        self._loop.remove_reader(stream.fileno())
        stream.close()
        if self._rest:
            self._on_line(self._level, self._rest.decode("utf-8", "replace"))
            self._rest = b""
