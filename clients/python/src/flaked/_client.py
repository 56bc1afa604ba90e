"""The blocking client and the one for asyncio. ``One``, what ``next`` returns, is an int or a coroutine of one."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import threading
import weakref
from collections.abc import Coroutine, Iterable
from queue import Empty, SimpleQueue
from typing import Any, Generic, Optional, TypeVar, cast

from . import _process
from . import _protocol as protocol
from ._engine import Call
from ._loop import Reactor
from ._options import DEFAULT_ADDRESS, Options, parse_address, seconds
from ._protocol import ClosedError
from ._stock import Stock

One = TypeVar("One")
Many = TypeVar("Many")
Span = TypeVar("Span")
Seq = TypeVar("Seq")


class _Source(Generic[One, Many]):
    """A client, which gives IDs, or a sequence, which gives its values."""

    def _prepare(self, core: Any, name: str, prefetch: int, max_age: float) -> None:
        self._core = core
        self._one = protocol.values(name)
        self._max_age = seconds("max_age", max_age)
        if not 0 <= prefetch <= 100_000:
            raise ValueError(f"prefetch is {prefetch}, must be 0 to 100,000")
        self._stock = Stock(name, prefetch, max_age) if prefetch else None

    def _ask(self, request: protocol.Request, timeout: Optional[float], stock: Optional[Stock] = None) -> Any:
        limit = self._core.options.timeout if timeout is None else seconds("timeout", timeout)
        return self._core.call(request, limit, stock)

    def next(self, *, timeout: Optional[float] = None) -> One:
        """Return a new ID, or the next value of the sequence."""
        return cast(One, self._ask(self._one, timeout, self._stock))

    def next_many(self, n: int, *, timeout: Optional[float] = None) -> Many:
        """Return n new IDs or values, 1 to 10,000, in ascending order. All of them, or an error and none."""
        return cast(Many, self._ask(protocol.values(self._one.name, n), timeout))


class _Client(_Source[One, Many], Generic[One, Many, Seq]):
    """The settings of a client."""

    _reactor: Any
    _sequence: Any

    def __init__(
        self,
        addresses: Iterable[str] = (DEFAULT_ADDRESS,),
        *,
        cluster: str = "",
        token: Optional[str] = None,
        tls: Optional[ssl.SSLContext] = None,
        timeout: float = 5.0,
        node_timeout: float = 1.0,
        prefetch: int = 0,
        max_age: float = 1.0,
    ) -> None:
        """Check the settings. This does no I/O, so nodes that are down cause no error here.

        :param addresses: nodes of one cluster, ``host:port``, ``host`` or ``unix:/path``, asked in this order.
        :param cluster: the name or the UUID of the cluster. Else it is that of the first node that answers.
        :param token: what the nodes ask for.
        :param tls: for the TCP addresses, such as ``ssl.create_default_context()``.
        :param timeout: how many seconds a call may take, unless it says otherwise.
        :param node_timeout: how many seconds one node may be silent before the next one is asked.
        :param prefetch: how many IDs are requested in advance, up to 100,000, so that ``next`` need not wait.
        :param max_age: how many seconds a prefetched ID may be kept.
        """
        nodes = tuple(map(parse_address, [addresses] if isinstance(addresses, str) else addresses))
        if not nodes or len(set(nodes)) < len(nodes):
            raise ValueError(f"addresses must have an address, such as {DEFAULT_ADDRESS}, and none of them twice")
        if token is not None and not re.fullmatch("[!-~]{1,256}", token):
            raise ValueError("token must have 1 to 256 printable characters without blanks")
        if cluster and not re.fullmatch("[A-Za-z0-9._-]{1,64}", cluster):
            raise ValueError(
                f"cluster is {cluster!r:.80}, must be a name or a UUID: letters, digits and . _ -, at most 64"
            )
        if tls is not None and not isinstance(tls, ssl.SSLContext):
            raise TypeError("tls must be an ssl.SSLContext, such as ssl.create_default_context()")
        limits = seconds("timeout", timeout), seconds("node_timeout", node_timeout)
        options = Options(nodes, token, tls, *limits, cluster)
        self._prepare(self._reactor(options), "", prefetch, max_age)

    def sequence(self, name: str, *, prefetch: int = 0, max_age: Optional[float] = None) -> Seq:
        """Return the sequence of this name. It shares the connections of the client.

        Do not prefetch from strict and ordered sequences: values would come out of order.
        """
        return cast(Seq, self._sequence(self, name, prefetch, max_age))


class _Sequence(_Source[One, Many], Generic[One, Many, Span]):
    """A named sequence: a counter that all nodes share. Made by the method ``sequence`` of a client."""

    def __init__(self, client: Any, name: str, prefetch: int, max_age: Optional[float]) -> None:
        self.name = protocol.check_name(name)
        self._client = client  # a client that is dropped is closed
        self._prepare(client._core, name, prefetch, client._max_age if max_age is None else max_age)

    def next(self, *, key: Optional[str] = None, timeout: Optional[float] = None) -> One:
        """Return the next value. In a strict sequence, the same key gets the same value again, from any node."""
        if key is None:
            return super().next(timeout=timeout)
        return cast(One, self._ask(protocol.values(self.name, key=key), timeout))

    def range(self, n: int, *, timeout: Optional[float] = None) -> Span:
        """Return n new values that follow each other, 1 to 1,000,000, as a ``range``."""
        return cast(Span, self._ask(protocol.span(self.name, n), timeout))


class _Threaded(Reactor):
    # One daemon thread does the I/O. Callers append to a queue and wait. So an exception in a caller, such as
    # KeyboardInterrupt, cannot leave the connections or the engine in a half-changed state.
    thread: Optional[threading.Thread]
    soon = Reactor.work

    def call(self, request: protocol.Request, limit: float, stock: Optional[Stock] = None) -> Any:
        _process.check()
        if not self.loop:
            self._start()
        if stock and (value := self.draw(stock)) is not None:
            return value
        gate: SimpleQueue[Call] = SimpleQueue()
        call = self.begin(request, limit, gate.put, stock)
        with contextlib.suppress(Empty):
            gate.get(timeout=limit)
        call.done = True  # nobody waits any more
        return call.result()

    def wake(self) -> None:
        turn, loop = self._turn, self.loop
        with contextlib.suppress(RuntimeError):  # the loop is closed
            if loop:
                loop.call_soon_threadsafe(self.work)
                self._woken = turn  # if work has been called meanwhile, this says nothing

    def _start(self) -> None:
        with self.lock:
            if self.closed:
                raise ClosedError
            if not self.loop:
                loop = asyncio.SelectorEventLoop()
                self.prepare()
                thread = threading.Thread(target=self._run, args=(loop,), name="flaked", daemon=True)
                thread.start()
                self.thread, self.loop = thread, loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with self.lock:  # until _start has ended
            mine = self.thread is threading.current_thread()
        if mine:  # else an interrupt has ended it
            loop.run_forever()
            loop.run_until_complete(self.shut())
        loop.close()

    def forget(self) -> None:
        super().forget()
        self.thread = None

    def close(self) -> None:
        _process.check()
        with self.lock:
            self.closed, loop, self.loop = True, self.loop, None
        if loop:
            loop.call_soon_threadsafe(loop.stop)


class Sequence(_Sequence[int, "list[int]", range]):
    """A named sequence: a counter that all nodes share. Made by :meth:`Client.sequence`."""


class Client(_Client[int, "list[int]", Sequence]):
    """Get IDs, and values of named sequences, from flaked nodes. Any number of threads may use one client.

    A forked process may use its parent's client: it makes connections of its own, and gets no prefetched value.
    """

    _reactor, _sequence = _Threaded, Sequence

    def _prepare(self, core: Any, name: str, prefetch: int, max_age: float) -> None:
        super()._prepare(core, name, prefetch, max_age)
        weakref.finalize(self, core.close)  # a client that is dropped ends its thread, which does not refer to it

    def close(self) -> None:
        """Close the connections. Calls that wait, and later ones, raise ClosedError."""
        self._core.close()
        if self._core.thread:
            self._core.thread.join(self._core.options.node_timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Asynchronous(Reactor):
    wake = Reactor.soon

    async def call(self, request: protocol.Request, limit: float, stock: Optional[Stock] = None) -> Any:
        _process.check()
        self._start()
        if stock and (value := self.draw(stock)) is not None:
            return value
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = self.begin(request, limit, lambda _: None if future.done() else future.set_result(None), stock)
        try:
            await future
        finally:
            call.done = True  # nobody waits any more, after a cancellation, too
        return call.result()

    def _start(self) -> None:
        if self.closed:
            raise ClosedError
        loop = asyncio.get_running_loop()
        if self.loop is None or self.loop.is_closed():
            self.forget()
            self.prepare()
            self.loop = loop
        elif self.loop is not loop:
            raise RuntimeError("the client is bound to another event loop. Make a client for each loop")


_One = Coroutine[Any, Any, int]
_Many = Coroutine[Any, Any, "list[int]"]
_Span = Coroutine[Any, Any, range]


class AsyncSequence(_Sequence[_One, _Many, _Span]):
    """A named sequence: a counter that all nodes share. Made by :meth:`AsyncClient.sequence`."""


class AsyncClient(_Client[_One, _Many, AsyncSequence]):
    """Get IDs, and values of named sequences, from flaked nodes, with asyncio. Any number of tasks may use one client.

    The first call binds the client to the running event loop. A call that is cancelled disturbs no other.
    """

    _reactor, _sequence = _Asynchronous, AsyncSequence

    async def close(self) -> None:
        """Close the connections. Calls that wait, and later ones, raise ClosedError."""
        core = self._core
        core.closed, loop, core.loop = True, core.loop, None
        if loop and not loop.is_closed():
            await core.shut()
        core.forget()  # sockets of a loop that has ended

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
