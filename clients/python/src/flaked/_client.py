"""The blocking client and the one for asyncio. ``One``, what ``next`` returns, is an int or a coroutine of one."""

from __future__ import annotations

import re
import ssl
import weakref
from collections.abc import Coroutine, Iterable
from typing import Any, Callable, Generic, Optional, TypeVar, cast

from . import _protocol as protocol
from ._asyncio import Asynchronous
from ._blocking import Blocking
from ._options import DEFAULT_ADDRESS, Options, parse_address, seconds
from ._stock import Stock

One = TypeVar("One")
Many = TypeVar("Many")
Span = TypeVar("Span")
Seq = TypeVar("Seq")
Function = TypeVar("Function", bound=Callable[..., Any])


def _unnamed(method: Function) -> Function:
    """Let Django's makemigrations refuse a method as a default: it would write a name that lacks the client."""

    def deconstruct() -> None:  # Django looks for this attribute
        raise ValueError(
            "a migration cannot refer to a method of a client. In a module, write a function: "
            "def new_id(): return client.next(), and use default=new_id"
        )

    setattr(method, "deconstruct", deconstruct)  # noqa: B010, because mypy knows no such attribute
    return method


class _Source(Generic[One, Many]):
    """A client, which gives IDs, or a sequence, which gives its values."""

    def _prepare(self, core: Any, name: str, prefetch: int, max_age: float) -> None:
        self._core = core
        self._one = protocol.values(name)
        self._max_age = seconds("max_age", max_age)
        if not 0 <= prefetch <= 100_000:
            raise ValueError(f"prefetch is {prefetch}, must be 0 to 100,000")
        self._stock = Stock(name, prefetch, max_age) if prefetch else None

    def _ask(self, request: protocol.Request, timeout: Optional[float], stock: Optional[Stock] = None) -> Any:
        limit = self._core.options.timeout if timeout is None else seconds("timeout", timeout)
        return self._core.call(request, limit, stock)

    @_unnamed
    def next(self, *, timeout: Optional[float] = None) -> One:
        """Return a new ID, or the next value of the sequence."""
        return cast(One, self._ask(self._one, timeout, self._stock))

    def next_many(self, n: int, *, timeout: Optional[float] = None) -> Many:
        """Return n new IDs or values, 1 to 10,000, in ascending order. All of them, or an error and none."""
        return cast(Many, self._ask(protocol.values(self._one.name, n), timeout))


class _Client(_Source[One, Many], Generic[One, Many, Seq]):
    """The settings of a client."""

    _core_type: Any
    _sequence: Any

    def __init__(
        self,
        addresses: Iterable[str] = (DEFAULT_ADDRESS,),
        *,
        cluster: str = "",
        token: Optional[str] = None,
        tls: Optional[ssl.SSLContext] = None,
        timeout: float = 5.0,
        node_timeout: float = 1.0,
        prefetch: int = 0,
        max_age: float = 1.0,
    ) -> None:
        """Check the settings. This does no I/O, so nodes that are down cause no error here.

        :param addresses: nodes of one cluster, ``host:port``, ``host`` or ``unix:/path``, asked in this order.
        :param cluster: the name or the UUID of the cluster. Else it is that of the first node that answers.
        :param token: what the nodes ask for.
        :param tls: for the TCP addresses, such as ``ssl.create_default_context()``.
        :param timeout: how many seconds a call may take, unless it says otherwise.
        :param node_timeout: how many seconds one node may be silent before the next one is asked.
        :param prefetch: how many IDs are requested in advance, up to 100,000, so that ``next`` need not wait.
        :param max_age: how many seconds a prefetched ID may be kept.
        """
        nodes = tuple(map(parse_address, [addresses] if isinstance(addresses, str) else addresses))
        if not nodes or len(set(nodes)) < len(nodes):
            raise ValueError(f"addresses must have an address, such as {DEFAULT_ADDRESS}, and none of them twice")
        if token is not None and not re.fullmatch("[!-~]{1,256}", token):
            raise ValueError("token must have 1 to 256 printable characters without blanks")
        if cluster and not re.fullmatch("[A-Za-z0-9._-]{1,64}", cluster):
            raise ValueError(
                f"cluster is {cluster!r:.80}, must be a name or a UUID: letters, digits and . _ -, at most 64"
            )
        if tls is not None and not isinstance(tls, ssl.SSLContext):
            raise TypeError("tls must be an ssl.SSLContext, such as ssl.create_default_context()")
        limits = seconds("timeout", timeout), seconds("node_timeout", node_timeout)
        options = Options(nodes, token, tls, *limits, cluster)
        self._prepare(self._core_type(options), "", prefetch, max_age)

    def sequence(self, name: str, *, prefetch: int = 0, max_age: Optional[float] = None) -> Seq:
        """Return the sequence of this name. It shares the connections of the client.

        Do not prefetch from strict and ordered sequences: values would come out of order.
        """
        return cast(Seq, self._sequence(self, name, prefetch, max_age))


class _Sequence(_Source[One, Many], Generic[One, Many, Span]):
    """A named sequence: a counter that all nodes share. Made by the method ``sequence`` of a client."""

    def __init__(self, client: Any, name: str, prefetch: int, max_age: Optional[float]) -> None:
        self.name = protocol.check_name(name)
        self._client = client  # a client that is dropped is closed
        self._prepare(client._core, name, prefetch, client._max_age if max_age is None else max_age)

    @_unnamed
    def next(self, *, key: Optional[str] = None, timeout: Optional[float] = None) -> One:
        """Return the next value. In a strict sequence, the same key gets the same value again, from any node."""
        if key is None:
            return super().next(timeout=timeout)
        return cast(One, self._ask(protocol.values(self.name, key=key), timeout))

    def range(self, n: int, *, timeout: Optional[float] = None) -> Span:
        """Return n new values that follow each other, 1 to 1,000,000, as a ``range``."""
        return cast(Span, self._ask(protocol.span(self.name, n), timeout))


class Sequence(_Sequence[int, "list[int]", range]):
    """A named sequence: a counter that all nodes share. Made by :meth:`Client.sequence`."""


class Client(_Client[int, "list[int]", Sequence]):
    """Get IDs, and values of named sequences, from flaked nodes. Any number of threads may use one client.

    A forked process may use its parent's client: it makes connections of its own, and gets no prefetched value.
    """

    _core_type, _sequence = Blocking, Sequence

    def _prepare(self, core: Any, name: str, prefetch: int, max_age: float) -> None:
        super()._prepare(core, name, prefetch, max_age)
        weakref.finalize(self, core.close)  # a client that is dropped closes its connections

    def close(self) -> None:
        """Close the connections. Calls that wait, and later ones, raise ClosedError."""
        self._core.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_One = Coroutine[Any, Any, int]
_Many = Coroutine[Any, Any, "list[int]"]
_Span = Coroutine[Any, Any, range]


class AsyncSequence(_Sequence[_One, _Many, _Span]):
    """A named sequence: a counter that all nodes share. Made by :meth:`AsyncClient.sequence`."""


class AsyncClient(_Client[_One, _Many, AsyncSequence]):
    """Get IDs, and values of named sequences, from flaked nodes, with asyncio. Any number of tasks may use one client.

    The first call binds the client to the running event loop. A call that is cancelled disturbs no other.
    """

    _core_type, _sequence = Asynchronous, AsyncSequence

    async def close(self) -> None:
        """Close the connections. Calls that wait, and later ones, raise ClosedError."""
        await self._core.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
