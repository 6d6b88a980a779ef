"""TypeScript classes in child processes: handles that block, and handles for asyncio."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from rayling.actors.core import ActorCore, Handle, HandleMethod, Items, check_seconds, result

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


class AsyncMethod(HandleMethod):
    """A method of a TypeScript class; a call is a coroutine."""

    async def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the method. Keywords arrive as one object, the last argument.

        Returns:
            The value; an `AsyncActorStream` where the method is a generator.

        Raises:
            TypeScriptError: the method threw.
            ActorDiedError: the process is gone.
            TimeoutError: by the option.
        """
        answer = await self._answer(args, keywords)
        return AsyncActorStream(answer) if isinstance(answer, Items) else answer


class AsyncActorStream(AsyncIterator[Any]):
    """What a generator in TypeScript yields, for `async for`."""

    def __init__(self, items: Items) -> None:
        """Made by `AsyncMethod`."""
        self._items = items

    async def __anext__(self) -> Any:
        """Returns the next item."""
        return await self._items.next()

    async def aclose(self) -> None:
        """Ends the generator. Idempotent."""
        self._items.close()


class AsyncActor(Handle[AsyncMethod]):
    """A TypeScript class in a Node process of its own, for asyncio.

    An attribute is a method of the class; where a name is taken by this handle, `method(name)` is.
    An exported function is called as `await handle(...)`.
    """

    def __init__(self, core: ActorCore) -> None:
        """Made by `rayling.open_async`."""
        super().__init__(core, AsyncMethod)

    async def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls an exported function."""
        return await self.method("")(*args, **keywords)

    async def close(self, timeout: float = 10.0) -> None:
        """Runs the instance's `__ray_shutdown__` or `Symbol.asyncDispose`, and ends the process.

        Idempotent. Calls that are under way fail with `ActorDiedError`.

        Args:
            timeout: seconds after which the process is killed.
        """
        await self._core.connection.close(timeout)

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


class Method(HandleMethod):
    """A method of a TypeScript class; a call blocks until it is answered."""

    def submit(self, *args: Any, **keywords: Any) -> Future[Any]:
        """Calls the method, and returns at once.

        Returns:
            A future of what a call returns. `cancel()` aborts the call's signal.
        """
        return self._core.run(self._blocking_answer(args, keywords))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the method. Keywords arrive as one object, the last argument.

        Returns:
            The value; an `ActorStream` where the method is a generator.

        Raises:
            TypeScriptError: the method threw.
            ActorDiedError: the process is gone.
            TimeoutError: by the option.
        """
        return result(self.submit(*args, **keywords))

    async def _blocking_answer(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        answer = await self._answer(args, keywords)
        return ActorStream(answer) if isinstance(answer, Items) else answer


class ActorStream(Iterator[Any]):
    """What a generator in TypeScript yields, for `for`."""

    def __init__(self, items: Items) -> None:
        """Made by `Method`."""
        self._items = items

    def __next__(self) -> Any:
        """Returns the next item."""
        try:
            return self._items.core.wait(self._items.next())
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """Ends the generator. Idempotent."""
        self._items.close_soon()


class Actor(Handle[Method]):
    """A TypeScript class in a Node process of its own. Safe for threads.

    An attribute is a method of the class; where a name is taken by this handle, `method(name)` is.
    An exported function is called as `handle(...)`.
    """

    def __init__(self, core: ActorCore) -> None:
        """Made by `rayling.open`."""
        super().__init__(core, Method)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls an exported function."""
        return self.method("")(*args, **keywords)

    def close(self, timeout: float = 10.0) -> None:
        """Runs the instance's `__ray_shutdown__` or `Symbol.asyncDispose`, and ends the process.

        Idempotent. Calls that are under way fail with `ActorDiedError`.

        Args:
            timeout: seconds after which the process is killed.
        """
        self._core.wait(self._core.connection.close(timeout))

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
        TypeError: `timeout` is not a number.
        ValueError: `timeout` is not positive.
    """
    check_seconds(timeout)
    core = ActorCore(module, export, env, logger)
    core.wait(core.open(args, timeout))
    return Actor(core)


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
    check_seconds(timeout)

    async def make() -> AsyncActor:
        core = ActorCore(module, export, env, logger)
        await core.open(args, timeout)
        return AsyncActor(core)

    return Opening(make)
