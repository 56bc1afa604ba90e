"""The state of one node: whether it may be asked, and when."""

from __future__ import annotations

import random
from typing import Optional

from ._call import Link
from ._config import Address
from ._errors import RefusedError

#: How long a node is not asked after its first failure. Each further one doubles it, up to the most.
FIRST_PAUSE = 0.02
MOST_PAUSE = 1.0
#: The pause after a refusal that an operator must end. It limits the time that a node may ask for.
LONG_PAUSE = 5.0


class Node:
    """One address of the client."""

    def __init__(self, address: Address) -> None:
        self.address = address
        #: The connections for IDs (False) and for sequences (True).
        self.links: dict[bool, Link] = {}
        self.failures = 0
        #: The node is not asked before this time.
        self.until = 0.0
        #: It did not answer a request that had little time. It may be well.
        self.slow = False
        self.probing = False
        self.last: Optional[Exception] = None

    def rank(self) -> tuple[int, float]:
        """Return what orders nodes: healthy ones, slow ones, then those whose pause ends first."""
        return (0, 0.0) if not self.failures else (1 if self.slow else 2, self.until)

    def paused(self, now: float) -> bool:
        """Report whether the node must not be asked yet."""
        return self.failures > 0 and not self.slow and self.until > now

    def fail(self, error: Exception, now: float, hurried: bool) -> None:
        """Count a failure. hurried means that the node was silent, but had little time."""
        if self.until > now and (hurried or not self.slow):
            return  # the request was under way when the node failed before
        pause = min(MOST_PAUSE, FIRST_PAUSE * 2 ** min(self.failures, 10)) * random.uniform(0.5, 1.5)
        if needs_operator(error):
            pause = LONG_PAUSE
        elif isinstance(error, RefusedError) and error.retry_after:
            pause = min(max(pause, error.retry_after), LONG_PAUSE)
        self.failures += 1
        self.until, self.slow, self.last = now + pause, hurried, error

    def restore(self) -> None:
        """Make the node healthy."""
        self.failures, self.until, self.slow, self.last = 0, 0.0, False, None


def needs_operator(error: Optional[Exception]) -> bool:
    """Report whether a node that fails so does not recover by itself."""
    return isinstance(error, RefusedError) and (
        error.code in ("NOAUTH", "WRONGPASS") or (error.code == "EXHAUSTED" and not error.reason)
    )


def ends_call(error: Optional[Exception]) -> bool:
    """Report whether the request is refused, and not the node: no other node is asked."""
    return isinstance(error, RefusedError) and error.code in ("ERR", "NOPERM")


#: Reasons of a sequence that neither another node nor a moment ends.
_LASTING = frozenset(("no-sequence", "frozen", "wrong-mode", "no-right", "exhausted", "too-many"))


def ends_sequence_call(error: RefusedError) -> bool:
    """Report whether a refusal with ``reason=``, which is about a sequence, ends the call."""
    return error.reason in _LASTING or error.code != "NOTREADY"
