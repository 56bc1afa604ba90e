"""Requests and replies of the line protocol, without I/O."""

from __future__ import annotations

import re
from operator import index
from typing import NamedTuple, Optional

from ._errors import FlakedError, RefusedError

MAX_VALUE = 2**63 - 1
MAX_COUNT = 10_000
MAX_RANGE = 1_000_000
#: A node sends no longer line.
MAX_LINE = 4096

_NAME = re.compile(r"(?=.*[^0-9])[A-Za-z0-9_{][A-Za-z0-9_.:{}/-]{0,127}", re.ASCII)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}", re.ASCII)


class ReplyError(FlakedError):
    """The bytes received are not a reply of a flaked node. Callers see it as a cause."""


class Request(NamedTuple):
    """One line that is sent to a node."""

    line: bytes
    #: How many numbers the reply has. 0 means that the reply is OK.
    want: int = 1
    #: The name of the sequence, "" for IDs.
    name: str = ""
    #: The n of RANGE, whose reply is one line with the first and the last value. Else 0.
    span: int = 0

    def numbers(self, line: bytes) -> list[int]:
        """Return the numbers of one line of the reply. Raise ValueError if no node sends such a line."""
        if not self.want:
            if line in (b"OK", b"+OK"):
                return []
            raise ValueError
        if not self.span:
            return [self._number(line)]
        first, last = map(self._number, line.split(b" "))
        width = last - first
        if width % max(self.span - 1, 1) or (width > 0) != (self.span > 1):
            raise ValueError
        return [first, last]

    def _number(self, word: bytes) -> int:
        if not word.isdigit() or len(word) > 19 or (word[0] == 48 and not (self.name and word == b"0")):
            raise ValueError
        value = int(word)
        if value > MAX_VALUE:
            raise ValueError
        return value


READY = Request(b"READY\n", 0)
ONE_ID = Request(b"GET\n")


def auth(token: str) -> Request:
    """Return the request that authenticates a connection."""
    return Request(f"AUTH {token}\n".encode("ascii"), 0)


def ids(n: int) -> Request:
    """Return the request for n IDs."""
    return ONE_ID if _count(n) == 1 else Request(b"GET %d\n" % n, n)


def values(name: str, n: int = 1) -> Request:
    """Return the request for n values of a sequence, whose name is a good one."""
    return Request(f"NEXT {name}{'' if _count(n) == 1 else f' {n}'}\n".encode("ascii"), n, name)


def keyed(name: str, key: str) -> Request:
    """Return the request for the value that belongs to key."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"the key {key!r:.80} must be a letter, then letters, digits and _ . : -, 64 bytes at most")
    return Request(f"NEXT {name} {key}\n".encode("ascii"), 1, name)


def span(name: str, n: int) -> Request:
    """Return the request for n values that follow each other."""
    return Request(f"RANGE {name} {_count(n, MAX_RANGE)}\n".encode("ascii"), 2, name, n)


def spanned(n: int, ends: list[int]) -> range:
    """Return the values of RANGE from the first and the last."""
    first, last = ends
    return range(first, last + 1, max(1, (last - first) // max(1, n - 1)))


def check_name(name: str) -> str:
    """Return name if a sequence may have it."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the name of a sequence {name!r:.150} must begin with a letter, a digit, _ or {{, go on with letters, "
            "digits and _ . : - { } /, and have at most 128 bytes. Digits alone are not a name"
        )
    return name


def _count(n: int, most: int = MAX_COUNT) -> int:
    if not 1 <= index(n) <= most:
        raise ValueError(f"the count is {n}, must be 1 to {most}")
    return n


def refusal(address: str, line: bytes) -> RefusedError:
    """Return the error that a line of a node says, which begins with ``-``."""
    code, _, text = line[1:].decode("utf-8", "replace").partition(" ")
    fields = dict(word.partition("=")[::2] for word in reversed(text.split()))
    wait = fields.get("retry_after_ms", "")
    error = RefusedError(f"{address} answered -{code} {text}".rstrip())
    error.code, error.text, error.address = code, text, address
    error.reason = fields.get("reason") or None
    if re.fullmatch("[0-9]{1,18}", wait):
        error.retry_after = min(int(wait), 3_600_000) / 1000
    return error


def not_flaked(address: str, line: Optional[bytes] = None) -> ReplyError:
    """Return the error for bytes that no flaked node sends."""
    what = "" if line is None else f" {line[:60]!r}"
    return ReplyError(f"{address} sent{what}, which is not a reply of a flaked node. Check the address")
