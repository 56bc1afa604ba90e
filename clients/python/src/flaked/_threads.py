"""The blocking driver: one daemon thread does the I/O of a client, whatever threads call it.

Callers only append to a queue and wait. So an exception in a caller, such as KeyboardInterrupt, cannot leave the
connections or the engine in a half-changed state.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections import deque
from math import inf
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from time import monotonic
from typing import Any, Callable

from ._call import Link
from ._config import Address, Config
from ._engine import Engine
from ._errors import in_words

_SIZE = 1 << 16
#: An exception that says: wait until the socket can be read or written.
_WAIT = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Reactor:
    """An engine, its sockets and its thread."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.engine = Engine(config, self)
        #: The thread has ended, or will not look at the queue again.
        self.ended = False
        self._ending = False
        self._asleep = True
        self._queue: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._selector = DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._bell.setblocking(False)
        self._ear.setblocking(False)
        self._selector.register(self._ear, EVENT_READ, self)
        self._thread = threading.Thread(target=self._run, name="flaked", daemon=True)
        self._thread.start()

    def post(self, do: Callable[..., Any], *args: Any) -> None:
        """Let the thread call do. Any thread may call post. If the thread has ended, nothing happens."""
        self._queue.append((do, args))
        if self._asleep:
            with contextlib.suppress(OSError):  # full: it will wake up. Closed: it has ended
                self._bell.send(b"!")

    def close(self) -> None:
        """Let the thread end. All calls fail."""
        self.post(setattr, self, "_ending", True)

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join(self.config.node_timeout)

    def abandon(self) -> None:
        """Close the sockets in a child process, which has no thread. The parent's connections go on."""
        self.ended = True
        for key in list((self._selector.get_map() or {}).values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._bell.close()
        self._selector.close()

    # The engine's driver.

    def connect(self, link: Link) -> None:
        # Name servers and TLS handshakes block, so each connection is made in a thread of its own.
        try:
            threading.Thread(target=self._dial, args=(link,), name="flaked-connect", daemon=True).start()
        except RuntimeError as error:  # the interpreter ends
            self.post(self._lost, link, OSError(str(error)))

    def write(self, link: Link, data: bytes) -> None:
        link.io.write(data)

    def disconnect(self, link: Link) -> None:
        if link.io:
            link.io.close()

    # In the threads that connect.

    def _dial(self, link: Link) -> None:
        try:
            sock = self._connected(link.node.address)
        except (OSError, ValueError) as error:
            self.post(self._lost, link, error)
        else:
            self.post(self._opened, link, sock)
            if self.ended:
                sock.close()

    def _connected(self, address: Address) -> socket.socket:
        if address.path:
            sock = socket.socket(socket.AF_UNIX)
        else:
            sock = socket.create_connection((address.host, address.port), self.config.node_timeout)
        try:
            if address.path:
                sock.settimeout(self.config.node_timeout)
                sock.connect(address.path)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.config.tls:
                    sock = self.config.tls.wrap_socket(sock, server_hostname=address.host)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return sock

    # In the thread of the reactor.

    def _run(self) -> None:
        try:
            while not self._ending:
                self._asleep = True
                # A post either sees that the thread sleeps, or is seen here.
                wait = 0.0 if self._queue else max(0.0, self.engine.next_tick - monotonic())
                events = self._selector.select(None if wait == inf else wait)
                self._asleep = False
                for key, _ in events:
                    key.data.ready()
                self._work()
                self.engine.tick()
                self.engine.flush()
        finally:  # at close, and after an error that nobody expects: the next call makes a new reactor
            self.ended = True
            self.engine.close()
            self._work()
            self.abandon()

    def _work(self) -> None:
        for _ in range(len(self._queue)):
            do, args = self._queue.popleft()
            do(*args)

    def ready(self) -> None:
        with contextlib.suppress(*_WAIT):
            self._ear.recv(_SIZE)

    def _opened(self, link: Link, sock: socket.socket) -> None:
        if link.closed:
            sock.close()
            return
        link.io = _Wire(self, link, sock)
        self._selector.register(sock, EVENT_READ, link.io)
        self.engine.opened(link)

    def _lost(self, link: Link, error: Exception) -> None:
        self.engine.lost(link, in_words(link.node.address, error))


class _Wire:
    """An open socket. Only the reactor's thread uses it."""

    def __init__(self, reactor: Reactor, link: Link, sock: socket.socket) -> None:
        self.reactor, self.link, self.sock = reactor, link, sock
        self.out = bytearray()

    def write(self, data: bytes) -> None:
        self.out += data
        try:
            self._send()
        except OSError as error:
            self.reactor.post(self.reactor._lost, self.link, error)

    def ready(self) -> None:
        if self.link.closed:
            return
        try:
            self._send()
            self._receive()
        except OSError as error:
            self.reactor._lost(self.link, error)

    def close(self) -> None:
        self.reactor._selector.unregister(self.sock)
        self.sock.close()

    def _send(self) -> None:
        if not self.out:
            return
        with contextlib.suppress(*_WAIT):
            while self.out:
                del self.out[: self.sock.send(self.out)]
        events = EVENT_READ | EVENT_WRITE if self.out else EVENT_READ
        selector = self.reactor._selector
        if selector.get_key(self.sock).events != events:
            selector.modify(self.sock, events, self)

    def _receive(self) -> None:
        with contextlib.suppress(*_WAIT):
            while not self.link.closed:
                data = self.sock.recv(_SIZE)
                if not data:
                    raise ConnectionResetError
                self.reactor.engine.received(self.link, data)
                if len(data) < _SIZE and not isinstance(self.sock, ssl.SSLSocket):  # TLS may hold more
                    return
