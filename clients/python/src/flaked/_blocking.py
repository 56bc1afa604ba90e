"""The blocking client's I/O. It has no thread: one of the callers that wait, the leader, does the I/O for all.

Names of ``threading``, ``socket`` and ``select`` are looked up when they are used: gevent and eventlet replace them at
any time.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from functools import partial
from time import monotonic
from typing import Any, Callable, Optional, Union

from . import _process
from ._engine import Call, Engine
from ._identity import Identity
from ._options import Options
from ._protocol import ClosedError, Request
from ._socket import Bell, Wire, wait
from ._stock import Stock

#: How long a caller waits before it looks whether there is a leader. Two interrupts in a row may have removed it.
LOOK = 0.5
#: How often callers look for a reply for the stock while it has values.
GLANCE = 0.001


_Polled = Union[Bell, Wire]


class Blocking:
    """An engine, and the callers that drive it.

    An exception, such as KeyboardInterrupt, may end a caller between any two steps. If it was changing the engine, the
    next caller makes a new one, which asks again for the others. Replies to the old one are thrown away.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.identity = Identity(options.cluster)  # copies of the process belong to the same cluster
        self.closed = False
        self.engine: Optional[Engine] = None
        self._bell: Optional[Bell] = None
        self.sockets: weakref.WeakSet[Any] = weakref.WeakSet()
        self.forget()
        _process.forgetful.add(self)

    def forget(self) -> None:
        """Begin anew. The connections of the parent process go on: only copies of its sockets are closed."""
        self._close_sockets()
        if self.engine and not self.engine.compared:
            self.identity = Identity(self.options.cluster)
        self.engine = self._bell = None
        self._lock = _process.new_lock()  # a thread of the parent may have held it
        self._changing = -1  #: the caller that changes the engine, 0 if none does, -1 if it must be made anew
        self._calls: dict[Call, Any] = {}  #: their gates, which open when a call has ended, or when nobody leads
        self._leader: Optional[Call] = None  #: it leads until it has left. Set under the lock
        self._waiting: Optional[Call] = None  #: the leader while it waits for sockets
        self._ended = 0  #: how many calls have ended in the last turn
        self._queue: deque[Callable[[Engine], object]] = deque()
        self._turn = 0  #: counts how often the queue was read
        self._rung = -1  #: the turn in which the bell was rung

    def call(self, request: Request, limit: float, stock: Optional[Stock] = None) -> Any:
        """Return the result of a request, or a value of the stock."""
        _process.check()
        if self.closed:
            raise ClosedError
        if stock and (value := self._draw(stock)) is not None:
            return value
        caller = threading.get_ident()
        if self._changing == caller:  # a signal handler has interrupted this thread in the midst of a change
            return self._apart(request, limit)
        gate = threading.Lock()
        gate.acquire()
        call = Call(request, monotonic() + limit, lambda ended: self._finish(ended, gate))
        call.caller = caller
        try:
            self._calls[call] = gate
            self._queue.append(lambda engine: stock.submit(call, engine) if stock else engine.submit(call))
            self._await(call, gate)
        finally:
            try:
                self._leave(call)
            except BaseException:
                self._leave(call)
                raise
        return call.result()

    def post(self, do: Callable[[Engine], object]) -> None:
        """Let the leader do something with the engine. Any thread may call this method."""
        self._queue.append(do)
        if not self._within():
            self._wake()

    def close(self) -> None:
        """Close the connections, or let the last caller do that."""
        _process.check()
        self.closed = True
        for gate in self._calls.copy().values():
            _open(gate)
        self._wake()
        self._shut()

    def _draw(self, stock: Stock) -> Optional[int]:
        value = stock.take()
        if value is None:
            if stock.awaits(0.0):
                self._look()
                value = stock.take()
        elif stock.lacks():
            self._queue.append(stock.fill)
            self._look()
        elif stock.awaits(GLANCE):
            self._look()
        return value

    def _look(self) -> None:
        """Do what can be done now, or let the leader do it."""
        if self._led():
            self._wake()
        elif not self._within():
            self._work(None, None)

    def _await(self, call: Call, gate: Any) -> None:
        """Wait for a reply as the leader, or for the leader."""
        ready: Optional[list[_Polled]] = None
        while not call.done:
            left = call.deadline - monotonic()
            if self.closed:
                raise ClosedError
            leader = self._leader
            led = leader is not None and leader is not call and not leader.left and self._led(call)
            if not led and ready is None and self._ended > 1 and self._claim(call):
                time.sleep(0)  # those that were answered with it may ask, too: one write is for all
            work = None if led else self._work(ready, call)
            if call.done or left <= 0:
                return
            if work:
                waits, until = work
                before, self._waiting = self._waiting, call
                ready = []
                if not (call.done or self._queue or self.closed):
                    ready = wait(waits, min(until, call.deadline, monotonic() + LOOK) - monotonic())
                self._waiting = before
            else:
                self._wake()
                gate.acquire(timeout=min(left, LOOK))
                ready = None

    def _led(self, call: Optional[Call] = None) -> bool:
        """Report whether another call leads, which is not one that this caller has interrupted."""
        leader = self._leader
        if leader is None or leader is call or leader.left or leader.caller == threading.get_ident():
            return False
        return not leader.done or leader.deadline > monotonic()

    def _claim(self, call: Call) -> bool:
        with self._lock:
            if self._led(call):
                return False
            self._leader = call
            return True

    def _finish(self, call: Call, gate: Any) -> None:
        self._ended += 1
        _open(gate)
        if self._waiting is call and self._bell:  # another one has read its reply
            self._bell.ring()

    def _leave(self, call: Call) -> None:
        """Let another caller lead, if any waits."""
        call.done = call.left = True
        self._calls.pop(call, None)
        below = self._waiting
        if below is call:
            self._waiting = None
        elif below and below.caller == call.caller and self._bell:
            self._bell.ring()  # its reply may have come while it was interrupted
        leader = self._leader
        if self._calls and (leader is None or leader.left):
            for other, gate in self._calls.copy().items():
                if not other.done and other.deadline > monotonic():
                    return _open(gate)
                self._calls.pop(other, None)  # two interrupts have left it here
        if self.closed:
            self._shut()

    def _wake(self) -> None:
        turn = self._turn
        if self._waiting and self._rung != turn and self._bell:
            self._bell.ring()
            self._rung = turn  # if _work has been called meanwhile, this says nothing

    def _work(self, ready: Optional[list[_Polled]], call: Optional[Call]) -> Optional[tuple[list[_Polled], float]]:
        """Receive, do what was posted, and send. Return for what to wait, and until when. None: another call leads.

        ready has what was waited for. None stands for the connections that are idle, or all if there is no call: what
        they have is older than what is sent now.
        """
        caller = threading.get_ident()
        try:
            with self._lock:
                if self.closed:
                    raise ClosedError
                if call:
                    if self._led(call):
                        return None
                    self._leader = call
                # No loop stands here: with Python 3.13 an interrupt at the end of its body would keep the lock.
                return self._change(caller, ready, call)
        except BaseException:
            if self._changing == caller:
                self._changing = -1
            with contextlib.suppress(RuntimeError):
                self._lock.release()  # Python 3.9 may keep it
            raise

    def _change(self, caller: int, ready: Optional[list[_Polled]], call: Optional[Call]) -> tuple[list[_Polled], float]:
        before, self._changing = self._changing, caller
        engine, bell = self.engine, self._bell
        if before or not engine or not bell:
            engine, bell = self._renew()
        self._ended = 0
        if ready is None:  # a connection with a caller's request is waited for soon: it is not looked at
            links = [link for link in engine.links if not (call and link.pending and link.pending[0] in self._calls)]
            ready, polled = [link.task for link in links], False
        else:
            polled = True
        for each in ready:
            each.ready()
        if polled and engine.next_tick <= monotonic():
            engine.tick()  # what has come was read: no node is judged early because nobody has called for long
        self._turn += 1  # after the bell was heard, and before the queue is read
        while self._queue:
            self._queue.popleft()(engine)
        engine.flush()
        waits: list[_Polled] = [bell, *(link.task for link in engine.links)]
        self._changing = 0
        return waits, engine.next_tick

    def _within(self) -> bool:
        return self._changing == threading.get_ident()

    def _apart(self, request: Request, limit: float) -> Any:
        other = Blocking(self.options)
        other.identity = self.identity
        try:
            return other.call(request, limit)
        finally:
            other.close()

    def _renew(self) -> tuple[Engine, Bell]:
        """Make an engine. An old one may be half-changed: its calls go to the new one."""
        old, bell = self.engine, self._bell or Bell(self.sockets)
        if old:
            for link in list(old.links):
                link.closed = True
                for call in list(link.pending):
                    if not call.patient:
                        call.end([])  # another one may be made for the stock
            self._close_sockets(bell)
            bell.ring()  # another caller may wait for the old ones
            if not old.compared:
                self.identity = Identity(self.options.cluster)
            self._queue.clear()
        self._bell, self.engine = bell, Engine(self.options, partial(Wire, self), self.identity)
        for call in self._calls.copy() if old else ():
            self.engine.submit(call)
        return self.engine, bell

    def _shut(self) -> None:
        if not self._calls and not self._within():
            with self._lock:
                self._close_sockets()

    def _close_sockets(self, but: Optional[Bell] = None) -> None:
        for sock in list(self.sockets):
            if not but or sock not in but.pair:
                sock.close()


def _open(gate: Any) -> None:
    try:  # noqa: SIM105  # each call does this
        gate.release()
    except RuntimeError:
        pass  # it is open
