"""TypeScript for Python programs: reward functions for verl, and actors on Ray.

`rayling.open` and `rayling.open_async` run a TypeScript class in a child process, and
`rayling.remote_ts` makes it an actor on Ray. `rayling.verl` scores rollouts of verl in a reward loop
in Node. `rayling_client` is the client of `rayling serve`. `rayling.runtime` finds Node and the
JavaScript runtime.
"""

from __future__ import annotations

from rayling.actors import (
    ABORT_SIGNAL,
    Actor,
    AsyncActor,
    TypeScriptActor,
    open,
    open_async,
    remote_ts,
)
from rayling.errors import (
    ActorDiedError,
    HostLostError,
    RaylingError,
    RuntimeNotFoundError,
    RuntimeVersionError,
    TypeScriptError,
)
from rayling.version import __version__

__all__ = [
    "ABORT_SIGNAL",
    "Actor",
    "ActorDiedError",
    "AsyncActor",
    "HostLostError",
    "RaylingError",
    "RuntimeNotFoundError",
    "RuntimeVersionError",
    "TypeScriptActor",
    "TypeScriptError",
    "__version__",
    "open",
    "open_async",
    "remote_ts",
]
