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
from collections.abc import Mapping
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


class Foreign:
    """The Python actors that the driver has made or found, by the ids that it gave them."""

    def __init__(self) -> None:
        """Has none yet."""
        self._actors: dict[str, asyncio.Future[Any]] = {}
        self._makers: dict[str, Any] = {}

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
            actor = await self._actors[given["actorId"]]
            method = getattr(actor, given["method"], None)
            if method is None:
                return _failure("method", AttributeError(given["method"]))
            args, keywords = _decoded(given["args"])
            return _encoded(await _result(method.remote(*args, **keywords)))
        except Exception as error:
            return _described(error)

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
        maker = self._maker(given.get("workingDir"))
        [actor] = await maker.make.remote(given["path"], given["options"], args, keywords)
        return _unchecked(actor)

    async def _make(self, given: Mapping[str, Any]) -> Any:
        args, _ = _decoded(given["args"])
        made = shipped_ts(
            given["key"],
            methods=given["methods"],
            streams=given["streams"],
            max_concurrency=given["options"]["max_concurrency"],
        )
        there = {"working_dir": given["workingDir"]}
        return made.options(**given["options"], runtime_env=there).remote(*args)

    async def _find(self, given: Mapping[str, Any]) -> Any:
        actor = await asyncio.to_thread(ray.get_actor, given["name"], given.get("namespace"))
        return _unchecked(actor)

    def _maker(self, working_dir: str | None) -> Any:
        maker = self._makers.get(working_dir or "")
        if maker is None:
            environment = {} if working_dir is None else {"working_dir": working_dir}
            make = ray.remote(num_cpus=0, max_concurrency=64)(_Maker)
            maker = make.options(runtime_env=environment).remote()
            self._makers[working_dir or ""] = maker
        return maker


class _Maker:
    """Makes actors where their modules can be imported, and owns them as long as the job lasts."""

    def make(self, path: str, options: dict[str, Any], args: list[Any], keywords: Any) -> list[Any]:
        module, _, name = path.partition(":")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if inspect.isclass(found):
            # Without options `ray.remote` takes no call.
            found = ray.remote(found)
        if not isinstance(found, ray.actor.ActorClass):
            raise RaylingError(f"{path} is no class")
        # In a list, the handle itself is the value, and not what the call waits for.
        return [found.options(**options).remote(*args, **keywords)]


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


def _described(error: Exception) -> dict[str, Any]:
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause if isinstance(error.cause, BaseException) else error
        if isinstance(cause, TypeScriptError):
            about = {"kind": "thrown", "type": cause.name, "message": cause.message}
            return {"failure": {**about, "traceback": cause.stack}}
        # Its text is the traceback, in colours.
        return _failure("thrown", cause, _COLOUR.sub("", str(error)))
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
