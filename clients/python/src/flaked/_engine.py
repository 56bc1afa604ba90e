"""Every decision of a client, without I/O: which node is asked, what a reply means, when to give up.

A driver makes the connections (``connect``), and reports what happens: ``opened``, ``received``, ``lost``. It calls
``tick`` at ``next_tick``, and ``flush`` after the others. All calls come from one thread, so there are no locks.
"""

from __future__ import annotations

import random
from collections import deque
from math import inf
from time import monotonic
from typing import Any, Callable, Optional

from . import _protocol as protocol
from ._identity import Identity
from ._options import Address, Options
from ._protocol import ClosedError, FlakedError, RefusedError, Request

#: How long a node is not asked after its first failure, and at most. Each further failure doubles it.
FIRST_PAUSE, MOST_PAUSE = 0.02, 1.0
#: The pause after a refusal that an operator must end. It limits the time that a node may ask for.
LONG_PAUSE = 5.0
#: The least time that a node has to answer, however little a call has left. A busy node needs it.
LEAST_SHARE = 0.025
#: How long a call waits, at least and at most, after all nodes have refused it because of its sequence.
LEAST_RETRY, MOST_RETRY = 0.02, 1.0
#: How long the first reply waits, at most, for the other nodes to say which cluster they belong to. It never waits for
#: more than half of the time that its call has left.
COMPARE = 0.5
#: Reasons of a sequence that neither another node nor a moment ends.
LASTING = frozenset(("no-sequence", "frozen", "wrong-mode", "no-right", "exhausted", "too-many"))


class Call:
    """A request for which a caller waits. ``finish`` is called once, after ``values`` or ``error`` is set."""

    done = False  #: it has ended, or its caller waits no longer. Its reply is thrown away then
    patient = True  #: it may wait for a node. Those for a stock do not
    error: Optional[Exception] = None
    address = "the node"  #: the node that was asked last
    last: Optional[Exception] = None  #: the error of the node that was asked last
    caller: Any = None  #: the driver's
    left = False  #: the driver's
    refused: tuple[Node, ...] = ()  #: the nodes that have refused the call because of its sequence
    resume = 0.0  #: while the call waits: when it begins anew
    #: When the request was sent, how long the node may be silent, and whether that is less than usual.
    asked, share, hurried = 0.0, 0.0, False

    def __init__(self, request: Request, deadline: float, finish: Callable[[Call], object]) -> None:
        self.request = request
        self.deadline = deadline
        self.finish = finish
        self.values: list[int] = []

    def end(self, values: list[int], error: Optional[Exception] = None) -> None:
        """End the call, unless it has ended."""
        if not self.done:
            self.values, self.error, self.done = values, error, True
            self.finish(self)

    def result(self) -> Any:
        """Return the result of a call that has ended, or whose time is up."""
        if self.error or not self.values:
            raise self.error or protocol.unavailable(self.last or FlakedError(f"{self.address} did not answer"))
        return self.request.result(self.values)


class Link:
    """One connection to a node. Replies come in the order of the requests."""

    write: Callable[[bytes], object]  #: the driver's way to send data
    close: Callable[[], object]  #: the driver's way to close the connection, or stop connecting
    task: Any  #: the driver's

    def __init__(self, node: Node, kind: str, token: Optional[str], who: bytes) -> None:
        self.node = node
        self.kind = kind  #: "ids" or "sequences", "probe" to ask whether the node is ready, "compare" for its cluster
        self.open = self.closed = False
        self.idle = False  #: nothing was under way when the last requests were sent, and no byte came since then
        self.greeting = 1 if token is None else 2  #: so many replies to AUTH and WORKER have not come yet
        self.out = bytearray(b"" if token is None else f"AUTH {token}\n".encode("ascii")) + who  #: not written yet
        self.pending: deque[Call] = deque()
        self.heard = 0.0  #: when the last reply was complete
        self.rest = b""  #: the beginning of a line
        self.got: list[int] = []  #: the numbers of the reply that has begun

    def send(self, call: Call) -> None:
        """Append the request of a call to what is sent."""
        self.idle = self.idle or (self.open and not self.pending)
        self.pending.append(call)
        self.out += call.request.line

    def due(self, call: Call) -> float:  # when the node is silent for too long
        return max(call.asked, self.heard) + call.share


class Node:
    """One address of the client, and whether it may be asked."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.links: dict[str, Link] = {}  #: by their kinds
        self.restore()

    def restore(self) -> None:
        """Make the node healthy."""
        self.failures = 0
        self.until = 0.0  #: the node is not asked before this time
        self.slow = False  #: it did not answer a request that had little time. It may be well
        self.hopeless = False  #: it refuses until an operator acts
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
        self.hopeless = False
        pause = min(MOST_PAUSE, FIRST_PAUSE * 2 ** min(self.failures, 10)) * random.uniform(0.5, 1.5)
        if isinstance(error, RefusedError):
            self.hopeless = error.code in ("NOAUTH", "WRONGPASS", "WRONGNODE") or (
                error.code == "EXHAUSTED" and not error.reason
            )
            pause = LONG_PAUSE if self.hopeless else min(max(pause, error.retry_after or 0.0), LONG_PAUSE)
        self.failures += 1
        self.until, self.slow, self.last = now + pause, hurried, error


class Engine:
    """The calls of one client, its nodes and its connections."""

    now = staticmethod(monotonic)

    def __init__(
        self, options: Options, connect: Callable[[Link], object], identity: Optional[Identity] = None
    ) -> None:
        self.options = options
        self.identity = identity or Identity(options.cluster)
        #: The first replies. They wait until the other nodes have said which cluster they belong to, or until a time.
        self.held: list[tuple[Call, list[int]]] = []
        self.held_until = inf
        self.comparing = False
        #: The cluster was known from the start, or all replies of other nodes have come, or their time is up.
        self.compared = not self.identity.unknown
        self.connect = connect
        self.nodes = [Node(address) for address in options.addresses]
        self.links: set[Link] = set()
        self.waiting: list[Call] = []
        self.next_tick = inf

    def submit(self, call: Call) -> None:
        """Begin a call. First, failed nodes are asked whether they are ready, while another node is healthy."""
        now = self.now()
        failed = [node for node in self.nodes if node.failures]
        for node in failed if len(failed) < len(self.nodes) else ():
            if node.until <= now and "probe" not in node.links:
                self._send(node, "probe", self._own_call(protocol.READY), now)
        self._place(call, now)

    def _own_call(self, request: Request) -> Call:
        call = Call(request, inf, lambda _: None)
        call.done = True  # no other node may answer it
        return call

    def opened(self, link: Link) -> None:
        """Tell that a link is connected. The node's time for replies begins."""
        link.open = True
        for call in link.pending:
            self._start_clock(call, link.node, self.now())

    def received(self, link: Link, data: bytes) -> None:
        """Take bytes that a node has sent."""
        link.idle = False
        lines = (link.rest + data).split(b"\n")
        link.rest = lines.pop()
        for line in lines:
            if not link.closed:
                self._line(link, line)
        if link.rest and (len(link.rest) > protocol.MAX_LINE or not (link.pending or link.greeting)):
            self._give_up(link, protocol.not_flaked(link.node.address.text, link.rest))

    def lost(self, link: Link, error: Exception) -> None:
        """Tell that a connection could not be made, or has ended."""
        if not link.idle:
            return self._give_up(link, error)
        # The node has closed an idle connection while requests were on their way. That is no failure.
        for call in self._drop(link):
            if not call.done:
                self._send(link.node, link.kind, call, self.now())

    def tick(self) -> None:
        """Give up silent nodes, and try again to place calls that wait."""
        now = self.now()
        if self.held_until <= now:
            self._release()
        for call in [call for link in self.links for call in link.pending if call.deadline <= now]:
            call.end([])
        for link in list(self.links):
            if late := [call for call in link.pending if link.due(call) <= now]:
                error = FlakedError(f"{link.node.address.text} did not {'answer' if link.open else 'connect'} in time")
                self._give_up(link, error, all(call.hurried for call in late))
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            if call.resume <= now:
                call.refused = ()
                self._place(call, now)
            elif not call.done:
                self.waiting.append(call)
        pending = [(link.due(call), call) for link in self.links for call in link.pending]
        times = [due if call.done else min(due, call.deadline) for due, call in pending]
        self.next_tick = min(times + [self.held_until] + [call.resume for call in self.waiting], default=inf)

    def flush(self) -> None:
        """Write the requests that were made since the last time."""
        for link in self.links:
            if link.out and link.open:
                data, link.out = bytes(link.out), bytearray()
                link.write(data)

    def close(self) -> None:
        """Close all links, and fail all calls."""
        calls = self.waiting + [call for call, _ in self.held]
        self.waiting, self.held = [], []
        for link in list(self.links):
            calls += self._drop(link)
        for call in calls:
            call.end([], ClosedError())

    def _place(self, call: Call, now: float) -> None:
        """Send a call to the best node, or let it wait, or fail it."""
        if call.done:
            return
        if self.identity.error:
            return call.end([], self.identity.error)
        node: Optional[Node] = self.nodes[0]
        if self.nodes[0].failures or call.refused:
            node = min((n for n in self.nodes if n not in call.refused), key=Node.rank, default=None)
        if node and not node.paused(now) and (call.deadline > now or not call.last):
            return self._send(node, "sequences" if call.request.name else "ids", call, now)
        if node and not call.refused:
            call.last = call.last or node.last
            until = inf if all(n.hopeless for n in self.nodes) else node.until
        else:  # the nodes that can be reached refuse the sequence, so the call begins anew after a moment
            asked = (call.last.retry_after if isinstance(call.last, RefusedError) else None) or 0.0
            until = now + min(max(LEAST_RETRY, asked), MOST_RETRY)
        if not call.patient or max(until, now) >= call.deadline:
            return call.end([], protocol.unavailable(call.last))
        call.resume = until
        self.waiting.append(call)
        self.next_tick = min(self.next_tick, until)

    def _send(self, node: Node, kind: str, call: Call, now: float) -> None:
        link = node.links.get(kind)
        if link is None:
            link = node.links[kind] = Link(node, kind, self.options.token, self.identity.request())
            self.links.add(link)
            self.connect(link)
        link.send(call)
        self._start_clock(call, node, now)

    def _start_clock(self, call: Call, node: Node, now: float) -> None:
        share = self.options.node_timeout
        if [True for other in self.nodes if not other.failures and other is not node]:  # another node is healthy
            share = min(share, max((call.deadline - now) / 2, LEAST_SHARE))
        call.asked, call.share, call.address = now, share, node.address.text
        call.hurried = share < self.options.node_timeout
        self.next_tick = min(self.next_tick, now + share, call.deadline)

    def _drop(self, link: Link) -> list[Call]:
        """Close a link. Return the calls that wait for replies."""
        link.closed, link.idle = True, False
        self.links.discard(link)
        link.node.links = {kind: other for kind, other in link.node.links.items() if other is not link}
        link.close()
        if self.comparing and not [other for other in self.links if other.kind == "compare"]:
            self._release()
        return list(link.pending)

    def _compare(self, first: Node) -> None:
        """Ask the nodes beside the first one that has answered which cluster they belong to. Replies wait for that."""
        now = self.now()
        others = [node for node in self.nodes if node is not first and not node.failures]
        self.compared = not others
        if others:
            self.comparing, self.held_until = True, now + COMPARE
            self.next_tick = min(self.next_tick, self.held_until)
        for node in others:
            self._send(node, "compare", self._own_call(protocol.NOTHING), now)

    def _release(self) -> None:
        held, self.held, self.held_until, self.comparing, self.compared = self.held, [], inf, False, True
        for call, values in held:
            self._end(call, values)

    def _end(self, call: Call, values: list[int]) -> None:
        error = self.identity.error
        call.end([] if error else values, error)

    def _give_up(self, link: Link, error: Exception, hurried: bool = False) -> None:
        """Close a link. If requests wait for replies, the node fails, and they go to the next node."""
        calls = [] if link.closed else self._drop(link)
        wrong = isinstance(error, RefusedError) and error.code == "WRONGNODE"
        if calls and (wrong or link.kind != "compare"):
            link.node.fail(error, self.now(), hurried)
        for call in calls:
            call.last = error
            self._place(call, self.now())

    def _line(self, link: Link, line: bytes) -> None:
        node, address = link.node, link.node.address.text
        refused = protocol.refusal(address, line) if line[:1] == b"-" and not link.got else None
        if link.greeting or not link.pending:
            return self._greeted(link, line, refused)
        call = link.pending[0]
        if refused:
            return self._refused(link, call, refused)
        try:
            link.got += call.request.numbers(line)
        except ValueError:
            return self._give_up(link, protocol.not_flaked(address, line))
        if len(link.got) < call.request.want:
            return
        link.pending.popleft()
        values, link.got, link.heard = link.got, [], self.now()
        if node.failures:
            node.restore()
            for other in self.waiting:
                if not other.refused:  # else it does not wait for a node
                    other.resume = self.next_tick = self.now()
        if call.request is protocol.READY:
            self._drop(link)
        if self.comparing:
            self.held.append((call, values))
            self.held_until = min(self.held_until, max(0.0, call.deadline - self.now()) / 2 + self.now())
            self.next_tick = min(self.next_tick, self.held_until)
        else:
            self._end(call, values)

    def _greeted(self, link: Link, line: bytes, refused: Optional[RefusedError]) -> None:
        """Take a reply to AUTH or WORKER, or bytes that nobody asked for."""
        address = link.node.address.text
        error: Optional[FlakedError] = None
        if link.greeting == 1:
            unknown = self.identity.unknown
            error = self.identity.check(address, line, link.kind == "compare")
            if unknown and not self.identity.unknown:
                self._compare(link.node)
        elif not link.greeting or line != b"OK":
            error = refused or protocol.not_flaked(address, line)
        link.greeting -= 1
        if error:
            self._give_up(link, error)
        elif not link.greeting and link.kind == "compare":
            self._drop(link)

    def _refused(self, link: Link, call: Call, error: RefusedError) -> None:
        link.pending.popleft()
        of_sequence = bool(call.request.name and error.reason)
        lasting = error.reason in LASTING or error.code != "NOTREADY"
        final = error.code in ("ERR", "NOPERM") or (of_sequence and lasting)
        if call.request is protocol.READY:
            self._drop(link)
        elif final:
            return call.end([], error)
        call.last = error
        if of_sequence:
            call.refused += (link.node,)
        else:
            link.node.fail(error, self.now(), False)
        self._place(call, self.now())
