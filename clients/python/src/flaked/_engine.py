"""Every decision of a client, without I/O: which node is asked, what a reply means, when to give up.

A driver does what the engine says (``Driver``), and reports what happens: ``opened``, ``received``, ``lost``, ``tick``.
All calls come from one thread or one event loop, so there are no locks.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import Callable, Optional, Protocol

from . import _protocol as protocol
from ._call import Call, Link
from ._config import Config
from ._errors import ClosedError, FlakedError, RefusedError, unavailable
from ._node import Node, ends_call, ends_sequence_call, needs_operator
from ._stock import Stock

#: The least time that a node has to answer, however little a call has left. A busy node needs it.
LEAST_SHARE = 0.025
#: How long a call waits, at least and at most, after all nodes have refused it because of its sequence.
LEAST_RETRY = 0.02
MOST_RETRY = 1.0


class Driver(Protocol):
    """What the engine asks of a driver. None of these methods may call the engine."""

    def connect(self, link: Link) -> None:
        """Begin to connect, and report ``opened`` or ``lost`` later."""

    def write(self, link: Link, data: bytes) -> None:
        """Send data, now or later."""

    def disconnect(self, link: Link) -> None:
        """Close the connection, or stop connecting."""


class Engine:
    """The calls of one client, its nodes and its connections."""

    def __init__(self, config: Config, driver: Driver, now: Callable[[], float] = monotonic) -> None:
        self.config = config
        self.driver = driver
        self.now = now
        self.nodes = [Node(address) for address in config.addresses]
        self.links: set[Link] = set()
        self.waiting: list[Call] = []
        self.unhealthy = 0
        #: When tick must be called, at the latest.
        self.next_tick = inf
        self._unsent: set[Link] = set()

    def submit(self, call: Call) -> None:
        """Begin a call."""
        now = self.now()
        if self.unhealthy:
            self._probe(now)
        self._place(call, now)

    def refill(self, stock: Stock) -> None:
        """Request more values for a stock, if it lacks some and has requested none."""
        lacks = stock.lacks()
        if lacks:
            stock.filling = True
            call = Call(stock.request(lacks), self.now() + self.config.timeout, stock.filled)
            call.eager = True
            self.submit(call)

    def opened(self, link: Link) -> None:
        """Tell that a link is connected."""
        link.open = True
        self._unsent.add(link)

    def received(self, link: Link, data: bytes) -> None:
        """Take bytes that a node has sent."""
        link.idle = False
        lines = (link.rest + data).split(b"\n")
        link.rest = lines.pop()
        for line in lines:
            if link.closed:
                return
            self._line(link, line[:-1] if line.endswith(b"\r") else line)
        if len(link.rest) > protocol.MAX_LINE:
            self._give_up(link, protocol.not_flaked(link.node.address.text, link.rest))

    def lost(self, link: Link, error: Exception) -> None:
        """Tell that a connection could not be made, or has ended."""
        if not link.idle:
            return self._give_up(link, error)
        # The node has closed an idle connection while requests were on their way. That is no failure.
        calls = [call for call in link.pending if call.request.want and not call.done]
        self._drop(link)
        for call in calls:
            self._send(link.node, call, self.now())

    def _give_up(self, link: Link, error: Exception, hurried: bool = False) -> None:
        """Close a link. If requests wait for replies, the node fails, and they go to the next node."""
        if link.closed:
            return
        now = self.now()
        calls = [call for call in link.pending if call.request.want]
        self._drop(link)
        if (calls or link.probe) and not (calls and ends_call(error)):
            self._fail(link.node, error, hurried)
        for call in calls:
            call.last = error
            if ends_call(error):
                call.fail(error)
            else:
                self._place(call, now)

    def tick(self) -> None:
        """Do what is due: end calls at their deadlines, give up silent nodes, try again."""
        now = self.now()
        if now < self.next_tick:
            return
        for link in list(self.links):
            for call in link.pending:
                if call.deadline <= now:
                    call.fail(unavailable(call.last or _silence(link, now - call.asked)))
            late = [call for call in link.pending if call.until <= now]
            if late:
                self._give_up(link, _silence(link, now - late[0].asked), all(call.hurried for call in late))
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            if call.deadline <= now:
                call.fail(unavailable(call.last))
            elif call.resume <= now:
                call.refused.clear()
                self._place(call, now)
            elif not call.done:
                self.waiting.append(call)
        self._schedule()

    def flush(self) -> None:
        """Write the requests that were made since the last time. Drivers call it when they have done the rest."""
        for link in self._unsent:
            if link.open and link.out and not link.closed:
                self.driver.write(link, b"".join(link.out))
                link.out.clear()
        self._unsent.clear()

    def close(self) -> None:
        """Close all links, and fail all calls."""
        calls, self.waiting = self.waiting, []
        for link in list(self.links):
            calls += link.pending
            self._drop(link)
        for call in calls:
            call.fail(ClosedError())

    def _schedule(self) -> None:
        times = [call.until for link in self.links for call in link.pending]
        times += [call.deadline for link in self.links for call in link.pending if not call.done]
        times += [min(call.resume, call.deadline) for call in self.waiting]
        self.next_tick = min(times, default=inf)

    def _place(self, call: Call, now: float) -> None:
        """Send a call to the best node, or let it wait, or fail it."""
        if call.done:
            return
        if call.last and call.deadline <= now:
            return call.fail(unavailable(call.last))
        node = self._pick(call)
        if node is None or (call.refused and node.paused(now)):
            self._retry(call, now)
        elif not node.paused(now):
            self._send(node, call, now)
        elif call.eager or node.until >= call.deadline or all(needs_operator(n.last) for n in self.nodes):
            call.fail(unavailable(call.last or node.last))
        else:
            self._wait(call, node.until)

    def _pick(self, call: Call) -> Optional[Node]:
        if not self.unhealthy and not call.refused:
            return self.nodes[0]
        return min((n for n in self.nodes if n not in call.refused), key=Node.rank, default=None)

    def _send(self, node: Node, call: Call, now: float) -> None:
        share = self.config.node_timeout
        if len(self.nodes) - self.unhealthy > (not node.failures):  # another node is healthy
            share = min(share, max((call.deadline - now) / 2, LEAST_SHARE))
        call.hurried = share < self.config.node_timeout
        call.asked, call.until = now, now + share
        self.next_tick = min(self.next_tick, call.until, call.deadline)
        link = node.links.get(bool(call.request.name))
        if link is None:
            link = node.links[bool(call.request.name)] = self._connect(node, False)
        link.send(call)
        self._unsent.add(link)

    def _connect(self, node: Node, probe: bool) -> Link:
        link = Link(node, probe)
        if self.config.token is not None:
            login = Call(protocol.auth(self.config.token), inf, lambda _: None)
            login.until = inf
            link.send(login)
        self.links.add(link)
        self.driver.connect(link)
        return link

    def _drop(self, link: Link) -> None:
        link.closed, link.idle = True, False
        self.links.discard(link)
        node = link.node
        node.links = {kind: other for kind, other in node.links.items() if other is not link}
        if link.probe:
            node.probing = False
        self.driver.disconnect(link)

    def _wait(self, call: Call, until: float) -> None:
        call.resume = until
        self.waiting.append(call)
        self.next_tick = min(self.next_tick, until, call.deadline)

    def _retry(self, call: Call, now: float) -> None:
        """Begin a call anew after a moment, because the nodes that can be reached refuse its sequence."""
        asked = (call.last.retry_after if isinstance(call.last, RefusedError) else None) or 0.0
        until = now + min(max(LEAST_RETRY, asked), MOST_RETRY)
        if call.eager or until >= call.deadline:
            call.fail(unavailable(call.last))
        else:
            self._wait(call, until)

    def _line(self, link: Link, line: bytes) -> None:
        address = link.node.address.text
        if not link.pending:  # nobody waits, so nobody is told
            return self._give_up(link, protocol.not_flaked(address, line))
        call = link.pending[0]
        if line[:1] == b"-" and len(line) > 1 and not link.got:
            return self._refused(link, call, protocol.refusal(address, line))
        try:
            link.got += call.request.numbers(line)
        except ValueError:
            return self._give_up(link, protocol.not_flaked(address, line))
        if len(link.got) < call.request.want:
            return
        link.pending.popleft()
        values, link.got = link.got, []
        if call.request is protocol.READY:
            self._drop(link)
        if values or link.closed:
            self._restore(link.node)
        call.succeed(values)

    def _refused(self, link: Link, call: Call, error: RefusedError) -> None:
        if not call.request.want:  # AUTH or READY
            return self._give_up(link, error)
        link.pending.popleft()
        call.last = error
        about_sequence = bool(call.request.name and error.reason)
        if ends_call(error) or (about_sequence and ends_sequence_call(error)):
            return call.fail(error)
        if about_sequence:
            call.refused.add(link.node)
        else:
            self._fail(link.node, error)
        self._place(call, self.now())

    def _fail(self, node: Node, error: Exception, hurried: bool = False) -> None:
        self.unhealthy += not node.failures
        node.fail(error, self.now(), hurried)

    def _restore(self, node: Node) -> None:
        if not node.failures:
            return
        self.unhealthy -= 1
        node.restore()
        waiting, self.waiting = self.waiting, []
        now = self.now()
        for call in waiting:
            if call.refused:  # it does not wait for a node
                self.waiting.append(call)
            else:
                self._place(call, now)

    def _probe(self, now: float) -> None:
        """Ask failed nodes whether they are ready, while another node is healthy."""
        if self.unhealthy == len(self.nodes):
            return
        for node in self.nodes:
            if node.failures and not node.probing and node.until <= now:
                node.probing = True
                ready = Call(protocol.READY, inf, lambda _: None)
                ready.asked, ready.until = now, now + self.config.node_timeout
                self.next_tick = min(self.next_tick, ready.until)
                link = self._connect(node, True)
                link.send(ready)
                self._unsent.add(link)


def _silence(link: Link, seconds: float) -> FlakedError:
    did = "answer" if link.open else "accept a connection"
    return FlakedError(f"{link.node.address.text} did not {did} within {seconds * 1000:.0f} ms")
