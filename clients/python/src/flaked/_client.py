"""The blocking client."""

from __future__ import annotations

import contextlib
import threading
import weakref
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Optional

from . import _protocol as protocol
from ._base import BaseClient, BaseSequence
from ._call import Call
from ._config import Config, seconds
from ._errors import ClosedError, unavailable
from ._fork import in_child
from ._stock import Stock
from ._threads import Reactor

#: The engine ends a call at its deadline. A caller waits this much longer, in case the engine cannot.
_GRACE = 0.1


class Client(BaseClient):
    """Get IDs, and values of named sequences, from flaked nodes. Any number of threads may use one client.

    A process that was forked may use the client of its parent: it makes connections of its own, and prefetched
    values stay with the parent.
    """

    def _set_up(self) -> None:
        self._runner = _Runner(self._config)
        # A client that is dropped ends its thread. The thread does not refer to the client.
        weakref.finalize(self, self._runner.close)

    def next(self, *, timeout: Optional[float] = None) -> int:
        """Return a new ID."""
        return self._runner.one(protocol.ONE_ID, self._stock, timeout)

    def next_many(self, n: int, *, timeout: Optional[float] = None) -> list[int]:
        """Return n new IDs, 1 to 10,000, in ascending order. All of them, or an error and none."""
        return self._runner.call(protocol.ids(n), timeout)

    def sequence(self, name: str, *, prefetch: int = 0, max_age: Optional[float] = None) -> Sequence:
        """Return the sequence of this name. It shares the connections of the client.

        Do not prefetch from strict and ordered sequences: values would come out of order.
        """
        return Sequence(self, name, prefetch, max_age)

    def close(self) -> None:
        """Close the connections. Calls that wait, and later ones, raise ClosedError."""
        reactor = self._runner.close()
        if reactor:
            reactor.join()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Sequence(BaseSequence):
    """A named sequence: a counter that all nodes share. Made by :meth:`Client.sequence`."""

    def __init__(self, client: Client, name: str, prefetch: int, max_age: Optional[float]) -> None:
        super().__init__(client, name, prefetch, max_age)
        self._client = client  # a client that is dropped is closed
        self._runner = client._runner

    def next(self, *, key: Optional[str] = None, timeout: Optional[float] = None) -> int:
        """Return the next value. In a strict sequence, the same key gets the same value again, from any node."""
        if key is not None:
            return self._runner.call(protocol.keyed(self.name, key), timeout)[0]
        return self._runner.one(self._one, self._stock, timeout)

    def next_many(self, n: int, *, timeout: Optional[float] = None) -> list[int]:
        """Return n new values, 1 to 10,000, in ascending order, perhaps with gaps."""
        return self._runner.call(protocol.values(self.name, n), timeout)

    def range(self, n: int, *, timeout: Optional[float] = None) -> range:
        """Return n new values that follow each other, 1 to 1,000,000."""
        return protocol.spanned(n, self._runner.call(protocol.span(self.name, n), timeout))


class _Runner:
    """Submits calls to the reactor, and makes a reactor when there is none: at first, and after a fork."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._closed = False
        self._reactor: Optional[Reactor] = None
        self._lock = threading.Lock()
        in_child(self)

    def forget(self) -> None:
        """Leave the reactor to the parent process."""
        self._lock = threading.Lock()  # a thread of the parent may have held it
        reactor, self._reactor = self._reactor, None
        if reactor:
            reactor.abandon()

    def one(self, request: protocol.Request, stock: Optional[Stock], timeout: Optional[float]) -> int:
        """Return a value of the stock, or else one that is requested."""
        if stock is None or self._closed:
            return self.call(request, timeout)[0]
        value = stock.take()
        if stock.lacks():
            reactor = self._running()
            reactor.post(reactor.engine.refill, stock)
        return self.call(request, timeout)[0] if value is None else value

    def call(self, request: protocol.Request, timeout: Optional[float]) -> list[int]:
        """Return the numbers of the reply."""
        limit = self._config.timeout if timeout is None else seconds("timeout", timeout)
        gate: SimpleQueue[Call] = SimpleQueue()
        call = Call(request, monotonic() + limit, gate.put)
        reactor = self._running()
        try:
            reactor.post(reactor.engine.submit, call)
            if reactor.ended:  # it may never look at the call
                raise ClosedError
            with contextlib.suppress(Empty):
                gate.get(timeout=limit + _GRACE)
        finally:
            call.done = True  # after an exception, such as KeyboardInterrupt, nobody waits any more
        if call.error:
            raise call.error
        if not call.values:
            raise unavailable(call.last)
        return call.values

    def close(self) -> Optional[Reactor]:
        """Close the client. Return the reactor that ends then."""
        with self._lock:
            self._closed = True
            reactor, self._reactor = self._reactor, None
        if reactor:
            reactor.close()
        return reactor

    def _running(self) -> Reactor:
        reactor = self._reactor
        if reactor and not reactor.ended:
            return reactor
        with self._lock:
            if self._closed:
                raise ClosedError
            if self._reactor is None or self._reactor.ended:
                self._reactor = Reactor(self._config)
            return self._reactor
