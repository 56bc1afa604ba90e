"""IDs, and values of named sequences, from flaked nodes.

``Client`` blocks, ``AsyncClient`` is for asyncio. Both ask the next node when one fails or refuses.
"""

from ._client import AsyncClient, AsyncSequence, Client, Sequence
from ._protocol import ClosedError, FlakedError, RefusedError, UnavailableError

__all__ = ["AsyncClient", "AsyncSequence", "Client", "Sequence"]
__all__ += ["ClosedError", "FlakedError", "RefusedError", "UnavailableError"]
__version__ = "0.1.0"
