"""A Node process that ends when this program does, however this program ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import weakref
from collections.abc import Mapping
from typing import IO

from rayling.runtime import command

__all__ = ["Child"]

# The first argument is the descriptor of a pipe that only this program can write to: when it closes,
# everything in the session of the Node process is killed, a busy loop too. The socket becomes
# descriptor 3 of the Node process, and the guard holds none of its streams.
_SCRIPT = """
lifeline=$1
shift
(trap "" INT TERM HUP; read -r _ </dev/fd/$lifeline; kill -s KILL 0) </dev/null >/dev/null 2>&1 &
exec "$@" 3<&0 </dev/null
"""

_SOCKET_BYTES = 1_048_576


class Child:
    """One Node process, started at once, and the socket that only it and this program have.

    Attributes:
        socket: this program's end; closing it ends the process, as soon as its code lets it.
        process: its process id is that of its session.
    """

    def __init__(
        self,
        module: str,
        *,
        env: Mapping[str, str] | None = None,
        is_captured: bool = True,
    ) -> None:
        """Starts a module of the runtime.

        Args:
            module: its name below the package's source.
            env: variables to set beside those of this process.
            is_captured: whether `stdout` and `stderr` are pipes, and not those of this process.

        Raises:
            RuntimeNotFoundError: Node, the runtime or the module is missing.
            RuntimeVersionError: the runtime has another version than this package.
        """
        line = command(module)
        self.socket, theirs = socket.socketpair()
        for end in (self.socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        watched, self._lifeline = os.pipe()
        pipe = subprocess.PIPE if is_captured else None
        try:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "rayling-guard", str(watched), *line],
                stdin=theirs.fileno(),
                stdout=pipe,
                stderr=pipe,
                pass_fds=[watched],
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        except BaseException:
            self.socket.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(watched)
        _open_children.add(self)

    @property
    def outputs(self) -> list[IO[bytes]]:
        """Standard output and error, where they are captured."""
        return [one for one in (self.process.stdout, self.process.stderr) if one is not None]

    def kill(self) -> None:
        """Kills the process and all that it started. Idempotent."""
        if self._lifeline < 0:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._release()

    def wait(self) -> int:
        """Waits for the end of the process and kills what it left behind.

        Returns:
            Its exit code; the negative number of the signal that ended it.
        """
        code = self.process.wait()
        self._release()
        return code

    def _release(self) -> None:
        lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)
        _open_children.discard(self)

    def forget(self) -> None:
        """Closes this process' copies after a fork: the child of a fork keeps nothing alive."""
        self._release()
        self.socket.close()
        for output in self.outputs:
            output.close()


_open_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _forget_all() -> None:
    for child in list(_open_children):
        child.forget()


os.register_at_fork(after_in_child=_forget_all)
