"""Calls to the Node process of an actor, many at a time, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import logging
import os
import subprocess
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from rayling.actors.child import Child
from rayling.actors.output import Output
from rayling.actors.protocol import Answer, Request, call_frame, control_frame, thrown
from rayling.errors import ActorDiedError, RaylingError
from rayling.wire import values
from rayling.wire.frames import Frame, FrameReader, FrameWriter

__all__ = ["Connection", "Stream"]

#: Lines of standard error that an error about the actor's death quotes.
_QUOTED_LINES = 20

_Value = asyncio.Future[Any]


class Connection:
    """One export of a module, served by a Node process of its own.

    All methods but `kill` run on the event loop that `attach` was called on.
    """

    def __init__(
        self,
        child: Child,
        module: str,
        export: str,
        *,
        logger: logging.Logger | None = None,
    ) -> None:
        """Takes a process that runs `python/actor-host/main`.

        Args:
            child: the process.
            module: the path of the module, absolute.
            export: the name of a class or a function that it exports.
            logger: gets what the class prints, where that is captured: stdout as INFO, and stderr
                as WARNING.
        """
        self.name = f"{export} of {module}"
        self._names = [module, export]
        self._child = child
        self._owner = os.getpid()
        self._reader = FrameReader()
        self._logger = logger
        self._writer = FrameWriter()
        self._ids = itertools.count(1)
        self._pending: dict[int, _Value] = {}
        self._streams: dict[int, Stream] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flush_is_due = False
        self._is_writing = False
        self._ended: int | None = None
        self._gone: asyncio.Future[None] | None = None
        self._is_closing = False
        self._on_end: Callable[[ActorDiedError], None] | None = None
        self._lines: deque[str] = deque(maxlen=_QUOTED_LINES)
        self._outputs: list[Output] = []

    @property
    def pid(self) -> int:
        """The process id of the Node process."""
        return self._child.process.pid

    @property
    def is_attached(self) -> bool:
        """Whether an event loop serves the connection."""
        return self._loop is not None

    def open_blocking(self, args: list[Any]) -> None:
        """Makes the instance, before there is an event loop, and waits for it.

        Raises:
            TypeScriptError: the module or the constructor threw.
            ActorDiedError: the process ended.
        """
        try:
            self._ask_blocking(0, *call_frame(Request.OPEN, 0, self._names, args))
        except BaseException:
            self._child.kill()
            raise

    def call_blocking(self, method: str, args: list[Any]) -> Any:
        """Calls a method without an event loop, one at a time.

        Returns:
            The value, or a generator where the method is one; that is read to its end or closed
            before the next call.

        Raises:
            TypeScriptError: the method threw.
            ActorDiedError: the process is gone.
        """
        self.check_process()
        number = next(self._ids)
        frame, buffers = call_frame(Request.CALL, number, [method], args)
        kind, value = self._ask_blocking(number, frame, buffers)
        return self._items_blocking(number) if kind == Answer.STREAM else value

    def _items_blocking(self, number: int) -> Generator[Any, None, None]:
        is_over = False
        try:
            while True:
                credit = control_frame(Request.CREDIT, number, 1)
                kind, value = self._ask_blocking(number, credit, ())
                is_over = kind == Answer.END
                if is_over:
                    return
                yield value
        except RaylingError:
            is_over = True
            raise
        finally:
            if not is_over:
                self._child.socket.sendall(control_frame(Request.CANCEL, number))

    def _ask_blocking(
        self, number: int, frame: bytes, buffers: Sequence[memoryview]
    ) -> tuple[int, Any]:
        socket = self._child.socket
        with contextlib.suppress(ConnectionError):
            socket.sendall(frame)
            for buffer in buffers:
                socket.sendall(buffer)
            while count := socket.recv_into(self._reader.target()):
                for head, parts in self._reader.received(count):
                    if head[1] == number:
                        return _answer(head, parts)
        raise self.wait()

    def wait(self) -> ActorDiedError:
        """Waits for the end of the process, in any thread, and returns how it ended."""
        return self._death(self._child.wait())

    async def open(self, args: list[Any]) -> None:
        """Makes the instance.

        Raises:
            TypeScriptError: the module or the constructor threw.
            ActorDiedError: the process ended.
        """
        try:
            self._send(*call_frame(Request.OPEN, 0, self._names, args))
            await self._expect(0)
        except BaseException:
            self._child.kill()
            raise

    def attach(self, on_end: Callable[[ActorDiedError], None] | None = None) -> None:
        """Serves the connection on the running event loop.

        Args:
            on_end: called once when the process has ended, in place of failing the calls that are
                under way: they wait for ever.
        """
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._gone = loop.create_future()
        self._on_end = on_end
        self._child.socket.setblocking(False)
        loop.add_reader(self._child.socket.fileno(), self._read)
        for stream, level in zip(
            self._child.outputs, (logging.INFO, logging.WARNING), strict=False
        ):
            self._outputs.append(Output(stream, level, self._print, loop))

    async def call(self, method: str, args: list[Any]) -> Any:
        """Calls a method, the empty name for an exported function.

        Returns:
            The value, or a `Stream` where the method is a generator.

        Raises:
            TypeScriptError: the method threw.
            ActorDiedError: the process is gone.
            RaylingError: another event loop serves the connection, or another process.
        """
        self._check_loop()
        number = next(self._ids)
        frame, buffers = call_frame(Request.CALL, number, [method], args)
        if self._ended is not None and self._on_end is None:
            raise self._death(self._ended)
        if self._ended is None:
            self._send(frame, buffers)
        return await self._expect(number)

    async def _expect(self, number: int) -> Any:
        future: _Value = self._running().create_future()
        self._pending[number] = future
        try:
            return await future
        except asyncio.CancelledError:
            if self._pending.pop(number, None) is not None:
                self.cancel(number)
            raise

    def check_process(self) -> None:
        """Checks that this process has opened it.

        Raises:
            RaylingError: another one has, of which this is a fork.
        """
        if os.getpid() != self._owner:
            raise RaylingError(
                f"{self.name} was opened by process {self._owner}, and a fork of it has no part in "
                "it: open it in this process"
            )

    def _check_loop(self) -> None:
        self.check_process()
        if asyncio.get_running_loop() is not self._loop:
            raise RaylingError(
                f"{self.name} was opened on another event loop: open it on this one, or by "
                "rayling.open, whose handles are for all threads"
            )

    def cancel(self, number: int) -> None:
        """Aborts the signal of a call, and ends its stream."""
        self._control(Request.CANCEL, number)

    def allow(self, number: int, items: int) -> None:
        """Lets a generator run on by so many items."""
        self._control(Request.CREDIT, number, items)

    def _control(self, *head: int) -> None:
        if self._ended is None:
            self._send(control_frame(*head), ())

    async def close(self, timeout: float) -> None:
        """Runs `__ray_shutdown__` of the instance, and ends the process. Idempotent.

        Args:
            timeout: seconds after which the process is killed.
        """
        if self._loop is None or self._gone is None or self._ended is not None:
            self._child.kill()
            return
        if not self._loop.is_running():
            # Nobody serves the connection any more.
            self._child.kill()
            return
        self._check_loop()
        if not self._is_closing:
            self._is_closing = True
            self._control(Request.CLOSE, 0)
        try:
            await asyncio.wait_for(asyncio.shield(self._gone), timeout)
        except asyncio.TimeoutError:
            self._child.kill()
            await asyncio.shield(self._gone)

    def close_blocking(self, timeout: float) -> None:
        """Closes from another thread than that of the event loop, or without one. Idempotent."""
        if self._loop is not None and self._loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(self.close(timeout), self._loop)
            with contextlib.suppress(FutureTimeoutError):
                closing.result(timeout)
        else:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._child.socket.setblocking(True)
                self._child.socket.sendall(control_frame(Request.CLOSE, 0))
                self._child.process.wait(timeout)
        self._child.kill()

    def kill(self) -> None:
        """Kills the process and all that it started. Idempotent, for any thread."""
        self._child.kill()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise RaylingError(f"{self.name} is not attached to an event loop")
        return self._loop

    def _send(self, frame: bytes, buffers: list[memoryview] | tuple[()]) -> None:
        self._writer.add(frame, buffers)
        if not self._flush_is_due and not self._is_writing:
            self._flush_is_due = True
            self._running().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        try:
            while parts := self._writer.pending():
                self._writer.written(self._child.socket.sendmsg(parts))
        except BlockingIOError:
            if not self._is_writing:
                self._is_writing = True
                self._running().add_writer(self._child.socket.fileno(), self._flush)
            return
        except OSError:
            # The process is gone: the end of the socket says so to everyone who waits.
            pass
        if self._is_writing:
            self._is_writing = False
            self._running().remove_writer(self._child.socket.fileno())

    def _read(self) -> None:
        try:
            count = self._child.socket.recv_into(self._reader.target())
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self._socket_ended()
            return
        try:
            frames = self._reader.received(count)
        except Exception as error:
            # What follows in the bytes cannot be told apart from it.
            self._lines.append(f"its answer cannot be read: {type(error).__name__}: {error}")
            self._child.kill()
            return
        for frame in frames:
            future = self._pending.pop(frame[0][1], None)
            stream = self._streams.get(frame[0][1])
            try:
                self._take(frame, future, stream)
            except Exception as error:
                unread = RaylingError(f"the answer cannot be read: {type(error).__name__}: {error}")
                if future is not None and not future.done():
                    future.set_exception(unread)
                elif stream is not None:
                    stream.finish(unread)

    def _take(self, frame: Frame, future: _Value | None, stream: Stream | None) -> None:
        head, buffers = frame
        kind, number = head[0], head[1]
        if kind in (Answer.VALUE, Answer.TAGGED):
            if future is not None and not future.done():
                future.set_result(
                    head[2] if kind == Answer.VALUE else values.decode(head[2], buffers)
                )
        elif kind in (Answer.ITEM, Answer.TAGGED_ITEM):
            if stream is not None:
                stream.put(head[2] if kind == Answer.ITEM else values.decode(head[2], buffers))
        elif kind == Answer.STREAM:
            if future is not None and not future.done():
                self._streams[number] = stream = Stream(self, number)
                future.set_result(stream)
            else:
                # Its caller has left.
                self.cancel(number)
        elif kind == Answer.ERROR:
            if future is not None and not future.done():
                future.set_exception(thrown(head[2]))
            elif stream is not None:
                stream.finish(thrown(head[2]))
        elif kind == Answer.END and stream is not None:
            stream.finish(None)

    def forget(self, number: int) -> None:
        """Drops a stream that nobody reads any more."""
        self._streams.pop(number, None)

    def _socket_ended(self) -> None:
        loop = self._running()
        loop.remove_reader(self._child.socket.fileno())
        if self._is_writing:
            loop.remove_writer(self._child.socket.fileno())
            self._is_writing = False
        ended = loop.run_in_executor(None, self._child.wait)
        ended.add_done_callback(lambda code: self._process_ended(code.result()))

    def _process_ended(self, code: int) -> None:
        for output in self._outputs:
            output.close()
        self._child.socket.close()
        self._ended = code
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if self._on_end is not None:
            self._on_end(self._death(code))
            return
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(self._death(code))
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.finish(self._death(code))

    def _death(self, code: int) -> ActorDiedError:
        if self._is_closing:
            return ActorDiedError(self.name)
        lines = tuple(self._lines)
        if code < 0:
            return ActorDiedError(self.name, None, -code, lines)
        return ActorDiedError(self.name, code, None, lines)

    def _print(self, level: int, line: str) -> None:
        if level == logging.WARNING:
            self._lines.append(line)
        if self._logger is not None:
            self._logger.log(level, "%s", line)


class Stream:
    """What a generator in TypeScript yields. The generator runs ahead by `window` items at most."""

    def __init__(self, connection: Connection, number: int) -> None:
        """Starts with nothing allowed: `begin` lets the generator run."""
        self._connection = connection
        self._number = number
        self._items: deque[Any] = deque()
        self._window = 0
        self._taken = 0
        self._is_over = False
        self._error: BaseException | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def begin(self, window: int) -> None:
        """Lets the generator run ahead by that many items."""
        self._window = window
        self._connection.allow(self._number, window)

    def put(self, item: Any) -> None:
        """Takes an item from the Node process."""
        self._items.append(item)
        self._wake()

    def finish(self, error: BaseException | None) -> None:
        """Ends the stream behind what has come."""
        self._is_over = True
        self._error = error
        self._connection.forget(self._number)
        self._wake()

    def close(self) -> None:
        """Ends the generator: its `finally` blocks run. Idempotent."""
        if not self._is_over:
            self.finish(None)
            self._items.clear()
            self._connection.cancel(self._number)

    async def next(self) -> Any:
        """Returns the next item. Of several readers each item has one.

        Raises:
            StopAsyncIteration: there is none.
        """
        self._connection.check_process()
        while not self._items:
            if self._is_over:
                error, self._error = self._error, None
                raise error if error is not None else StopAsyncIteration
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        item = self._items.popleft()
        self._taken += 1
        if self._taken * 2 >= self._window and not self._is_over:
            self._connection.allow(self._number, self._taken)
            self._taken = 0
        return item

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _answer(head: list[Any], parts: Sequence[io.BytesIO]) -> tuple[int, Any]:
    kind = head[0]
    if kind == Answer.ERROR:
        raise thrown(head[2])
    if kind in (Answer.TAGGED, Answer.TAGGED_ITEM):
        return kind, values.decode(head[2], parts)
    return kind, head[2] if len(head) > 2 else None
