"""The I/O of the client for asyncio, in the event loop of its callers."""

from __future__ import annotations

import asyncio
import socket
import weakref
from concurrent.futures import Future
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Optional

from . import _process
from ._address import Places, look_up, new_socket
from ._engine import Call, Engine, Link
from ._identity import Identity
from ._options import Address, Options
from ._protocol import ClosedError, Request, in_words
from ._stock import Stock


class Asynchronous:
    """An engine in an event loop, and the tasks that call it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.identity = Identity(options.cluster)  # copies of the process belong to the same cluster
        self.closed = False
        self.sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self.forget()
        _process.forgetful.add(self)

    def forget(self) -> None:
        """Begin without a loop. The connections of the parent process go on: only copies of its sockets are closed."""
        for sock in list(self.sockets):
            sock.close()
        self.loop: Optional[asyncio.AbstractEventLoop] = None

    async def call(self, request: Request, limit: float, stock: Optional[Stock] = None) -> Any:
        """Return the result of a request, or a value of the stock."""
        _process.check()
        self._start()
        if stock and (value := stock.take()) is not None:
            if stock.lacks():
                stock.fill(self.engine)
                self.soon()
            return value
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = Call(request, monotonic() + limit, lambda _: None if future.done() else future.set_result(None))
        if stock:
            stock.submit(call, self.engine)
        else:
            self.engine.submit(call)
        self.soon()
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
            self.engine = Engine(self.options, partial(_Wire, self), self.identity)
            self._working = False  #: work will be called
            self._timer: Optional[asyncio.TimerHandle] = None
            self._timer_at = inf
            self.loop = loop
        elif self.loop is not loop:
            raise RuntimeError("the client is bound to another event loop. Make a client for each loop")

    def soon(self) -> None:
        """Let the loop call work when the other tasks have had their turn: they may ask, too."""
        if not self._working and self.loop:
            self._working = True
            self.loop.call_soon(self._work)

    def _work(self) -> None:
        """Write requests, and set the timer."""
        self._working = False
        self.engine.flush()
        at = self.engine.next_tick
        if at < self._timer_at and self.loop:
            if self._timer:
                self._timer.cancel()
            self._timer, self._timer_at = self.loop.call_later(max(0.0, at - monotonic()), self._ring), at

    def _ring(self) -> None:
        # The loop has read what has arrived, even if the program has held it up. So no node is judged too early.
        self._timer, self._timer_at = None, inf
        self.engine.tick()
        self._work()

    async def close(self) -> None:
        """Fail all calls, and close the connections."""
        self.closed, loop, self.loop = True, self.loop, None
        if loop and not loop.is_closed():
            tasks = [link.task for link in self.engine.links]
            self.engine.close()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)  # transports close their sockets in the next turn of the loop
        self.forget()  # sockets of a loop that has ended


class _Wire(asyncio.BufferedProtocol):
    """A connection of asyncio. It has its own buffer: asyncio would allocate 256 KB for each read."""

    def __init__(self, core: Asynchronous, link: Link) -> None:
        self._core = core
        self._link = link
        self._buffer = memoryview(bytearray(1 << 16))
        link.task = asyncio.get_running_loop().create_task(self._connect(link.node.address))
        link.close = link.task.cancel

    async def _connect(self, address: Address) -> None:
        tls = None if address.path else self._core.options.tls
        try:
            sock = await self._dial(address)
            name = address.host if tls else None
            await asyncio.get_running_loop().create_connection(lambda: self, sock=sock, ssl=tls, server_hostname=name)
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no thread can start, Python ends
            self.connection_lost(error)

    async def _dial(self, address: Address) -> socket.socket:
        found: Future[Places] = Future()
        look_up(address, found.set_result)
        places = await asyncio.wrap_future(found)
        error: Exception = OSError("the host has no address")
        if isinstance(places, Exception):
            raise places
        for family, where in places:
            sock = new_socket(family, self._core.sockets)
            try:
                await asyncio.get_running_loop().sock_connect(sock, where)
                return sock
            except BaseException as failed:
                sock.close()
                if not isinstance(failed, OSError):
                    raise
                error = failed
        raise error

    def connection_made(self, transport: Any) -> None:
        if self._link.closed:
            transport.abort()
            return
        self._link.write, self._link.close = transport.write, transport.abort
        self._core.engine.opened(self._link)
        self._core.soon()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._core.engine.received(self._link, bytes(self._buffer[:nbytes]))
        self._core.soon()

    def connection_lost(self, error: Optional[Exception]) -> None:
        self._core.engine.lost(self._link, in_words(self._link.node.address.text, error))
        self._core.soon()
