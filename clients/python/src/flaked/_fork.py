"""What a forked process must forget: connections, threads, locks and prefetched values of its parent."""

from __future__ import annotations

import os
import weakref
from typing import Any

#: Objects with a method forget, which begins anew. The child has no other threads then.
_all: weakref.WeakSet[Any] = weakref.WeakSet()


def in_child(what: Any) -> None:
    """Let a child process call what.forget()."""
    _all.add(what)


def _forget_all() -> None:
    for what in list(_all):
        what.forget()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forget_all)
