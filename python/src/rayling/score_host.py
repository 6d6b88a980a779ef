"""A reward loop in Node, for samples that come one by one in coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rayling import runtime
from rayling.errors import HostLostError, RaylingError
from rayling.node_socket import open_own, open_shared
from rayling.plain import NotPlainError, Plain
from rayling.wire import values
from rayling.wire.frames import MAX_HEAD_BYTES, FrameReader, encode_frame

__all__ = ["Outcome", "RewardLoopError", "ScoreHost"]

#: What graders print: standard output at INFO, standard error at WARNING.
output_logger = logging.getLogger("rayling.output")

_MODULE = "python/score-host"

#: How often a sample is sent before its loss is an error.
_ATTEMPTS = 3

#: Samples of one turn travel in several frames where one would be longer.
_FULL_FRAME = 2**26


class RewardLoopError(RaylingError):
    """The reward loop cannot be opened: an option is wrong, or a module does not load."""


@dataclass(frozen=True)
class Outcome:
    """What became of one sample."""

    score: float | None
    """`None` where it could not be scored."""
    info: dict[str, Any] = field(default_factory=dict)
    """The extra info of the score function."""
    code: str | None = None
    """Why there is no score: `SCORE_THREW`, `SCORE_TIMEOUT`, `INVALID_SCORE`, ..."""
    message: str = ""
    kind: str = ""
    """`infrastructure`, `rate-limit`, `timeout`, `data` or `user-code`."""


class ScoreHost:
    """A reward loop in a Node process, which starts when this object is made.

    Args:
        options: options of the reward loop, by their names in the npm package.
        config: path of a YAML file with more of them.
        share: whether all processes of this machine that ask for the same in one Ray job have one
            loop together.
        columns: keys of the extra info that each outcome has; by default those of earlier outcomes.
        raises: whether an outcome without a score ends its batch, and so needs no columns.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        config: str | None = None,
        share: bool = True,
        columns: list[str] | None = None,
        raises: bool = False,
    ) -> None:
        """Starts the loop, and does not wait for it."""
        plain = Plain()
        hello: dict[str, Any] = {"options": plain.of(dict(options), "options"), "raises": raises}
        if config is not None:
            hello["config"] = os.path.abspath(config)
        if columns is not None:
            hello["columns"] = list(columns)
        head, buffers = _head(hello, plain.is_tagged)
        self._hello = b"".join([encode_frame(head, buffers), *buffers])
        self._key = json.dumps(
            [_scope(), str(runtime.find_runtime().folder), os.getcwd(), hello], sort_keys=True
        )
        self._is_shared = share
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = self._open()
        self._connecting: asyncio.Future[_Connection] | None = None
        self._connection: _Connection | None = None

    async def score(
        self, data_source: str, response: str, ground_truth: Any, extra_info: Mapping[str, Any]
    ) -> Outcome:
        """Scores one sample. Samples of one turn of the event loop travel together.

        Where the Node process is lost, another one is started, and the sample is sent again.

        Returns:
            Its outcome; `INVALID_SAMPLE` where JavaScript has nothing for a value of the sample.

        Raises:
            RewardLoopError: the loop cannot be opened.
            HostLostError: the Node process was lost each time.
        """
        row, is_tagged = _row(data_source, response, ground_truth, extra_info)
        for attempt in range(_ATTEMPTS):
            connection = self._connection
            if connection is None or not connection.is_open:
                connection = await self._connect()
            try:
                return await connection.score(row, is_tagged)
            except HostLostError:
                if attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError

    def close(self) -> None:
        """Leaves the loop, which ends when the last process has left it. Idempotent."""
        if self._connection is not None:
            self._connection.close()
        if self._socket is not None:
            self._socket.close()
        self._connection = self._socket = None

    def _open(self) -> socket.socket:
        if self._is_shared:
            opened = open_shared(_MODULE, self._key)
        else:
            opened, self._process = open_own(_MODULE)
        opened.sendall(self._hello)
        return opened

    async def _connect(self) -> _Connection:
        """One at a time: all who find the connection gone wait for the same new one."""
        loop = asyncio.get_running_loop()
        if self._connecting is not None and self._connecting.get_loop() is loop:
            return await asyncio.shield(self._connecting)
        self._connecting = connecting = asyncio.ensure_future(self._attach(loop))
        try:
            return await asyncio.shield(connecting)
        finally:
            if self._connecting is connecting:
                self._connecting = None

    async def _attach(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        opened = self._socket or self._open()
        self._socket = None
        opened.setblocking(False)
        connection = _Connection(loop, opened)
        await loop.create_connection(lambda: connection, sock=opened)
        if self._connection is not None:
            # Of an event loop before this one.
            self._connection.close()
        self._connection = connection
        return connection


class _Connection(asyncio.BufferedProtocol):
    """Samples out, outcomes in, by their numbers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, opened: socket.socket) -> None:
        self._loop = loop
        self._socket = opened
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self._out: list[list[Any]] = []
        self._is_tagged = False
        self._last = 0
        self._is_ready = False
        self._failure: str | None = None
        self._is_closed = False
        self._lines = {
            "stdout": _Lines(output_logger.info),
            "stderr": _Lines(output_logger.warning),
        }

    @property
    def is_open(self) -> bool:
        """Whether samples can be sent from the running event loop."""
        return not self._is_closed and asyncio.get_running_loop() is self._loop

    async def score(self, row: list[Any], is_tagged: bool) -> Outcome:
        if self._is_closed:
            raise self._lost()
        self._last += 1
        waiting: asyncio.Future[Outcome] = self._loop.create_future()
        self._waiting[self._last] = waiting
        if not self._out:
            self._loop.call_soon(self._send)
        self._out.append([self._last, *row])
        self._is_tagged = self._is_tagged or is_tagged
        return await waiting

    def close(self) -> None:
        self._is_closed = True
        # The other side is to know it also where the event loop does not run any more.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._loop.is_closed():
            self._socket.close()
        elif self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.target()

    def buffer_updated(self, nbytes: int) -> None:
        for (is_tagged, said), buffers in self._reader.received(nbytes):
            message = values.decode(said, buffers) if is_tagged else said
            if isinstance(message, list):
                for number, *outcome in message:
                    waiting = self._waiting.pop(number, None)
                    # Nobody waits for it any more where its task was cancelled.
                    if waiting is not None and not waiting.done():
                        waiting.set_result(Outcome(*outcome))
            elif "log" in message:
                self._lines[message["log"]].add(message["text"])
            elif "failed" in message:
                self._failure = message["failed"]
            else:
                self._is_ready = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            if not one.done():
                one.set_exception(self._lost())

    def _lost(self) -> RaylingError:
        if self._failure is not None:
            return RewardLoopError(self._failure)
        when = "while samples were under way" if self._is_ready else "while it started"
        return HostLostError(f"the Node process of the reward loop ended {when}")

    def _send(self) -> None:
        out, self._out = self._out, []
        is_tagged, self._is_tagged = self._is_tagged, False
        if self._transport is not None and not self._is_closed:
            for frame in _frames(out, is_tagged):
                self._transport.writelines(frame)


def _row(
    data_source: object, response: object, ground_truth: object, extra_info: object
) -> tuple[list[Any], bool]:
    """Returns what is sent of a sample behind its number, and whether it travels tagged.

    A sample that cannot be sent is one text, which says why: the loop answers for it, as it knows
    the columns of the others.
    """
    plain = Plain()
    try:
        row = [
            _of_kind(plain.of(data_source, "data_source"), str, "data_source", data_source),
            _of_kind(plain.of(response, "solution_str"), str, "solution_str", response),
            plain.of(ground_truth, "ground_truth"),
            _of_kind(plain.of(extra_info, "extra_info"), dict, "extra_info", extra_info),
        ]
    except NotPlainError as error:
        return [str(error)], False
    except Exception as error:
        # A value's own code: a container that computes what it holds.
        return [f"the sample cannot be read: {type(error).__name__}: {error}"], False
    return row, plain.is_tagged


def _of_kind(plain: Any, kind: type, place: str, value: object) -> Any:
    if isinstance(plain, kind):
        return plain
    must = "text" if kind is str else "a mapping"
    raise NotPlainError(place, value, f"is a {type(value).__qualname__}, and must be {must}")


def _frames(rows: list[list[Any]], is_tagged: bool) -> Iterator[list[bytes | memoryview]]:
    """Yields the rows in frames that Node can read, each in parts."""
    head, buffers = _head(rows, is_tagged)
    if len(head) <= (_FULL_FRAME if len(rows) > 1 else MAX_HEAD_BYTES):
        yield [encode_frame(head, buffers), *buffers]
    elif len(rows) > 1:
        half = len(rows) // 2
        yield from _frames(rows[:half], is_tagged)
        yield from _frames(rows[half:], is_tagged)
    else:
        problem = f"the sample takes {len(head)} bytes as text, and may take {MAX_HEAD_BYTES}"
        yield from _frames([[rows[0][0], problem]], False)


class _Lines:
    """Text as it comes, logged line by line."""

    def __init__(self, log: Callable[[str, str], None]) -> None:
        self._log = log
        self._rest = ""

    def add(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._log("%s", line)


def _head(message: object, is_tagged: bool) -> tuple[str, list[memoryview]]:
    """Returns the head of a frame, `[is_tagged, message]`, and its buffers; values are plain."""
    if not is_tagged:
        return f"[false,{values.text(message)}]", []
    text, buffers = values.encode_tagged(message)
    return f"[true,{text}]", buffers


def _scope() -> str:
    """Processes of one Ray job belong together; without Ray, those that one process has started."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        context = ray.get_runtime_context()
        return f"ray {context.gcs_address} {context.get_job_id()}"
    return f"parent {os.getppid()}"
