"""The event loop of the handles that block: one thread for all of them."""

from __future__ import annotations

import asyncio
import os
import threading

__all__ = ["background_loop"]

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """Returns the loop, which runs in a daemon thread from the first call on."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="rayling", daemon=True).start()
        return _loop


def _reset() -> None:
    """The child of a fork has no such thread."""
    global _loop, _lock
    _loop = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_reset)
