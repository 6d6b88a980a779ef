"""Errors of the package. Each is a `RaylingError`."""

from __future__ import annotations

__all__ = ["HostLostError", "RaylingError", "RuntimeNotFoundError", "RuntimeVersionError"]


class RaylingError(Exception):
    """Base class of every error that this package raises."""


class RuntimeNotFoundError(RaylingError):
    """Node or the JavaScript runtime is missing on this machine."""


class RuntimeVersionError(RaylingError):
    """The JavaScript runtime has another version than this package."""


class HostLostError(RaylingError):
    """The Node process ended while calls were under way."""
