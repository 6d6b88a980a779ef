"""Processes that tests start and kill."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

#: Only keeps a test that fails from holding up the rest.
LONGEST_MS = 120_000


def wait_for(condition: Callable[[], bool]) -> None:
    """Waits until it is so; a test that hangs is ended from outside."""
    while not condition():
        time.sleep(0.02)


def wait_gone(pid: int) -> None:
    """Waits until a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(LONGEST_MS), f"process {pid} is still there"
    finally:
        os.close(descriptor)


def kill(pid: int) -> None:
    """Kills a process, and waits for its end."""
    os.kill(pid, signal.SIGKILL)
    wait_gone(pid)
