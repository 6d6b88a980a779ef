"""TypeScript for Python programs: reward functions for verl, and actors on Ray.

`rayling.verl` scores rollouts of verl in a reward loop in Node. `rayling_client` is the client of
`rayling serve`. `rayling.runtime` finds Node and the JavaScript runtime.
"""

from __future__ import annotations

from rayling.errors import (
    HostLostError,
    RaylingError,
    RuntimeNotFoundError,
    RuntimeVersionError,
)
from rayling.version import __version__

__all__ = [
    "HostLostError",
    "RaylingError",
    "RuntimeNotFoundError",
    "RuntimeVersionError",
    "__version__",
]
