"""Sockets of one process alone: the child of a fork gives its copies up.

With a copy, the child would keep the other side from noticing the end of this process, and two
processes that read one socket would take each other's answers.
"""

from __future__ import annotations

import os
import socket
import weakref

__all__ = ["keep_from_forks"]

_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def keep_from_forks(own: socket.socket) -> socket.socket:
    """Returns the socket. In the child of a fork nothing can be read from it or sent by it."""
    _sockets.add(own)
    return own


def _give_up_copies() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for own in list(_sockets):
        if own.fileno() >= 0:
            # Neither shut down, which the parent would notice, nor closed: what the child has of an
            # event loop of the parent still knows the number, which would soon be another file's.
            os.dup2(nothing, own.fileno(), inheritable=False)
    os.close(nothing)
    _sockets.clear()


os.register_at_fork(after_in_child=_give_up_copies)
