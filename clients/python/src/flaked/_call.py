"""A call, and the connection that it is sent over."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from ._node import Node
    from ._protocol import Request


class Call:
    """What a caller waits for. ``finish`` is called once, after ``values`` or ``error`` is set."""

    def __init__(self, request: Request, deadline: float, finish: Callable[[Call], object]) -> None:
        self.request = request
        self.deadline = deadline
        self.finish = finish
        #: The call has ended, or its caller waits no longer. Its reply is thrown away then.
        self.done = False
        self.values: list[int] = []
        self.error: Optional[Exception] = None
        #: The call is for a stock: it does not wait for a node.
        self.eager = False
        #: The error of the node that was asked last.
        self.last: Optional[Exception] = None
        #: The nodes that have refused the call because of its sequence.
        self.refused: set[Node] = set()
        #: While the call waits: when it begins anew.
        self.resume = 0.0
        #: When the request was sent, when its time is up, and whether that is less than a node may take.
        self.asked = self.until = 0.0
        self.hurried = False

    def succeed(self, values: list[int]) -> None:
        """End the call with values."""
        if not self.done:
            self.values, self.done = values, True
            self.finish(self)

    def fail(self, error: Exception) -> None:
        """End the call with an error."""
        if not self.done:
            self.error, self.done = error, True
            self.finish(self)


class Link:
    """One connection to a node. Replies come in the order of the requests."""

    def __init__(self, node: Node, probe: bool) -> None:
        self.node = node
        self.probe = probe
        self.open = self.closed = False
        #: Nothing was under way when the last requests were sent, and no byte came since then.
        self.idle = False
        self.pending: deque[Call] = deque()
        self.out: list[bytes] = []  # not written yet
        self.rest = b""  # the beginning of a line
        self.got: list[int] = []  # the numbers of the reply that has begun
        self.io: Any = None  # the driver's

    def send(self, call: Call) -> None:
        """Append the request of a call to what is sent."""
        self.idle = self.idle or (self.open and not self.pending)
        self.pending.append(call)
        self.out.append(call.request.line)
