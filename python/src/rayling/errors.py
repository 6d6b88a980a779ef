"""Errors of the package. Each is a `RaylingError`, whose texts UTF-8 has bytes for."""

from __future__ import annotations

from typing import Any

from rayling.texts import well_formed

__all__ = [
    "ActorDiedError",
    "HostLostError",
    "RaylingError",
    "RuntimeNotFoundError",
    "RuntimeVersionError",
    "TypeScriptError",
]


class RaylingError(Exception):
    """Base class of every error that this package raises."""

    def __init__(self, *args: object) -> None:
        """Takes what an exception takes."""
        super().__init__(*(well_formed(one) if isinstance(one, str) else one for one in args))


class RuntimeNotFoundError(RaylingError):
    """Node or the JavaScript runtime is missing on this machine."""


class RuntimeVersionError(RaylingError):
    """The JavaScript runtime has another version than this package."""


class HostLostError(RaylingError):
    """The Node process ended while calls were under way."""


class ActorDiedError(HostLostError):
    """The Node process of a TypeScript actor has ended: calls under way and later ones fail.

    Attributes:
        actor: the module and the export that it served.
        exit_code: of the process; None where a signal ended it.
        signal: the number of the signal that ended it, else None.
        output: the last lines that it wrote to its standard error.
    """

    def __init__(
        self,
        actor: str,
        exit_code: int | None = None,
        signal: int | None = None,
        output: tuple[str, ...] = (),
    ) -> None:
        """Takes how the process ended."""
        if signal is not None:
            how = f"signal {signal} ended its process"
        elif exit_code is not None:
            how = f"its process ended with exit code {exit_code}"
        else:
            how = "it is closed"
        self.actor = well_formed(actor)
        self.exit_code = exit_code
        self.signal = signal
        self.output = tuple(well_formed(line) for line in output)
        last = "".join(f"\n  {line}" for line in self.output)
        super().__init__(f"{self.actor} is dead: {how}{last}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets the error travel between processes."""
        return type(self), (self.actor, self.exit_code, self.signal, self.output)


class TypeScriptError(RaylingError):
    """What TypeScript code threw. Its text is the stack in TypeScript.

    Attributes:
        name: of the error, such as `RangeError`.
        message: of the error.
        stack: name, message and frames, as Node shows them; empty if no `Error` was thrown.
        code: its `code`, such as `ENOENT`, else None.
    """

    def __init__(
        self,
        name: str,
        message: str,
        stack: str = "",
        code: str | None = None,
        cause: TypeScriptError | None = None,
    ) -> None:
        """Takes what the Node process reported; `cause` becomes `__cause__`."""
        self.name = well_formed(name)
        self.message = well_formed(message)
        self.stack = well_formed(stack)
        self.code = None if code is None else well_formed(code)
        super().__init__(self.stack or f"{self.name}: {self.message}")
        self.__cause__ = cause

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets the error travel between processes, as Ray needs it."""
        return type(self), (self.name, self.message, self.stack, self.code, self.__cause__)
