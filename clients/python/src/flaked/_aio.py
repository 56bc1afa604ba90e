"""The client for asyncio."""

from __future__ import annotations

import asyncio
from math import inf
from time import monotonic
from typing import Optional

from . import _protocol as protocol
from ._base import BaseClient, BaseSequence
from ._call import Call, Link
from ._config import Config, seconds
from ._engine import Engine
from ._errors import ClosedError, in_words
from ._fork import in_child
from ._stock import Stock


class AsyncClient(BaseClient):
    """Get IDs, and values of named sequences, from flaked nodes, with asyncio. Any number of tasks may use one client.

    The first call binds the client to the running event loop. A call
    that is cancelled throws its reply away, and disturbs no other.
    """

    def _set_up(self) -> None:
        self._closed = False
        self._reactor: Optional[_Reactor] = None
        in_child(self)

    async def next(self, *, timeout: Optional[float] = None) -> int:
        """Return a new ID."""
        return await self._one(protocol.ONE_ID, self._stock, timeout)

    async def next_many(self, n: int, *, timeout: Optional[float] = None) -> list[int]:
        """Return n new IDs, 1 to 10,000, in ascending order. All of them, or an error and none."""
        return await self._call(protocol.ids(n), timeout)

    def sequence(self, name: str, *, prefetch: int = 0, max_age: Optional[float] = None) -> AsyncSequence:
        """Return the sequence of this name. It shares the connections of the client.

        Do not prefetch from strict and ordered sequences: values would come out of order.
        """
        return AsyncSequence(self, name, prefetch, max_age)

    async def close(self) -> None:
        """Close the connections. Calls that wait, and later ones, raise ClosedError."""
        self._closed = True
        reactor, self._reactor = self._reactor, None
        if reactor:
            await reactor.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def forget(self) -> None:
        """Leave the connections to the parent process. Not for callers."""
        self._reactor = None

    async def _one(self, request: protocol.Request, stock: Optional[Stock], timeout: Optional[float]) -> int:
        reactor = self._running()
        value = None
        if stock is not None:
            value = stock.take()
            if stock.lacks():
                reactor.engine.refill(stock)
                reactor.work_soon()
        return (await self._call(request, timeout))[0] if value is None else value

    async def _call(self, request: protocol.Request, timeout: Optional[float]) -> list[int]:
        limit = self._config.timeout if timeout is None else seconds("timeout", timeout)
        reactor = self._running()
        future: asyncio.Future[list[int]] = reactor.loop.create_future()
        call = Call(request, monotonic() + limit, lambda ended: _resolve(future, ended))
        reactor.engine.submit(call)
        reactor.work_soon()
        try:
            return await future
        finally:
            call.done = True  # after a cancellation nobody waits any more

    def _running(self) -> _Reactor:
        if self._closed:
            raise ClosedError
        loop = asyncio.get_running_loop()
        if self._reactor is None or self._reactor.loop.is_closed():
            self._reactor = _Reactor(self._config, loop)
        elif self._reactor.loop is not loop:
            raise RuntimeError("the client is bound to another event loop. Make a client for each loop")
        return self._reactor


class AsyncSequence(BaseSequence):
    """A named sequence: a counter that all nodes share. Made by :meth:`AsyncClient.sequence`."""

    def __init__(self, client: AsyncClient, name: str, prefetch: int, max_age: Optional[float]) -> None:
        super().__init__(client, name, prefetch, max_age)
        self._client = client

    async def next(self, *, key: Optional[str] = None, timeout: Optional[float] = None) -> int:
        """Return the next value. In a strict sequence, the same key gets the same value again, from any node."""
        if key is not None:
            return (await self._client._call(protocol.keyed(self.name, key), timeout))[0]
        return await self._client._one(self._one, self._stock, timeout)

    async def next_many(self, n: int, *, timeout: Optional[float] = None) -> list[int]:
        """Return n new values, 1 to 10,000, in ascending order, perhaps with gaps."""
        return await self._client._call(protocol.values(self.name, n), timeout)

    async def range(self, n: int, *, timeout: Optional[float] = None) -> range:
        """Return n new values that follow each other, 1 to 1,000,000."""
        return protocol.spanned(n, await self._client._call(protocol.span(self.name, n), timeout))


def _resolve(future: asyncio.Future[list[int]], call: Call) -> None:
    if future.done():
        return
    if call.error:
        future.set_exception(call.error)
    else:
        future.set_result(call.values)


class _Reactor:
    """An engine, its connections and its timer, in one event loop."""

    def __init__(self, config: Config, loop: asyncio.AbstractEventLoop) -> None:
        self.config = config
        self.loop = loop
        self.engine = Engine(config, self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._soon: Optional[asyncio.Handle] = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self._timer_at = inf

    def work_soon(self) -> None:
        """Write requests and set the timer when the other tasks have had their turn: they may ask, too."""
        if self._soon is None:
            self._soon = self.loop.call_soon(self._work)

    def _work(self) -> None:
        self._soon = None
        self.engine.tick()
        self.engine.flush()
        at = self.engine.next_tick
        if at < self._timer_at or (self._timer is None and at < inf):
            if self._timer:
                self._timer.cancel()
            self._timer, self._timer_at = self.loop.call_later(max(0.0, at - monotonic()), self._ring), at

    def _ring(self) -> None:
        self._timer, self._timer_at = None, inf
        self._work()

    async def close(self) -> None:
        self.engine.close()
        for handle in (self._timer, self._soon):
            if handle:
                handle.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close their sockets in the next turn of the loop

    # The engine's driver.

    def connect(self, link: Link) -> None:
        link.io = task = self.loop.create_task(self._connect(link))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def write(self, link: Link, data: bytes) -> None:
        link.io.write(data)

    def disconnect(self, link: Link) -> None:
        if isinstance(link.io, asyncio.Task):
            link.io.cancel()
        elif link.io:
            link.io.abort()

    async def _connect(self, link: Link) -> None:
        address = link.node.address
        try:
            if address.path:
                await self.loop.create_unix_connection(lambda: _Wire(self, link), address.path)
            else:
                await self.loop.create_connection(
                    lambda: _Wire(self, link), address.host, address.port, ssl=self.config.tls
                )
        except (OSError, ValueError) as error:
            self.engine.lost(link, in_words(address, error))
            self.work_soon()


class _Wire(asyncio.Protocol):
    """What asyncio tells of one connection."""

    def __init__(self, reactor: _Reactor, link: Link) -> None:
        self._reactor, self._link = reactor, link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._link.closed:
            return transport.close()
        self._link.io = transport
        self._reactor.engine.opened(self._link)
        self._reactor.work_soon()

    def data_received(self, data: bytes) -> None:
        self._reactor.engine.received(self._link, data)
        self._reactor.work_soon()

    def connection_lost(self, error: Optional[Exception]) -> None:
        self._reactor.engine.lost(self._link, in_words(self._link.node.address, error))
        self._reactor.work_soon()
