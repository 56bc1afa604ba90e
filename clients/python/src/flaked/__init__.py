"""IDs, and values of named sequences, from flaked nodes.

``Client`` blocks, ``AsyncClient`` is for asyncio. Both ask the next node when one fails or refuses.
"""

from ._aio import AsyncClient, AsyncSequence
from ._client import Client, Sequence
from ._errors import ClosedError, FlakedError, RefusedError, UnavailableError

__all__ = [
    "AsyncClient",
    "AsyncSequence",
    "Client",
    "ClosedError",
    "FlakedError",
    "RefusedError",
    "Sequence",
    "UnavailableError",
]
__version__ = "0.1.0"
