"""What the blocking client and the one for asyncio have in common."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Optional

from . import _protocol as protocol
from ._config import DEFAULT_ADDRESS, Config, check_prefetch, parse_addresses, seconds
from ._stock import Stock


class BaseClient:
    """The settings of a client.

    The constructor does no I/O. Nodes that are down cause no error there.

    :param addresses: nodes of one cluster, ``host:port``, ``host`` or ``unix:/path``. The first healthy one is asked.
    :param token: what the nodes ask for.
    :param tls: for the TCP addresses, such as ``ssl.create_default_context()``.
    :param timeout: how many seconds a call may take, unless it says otherwise.
    :param node_timeout: how many seconds one node may be silent before the next one is asked.
    :param prefetch: how many IDs are requested in advance, up to 100,000, so that ``next`` need not wait.
    :param max_age: how many seconds a prefetched ID may be kept.
    """

    def __init__(
        self,
        addresses: Iterable[str] = (DEFAULT_ADDRESS,),
        *,
        token: Optional[str] = None,
        tls: Optional[ssl.SSLContext] = None,
        timeout: float = 5.0,
        node_timeout: float = 1.0,
        prefetch: int = 0,
        max_age: float = 1.0,
    ) -> None:
        self._config = Config(
            parse_addresses(addresses), token, tls, seconds("timeout", timeout), seconds("node_timeout", node_timeout),
            prefetch, seconds("max_age", max_age)
        )  # fmt: skip
        self._config.check()
        self._stock = Stock(prefetch, self._config.max_age, protocol.ids) if prefetch else None
        self._set_up()

    def _set_up(self) -> None:
        raise NotImplementedError


class BaseSequence:
    """The name of a sequence, and its prefetched values."""

    def __init__(self, client: BaseClient, name: str, prefetch: int, max_age: Optional[float]) -> None:
        check_prefetch(prefetch)
        age = client._config.max_age if max_age is None else seconds("max_age", max_age)
        self.name = protocol.check_name(name)
        self._one = protocol.values(name)
        self._stock = Stock(prefetch, age, lambda n: protocol.values(name, n)) if prefetch else None
