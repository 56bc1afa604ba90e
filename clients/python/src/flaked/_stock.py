"""Prefetched values, without I/O."""

from __future__ import annotations

from collections import deque
from functools import partial
from time import monotonic, time
from typing import Callable, Optional

from . import _process
from ._engine import Call, Engine
from ._protocol import MAX_COUNT, values

#: A value, when it is too old, and by how much the wall clock was ahead of the monotonic one when it came.
_Value = tuple[int, float, float]


class Stock:
    """Prefetched values. Any thread may take one. Only the one that changes the engine adds those of a request."""

    def __init__(self, name: str, size: int, max_age: float) -> None:
        self._name, self._size, self._max_age = name, size, max_age
        self.forget()
        _process.forgetful.add(self)

    def forget(self) -> None:
        """Drop all values. A child process must not hand out those of its parent."""
        self._values: deque[_Value] = deque()
        self._filled_by = 0.0  #: until then, a request for more values may be under way
        self._looked = 0.0  #: when a caller has looked for the reply

    def take(self) -> Optional[int]:
        """Return a value that is not too old, or None."""
        first = self._pop()
        return first and first[0]

    def _pop(self) -> Optional[_Value]:
        try:
            while True:
                first = self._values.popleft()  # atomic: no value goes to two threads
                _, expires, ahead = first
                now = monotonic()
                # If the clocks have moved apart, the process was resumed from a snapshot, perhaps more than once.
                if now <= expires and abs(time() - now - ahead) <= self._max_age:
                    return first
        except IndexError:
            return None

    def lacks(self) -> int:
        """Return how many values must be requested, 0 if a request is under way."""
        have = len(self._values)
        if have > self._size // 2 or self._filled_by > monotonic():
            return 0
        return min(self._size - have, MAX_COUNT)

    def awaits(self, pause: float) -> bool:
        """Report whether a caller should look for the reply to a request. So long ago it has done that."""
        if not self._filled_by or len(self._values) > self._size // 2:
            return False
        now = monotonic()
        if now < self._looked + pause:
            return False
        self._looked = now
        return True

    def submit(self, call: Call, engine: Engine) -> None:
        """Begin a call that found the stock empty. Fill the stock after it, so that the call has the lowest value."""
        call.finish = partial(self._exchange, call.finish)
        engine.submit(call)
        self.fill(engine)

    def _exchange(self, finish: Callable[[Call], object], call: Call) -> None:
        # Values that were on their way when the call was submitted have come before its own: the call gets the first.
        if call.values and (first := self._pop()):
            mine = (call.values[0], *self._limits(call))
            call.values = [min(first, mine)[0]]
            (self._values.append if first < mine else self._values.appendleft)(max(first, mine))
        finish(call)

    def fill(self, engine: Engine) -> None:
        """Request what the stock lacks."""
        if lacks := self.lacks():
            self._filled_by = monotonic() + engine.options.timeout
            call = Call(values(self._name, lacks), self._filled_by, self._filled)
            call.patient = False
            engine.submit(call)

    def _filled(self, call: Call) -> None:
        limits = self._limits(call)
        self._values.extend([(value, *limits) for value in call.values])  # none if the call failed
        self._filled_by = 0.0

    def _limits(self, call: Call) -> tuple[float, float]:
        return call.asked + self._max_age, time() - monotonic()
