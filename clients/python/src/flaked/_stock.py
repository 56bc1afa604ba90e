"""Values that were requested in advance."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Callable, Optional

from ._call import Call
from ._fork import in_child
from ._protocol import MAX_COUNT, Request


class Stock:
    """Prefetched values. Any thread may take one. Only the thread of the engine adds values."""

    def __init__(self, size: int, max_age: float, request: Callable[[int], Request]) -> None:
        self.size = size
        self.max_age = max_age
        self.request = request
        in_child(self)
        self.forget()

    def forget(self) -> None:
        """Drop all values. A child process must not hand out those of its parent."""
        self._values: deque[tuple[int, float]] = deque()
        self.filling = False

    def take(self) -> Optional[int]:
        """Return a value that is not too old, or None. Values that are too old are thrown away."""
        now = monotonic()
        try:
            while True:
                value, expires = self._values.popleft()  # atomic: no value goes to two threads
                if expires >= now:
                    return value
        except IndexError:
            return None

    def lacks(self) -> int:
        """Return how many values to request now. 0 means none."""
        have = len(self._values)
        return 0 if self.filling or have > self.size // 2 else min(self.size - have, MAX_COUNT)

    def filled(self, call: Call) -> None:
        """End a call for more values. It has none if it failed."""
        expires = call.asked + self.max_age
        self._values.extend([(value, expires) for value in call.values])
        self.filling = False
