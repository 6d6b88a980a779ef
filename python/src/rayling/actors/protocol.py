"""The requests to the Node process of an actor, and its answers: `[kind, number, ...]`.

The other side is `packages/rayling/src/python/actor-host/main.ts`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rayling.errors import TypeScriptError
from rayling.texts import well_formed
from rayling.wire import values
from rayling.wire.frames import encode_frame

__all__ = ["Answer", "Request", "call_frame", "control_frame", "resolve_module", "thrown"]


class Request:
    """Kinds of requests."""

    CALL, TAGGED_CALL, CANCEL, CREDIT, CLOSE, OPEN, TAGGED_OPEN = range(7)


class Answer:
    """Kinds of answers."""

    VALUE, TAGGED, ERROR, STREAM, ITEM, TAGGED_ITEM, END = range(7)


_TAGGED = {Request.CALL: Request.TAGGED_CALL, Request.OPEN: Request.TAGGED_OPEN}


def call_frame(
    kind: int, number: int, names: list[str], args: list[Any]
) -> tuple[bytes, list[memoryview]]:
    """Returns the frame of a call or of the opening, and its buffers, which are not copied.

    Raises:
        TypeError: an argument cannot travel.
        ValueError: the arguments are too large for one call.
    """
    said, is_tagged, buffers = values.encode(args)
    front = values.text([_TAGGED[kind] if is_tagged else kind, number, *names])
    return encode_frame(f"{front[:-1]},{said}]", buffers), buffers


def control_frame(*head: int) -> bytes:
    """Returns the frame of a request that carries numbers alone."""
    # Node ends with all calls of the actor at a frame that is no JSON.
    return encode_frame(values.text(head), ())


def thrown(said: Mapping[str, Any]) -> TypeScriptError:
    """Returns the exception of what the Node process says was thrown."""
    cause = said["cause"]
    return TypeScriptError(
        said["name"],
        said["message"],
        said["stack"],
        said["code"],
        None if cause is None else thrown(cause),
    )


def resolve_module(module: str | os.PathLike[str]) -> str:
    """Returns the absolute path of a TypeScript module.

    Raises:
        FileNotFoundError: there is none.
    """
    path = Path(module).resolve()
    if not path.is_file():
        raise FileNotFoundError(well_formed(f"there is no module {path}"))
    return str(path)
