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
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not HOST:PORT. Write an IPv6 address as in [::1]:{DEFAULT_PORT}")
        port = rest[1:] if rest else port
    elif text.count(":") == 1:
        host, port = text.split(":")
    if ":" in host:
        try:
            IPv6Address(host)
        except ValueError:
            raise ValueError(f"{text!r} is not HOST:PORT. Write an IPv6 address as in [::1]:{DEFAULT_PORT}") from None
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text!r} is not HOST:PORT, with a port from 1 to 65535")
    return Address(text, host, int(port))


class Config(NamedTuple):
    """What both clients are made of, checked."""

    addresses: tuple[Address, ...]
    token: Optional[str]
    tls: Optional[ssl.SSLContext]
    timeout: float
    node_timeout: float
    prefetch: int
    max_age: float


def make_config(
    addresses: Iterable[str],
    token: Optional[str],
    tls: Optional[ssl.SSLContext],
    timeout: float,
    node_timeout: float,
    prefetch: int,
    max_age: float,
) -> Config:
    """Check the arguments of a client."""
    parsed = [parse_address(a) for a in ([addresses] if isinstance(addresses, str) else addresses)]
    if not parsed:
        raise ValueError(f"addresses is empty. Give the address of a node, such as {DEFAULT_ADDRESS}")
    if len({a.text for a in parsed}) < len(parsed):
        raise ValueError("addresses has an address twice. Give each node once")
    if token is not None and not (0 < len(token) <= 256 and all("!" <= c <= "~" for c in token)):
        raise ValueError("token must have 1 to 256 printable characters without blanks")
    if tls is not None and not isinstance(tls, ssl.SSLContext):
        raise TypeError("tls must be an ssl.SSLContext, such as ssl.create_default_context()")
    check_prefetch(prefetch)
    return Config(
        tuple(parsed),
        token,
        tls,
        seconds("timeout", timeout),
        seconds("node_timeout", node_timeout),
        prefetch,
        seconds("max_age", max_age),
    )


def check_prefetch(prefetch: int) -> None:
    """Raise ValueError unless prefetch is a count that a client may keep."""
    if not 0 <= prefetch <= MAX_PREFETCH:
        raise ValueError(f"prefetch is {prefetch}, must be 0 to {MAX_PREFETCH}")


def seconds(name: str, value: float) -> float:
    """Return value if it is a duration in seconds."""
    if not 0 < value <= 86400:  # also false for a NaN
        raise ValueError(f"{name} is {value}, must be a number of seconds above 0, and at most a day")
    return float(value)
