"""TypeScript classes in child processes: handles that block, and handles for asyncio."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rayling.actors.background import background_loop
from rayling.actors.child import Child
from rayling.actors.connection import Connection, Stream
from rayling.actors.protocol import resolve_module
from rayling.errors import RaylingError

__all__ = [
    "Actor",
    "ActorStream",
    "AsyncActor",
    "AsyncActorStream",
    "AsyncMethod",
    "Method",
    "open_actor",
    "open_actor_async",
]

T = TypeVar("T")

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
            ValueError: one is not positive.
        """
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"timeout must be positive seconds, and is {self.timeout!r}")
        if self.generator_backpressure_num_objects < 1:
            raise ValueError(
                "generator_backpressure_num_objects must be at least 1, and is "
                f"{self.generator_backpressure_num_objects!r}"
            )


def arguments(args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Any]:
    """Returns the arguments of a call: keywords are one object, the last."""
    return [*args, keywords] if keywords else list(args)


async def _in_time(work: Coroutine[Any, Any, T], seconds: float | None, what: str) -> T:
    if seconds is None:
        return await work
    try:
        return await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError:
        raise TimeoutError(f"{what} gave no answer in {seconds} s") from None


async def _call(connection: Connection, method: str, options: CallOptions, args: list[Any]) -> Any:
    what = f"{method or 'a call'} of {connection.name}"
    value = await _in_time(connection.call(method, args), options.timeout, what)
    if isinstance(value, Stream):
        value.begin(options.generator_backpressure_num_objects)
    return value


async def _opened(connection: Connection, args: list[Any], timeout: float | None) -> None:
    connection.attach()
    await _in_time(connection.open(args), timeout, f"the constructor of {connection.name}")


class AsyncMethod:
    """A method of a TypeScript class; a call is a coroutine."""

    def __init__(self, connection: Connection, name: str, options: CallOptions) -> None:
        """Made by `AsyncActor`."""
        self._connection = connection
        self._name = name
        self._options = options

    def options(self, **options: Any) -> AsyncMethod:
        """Returns the method with other options.

        Args:
            options: `timeout`, seconds until `TimeoutError`, for each item where the method is a
                generator; `generator_backpressure_num_objects` (16), the items that a generator may
                be ahead of its reader.

        Raises:
            TypeError: there is no such option.
            ValueError: a value is not positive.
        """
        return AsyncMethod(self._connection, self._name, replace(self._options, **options))

    async def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the method. Keywords arrive as one object, the last argument.

        Returns:
            The value; an `AsyncActorStream` where the method is a generator.

        Raises:
            TypeScriptError: the method threw.
            ActorDiedError: the process is gone.
            TimeoutError: by the option.
        """
        value = await _call(self._connection, self._name, self._options, arguments(args, keywords))
        if isinstance(value, Stream):
            return AsyncActorStream(value, self._options)
        return value


class AsyncActorStream(AsyncIterator[Any]):
    """What a generator in TypeScript yields, for `async for`."""

    def __init__(self, stream: Stream, options: CallOptions) -> None:
        """Made by `AsyncMethod`."""
        self._stream = stream
        self._timeout = options.timeout
        loop = asyncio.get_running_loop()
        weakref.finalize(self, _soon, loop, stream.close).atexit = False

    async def __anext__(self) -> Any:
        """Returns the next item."""
        return await _in_time(self._stream.next(), self._timeout, "a stream")

    async def aclose(self) -> None:
        """Ends the generator. Idempotent."""
        self._stream.close()


class AsyncActor:
    """A TypeScript class in a Node process of its own, for asyncio.

    An attribute is a method of the class; where a name is taken by this handle, `method(name)` is.
    An exported function is called as `await handle(...)`.
    """

    def __init__(self, connection: Connection) -> None:
        """Made by `rayling.open_async`."""
        self._connection = connection
        weakref.finalize(self, connection.kill)

    @property
    def pid(self) -> int:
        """The process id of the Node process."""
        return self._connection.pid

    def method(self, name: str) -> AsyncMethod:
        """Returns a method by its name."""
        return AsyncMethod(self._connection, name, CallOptions())

    def __getattr__(self, name: str) -> AsyncMethod:
        """Returns the method of that name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.method(name)

    async def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls an exported function."""
        return await self.method("")(*args, **keywords)

    async def close(self, timeout: float = 10.0) -> None:
        """Runs the instance's `__ray_shutdown__` or `Symbol.asyncDispose`, and ends the process.

        Idempotent. Calls that are under way fail with `ActorDiedError`.

        Args:
            timeout: seconds after which the process is killed.
        """
        await self._connection.close(timeout)

    def kill(self) -> None:
        """Kills the process and all that it started. Idempotent."""
        self._connection.kill()

    async def __aenter__(self) -> AsyncActor:
        """Returns the handle."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the handle."""
        await self.close()


class Opening:
    """An actor that is being opened: `await` it, or `async with` it."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, AsyncActor]]) -> None:
        """Made by `rayling.open_async`."""
        self._make = make
        self._actor: AsyncActor | None = None

    def __await__(self) -> Generator[Any, None, AsyncActor]:
        """Returns the handle."""
        return self._make().__await__()

    async def __aenter__(self) -> AsyncActor:
        """Returns the handle."""
        self._actor = await self._make()
        return self._actor

    async def __aexit__(self, *_: object) -> None:
        """Closes the handle."""
        if self._actor is not None:
            await self._actor.close()


class Method:
    """A method of a TypeScript class; a call blocks until it is answered."""

    def __init__(self, actor: Actor, name: str, options: CallOptions) -> None:
        """Made by `Actor`."""
        self._actor = actor
        self._name = name
        self._options = options

    def options(self, **options: Any) -> Method:
        """Returns the method with other options.

        Args:
            options: `timeout`, seconds until `TimeoutError`, for each item where the method is a
                generator; `generator_backpressure_num_objects` (16), the items that a generator may
                be ahead of its reader.

        Raises:
            TypeError: there is no such option.
            ValueError: a value is not positive.
        """
        return Method(self._actor, self._name, replace(self._options, **options))

    def submit(self, *args: Any, **keywords: Any) -> Future[Any]:
        """Calls the method, and returns at once.

        Returns:
            A future of what a call returns. `cancel()` aborts the call's signal.
        """
        return self._actor._run(self._answer(arguments(args, keywords)))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the method. Keywords arrive as one object, the last argument.

        Returns:
            The value; an `ActorStream` where the method is a generator.

        Raises:
            TypeScriptError: the method threw.
            ActorDiedError: the process is gone.
            TimeoutError: by the option.
        """
        return _result(self.submit(*args, **keywords))

    async def _answer(self, args: list[Any]) -> Any:
        value = await _call(self._actor._connection, self._name, self._options, args)
        return (
            ActorStream(self._actor, value, self._options) if isinstance(value, Stream) else value
        )


class ActorStream(Iterator[Any]):
    """What a generator in TypeScript yields, for `for`."""

    def __init__(self, actor: Actor, stream: Stream, options: CallOptions) -> None:
        """Made by `Method`."""
        self._actor = actor
        self._stream = stream
        self._timeout = options.timeout
        weakref.finalize(self, _soon, background_loop(), stream.close).atexit = False

    def __next__(self) -> Any:
        """Returns the next item."""
        work = _in_time(self._stream.next(), self._timeout, "a stream")
        try:
            return _result(self._actor._run(work))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """Ends the generator. Idempotent."""
        _soon(background_loop(), self._stream.close)


class Actor:
    """A TypeScript class in a Node process of its own. Safe for threads.

    An attribute is a method of the class; where a name is taken by this handle, `method(name)` is.
    An exported function is called as `handle(...)`.
    """

    def __init__(self, connection: Connection) -> None:
        """Made by `rayling.open`."""
        self._connection = connection
        self._owner = os.getpid()
        weakref.finalize(self, connection.kill)

    @property
    def pid(self) -> int:
        """The process id of the Node process."""
        return self._connection.pid

    def _run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs work on the connection's event loop.

        Raises:
            RaylingError: another process opened the actor.
        """
        if os.getpid() != self._owner:
            work.close()
            raise RaylingError(
                f"{self._connection.name} was opened by process {self._owner}, and a fork of it has "
                "no part in it: open it in this process"
            )
        return asyncio.run_coroutine_threadsafe(work, background_loop())

    def method(self, name: str) -> Method:
        """Returns a method by its name."""
        return Method(self, name, CallOptions())

    def __getattr__(self, name: str) -> Method:
        """Returns the method of that name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.method(name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls an exported function."""
        return self.method("")(*args, **keywords)

    def close(self, timeout: float = 10.0) -> None:
        """Runs the instance's `__ray_shutdown__` or `Symbol.asyncDispose`, and ends the process.

        Idempotent. Calls that are under way fail with `ActorDiedError`.

        Args:
            timeout: seconds after which the process is killed.
        """
        _result(self._run(self._connection.close(timeout)))

    def kill(self) -> None:
        """Kills the process and all that it started. Idempotent."""
        self._connection.kill()

    def __enter__(self) -> Actor:
        """Returns the handle."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the handle."""
        self.close()


def open_actor(
    module: str | os.PathLike[str],
    export: str = "default",
    *args: Any,
    env: Mapping[str, str] | None = None,
    logger: logging.Logger | None = None,
    timeout: float | None = None,
) -> Actor:
    """Opens a TypeScript class, or a function, in a Node process of its own.

    The process ends with the handle, and with this program, however that ends.

    Args:
        module: the file that exports it.
        export: its name.
        args: what the constructor gets.
        env: variables to set beside those of this process.
        logger: gets what the class prints, stdout as INFO and stderr as WARNING; default:
            `logging.getLogger("rayling.actors")`.
        timeout: seconds for the module to load and the constructor to return.

    Raises:
        FileNotFoundError: there is no such module.
        TypeScriptError: the module or the constructor threw.
        ActorDiedError: the process ended.
        TimeoutError: by `timeout`.
        RuntimeNotFoundError: Node or the JavaScript runtime is missing.
    """
    connection = _connection(module, export, env, logger)
    actor = Actor(connection)
    _result(actor._run(_opened(connection, list(args), timeout)))
    return actor


def open_actor_async(
    module: str | os.PathLike[str],
    export: str = "default",
    *args: Any,
    env: Mapping[str, str] | None = None,
    logger: logging.Logger | None = None,
    timeout: float | None = None,
) -> Opening:
    """Opens a TypeScript class, or a function, for asyncio: `await` it, or `async with` it.

    Arguments and errors are those of `rayling.open`. All calls are made on the running loop.
    """

    async def make() -> AsyncActor:
        connection = _connection(module, export, env, logger)
        actor = AsyncActor(connection)
        await _opened(connection, list(args), timeout)
        return actor

    return Opening(make)


def _connection(
    module: str | os.PathLike[str],
    export: str,
    env: Mapping[str, str] | None,
    logger: logging.Logger | None,
) -> Connection:
    path = resolve_module(module)
    child = Child("python/actor-host/main", env=env)
    return Connection(child, path, export, logger=logger or _standard_logger)


def _result(future: Future[T]) -> T:
    """Waits; what interrupts the wait cancels the call."""
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)
