"""The settings of a client, and the addresses of nodes."""

from __future__ import annotations

import contextlib
import re
import ssl
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple, Optional

DEFAULT_ADDRESS = "127.0.0.1:7609"
DEFAULT_PORT = "7609"
_HOST_PORT = re.compile(r"(?:\[([^]]+)\]|([^\s:/\[\]]+))(?::([0-9]{1,5}))?")


class Address(NamedTuple):
    """Where a node listens: a host and a port, or the path of a unix socket."""

    text: str  #: as it was given
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def numeric(self) -> bool:
        """Report whether the host is an IP address, so that no name server is asked."""
        with contextlib.suppress(ValueError):
            return bool(ip_address(self.host)) and "%" not in self.host
        return False


class Options(NamedTuple):
    """The settings that calls and connections need."""

    addresses: tuple[Address, ...]
    token: Optional[str]
    tls: Optional[ssl.SSLContext]
    timeout: float
    node_timeout: float
    cluster: str = ""  #: its name or UUID. "" stands for that of the first node that answers


def parse_address(text: str) -> Address:
    """Parse ``host:port``, ``host``, ``[::1]:port`` or ``unix:/path``."""
    if text.startswith("unix:/"):
        return Address(text, path=text[len("unix:") :])
    match = _HOST_PORT.fullmatch(f"[{text}]" if text.count(":") > 1 and "[" not in text else text)
    ipv6, host, port = match.groups() if match else (None, None, None)
    try:
        host = str(IPv6Address(ipv6)) if ipv6 else host
    except ValueError:
        host = None
    if not host or text.isdigit() or not 0 < int(port or DEFAULT_PORT) < 65536:
        raise ValueError(f"the address {text!r} is not HOST:PORT (port 1 to 65535), HOST, [IPV6]:PORT or unix:/PATH")
    return Address(text, host, int(port or DEFAULT_PORT))


def seconds(name: str, value: float) -> float:
    """Return value if it is a duration in seconds."""
    if not 0 < value <= 86400:  # also false for a NaN
        raise ValueError(f"{name} is {value}, must be a number of seconds above 0, and at most a day")
    return float(value)
