"""A lock with a queue: whoever asks first is served first."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """A lock that threads get in the order in which they asked; whoever has it knows how many wait."""

    def __init__(self) -> None:
        self._guard, self._queue = threading.Lock(), deque[threading.Event]()

    def __enter__(self) -> int:
        turn = threading.Event()
        with self._guard:
            self._queue.append(turn)
            if len(self._queue) == 1:
                turn.set()
        turn.wait()
        return len(self._queue) - 1

    def __exit__(self, *error: object) -> None:
        with self._guard:
            self._queue.popleft()
            if self._queue:
                self._queue[0].set()
