"""Values between Python and TypeScript: JSON, and a form of its own for what JSON lacks.

The other side is `packages/core/src/protocol/values/python-values.ts`, which has the description.
"""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

__all__ = [
    "ABORT_SIGNAL",
    "MAX_SAFE_INTEGER",
    "AbortSignal",
    "decode",
    "encode",
    "encode_tagged",
    "text",
]


class AbortSignal:
    """Stands for the `AbortSignal` of a call: give `rayling.ABORT_SIGNAL` as an argument.

    It is aborted when the call is cancelled or its timeout ends.
    """

    def __repr__(self) -> str:
        """Shows the name that it is used by."""
        return "rayling.ABORT_SIGNAL"

    def __reduce__(self) -> str:
        """Lets it travel to an actor on Ray."""
        return "ABORT_SIGNAL"


ABORT_SIGNAL = AbortSignal()

#: Whole numbers beyond this one, and its negative, are `bigint` in TypeScript.
MAX_SAFE_INTEGER = 2**53 - 1
#: Levels of a value that holds more than JSON, with those of the message around it.
_DEEPEST = 250
#: A `Date` of JavaScript is this many milliseconds from 1970 at most.
_LAST_DATE = 8_640_000_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LONG_INTEGER = re.compile(r"(?<![.\d])\d{16}(?!\d*[.eE])")
_FORMATS = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


class _NotPlain(Exception):
    """The value holds something that JSON lacks."""


def _refuse(value: object) -> object:
    raise _NotPlain(f"JSON has nothing for a {type(value).__qualname__}")


_plain = json.JSONEncoder(
    allow_nan=False, check_circular=True, separators=(",", ":"), default=_refuse
).encode


def text(value: Any) -> str:
    """Returns JSON text of a value that JSON carries as it is."""
    return _plain(value)


def encode(value: Any) -> tuple[str, bool, list[memoryview]]:
    """Returns a value as JSON text, whether it holds tagged places, and its buffers, not copied.

    Raises:
        TypeError: something in it cannot travel; the message has its path.
        ValueError: an integer has more digits than Python writes; the message has its path.
    """
    try:
        said = _plain(value)
        if _LONG_INTEGER.search(said) is None:
            return said, False, []
    except (_NotPlain, ValueError, TypeError, RecursionError):
        # Tagged below, or refused with its path.
        pass
    tagged, buffers = encode_tagged(value)
    return tagged, True, buffers


def encode_tagged(value: Any) -> tuple[str, list[memoryview]]:
    """Returns a value as JSON text with tagged places, and its buffers, not copied.

    Raises:
        TypeError: something in it cannot travel; the message has its path.
        ValueError: an integer has more digits than Python writes; the message has its path.
    """
    buffers: list[memoryview] = []
    return json.dumps(_tagged(value, buffers, ()), separators=(",", ":")), buffers


def _tagged(value: Any, buffers: list[memoryview], path: tuple[object, ...]) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        number = int(value)
        is_safe = -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER
        return number if is_safe else {"$": ["i", _digits(number, path)]}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$": ["f", _not_finite(value)]}
    if isinstance(value, Mapping):
        return _tagged_mapping(value, buffers, path)
    if isinstance(value, list | tuple | set | frozenset):
        if len(path) > _DEEPEST:
            raise TypeError(f"{_place(path[:4])} is inside itself, or too deep")
        return [_tagged(one, buffers, (*path, index)) for index, one in enumerate(value)]
    if isinstance(value, bytes | bytearray | memoryview):
        buffers.append(_bytes_of(memoryview(value)))
        return {"$": ["b", len(buffers) - 1]}
    return _tagged_object(value, buffers, path)


def _tagged_mapping(
    value: Mapping[Any, Any], buffers: list[memoryview], path: tuple[object, ...]
) -> Any:
    if len(path) > _DEEPEST:
        raise TypeError(f"{_place(path[:4])} is inside itself, or too deep")
    entries = {}
    numpy: Any = sys.modules.get("numpy")
    for key, one in value.items():
        if numpy is not None and isinstance(key, numpy.generic):
            key = _item(key)
        if not isinstance(key, str | int | float | bool | None):
            raise TypeError(f"{_place(path)} has the key {key!r}, which is no text")
        entries[key] = _tagged(one, buffers, (*path, key))
    return {"$": ["o", entries]} if "$" in entries else entries


def _tagged_object(value: Any, buffers: list[memoryview], path: tuple[object, ...]) -> Any:
    if isinstance(value, AbortSignal):
        return {"$": ["s"]}
    if isinstance(value, datetime):
        # None for NaT of pandas, which is equal to nothing.
        return {"$": ["d", _milliseconds(value)]} if value == value else None
    if isinstance(value, date):
        day = datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
        return {"$": ["d", _milliseconds(day)]}
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.datetime64):
            return _tagged_moment(value, path)
        # Whole numbers would be without their unit.
        if isinstance(value, numpy.generic) and not isinstance(value, numpy.timedelta64):
            return _tagged(_item(value), buffers, path)
        if isinstance(value, numpy.ndarray):
            return _tagged_array(value, buffers, path)
    raise TypeError(
        f"{_place(path)} is a {type(value).__name__}, which TypeScript cannot have: "
        "give numbers, text, lists, dicts, bytes, dates or NumPy arrays"
    )


def _item(value: Any) -> Any:
    """Returns a scalar of numpy as one of Python."""
    item = value.item()
    if not isinstance(item, type(value)):
        return item
    # Python has nothing as precise as a longdouble, and JavaScript neither.
    return complex(value) if value.dtype.kind == "c" else float(value)


def _milliseconds(moment: datetime) -> int:
    """Returns whole milliseconds since 1970, rounded down as numpy does: a float has not all digits."""
    seconds = moment.replace(microsecond=0).timestamp()
    return math.floor(seconds * 1000) + moment.microsecond // 1000


def _tagged_moment(value: Any, path: tuple[object, ...]) -> Any:
    """A date of numpy, of any precision. It is in UTC."""
    if str(value) == "NaT":
        return None
    milliseconds = int(value.astype("datetime64[ms]").astype("int64"))
    if abs(milliseconds) > _LAST_DATE:
        raise TypeError(f"{_place(path)} is {value}, which TypeScript has no Date for")
    return {"$": ["d", milliseconds]}


def _tagged_array(array: Any, buffers: list[memoryview], path: tuple[object, ...]) -> Any:
    kind = array.dtype.name
    masked: Any = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(array, masked.MaskedArray):
        raise TypeError(
            f"{_place(path)} is a masked array, and a typed array has no null: give filled() of it, "
            "or tolist()"
        )
    if kind == "bool":
        array = array.view("uint8")
    elif kind == "object":
        return _tagged(array.tolist(), buffers, path)
    elif kind not in _FORMATS:
        raise TypeError(f"{_place(path)} is an array of {kind}, which TypeScript cannot have")
    if not (array.flags.c_contiguous and array.dtype.isnative):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    buffers.append(_bytes_of(memoryview(array.reshape(-1))))
    name = "uint8" if kind == "bool" else kind
    # One dimension of uint8 without a shape would come back as bytes.
    shape = list(array.shape) if array.ndim != 1 or name == "uint8" else None
    return {"$": ["a", name, shape, len(buffers) - 1]}


def _bytes_of(view: memoryview) -> memoryview:
    if view.nbytes == 0:
        return memoryview(b"")
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _digits(number: int, path: tuple[object, ...]) -> str:
    try:
        return str(number)
    except ValueError as error:
        raise ValueError(
            f"{_place(path)} is an integer that Python does not write: {error}"
        ) from None


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _place(path: Sequence[object]) -> str:
    if not path:
        return "the value"
    return "".join(f"[{part!r}]" for part in path) + " of the value"


def decode(value: Any, buffers: Sequence[io.BytesIO]) -> Any:
    """Returns the value of a tagged form. Its arrays and bytes stand in the memory of the buffers."""
    if isinstance(value, list):
        return [decode(one, buffers) for one in value]
    if not isinstance(value, dict):
        return value
    content = value.get("$")
    if content is None:
        return {key: decode(one, buffers) for key, one in value.items()}
    tag = content[0]
    if tag == "b":
        return buffers[content[1]].getvalue()
    if tag == "a":
        return _array(content[1], content[2], buffers[content[3]])
    if tag == "i":
        return int(content[1])
    if tag == "f":
        return float(content[1])
    if tag == "d":
        return _EPOCH + timedelta(milliseconds=content[1])
    if tag == "o":
        return {key: decode(one, buffers) for key, one in content[1].items()}
    raise TypeError(f"the Node process sent a value of the kind {tag!r}")


def _array(kind: str, shape: list[int] | None, buffer: io.BytesIO) -> Any:
    """A NumPy array, or a memoryview where NumPy is not installed."""
    try:
        import numpy
    except ImportError:
        view: Any = buffer.getbuffer()
        form = _FORMATS[kind]
        return view.cast(form) if shape is None else view.cast(form, shape)
    array = numpy.frombuffer(buffer.getbuffer(), dtype=kind)
    return array if shape is None else array.reshape(shape)
