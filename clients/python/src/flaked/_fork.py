"""What a forked process must forget: connections, threads, locks and prefetched values of its parent."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forgetful(Protocol):
    """Something that belongs to one process."""

    def forget(self) -> None:
        """Begin anew. Called in the child, which has no other threads yet."""


_all: weakref.WeakSet[Forgetful] = weakref.WeakSet()


def in_child(what: Forgetful) -> None:
    """Let a child process call what.forget()."""
    _all.add(what)


def _forget_all() -> None:
    for what in list(_all):
        what.forget()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forget_all)
