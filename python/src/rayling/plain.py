"""Values of Python programs as plain ones: numpy, torch, omegaconf and the like."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from rayling.wire.values import MAX_SAFE_INTEGER

__all__ = ["NotPlainError", "Plain"]


class NotPlainError(TypeError):
    """A value that JavaScript has nothing for."""

    def __init__(self, place: str, value: object) -> None:
        """Names the place and the type of the value."""
        kind = type(value)
        super().__init__(
            f"{place} is a {kind.__module__}.{kind.__qualname__}, which cannot be sent to Node"
        )
        self.place = place


class Plain:
    """Makes plain values of what a program has, and knows whether JSON has all their numbers.

    numpy and torch scalars become numbers, their arrays lists, mappings dictionaries with texts as
    keys, other sequences and sets lists, and bytes that are UTF-8 text texts.

    Attributes:
        is_tagged: whether a value had a number that JSON or JavaScript lacks.
    """

    def __init__(self) -> None:
        """Starts without a value."""
        self.is_tagged = False

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
            return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else self._tag(value)
        if kind is float:
            return value if math.isfinite(value) else self._tag(value)
        if kind is dict or isinstance(value, Mapping):
            return {
                key if type(key) is str else str(key): self.of(one, f"{place}.{key}")
                for key, one in value.items()
            }
        if kind is list or kind is tuple:
            return [self.of(one, place) for one in value]
        return self._other(value, place)

    def _tag(self, value: int | float) -> int | float:
        self.is_tagged = True
        return value

    def _other(self, value: Any, place: str) -> Any:
        if isinstance(value, (str, int, float)):
            # A subclass, as numpy's and enumerations are.
            for base in (str, bool, int, float):
                if isinstance(value, base):
                    return self.of(base(value), place)
        # numpy and torch, without importing them: a scalar has `item`, and an array `tolist`.
        if callable(getattr(value, "tolist", None)):
            return self.of(value.tolist(), place)
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
            return value.isoformat()
        raise NotPlainError(place, value)
