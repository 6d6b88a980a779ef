"""TypeScript classes as Ray actors, for Python programs."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from rayling.actors.child import Child
from rayling.actors.connection import Connection, Stream
from rayling.actors.core import arguments
from rayling.actors.protocol import resolve_module
from rayling.errors import ActorDiedError, RaylingError

__all__ = ["TypeScriptActor", "remote_ts", "shipped_ts"]

#: As of asynchronous actors of Ray.
_MAX_CONCURRENCY = 1000
_STREAM_WINDOW = 16
#: In the code that a driver on Ray has brought.
_SHIPPED_CODE = "rayling-code.json"
#: Seconds that answers given before the process ended have to leave this one.
_LAST_ANSWERS = 0.1
#: Ray gives an actor 30 s.
_SHUTDOWN_SECONDS = 25.0


class TypeScriptActor:
    """What Ray runs: a worker process that ends when its Node process does, and the reverse.

    Ray places, names, restarts and kills it. `remote_ts` makes subclasses of it, with the methods.
    """

    def __init__(
        self,
        module: tuple[str, str],
        export: str,
        env: Mapping[str, str] | None,
        args: list[Any],
    ) -> None:
        """Starts the Node process and makes the instance.

        Args:
            module: the path that it had for the driver, and the one that the driver wrote, which is
                looked for from this process' directory: that of `working_dir`.
            export: the name of the class.
            env: variables to set beside those of this process.
            args: of the constructor.
        """
        absolute, written = module
        path = absolute if Path(absolute).is_file() else resolve_module(written)
        self.rayling_turn = threading.Lock()
        # What the class prints is the worker's output, which Ray brings to the driver.
        child = Child("python/actor-host/main", env=env, is_captured=False)
        self.rayling_connection = Connection(child, path, export)
        self.rayling_connection.open_blocking(args)
        # Until an event loop serves the connection, nobody else notices its end.
        threading.Thread(target=self._rayling_watch, name="rayling-watch", daemon=True).start()

    def rayling_call_blocking(self, method: str, args: list[Any]) -> Any:
        """Calls a method of the instance, one at a time; the empty name is a function."""
        try:
            return self.rayling_connection.call_blocking(method, args)
        except ActorDiedError as died:
            self._rayling_die(died)

    def __ray_shutdown__(self) -> None:
        """Runs the `__ray_shutdown__` of the instance as Ray lets the actor go."""
        self.rayling_is_over = True
        self.rayling_connection.close_blocking(_SHUTDOWN_SECONDS)

    rayling_is_over = False

    def _rayling_watch(self) -> None:
        died = self.rayling_connection.wait()
        if not self.rayling_connection.is_attached and not self.rayling_is_over:
            self._rayling_die(died)

    def rayling_end(self, died: ActorDiedError) -> None:
        """Ends this process after its Node process, without waiting for that."""
        if not self.rayling_is_over:
            threading.Thread(target=self._rayling_die, args=[died], daemon=True).start()

    def _rayling_die(self, died: ActorDiedError) -> NoReturn:
        """Ends this process, so that Ray sees the death and restarts by `max_restarts`."""
        print(died, file=sys.stderr, flush=True)
        time.sleep(_LAST_ANSWERS)
        os._exit(1)


def remote_ts(
    module: str | os.PathLike[str],
    export: str = "default",
    *,
    methods: Iterable[str] = (),
    streams: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Any:
    """Returns a Ray actor class of a TypeScript class: `Counter.remote(1)` makes an actor of it.

    The package `rayling` and the module have to be there on the nodes of the cluster; a relative
    path is also looked for in the `working_dir` of the runtime environment.

    Args:
        module: the file that exports the class.
        export: its name. An exported function is the method `call`.
        methods: the methods that can be called, as `actor.add.remote(2)`. Keywords arrive as one
            object, the last argument.
        streams: those that are generators. Their calls return an `ObjectRefGenerator`, as those of
            generators in Python do (`num_returns="streaming"`).
        env: variables of the Node process.
        options: of `ray.remote`: `num_cpus`, `resources`, `max_restarts`, `max_task_retries`,
            `name`, `namespace`, `lifetime`, `get_if_exists`, `scheduling_strategy`, `runtime_env`
            and all others. `max_concurrency` is 1,000, as of classes with asynchronous methods in
            Python: calls run beside each other, in any order. With 1, as of other classes, each
            call ends before the next one of the same caller starts.

    Raises:
        FileNotFoundError: there is no such module here.
        ValueError: a method has a name that Ray or this class uses, or is named twice.
        TypeError: `methods` or `streams` is one text.
        RaylingError: Ray is not installed.
    """
    paths = (resolve_module(module), os.fspath(module))
    class_name = Path(paths[0]).stem if export == "default" else export
    is_ordered = options.get("max_concurrency") == 1
    members = _members(class_name, methods, streams, is_ordered=is_ordered)

    def construct(self: TypeScriptActor, *args: Any, **keywords: Any) -> None:
        TypeScriptActor.__init__(self, paths, export, env, arguments(args, keywords))

    return _actor_class(class_name, {**members, "__init__": construct}, options)


def shipped_ts(
    key: Mapping[str, Any], *, methods: Iterable[str], streams: Iterable[str], **options: Any
) -> Any:
    """Returns a Ray actor class of a class in a driver's code, which is the `working_dir`.

    Args:
        key: names the class there, as the driver's runtime does.
        methods: as of `remote_ts`.
        streams: as of `remote_ts`.
        options: as of `remote_ts`.

    Raises:
        ValueError: a method has a name that Ray or this class uses.
    """
    name, text = str(key["name"]), json.dumps(key)
    is_ordered = options.get("max_concurrency") == 1
    members = _members(name, methods, streams, is_ordered=is_ordered)

    def construct(self: TypeScriptActor, *args: Any) -> None:
        TypeScriptActor.__init__(self, ("", _SHIPPED_CODE), text, None, list(args))

    return _actor_class(name, {**members, "__init__": construct}, options)


def _members(
    class_name: str, methods: Iterable[str], streams: Iterable[str], *, is_ordered: bool
) -> dict[str, Any]:
    method = _ordered_method if is_ordered else _method
    stream = _ordered_stream if is_ordered else _stream
    members: dict[str, Any] = {}
    for what, names, make in (("methods", methods, method), ("streams", streams, stream)):
        if isinstance(names, str):
            raise TypeError(f"{what} must be a list of names, and is {names!r}")
        for name in names:
            if name in members:
                raise ValueError(f"the method {name!r} is named twice")
            members[_checked(name)] = _named(make(name, class_name), name, class_name)
    return members


def _actor_class(name: str, members: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    try:
        import ray
    except ImportError as error:
        raise RaylingError("remote_ts needs Ray: pip install 'rayling[ray]'") from error
    # Ray ships the class itself; workers import what it stands on from the installed package.
    made = type(name, (TypeScriptActor,), {**members, "__module__": __name__})
    return ray.remote(**{"max_concurrency": _MAX_CONCURRENCY, **options})(made)


def _checked(name: str) -> str:
    is_ours = name.startswith(("__", "rayling_")) or hasattr(TypeScriptActor, name)
    if not name.isidentifier() or is_ours:
        raise ValueError(f"a method of an actor on Ray cannot have the name {name!r}")
    return name


def _named(method: Callable[..., Any], name: str, export: str) -> Callable[..., Any]:
    method.__name__ = name
    method.__qualname__ = f"{export}.{name}"
    return method


async def _call(actor: TypeScriptActor, method: str, args: list[Any]) -> Any:
    # Not a method: a class with one that is asynchronous is no plain class to Ray.
    connection = actor.rayling_connection
    if not connection.is_attached:
        connection.attach(actor.rayling_end)
    return await connection.call(method, args)


def _method(name: str, export: str) -> Callable[..., Any]:
    async def method(self: TypeScriptActor, *args: Any, **keywords: Any) -> Any:
        value = await _call(self, name, arguments(args, keywords))
        if isinstance(value, Stream):
            value.close()
            raise _is_generator(name, export)
        return value

    return method


def _stream(name: str, export: str) -> Callable[..., Any]:
    async def stream(self: TypeScriptActor, *args: Any, **keywords: Any) -> AsyncIterator[Any]:
        source = await _call(self, name, arguments(args, keywords))
        if not isinstance(source, Stream):
            raise _is_no_generator(name, export)
        source.begin(_STREAM_WINDOW)
        try:
            while True:
                try:
                    item = await source.next()
                except StopAsyncIteration:
                    return
                yield item
        finally:
            source.close()

    return stream


def _ordered_method(name: str, export: str) -> Callable[..., Any]:
    def method(self: TypeScriptActor, *args: Any, **keywords: Any) -> Any:
        with self.rayling_turn:
            value = self.rayling_call_blocking(name, arguments(args, keywords))
            if isinstance(value, Generator):
                raise _is_generator(name, export)
            return value

    return method


def _ordered_stream(name: str, export: str) -> Callable[..., Any]:
    def stream(self: TypeScriptActor, *args: Any, **keywords: Any) -> Iterator[Any]:
        with self.rayling_turn:
            source = self.rayling_call_blocking(name, arguments(args, keywords))
            if not isinstance(source, Generator):
                raise _is_no_generator(name, export)
            try:
                yield from source
            except ActorDiedError as died:
                self._rayling_die(died)

    return stream


def _is_generator(name: str, export: str) -> TypeError:
    return TypeError(f"{name} of {export} is a generator: name it in streams=[{name!r}]")


def _is_no_generator(name: str, export: str) -> TypeError:
    return TypeError(f"{name} of {export} is no generator: name it in methods=[{name!r}]")
