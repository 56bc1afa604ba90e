"""Requests and replies of the line protocol, and the errors of calls, without I/O. All errors can be pickled."""

from __future__ import annotations

import re
import ssl
from operator import index
from typing import Any, NamedTuple, Optional

MAX_COUNT = 10_000
MAX_LINE = 4096  #: a node sends no longer one

_NAME = re.compile(r"(?=.*[^0-9])[A-Za-z0-9_{][A-Za-z0-9_.:{}/-]{0,127}")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
#: What to do about refusals that the client's settings cause.
_ADVICE = {
    "NOAUTH": ". Give the client the argument token=",
    "WRONGPASS": ". Correct the client's argument token=",
}
#: What OpenSSL says of a reply that is not TLS. It depends on the version.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_REFUSAL = re.compile(rb"-([A-Z]\S*)(?: (.*))?")


class FlakedError(Exception):
    """The base of all errors of this package. If a node has refused, its attributes have the last refusal."""

    code: Optional[str] = None  #: such as ``NOTREADY``
    reason: Optional[str] = None  #: the field ``reason=``, such as ``no-sequence``
    retry_after: Optional[float] = None  #: after how many seconds the node may be asked again
    text: str = ""  #: the node's text for people. It may change
    address: Optional[str] = None  #: of the node, as it was given to the client


class UnavailableError(FlakedError):
    """No node answered in time. ``__cause__`` is the last refusal or the last error of the network."""


class RefusedError(FlakedError):
    """A node refused the call, and neither another node nor a moment can help."""


class ClosedError(FlakedError):
    """The client is closed."""

    def __init__(self, message: str = "the client is closed. Make a new one") -> None:
        super().__init__(message)


class Request(NamedTuple):
    """One line that is sent to a node, and what its reply means."""

    line: bytes
    want: int = 1  #: how many numbers the reply has. 0 means that the reply is OK
    name: str = ""  #: the name of the sequence, "" for IDs
    span: int = 0  #: the n of RANGE, whose reply is one line with the first and the last value. Else 0
    single: bool = False  #: the result is a number, not a list

    def numbers(self, line: bytes) -> list[int]:
        """Return the numbers of one line of the reply. Raise ValueError if no node sends such a line."""
        if not self.want and line == b"OK":
            return []
        if not self.span:
            return [self._number(line)]
        first, last = map(self._number, line.split(b" "))
        if (last - first) % max(self.span - 1, 1) or (last > first) != (self.span > 1):
            raise ValueError
        return [first, last]

    def _number(self, word: bytes) -> int:
        value = int(word) if self.want and word.isdigit() and len(word) < 20 else -1
        if not (0 if self.name else 1) <= value < 2**63 or (value and word[0] == 48) or word[:2] == b"00":
            raise ValueError
        return value

    def result(self, numbers: list[int]) -> Any:
        """Return the result of a call from all numbers of the reply."""
        if not self.span:
            return numbers[0] if self.single else numbers
        first, last = numbers
        return range(first, last + 1, max(1, (last - first) // max(1, self.span - 1)))


class Cluster(NamedTuple):
    """What a node belongs to."""

    name: str
    uuid: str

    def __str__(self) -> str:
        return f"{self.name} ({self.uuid})"


#: Asks nothing but which cluster answers, which each connection does first.
NOTHING = Request(b"", 0)
READY = Request(b"READY\n", 0)


def values(name: str, n: Optional[int] = None, key: Optional[str] = None) -> Request:
    """Return the request for n values of a sequence, or the one that belongs to key. Without a name it is for IDs."""
    if key is not None and not _KEY.fullmatch(key):
        raise ValueError(f"the key {key!r:.80} must be a letter, then letters, digits and _ . : -, 64 bytes at most")
    if n is not None:
        key = None if check_count(n) == 1 else str(n)
    line = f"{f'NEXT {name}' if name else 'GET'}{f' {key}' if key else ''}\n"
    return Request(line.encode("ascii"), n or 1, name, single=n is None)


def span(name: str, n: int) -> Request:
    """Return the request for n values that follow each other."""
    return Request(f"RANGE {name} {check_count(n, 1_000_000)}\n".encode("ascii"), 2, name, n)


def check_count(n: int, most: int = MAX_COUNT) -> int:
    """Return n if a request may ask for so many."""
    if not 1 <= index(n) <= most:
        raise ValueError(f"the count is {n}, must be 1 to {most}")
    return n


def check_name(name: str) -> str:
    """Return name if a sequence may have it."""
    if not _NAME.fullmatch(name):
        rule = "1 to 128 letters, digits and _ . : - { } /, not digits alone, and begin with none of . : - } /"
        raise ValueError(f"the name of a sequence {name!r:.150} must be {rule}")
    return name


def refusal(address: str, line: bytes) -> Optional[RefusedError]:
    """Return the error that a line ``-CODE text`` of a node means, or None if it is another line."""
    match = len(line) <= MAX_LINE and _REFUSAL.fullmatch(line)
    if not match:
        return None
    code, text = (part.decode("utf-8", "replace") for part in match.groups(b""))
    fields = dict(word.partition("=")[::2] for word in reversed(text.split()))
    wait = fields.get("retry_after_ms", "")
    error = RefusedError(f"{address} answered -{code} {text}".rstrip() + _ADVICE.get(code, ""))
    error.code, error.text, error.address, error.reason = code, text, address, fields.get("reason") or None
    if re.fullmatch("[0-9]{1,18}", wait):
        error.retry_after = min(int(wait), 3_600_000) / 1000
    return error


def cluster_of(text: str) -> Optional[Cluster]:
    """Return the cluster in a reply to WORKER, with the UUID none if the node has not joined one yet."""
    fields = dict(word.partition("=")[::2] for word in reversed(text.split()))
    return Cluster(fields.get("cluster", ""), fields["cluster_uuid"]) if fields.get("cluster_uuid") else None


def wrong_node(address: str, text: str) -> RefusedError:
    """Return the error for a node of another cluster."""
    error = RefusedError(text)
    error.code, error.reason, error.text, error.address = "WRONGNODE", "other-cluster", text, address
    return error


def not_flaked(address: str, line: bytes) -> FlakedError:
    """Return the error for bytes that no flaked node sends."""
    return FlakedError(f"{address} sent {line[:60]!r}, which is not a reply of a flaked node. Check the address")


def unavailable(cause: Optional[Exception]) -> UnavailableError:
    """Return the error of a call that no node has answered, with the last error as its cause."""
    error = UnavailableError(f"no node answered in time: {cause or 'check the addresses'}")
    if isinstance(cause, RefusedError):
        vars(error).update(vars(cause))
    error.__cause__ = cause
    return error


def in_words(address: str, error: Optional[BaseException]) -> FlakedError:
    """Return the error of a connection with the node's address. None stands for its orderly end."""
    if error is None or isinstance(error, (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)):
        text = f"{address} closed the connection"
    elif isinstance(error, ConnectionRefusedError):
        text = f"connection refused by {address}. Check that the node runs"
    elif isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        text = f"the node does not use TLS at {address}. Correct the address, or leave out the argument tls="
    else:
        text = f"the connection to {address} failed: {error}"
    wrapped = FlakedError(text)
    wrapped.__cause__ = error
    return wrapped
