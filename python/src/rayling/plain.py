"""Values of Python programs as plain ones: numpy, torch, omegaconf and the like."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import Any

from rayling.texts import well_formed
from rayling.wire.values import MAX_SAFE_INTEGER

__all__ = ["NotPlainError", "Plain"]

#: Levels of containers in a value: more would exhaust the stack of Python or of Node.
_DEEPEST = 200


class NotPlainError(TypeError):
    """A value that JavaScript has nothing for."""

    def __init__(self, place: str, value: object, problem: str | None = None) -> None:
        """Names the place and, where there is no other problem, the type of the value."""
        kind = type(value)
        self.place = well_formed(place)
        self._problem = well_formed(
            problem or f"is a {kind.__module__}.{kind.__qualname__}, which cannot be sent to Node"
        )
        super().__init__(f"{self.place} {self._problem}")

    def __reduce__(self) -> tuple[type[NotPlainError], tuple[str, None, str]]:
        """Travels without the value, which may be what no process can be sent."""
        return type(self), (self.place, None, self._problem)


class Plain:
    """Makes plain values of what a program has, and knows whether JSON has all their numbers.

    numpy and torch scalars become numbers, their arrays lists with None for what is masked,
    mappings dictionaries with texts as keys, other sequences and sets lists, and bytes that are
    UTF-8 text texts. An enumeration becomes its value, a date of any precision its text in ISO
    8601, and NaT None. Keys are the texts that JSON has for them: `true`, `null`, `5`.

    Attributes:
        is_tagged: whether a value had a number that JSON or JavaScript lacks.
    """

    def __init__(self) -> None:
        """Starts without a value."""
        self.is_tagged = False
        self._depth = 0

    def of(self, value: Any, place: str) -> Any:
        """Returns the plain value.

        Args:
            value: what the program has.
            place: what it is called in an error.

        Raises:
            NotPlainError: there is none.
        """
        kind = type(value)
        if kind is str or value is None or kind is bool:
            return value
        if kind is int:
            is_safe = -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER
            return value if is_safe else self._tag(has_digits(value, place))
        if kind is float:
            return value if math.isfinite(value) else self._tag(value)
        self._depth += 1
        if self._depth > _DEEPEST:
            top = place.split(".", 1)[0]
            raise NotPlainError(
                top, value, f"is nested in itself, or deeper than {_DEEPEST} levels"
            )
        try:
            return self._container(value, place)
        finally:
            self._depth -= 1

    def _container(self, value: Any, place: str) -> Any:
        kind = type(value)
        if kind is dict or isinstance(value, Mapping):
            return {
                key if type(key) is str else self._name(key, place): self.of(one, f"{place}.{key}")
                for key, one in value.items()
            }
        if kind is list or kind is tuple:
            return [self.of(one, place) for one in value]
        return self._other(value, place)

    def _tag(self, value: int | float) -> int | float:
        self.is_tagged = True
        return value

    def _other(self, value: Any, place: str) -> Any:
        if isinstance(value, Enum):
            return self.of(value.value, place)
        if isinstance(value, (str, int, float)):
            # A subclass, as those of numpy are.
            for base in (str, bool, int, float):
                if isinstance(value, base):
                    return self.of(base(value), place)
        # numpy and torch, without importing them: a scalar has `item`, and an array `tolist`.
        if getattr(getattr(value, "dtype", None), "kind", None) in ("M", "m"):
            return self._time(value, place)
        if callable(getattr(value, "tolist", None)):
            return self.of(_listed(value), place)
        if callable(getattr(value, "item", None)):
            return self.of(value.item(), place)
        if isinstance(value, (bytes, bytearray)):
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise NotPlainError(place, value) from None
        if isinstance(value, (Sequence, Set)):
            return [self.of(one, place) for one in value]
        if callable(getattr(value, "isoformat", None)):
            text = value.isoformat()
            # That of pandas, which has no tolist.
            return None if text == "NaT" else self.of(text, place)
        raise NotPlainError(place, value)

    def _time(self, value: Any, place: str) -> Any:
        """Of numpy, one or many.

        Its `tolist` has integers where Python has no date as precise, or of that year.
        """
        if getattr(value, "ndim", 0) > 0:
            return [self.of(one, place) for one in value]
        if value.dtype.kind == "m":
            raise NotPlainError(place, value)
        date = value.tolist()
        if isinstance(date, int) and value.dtype.name.endswith(("ns]", "ps]", "fs]", "as]")):
            whole = value.astype("datetime64[us]")
            date = whole.tolist() if whole == value else date
        if isinstance(date, int):
            return str(value)
        return None if date is None else date.isoformat()

    def _name(self, key: Any, place: str) -> str:
        """Returns the name that a key of a mapping has in JavaScript."""
        if isinstance(key, Enum):
            key = key.value
        if key is None or isinstance(key, (int, float)):
            return json.dumps(key)
        try:
            plain = self.of(key, place)
        except NotPlainError:
            return str(key)
        if isinstance(plain, str):
            return plain
        return str(key) if isinstance(plain, (list, dict)) else json.dumps(plain)


def _listed(value: Any) -> Any:
    plain = value.tolist()
    if type(plain) is not type(value):
        return plain
    # A longdouble of numpy, for which Python has nothing as precise, and JavaScript neither.
    return complex(value) if value.dtype.kind == "c" else float(value)


def has_digits(value: int, place: str) -> int:
    """Returns an integer that Python writes as text.

    Raises:
        NotPlainError: it has more digits than `sys.get_int_max_str_digits()`.
    """
    # The limit is never below 640 digits.
    if value.bit_length() > 2000:
        try:
            str(value)
        except ValueError:
            problem = "is an integer of more digits than Python writes (sys.set_int_max_str_digits)"
            raise NotPlainError(place, value, problem) from None
    return value
