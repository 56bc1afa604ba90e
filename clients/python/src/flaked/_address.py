"""Where to connect to, for both clients."""

from __future__ import annotations

import _thread
import socket
from typing import Any, Callable, Union

from . import _process
from ._options import Address

#: A family of sockets, and an address in it.
Place = tuple[int, Any]
Places = Union["list[Place]", Exception]


def look_up(address: Address, found: Callable[[Places], object]) -> None:
    """Tell where the node listens, or why that is unknown, now or from another thread.

    Python waits for other threads when it ends, and a name server may take minutes. So it does not know of this one.
    """
    if address.path:
        found([(socket.AF_UNIX, address.path)])
    elif address.numeric:
        found([(socket.AF_INET6 if ":" in address.host else socket.AF_INET, (address.host, address.port))])
    else:
        try:
            # Under gevent a Thread would let others run before it has started. They must not within a change.
            _thread.start_new_thread(lambda: found(_resolve(address)), ())
        except RuntimeError as error:  # no thread can start, Python ends
            found(error)


def _resolve(address: Address) -> Places:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        return [(family, where) for family, _, _, _, where in found]
    except Exception as error:
        return error


def new_socket(family: int, sockets: Any) -> socket.socket:
    """Return a socket that does not block, and note it, so that a copy of the process can close it."""
    with _process.making:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sockets.add(sock)
    sock.setblocking(False)
    return sock
