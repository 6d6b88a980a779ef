"""A reward loop in Node, for samples that come one by one in coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
import threading
import traceback
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rayling import runtime
from rayling.errors import HostLostError, RaylingError
from rayling.node_socket import open_shared
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

    Threads may use it together: each event loop has a connection of its own. So has the child of a
    fork, which opens it with its first sample; with `share` it is one to the same Node process.

    Args:
        options: options of the reward loop, by their names in the npm package.
        config: path of a YAML file with more of them.
        share: whether all processes of this machine that ask for the same in one Ray job have one
            loop together; else this process has one alone.
        columns: keys of the extra info that each outcome has; by default those of earlier outcomes.
        raises: whether an outcome without a score ends its batch, and so needs no columns.
    """

    #: Opened ahead of the first event loop.
    _socket: socket.socket | None

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
        self._asked = [str(runtime.find_runtime().folder), os.getcwd(), hello]
        self._scope = _scope() if share else None
        self._begin()
        _living.add(self)
        # Where that fails, the first sample says why.
        with contextlib.suppress(HostLostError):
            self._socket = self._open()

    def _begin(self) -> None:
        """Has no part in the loop yet: at first, and in the child of a fork."""
        self._lock = threading.Lock()
        scope = self._scope or f"process {uuid.uuid4()}"
        self._key = json.dumps([scope, *self._asked], sort_keys=True)
        self._socket = None
        self._connecting: dict[asyncio.AbstractEventLoop, asyncio.Future[_Connection]] = {}
        self._connections: dict[asyncio.AbstractEventLoop, _Connection] = {}

    async def score(
        self, data_source: str, response: str, ground_truth: Any, extra_info: Mapping[str, Any]
    ) -> Outcome:
        """Scores one sample, on any event loop. Samples of one turn of it travel together.

        Where the Node process is lost, another one is started, and the sample is sent again.

        Returns:
            Its outcome; `INVALID_SAMPLE` where JavaScript has nothing for a value of the sample.

        Raises:
            RewardLoopError: the loop cannot be opened.
            HostLostError: the Node process was lost each time.
        """
        row, is_tagged = _row(data_source, response, ground_truth, extra_info)
        loop = asyncio.get_running_loop()
        for attempt in range(_ATTEMPTS):
            try:
                connection = self._connections.get(loop)
                if connection is None or connection.is_closed:
                    connection = await self._connect(loop)
                return await connection.score(row, is_tagged)
            except HostLostError:
                if attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError

    def close(self) -> None:
        """Leaves the loop, which ends when the last process has left it. Idempotent."""
        with self._lock:
            connections, self._connections = self._connections, {}
            ahead, self._socket = self._socket, None
        for connection in connections.values():
            connection.close()
        if ahead is not None:
            ahead.close()

    def _open(self) -> socket.socket:
        opened = open_shared(_MODULE, self._key)
        try:
            opened.sendall(self._hello)
        except ConnectionError as error:
            opened.close()
            raise HostLostError(
                "the Node process of the reward loop ended as it was asked"
            ) from error
        return opened

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        """One at a time: all of a loop who find the connection gone wait for the same new one."""
        connecting = self._connecting.get(loop)
        if connecting is None:
            connecting = self._connecting[loop] = asyncio.ensure_future(self._attach(loop))
            connecting.add_done_callback(lambda _: self._connecting.pop(loop, None))
        return await asyncio.shield(connecting)

    async def _attach(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        with self._lock:
            opened, self._socket = self._socket, None
        opened = opened or self._open()
        opened.setblocking(False)
        connection = _Connection(loop, opened)
        await loop.create_connection(lambda: connection, sock=opened)
        with self._lock:
            self._connections[loop] = connection
            others = [one for one in self._connections.items() if one[0] is not loop]
            # Only now: between two event loops, one after the other, the Node process lives on.
            for other, unused in others:
                if unused.leave():
                    del self._connections[other]
        return connection


class _Connection(asyncio.BufferedProtocol):
    """Samples out, outcomes in, by their numbers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, opened: socket.socket) -> None:
        self._loop = loop
        self._socket = opened
        self._reader = FrameReader()
        self._lock = threading.Lock()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self._out: list[list[Any]] = []
        self._is_tagged = False
        self._last = 0
        self._is_ready = False
        self._failure: str | None = None
        #: Whether it takes no samples any more.
        self.is_closed = False
        self._lines = {
            "stdout": _Lines(output_logger.info),
            "stderr": _Lines(output_logger.warning),
        }

    async def score(self, row: list[Any], is_tagged: bool) -> Outcome:
        with self._lock:
            if self.is_closed:
                raise self._lost()
            self._last += 1
            waiting: asyncio.Future[Outcome] = self._loop.create_future()
            self._waiting[self._last] = waiting
        if not self._out:
            self._loop.call_soon(self._send)
        self._out.append([self._last, *row])
        self._is_tagged = self._is_tagged or is_tagged
        return await waiting

    def leave(self) -> bool:
        """Closes it where its event loop has ended, or rests and nobody waits. For any thread.

        A loop that rests may be one that was dropped without being closed; one that goes on opens
        another connection.
        """
        with self._lock:
            is_asked = any(not one.done() for one in self._waiting.values())
            if not self._loop.is_closed() and (self._loop.is_running() or is_asked):
                return False
            self.is_closed = True
        self.close()
        return True

    def close(self) -> None:
        """Closes it, from any thread."""
        self.is_closed = True
        # The other side is to know it also where the event loop does not run any more.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._loop.call_soon_threadsafe(self._abort)
        except RuntimeError:
            # The event loop is closed.
            self._socket.close()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's, which Ray takes where it is installed, are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

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
        self.is_closed = True
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
        if self._transport is None or self.is_closed:
            # Those who wait are told as the connection ends.
            return
        try:
            for frame in _frames(out, is_tagged):
                self._transport.writelines(frame)
        except Exception as error:
            # The event loop has called this, and would log it alone: they would wait for ever.
            problem = f"the samples of a turn cannot be sent: {type(error).__name__}: {error}"
            for number, *_ in out:
                waiting = self._waiting.pop(number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_exception(RaylingError(problem))


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
    """Yields the rows in frames that Node can read, each in parts.

    One that cannot be sent is its number and the reason.
    """
    frame = _frame(rows, is_tagged)
    if not isinstance(frame, str):
        yield frame
    elif len(rows) > 1:
        half = len(rows) // 2
        yield from _frames(rows[:half], is_tagged)
        yield from _frames(rows[half:], is_tagged)
    else:
        yield [encode_frame(_head([[rows[0][0], frame]], False)[0], ())]


def _frame(rows: list[list[Any]], is_tagged: bool) -> list[bytes | memoryview] | str:
    """Returns the frame of the rows, in parts, or why there is none."""
    try:
        head, buffers = _head(rows, is_tagged)
    except Exception as error:
        # A value that is plain, and has no text: one sample of the turn is invalid, and no other.
        return f"the sample cannot be sent: {type(error).__name__}: {error}"
    if len(head) > (_FULL_FRAME if len(rows) > 1 else MAX_HEAD_BYTES):
        return f"the sample takes {len(head)} bytes as text, and may take {MAX_HEAD_BYTES}"
    return [encode_frame(head, buffers), *buffers]


class _Lines:
    """Text as it comes, logged line by line."""

    def __init__(self, log: Callable[[str, str], None]) -> None:
        self._log = log
        self._rest = ""

    def add(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            try:
                self._log("%s", line)
            except Exception:
                # A handler of the user's: scores come over the same connection, and it stays.
                if logging.raiseExceptions:
                    traceback.print_exc()


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


_living: weakref.WeakSet[ScoreHost] = weakref.WeakSet()


def _begin_in_child() -> None:
    for host in list(_living):
        host._begin()


os.register_at_fork(after_in_child=_begin_in_child)
