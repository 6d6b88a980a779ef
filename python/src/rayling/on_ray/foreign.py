"""Actors of the cluster, for a TypeScript driver: made, found by name, called, ended.

They are made by their import path in Python, or of a class in the driver's code.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import inspect
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray

from rayling.actors.remote import shipped_ts
from rayling.errors import RaylingError, TypeScriptError
from rayling.wire import values

__all__ = ["Foreign"]


#: How a traceback names an error that a class threw as it was made.
_OF_TYPESCRIPT = "rayling.errors.TypeScriptError: "
#: What Ray says when a name is another actor's.
_TAKEN = re.compile(r"name (.*) \(namespace=.*\) is already taken|name '(.*)' already exists")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _by_value() -> Callable[[Any], list[str]]:
    """Returns a function that travels as its code: actors of other jobs have no package `rayling`."""

    def generators(of: Any) -> list[str]:
        import inspect

        def is_generator(method: Any) -> bool:
            method = inspect.unwrap(method)
            if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
                return True
            return getattr(method, "__ray_num_returns__", None) in ("streaming", "dynamic")

        kind = of if inspect.isclass(of) else type(of)
        return [name for name, one in inspect.getmembers(kind, callable) if is_generator(one)]

    return generators


#: Returns the names of the methods that are generators, of a class or an instance.
_generators = _by_value()


class Foreign:
    """The Python actors that the driver has made or found, by the ids that it gave them."""

    def __init__(self) -> None:
        """Has none yet."""
        self._actors: dict[str, asyncio.Future[Any]] = {}
        self._makers: dict[tuple[str, str], Any] = {}
        #: What Ray gives for the calls under way, by their ids; None: they are not made yet.
        self._calls: dict[str, Any] = {}
        #: Names of methods, by the ids that Ray has for the actors.
        self._generators: dict[str, asyncio.Future[Sequence[str]]] = {}

    async def create(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Makes an actor."""
        return await self._known(given["actorId"], self._create(given))

    async def make(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Makes an actor of a class in the driver's code."""
        return await self._known(given["actorId"], self._make(given))

    async def find(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Finds a named actor."""
        return await self._known(given["actorId"], self._find(given))

    async def list(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Lists the names of living actors: in the namespace of the job, or in all."""
        try:
            found = await asyncio.to_thread(ray.util.list_named_actors, all_namespaces=True)
        except Exception as error:
            return _described(error)
        own = ray.get_runtime_context().namespace
        everywhere = given["allNamespaces"]
        return _encoded([one for one in found if everywhere or one["namespace"] == own])

    async def call(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Calls a method, and waits for its value."""
        try:
            return await self._call(given)
        except Exception as error:
            return _described(error)
        finally:
            self._calls.pop(given["callId"], None)

    async def _call(self, given: Mapping[str, Any]) -> dict[str, Any]:
        call_id, name = given["callId"], given["method"]
        self._calls[call_id] = None
        actor = await self._actors[given["actorId"]]
        method = getattr(actor, name, None)
        if not isinstance(method, ray.actor.ActorMethod):
            return _failure("method", AttributeError(name))
        # Ray would give the first item of a generator as the result.
        is_generator = name in await self._generators_of(actor)
        if call_id not in self._calls:
            return _failure("cancelled", ray.exceptions.TaskCancelledError())
        args, keywords = _decoded(given["args"])
        # `options` takes the handle's word that it is no generator, and `remote` no keyword `self`.
        result = method._remote(args, keywords, num_returns="streaming" if is_generator else None)
        self._calls[call_id] = result
        value = await _result(result)
        try:
            return _encoded(value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            return _failure("thrown", kind(f"what it returned: {error}"))

    async def cancel(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Cancels a call; one that has its answer, or none to come, is left as it is."""
        result = self._calls.pop(given["callId"], None)
        try:
            if result is not None:
                ray.cancel(_one_of(result), recursive=given["recursive"])
        except Exception as error:
            return _described(error)
        return _encoded(None)

    async def kill(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Ends an actor."""
        try:
            ray.kill(await self._actors[given["actorId"]], no_restart=given["noRestart"])
        except Exception as error:
            return _described(error)
        return _encoded(None)

    async def _known(self, actor_id: str, making: Any) -> dict[str, Any]:
        future: asyncio.Future[Any] = asyncio.ensure_future(making)
        self._actors[actor_id] = future
        try:
            await future
        except Exception as error:
            return _described(error)
        return _encoded(None)

    async def _create(self, given: Mapping[str, Any]) -> Any:
        args, keywords = _decoded(given["args"])
        place = (given.get("workingDir") or "", given["path"].partition(":")[0])
        while True:
            is_old = place in self._makers
            maker = self._maker(place)
            try:
                made = await maker.make.remote(given["path"], given["options"], args, keywords)
                break
            except ray.exceptions.ActorDiedError:
                if self._makers.get(place) is maker:
                    del self._makers[place]
                # One that has died since it made others says nothing of this one.
                if not is_old:
                    raise
        actor, generators = made
        return self._with_generators(_unchecked(actor), generators)

    async def _make(self, given: Mapping[str, Any]) -> Any:
        args, _ = _decoded(given["args"])
        made = shipped_ts(
            given["key"],
            methods=given["methods"],
            streams=given["streams"],
            max_concurrency=given["options"]["max_concurrency"],
        )
        there = {"working_dir": given["workingDir"]}
        actor = made.options(**given["options"], runtime_env=there).remote(*args)
        return self._with_generators(actor, given["streams"])

    async def _find(self, given: Mapping[str, Any]) -> Any:
        actor = await asyncio.to_thread(ray.get_actor, given["name"], given.get("namespace"))
        return _unchecked(actor)

    def _with_generators(self, actor: Any, names: Sequence[str]) -> Any:
        known = asyncio.get_running_loop().create_future()
        known.set_result(names)
        self._generators[actor._actor_id.hex()] = known
        return actor

    def _generators_of(self, actor: Any) -> asyncio.Future[Sequence[str]]:
        """Returns what the actor itself says: its class cannot be imported here, as a rule."""
        actor_id = actor._actor_id.hex()
        known = self._generators.get(actor_id)
        if known is None:
            known = asyncio.ensure_future(_asked(actor))
            self._generators[actor_id] = known
            known.add_done_callback(lambda done: self._forget_failed(actor_id, done))
        return known

    def _forget_failed(self, actor_id: str, known: asyncio.Future[Sequence[str]]) -> None:
        if known.cancelled() or known.exception() is not None:
            del self._generators[actor_id]

    def _maker(self, place: tuple[str, str]) -> Any:
        """Returns the maker of a module alone: one that ends its process ends no other's actors."""
        maker = self._makers.get(place)
        if maker is None:
            working_dir, _ = place
            environment = {"working_dir": working_dir} if working_dir else {}
            make = ray.remote(num_cpus=0, max_concurrency=64)(_Maker)
            maker = make.options(runtime_env=environment).remote()
            self._makers[place] = maker
        return maker


class _Maker:
    """Makes actors where their module can be imported, and owns them as long as the job lasts."""

    def make(self, path: str, options: dict[str, Any], args: list[Any], keywords: Any) -> list[Any]:
        module, _, name = path.partition(":")
        try:
            found: Any = importlib.import_module(module)
        except SystemExit as end:
            raise RaylingError(f"the module {module} exits when it is imported: {end!r}") from None
        for part in name.split("."):
            found = getattr(found, part)
        if inspect.isclass(found):
            # Without options `ray.remote` takes no call.
            found = ray.remote(found)
        if not isinstance(found, ray.actor.ActorClass):
            raise RaylingError(f"{path} is no class")
        actor = found.options(**options).remote(*args, **keywords)
        # In a list, the handle itself is the value, and not what the call waits for.
        return [actor, _generators(found.__ray_metadata__.modified_class)]


async def _asked(actor: Any) -> Sequence[str]:
    if actor._ray_is_cross_language:
        return []
    names: Sequence[str] = await actor.__ray_call__.remote(_generators)
    return names


def _unchecked(actor: Any) -> Any:
    """Returns a handle that leaves the check of arguments to the actor.

    A process that cannot import the class gets a handle whose methods take no arguments.
    """
    anything = [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("keywords", inspect.Parameter.VAR_KEYWORD),
    ]
    for name in actor._ray_method_signatures:
        actor._ray_method_signatures[name] = anything
    return actor


def _one_of(result: Any) -> Any:
    """Returns what `ray.cancel` takes: any of several values of a call stands for the call."""
    return result[0] if isinstance(result, list) else result


async def _result(reference: Any) -> Any:
    if isinstance(reference, ray.ObjectRefGenerator):
        return [await one async for one in reference]
    if isinstance(reference, list):
        return await asyncio.gather(*reference)
    return await reference


def _decoded(given: Mapping[str, Any]) -> Any:
    buffers = [io.BytesIO(base64.b64decode(one)) for one in given["buffers"]]
    return values.decode(given["value"], buffers)


def _encoded(value: Any) -> dict[str, Any]:
    text, is_tagged, buffers = values.encode(value)
    if not is_tagged and '"$"' in text:
        # The driver takes every `$` for a tag.
        text, buffers = values.encode_tagged(value)
    texts = [base64.b64encode(one).decode() for one in buffers]
    return {"ok": {"value": json.loads(text), "buffers": texts}}


def _described(error: BaseException) -> dict[str, Any]:
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, ray.exceptions.RayError):
        # A coroutine here cannot raise the StopIteration of a method.
        return _described(error.__cause__)
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause if isinstance(error.cause, BaseException) else error
        if isinstance(cause, ray.exceptions.TaskCancelledError):
            return _failure("cancelled", cause)
        if isinstance(cause, TypeScriptError):
            about = {"kind": "thrown", "type": cause.name, "message": cause.message}
            return {"failure": {**about, "traceback": cause.stack}}
        # Its text is the traceback, in colours.
        return _failure("thrown", cause, _COLOUR.sub("", str(error)))
    if isinstance(error, ray.exceptions.UnserializableException):
        # Its text has the traceback of the error, whose class nobody but the actor can make.
        text = _COLOUR.sub("", str(error)).strip()
        about = {"kind": "thrown", "type": type(error).__name__, "traceback": text}
        return {"failure": {**about, "message": text.splitlines()[-1]}}
    if isinstance(error, ray.exceptions.TaskCancelledError):
        return _failure("cancelled", error)
    if isinstance(error, ray.exceptions.ActorUnavailableError):
        return _failure("unavailable", error)
    if isinstance(error, ray.exceptions.RayActorError):
        text = _COLOUR.sub("", str(error)).strip()
        return _failure("died", error, text if "\n" in text else "")
    if isinstance(error, ValueError) and "Failed to look up actor" in str(error):
        return _failure("missing", error)
    taken = _TAKEN.search(str(error)) if isinstance(error, ValueError) else None
    if taken is not None:
        return _failure("taken", ValueError(taken[1] or taken[2]))
    return _failure("refused", error)


def _failure(kind: str, error: BaseException, traceback: str = "") -> dict[str, Any]:
    message = _why_died(str(error)) if kind == "died" else str(error)
    about = {"kind": kind, "type": type(error).__name__, "message": message}
    return {"failure": {**about, "traceback": traceback}}


def _why_died(text: str) -> str:
    """Returns the line that says it; an error of TypeScript has its stack below."""
    lines = text.strip().splitlines() or [""]
    own = [line for line in lines if line.startswith(_OF_TYPESCRIPT)]
    return own[-1].removeprefix(_OF_TYPESCRIPT) if own else lines[-1]
