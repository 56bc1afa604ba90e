"""Sockets that never block, and how to wait for several of them."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from functools import partial
from math import ceil
from typing import Any, Optional, Union

from . import _process
from ._address import Place, Places, look_up, new_socket
from ._engine import Engine, Link
from ._protocol import in_words

_CHUNK = 1 << 16


class Bell:
    """Ends the wait for sockets. Any thread may ring it."""

    writes = False

    def __init__(self, sockets: Any) -> None:
        with _process.making:
            self.pair = self.sock, self._other = socket.socketpair()
            sockets.update(self.pair)
        for sock in self.pair:
            sock.setblocking(False)

    def ring(self) -> None:
        """End the present wait, or the next one."""
        with contextlib.suppress(OSError):  # it was rung often enough, or is closed
            self._other.send(b"!")

    def ready(self) -> None:
        """Fall silent."""
        with contextlib.suppress(OSError):
            self.sock.recv(_CHUNK)


class Wire:
    """A connection. Its methods return at once. core is the driver."""

    sock: Optional[socket.socket] = None
    _connecting = True
    _unsent = b""
    _tls: Optional[_Tls] = None

    def __init__(self, core: Any, link: Link) -> None:
        self._core, self._link = core, link
        self._places: Iterator[Place] = iter(())
        link.task, link.write, link.close = self, self._write, self._close
        look_up(link.node.address, lambda places: core.post(partial(self._dial, places)))

    @property
    def writes(self) -> bool:
        """Report whether it waits until it can send."""
        return self._connecting or bool(self._unsent)

    def ready(self) -> None:
        """Do what can be done now."""
        if self._link.closed or not self.sock:
            return
        try:
            if self._connecting:
                self._see()
            else:
                self._send(b"")
                self._receive()
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, ValueError) as error:
            self._lost(error)

    def _dial(self, places: Places, engine: Engine) -> None:
        if self._link not in engine.links:
            return  # it took too long
        if isinstance(places, Exception):
            return self._lost(places)
        self._places = iter(places)
        self._next(OSError("the host has no address"))

    def _next(self, error: Exception) -> None:
        """Connect to the next address."""
        for family, where in self._places:
            self._close()
            try:
                self.sock = new_socket(family, self._core.sockets)
                if not self._link.node.address.path:
                    self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sock.connect(where)
                return self._connected()
            except (OSError, ValueError) as failed:
                if isinstance(failed, BlockingIOError) and not self._link.node.address.path:
                    return
                error = failed
        self._lost(error)

    def _see(self) -> None:
        assert self.sock
        if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return self._next(OSError(code, os.strerror(code)))
        try:
            self.sock.getpeername()
        except OSError:
            return  # not yet
        self._connected()

    def _connected(self) -> None:
        self._connecting = False
        address, context = self._link.node.address, self._core.options.tls
        if context and not address.path:
            self._tls = _Tls(context, address.host)
            self._take(b"")
        else:
            self._core.engine.opened(self._link)

    def _receive(self) -> None:
        assert self.sock
        while not self._link.closed:
            data = self.sock.recv(_CHUNK)
            if not data:
                return self._lost(None)
            if self._tls:
                self._take(data)
            else:
                self._core.engine.received(self._link, data)
            if len(data) < _CHUNK:
                return

    def _take(self, data: bytes) -> None:
        """Take bytes for TLS."""
        assert self._tls
        try:
            plain, ended = self._tls.take(data)
        finally:
            self._send(self._tls.out.read())  # an alert, too
        if self._tls.shaken and not self._link.open:
            self._core.engine.opened(self._link)
        if plain:
            self._core.engine.received(self._link, plain)
        if ended and not self._link.closed:
            self._lost(None)

    def _write(self, data: bytes) -> None:
        self._send(self._tls.encrypt(data) if self._tls else data)

    def _send(self, data: bytes) -> None:
        self._unsent += data
        if self._unsent and self.sock:
            try:
                self._unsent = self._unsent[self.sock.send(self._unsent) :]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self._unsent = b""  # the reason is read

    def _lost(self, error: Optional[Exception]) -> None:
        self._core.engine.lost(self._link, in_words(self._link.node.address.text, error))

    def _close(self) -> None:
        if self.sock:
            self.sock.close()


class _Tls:
    """TLS without I/O."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._into, self.out, server_hostname=host)
        self.shaken = False

    def encrypt(self, data: bytes) -> bytes:
        """Return what is sent for data."""
        self._object.write(data)
        return self.out.read()

    def take(self, data: bytes) -> tuple[bytes, bool]:
        """Return the plain bytes in what was received, and whether they are the last. The reply to it is in out."""
        self._into.write(data)
        plain = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            if not self.shaken:
                self._object.do_handshake()
                self.shaken = True
            while more := self._object.read(_CHUNK):
                plain += more
            return plain, True
        return plain, False


def wait(for_: Iterable[Union[Bell, Wire]], seconds: float) -> list[Union[Bell, Wire]]:
    """Return those that are ready, when any is, or when the time is up."""
    by_fd = {each.sock.fileno(): each for each in for_ if each.sock and each.sock.fileno() >= 0}
    seconds = max(0.0, seconds)
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            for fd, each in by_fd.items():
                poll.register(fd, select.POLLOUT | select.POLLIN if each.writes else select.POLLIN)
            found = {fd for fd, _ in poll.poll(ceil(seconds * 1000))}
        else:  # it is Windows, or eventlet has taken poll away
            writers = [fd for fd, each in by_fd.items() if each.writes]
            found = {fd for fds in select.select(list(by_fd), writers, writers, seconds) for fd in fds}
            for _ in range(1, len(by_fd)):
                time.sleep(0)  # eventlet reports each ready socket, even after select has returned
    except (OSError, ValueError):  # another thread has closed one of them
        return []
    return [by_fd[fd] for fd in found if fd in by_fd]
