"""What a copy of the process must begin anew: a forked child must not use the values and connections of its parent."""

from __future__ import annotations

import _thread
import os
import weakref
from typing import Any


def new_lock() -> Any:
    """Return a lock of native threads, even under gevent and eventlet. Nothing may wait while it is held."""
    return _thread.RLock()


#: Held while a socket is made and noted, so that a fork finds all sockets noted.
making = new_lock()
#: What begins anew in a copy, by its method forget.
forgetful: weakref.WeakSet[Any] = weakref.WeakSet()
_pid = os.getpid()
#: A lock for each copy, because a thread of the parent may have held any older one.
_locks: dict[int, Any] = {}


def check() -> None:
    """Forget everything if the process is a copy. Each call does this: uWSGI, for one, forks without Python's hooks."""
    if os.getpid() != _pid:
        _forget()


def _forget() -> None:
    global making, _pid
    pid = os.getpid()
    with _locks.setdefault(pid, new_lock()):
        if pid != _pid:
            making = new_lock()
            for each in list(forgetful):
                each.forget()
            _pid = pid  # last, because other threads do not wait for the lock then


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    # The child closes its copies of sockets at once: a connection ends when nobody has it any more.
    os.register_at_fork(
        before=lambda: making.acquire(), after_in_parent=lambda: making.release(), after_in_child=_forget
    )
