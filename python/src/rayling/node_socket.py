"""Sockets to Node processes that processes of this machine share.

Such a process listens at a path that a key stands for. Who finds nobody there starts it, under a
lock, with the listening socket already open: others connect at once, and wait for their answers, and
not for the start. It ends when its last connection closes, which the operating system does for a
process that is killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import subprocess
import tempfile
from pathlib import Path

from rayling.forks import keep_from_forks
from rayling.runtime import command

__all__ = ["open_shared"]

#: A path of a socket may have so many bytes on every system.
_MAX_PATH = 100

_BACKLOG = 512


def open_shared(module: str, key: str) -> socket.socket:
    """Connects to the Node process of a key, and starts it as `listen FD PATH` where there is none.

    The connection is of this process alone: a fork has to open its own.

    Raises:
        RuntimeNotFoundError: Node, the runtime or the module is missing.
        RuntimeVersionError: the runtime has another version than this package.
    """
    folder = _folder()
    path = str(folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.sock")
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = _new_socket()
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            _start_listening(module, path, connection)
        return connection
    finally:
        # Said, and not left to the close: a fork in another thread may have a copy by now.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def _new_socket() -> socket.socket:
    return keep_from_forks(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))


def _start_listening(module: str, path: str, connection: socket.socket) -> None:
    line = command(module)
    # Nobody listens at it any more: its process was killed.
    Path(path).unlink(missing_ok=True)
    with _new_socket() as listener:
        listener.bind(path)
        listener.listen(_BACKLOG)
        # Before it starts, so that it never finds itself without a connection.
        connection.connect(path)
        fd = listener.fileno()
        # A shell between them: it is no child of this process, with which Ray would kill it.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *line, "listen", str(fd), path],
            stdin=subprocess.DEVNULL,
            pass_fds=[fd],
            start_new_session=True,
            check=True,
        )


def _folder() -> Path:
    """Returns a folder of this user's alone."""
    name = f"rayling-{os.getuid()}"
    folder = Path(tempfile.gettempdir()) / name
    if len(os.fsencode(folder)) > _MAX_PATH - 32:
        folder = Path("/tmp") / name
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise PermissionError(f"{folder} must be a folder of mode 700 that belongs to this user")
    return folder
