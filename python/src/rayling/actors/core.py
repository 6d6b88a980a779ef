"""The work of both kinds of handles: calls and streams of one actor, on the event loop that serves it."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Generic, TypeVar

from rayling.actors.background import background_loop
from rayling.actors.child import Child
from rayling.actors.connection import Connection, Stream
from rayling.actors.protocol import resolve_module
from rayling.errors import RaylingError
from rayling.texts import well_formed

__all__ = [
    "ActorCore",
    "CallOptions",
    "Handle",
    "HandleMethod",
    "Items",
    "arguments",
    "check_seconds",
]

T = TypeVar("T")
MethodT = TypeVar("MethodT", bound="HandleMethod")

#: Where classes print to, by default: stdout as INFO, stderr as WARNING.
_standard_logger = logging.getLogger("rayling.actors")


@dataclass(frozen=True)
class CallOptions:
    """Options of the calls of one method."""

    timeout: float | None = None
    """Seconds until `TimeoutError`; of a stream, for each item."""
    generator_backpressure_num_objects: int = 16
    """Items that a generator may be ahead of its reader."""

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            TypeError: one is not a number, or not a whole one.
            ValueError: one is not positive.
        """
        check_seconds(self.timeout)
        ahead = self.generator_backpressure_num_objects
        name = "generator_backpressure_num_objects"
        if isinstance(ahead, bool) or not isinstance(ahead, int):
            raise TypeError(f"{name} must be a whole number, and is {ahead!r}")
        if ahead < 1:
            raise ValueError(f"{name} must be at least 1, and is {ahead!r}")


def check_seconds(timeout: float | None) -> None:
    """Checks the option `timeout`.

    Raises:
        TypeError: it is not a number.
        ValueError: it is not positive; NaN is not.
    """
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise TypeError(f"timeout must be a number of seconds, and is {timeout!r}")
    # NaN is neither above 0 nor below.
    if not timeout > 0:
        raise ValueError(f"timeout must be positive seconds, and is {timeout!r}")


def arguments(args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Any]:
    """Returns the arguments of a call: keywords are one object, the last."""
    return [*args, keywords] if keywords else list(args)


class ActorCore:
    """One actor, for its handle, and the methods and streams of that. It is killed with the last."""

    def __init__(
        self,
        module: str | os.PathLike[str],
        export: str,
        env: Mapping[str, str] | None,
        logger: logging.Logger | None,
    ) -> None:
        """Starts the Node process.

        Raises:
            FileNotFoundError: there is no such module.
            RuntimeNotFoundError: Node or the JavaScript runtime is missing.
        """
        path = resolve_module(module)
        child = Child("python/actor-host/main", env=env)
        self.connection = Connection(child, path, export, logger=logger or _standard_logger)
        weakref.finalize(self, self.connection.kill)

    async def open(self, args: tuple[Any, ...], timeout: float | None) -> None:
        """Makes the instance; the running event loop serves the actor from now on."""
        connection = self.connection
        connection.attach()
        what = f"the constructor of {connection.name}"
        await _in_time(connection.open(list(args)), timeout, what)

    async def call(self, method: str, options: CallOptions, args: list[Any]) -> Any:
        """Calls a method.

        Returns:
            The value; `Items` where the method is a generator.
        """
        connection = self.connection
        what = f"{method or 'a call'} of {connection.name}"
        value = await _in_time(connection.call(method, args), options.timeout, what)
        return Items(self, value, options) if isinstance(value, Stream) else value

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs work on the event loop of the handles that block.

        Raises:
            RaylingError: another process opened the actor.
        """
        try:
            self.connection.check_process()
        except RaylingError:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, background_loop())

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs work there and waits for it; what interrupts the wait cancels the work."""
        return result(self.run(work))


class Items:
    """What a generator yields, on the event loop of its actor. The generator ends with this object."""

    def __init__(self, core: ActorCore, stream: Stream, options: CallOptions) -> None:
        """Lets the generator run. On the event loop of the actor."""
        self.core = core
        self._stream = stream
        self._timeout = options.timeout
        self._loop = asyncio.get_running_loop()
        weakref.finalize(self, _soon, self._loop, stream.close).atexit = False
        stream.begin(options.generator_backpressure_num_objects)

    async def next(self) -> Any:
        """Returns the next item.

        Raises:
            StopAsyncIteration: there is none.
            TimeoutError: by the option.
        """
        return await _in_time(self._stream.next(), self._timeout, "a stream")

    def close(self) -> None:
        """Ends the generator, on the event loop of the actor. Idempotent."""
        self._stream.close()

    def close_soon(self) -> None:
        """Ends the generator, from any thread. Idempotent."""
        _soon(self._loop, self._stream.close)


class HandleMethod:
    """A method of a TypeScript class, with the options of its calls."""

    def __init__(self, core: ActorCore, name: str, options: CallOptions) -> None:
        """Made by a handle."""
        self._core = core
        self._name = name
        self._options = options

    def options(self: MethodT, **options: Any) -> MethodT:
        """Returns the method with other options.

        Args:
            options: `timeout`, seconds until `TimeoutError`, for each item where the method is a
                generator; `generator_backpressure_num_objects` (16), the items that a generator may
                be ahead of its reader.

        Raises:
            TypeError: there is no such option, or its value is no number.
            ValueError: a value is not positive.
        """
        return type(self)(self._core, self._name, replace(self._options, **options))

    async def _answer(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        return await self._core.call(self._name, self._options, arguments(args, keywords))


class Handle(Generic[MethodT]):
    """A TypeScript class in a Node process of its own: an attribute is a method of the class."""

    def __init__(
        self, core: ActorCore, method: Callable[[ActorCore, str, CallOptions], MethodT]
    ) -> None:
        """Made by `rayling.open` and `rayling.open_async`."""
        self._core = core
        self._make_method = method

    @property
    def pid(self) -> int:
        """The process id of the Node process."""
        return self._core.connection.pid

    def method(self, name: str) -> MethodT:
        """Returns a method by its name."""
        return self._make_method(self._core, name, CallOptions())

    def __getattr__(self, name: str) -> MethodT:
        """Returns the method of that name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.method(name)

    def kill(self) -> None:
        """Kills the process and all that it started. Idempotent."""
        self._core.connection.kill()


def result(future: Future[T]) -> T:
    """Waits; what interrupts the wait cancels the call."""
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def _in_time(work: Coroutine[Any, Any, T], seconds: float | None, what: str) -> T:
    if seconds is None:
        return await work
    try:
        return await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError:
        raise TimeoutError(well_formed(f"{what} gave no answer in {seconds} s")) from None


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)
