"""Processes that tests start and kill."""

from __future__ import annotations

import os
import select
import signal
import time
import unittest
from collections.abc import Callable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])

#: Only keeps a test that fails from holding up the rest.
LONGEST_MS = 120_000

#: Whether they run in the gate, which does without some of them.
IN_GATE = os.environ.get("RAYLING_TEST_SUITE") == "gate"


def only_in_full(reason: str) -> Callable[[Test], Test]:
    """The gate does without the test.

    :param reason: why, and what in the gate notices the same fault
    """
    return unittest.skipIf(IN_GATE, reason)


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
