"""The connections and the timer of an engine, in an event loop of asyncio. Both clients use it."""

from __future__ import annotations

import asyncio
import socket
import threading
import weakref
from collections import deque
from concurrent.futures import Future
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Callable, Optional

from . import _process
from ._engine import Call, Engine, Link
from ._identity import Identity
from ._options import Address, Options
from ._protocol import ClosedError, Request, in_words
from ._stock import Stock


class Reactor:
    """An engine in an event loop. A subclass makes the loop, and waits for calls."""

    wake: Callable[[], None]  #: lets the loop call work. Any thread may call it

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
        self.lock = threading.Lock()  # a thread of the parent may have held it
        self.loop: Optional[asyncio.AbstractEventLoop] = None

    def prepare(self) -> None:
        self.engine = Engine(self.options, partial(_Wire, self), self.identity)
        self._queue: deque[Callable[[], object]] = deque()
        self._turn = 0  #: counts the calls of work
        self._woken = -1  #: the turn after which work will be called
        self._timer: Optional[asyncio.TimerHandle] = None
        self._timer_at = inf

    def draw(self, stock: Stock) -> Optional[int]:
        """Return a value of the stock, None if it has none. Let it be filled."""
        value = stock.take()
        if value is not None and stock.lacks():
            self.post(partial(stock.fill, self.engine))
        return value

    def begin(
        self, request: Request, limit: float, finish: Callable[[Call], object], stock: Optional[Stock] = None
    ) -> Call:
        """Begin a call, which may have found a stock empty."""
        call = Call(request, monotonic() + limit, finish)
        self.post(partial(stock.submit, call, self.engine) if stock else partial(self.engine.submit, call))
        if self.closed:  # nobody may ever look at the call
            raise ClosedError
        return call

    def post(self, do: Callable[[], object]) -> None:
        """Let the loop call do. Any thread may call this method, and begin."""
        self._queue.append(do)
        if self._woken != self._turn:
            self.wake()

    def soon(self) -> None:
        """Let the loop call work when the other tasks have had their turn: they may ask, too."""
        if self._woken != self._turn and self.loop:
            self.loop.call_soon(self.work)
            self._woken = self._turn

    def work(self) -> None:
        """Do what was posted, write requests, and set the timer."""
        self._turn += 1
        while self._queue:
            self._queue.popleft()()
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
        self.work()

    async def shut(self) -> None:
        """Fail all calls, and close the connections."""
        self.work()
        tasks = [link.task for link in self.engine.links]
        self.engine.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close their sockets in the next turn of the loop


class _Wire(asyncio.BufferedProtocol):
    """A connection of asyncio. It has its own buffer: asyncio would allocate 256 KB for each read."""

    def __init__(self, reactor: Reactor, link: Link) -> None:
        self._reactor = reactor
        self._link = link
        self._buffer = memoryview(bytearray(1 << 16))
        link.task = asyncio.get_running_loop().create_task(self._connect(link.node.address))
        link.close = link.task.cancel

    async def _connect(self, address: Address) -> None:
        tls = None if address.path else self._reactor.options.tls
        try:
            sock = await self._dial(address)
            name = address.host if tls else None
            await asyncio.get_running_loop().create_connection(lambda: self, sock=sock, ssl=tls, server_hostname=name)
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no thread can start, Python ends
            self.connection_lost(error)

    async def _dial(self, address: Address) -> socket.socket:
        error = OSError("the host has no address")
        for family, kind, proto, _, where in await _look_up(address):
            with _process.making:
                sock = socket.socket(family, kind, proto)
                self._reactor.sockets.add(sock)
            try:
                sock.setblocking(False)
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
        self._reactor.engine.opened(self._link)
        self._reactor.soon()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._reactor.engine.received(self._link, bytes(self._buffer[:nbytes]))
        self._reactor.soon()

    def connection_lost(self, error: Optional[Exception]) -> None:
        self._reactor.engine.lost(self._link, in_words(self._link.node.address.text, error))
        self._reactor.soon()


async def _look_up(address: Address) -> list[Any]:
    if address.path:
        return [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", address.path)]
    # Python waits for a loop's own threads when it ends. A name server may take minutes, so this thread is a daemon.
    found: Future[list[Any]] = Future()
    found.set_running_or_notify_cancel()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=look_up, name="flaked-dns", daemon=True).start()
    return await asyncio.wrap_future(found)
