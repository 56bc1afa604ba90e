"""The errors of both clients. All of them can be pickled."""

from __future__ import annotations

import ssl
from typing import Optional

from ._config import Address


class FlakedError(Exception):
    """The base of all errors of this package."""


class _AnsweredError(FlakedError):
    #: The code of the refusal, such as ``NOTREADY``. None if no node has refused.
    code: Optional[str] = None
    #: The refusal's field ``reason=``, such as ``no-sequence``, or None.
    reason: Optional[str] = None
    #: After how many seconds the node may be asked again, or None if it did not say.
    retry_after: Optional[float] = None
    #: The node's text for people. It may change.
    text: str = ""
    #: The address of the node, as it was given to the client.
    address: Optional[str] = None


class UnavailableError(_AnsweredError):
    """No node answered in time. ``__cause__`` is the last refusal or the last error of the network."""


class RefusedError(_AnsweredError):
    """A node refused the call, and neither another node nor a moment can help."""


class ClosedError(FlakedError):
    """The client is closed."""

    def __init__(self, message: str = "the client is closed. Make a new one") -> None:
        super().__init__(message)


def unavailable(cause: Optional[Exception]) -> UnavailableError:
    """Return the error of a call that no node has answered, with the last error as its cause."""
    error = UnavailableError(
        f"no node answered in time: {cause}" if cause else "no node answered in time. Check the addresses"
    )
    if isinstance(cause, RefusedError):
        vars(error).update(vars(cause))
    error.__cause__ = cause
    return error


def in_words(address: Address, error: Optional[BaseException]) -> FlakedError:
    """Return the error of a connection with the node's address. None stands for its orderly end."""
    if error is None or isinstance(error, (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)):
        text = f"{address.text} closed the connection"
    elif isinstance(error, ConnectionRefusedError):
        text = f"connection refused by {address.text}. Check that the node runs"
    else:
        text = f"the connection to {address.text} failed: {error}"
    wrapped = FlakedError(text)
    wrapped.__cause__ = error
    return wrapped
