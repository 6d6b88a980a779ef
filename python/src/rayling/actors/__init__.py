"""TypeScript classes as actors: in child processes, and on Ray."""

from __future__ import annotations

from rayling.actors.handles import Actor, AsyncActor
from rayling.actors.handles import open_actor as open
from rayling.actors.handles import open_actor_async as open_async
from rayling.actors.remote import TypeScriptActor, remote_ts
from rayling.wire.values import ABORT_SIGNAL

__all__ = [
    "ABORT_SIGNAL",
    "Actor",
    "AsyncActor",
    "TypeScriptActor",
    "open",
    "open_async",
    "remote_ts",
]
