"""The settings of a client, and the addresses of nodes."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import NamedTuple, Optional

DEFAULT_ADDRESS = "127.0.0.1:7609"
DEFAULT_PORT = 7609
MAX_PREFETCH = 100_000


class Address(NamedTuple):
    """Where a node listens: a host and a port, or the path of a unix socket."""

    text: str  #: as it was given
    host: str = ""
    port: int = 0
    path: str = ""


def parse_address(text: str) -> Address:
    """Parse ``host:port``, ``host``, ``[::1]:port`` or ``unix:/path``."""
    if text.startswith("unix:"):
        path = text[len("unix:") :]
        if not path.startswith("/"):
            raise ValueError(f"{text!r}: the path of a unix socket must begin with /, as in unix:/run/flaked.sock")
        return Address(text, path=path)
    if "://" in text:
        raise ValueError(f"{text!r} is a URL. Write HOST:PORT")
    if not text or text.isdigit() or any(c in "/ \t\r\n" for c in text):
        raise ValueError(f"{text!r} is not HOST:PORT, such as {DEFAULT_ADDRESS}")
    host, port = text, str(DEFAULT_PORT)
    if text.startswith("[") and "]" in text:
        host, _, rest = text[1:].partition("]")
        port = rest[1:] if rest.startswith(":") else "" if rest else port
    elif text.count(":") == 1:
        host, port = text.split(":")
    try:
        good = bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 65536
        good = good and (":" not in host or bool(IPv6Address(host)))
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"{text!r} is not HOST:PORT, with a port of 1 to 65535. IPv6 is as in [::1]:{DEFAULT_PORT}")
    return Address(text, host, int(port))


class Config(NamedTuple):
    """What both clients are made of."""

    addresses: tuple[Address, ...]
    token: Optional[str]
    tls: Optional[ssl.SSLContext]
    timeout: float
    node_timeout: float
    prefetch: int
    max_age: float

    def check(self) -> None:
        """Raise an error if a setting is wrong that has no function of its own."""
        if self.token is not None and not (0 < len(self.token) <= 256 and all("!" <= c <= "~" for c in self.token)):
            raise ValueError("token must have 1 to 256 printable characters without blanks")
        if self.tls is not None and not isinstance(self.tls, ssl.SSLContext):
            raise TypeError("tls must be an ssl.SSLContext, such as ssl.create_default_context()")
        check_prefetch(self.prefetch)


def parse_addresses(addresses: Iterable[str]) -> tuple[Address, ...]:
    """Parse the addresses of a client."""
    parsed = tuple(parse_address(text) for text in ([addresses] if isinstance(addresses, str) else addresses))
    if not parsed:
        raise ValueError(f"addresses is empty. Give the address of a node, such as {DEFAULT_ADDRESS}")
    if len(set(parsed)) < len(parsed):
        raise ValueError("addresses has an address twice. Give each node once")
    return parsed


def check_prefetch(prefetch: int) -> None:
    """Raise ValueError unless prefetch is a count that a client may keep."""
    if not 0 <= prefetch <= MAX_PREFETCH:
        raise ValueError(f"prefetch is {prefetch}, must be 0 to {MAX_PREFETCH}")


def seconds(name: str, value: float) -> float:
    """Return value if it is a duration in seconds."""
    if not 0 < value <= 86400:  # also false for a NaN
        raise ValueError(f"{name} is {value}, must be a number of seconds above 0, and at most a day")
    return float(value)
