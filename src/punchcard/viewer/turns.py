"""A lock with a queue: first come, first served."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """A lock that threads get in the order in which they asked; its holder knows how many wait."""

    def __init__(self) -> None:
        self._guard, self._queue = threading.Lock(), deque[threading.Event]()

    def __enter__(self) -> int:
        turn = threading.Event()
        with self._guard:
            self._queue.append(turn)
            self._queue[0].set()
        try:
            turn.wait()
        except BaseException:
            self._leave(turn)
            raise
        return len(self._queue) - 1

    def __exit__(self, *error: object) -> None:
        self._leave(self._queue[0])

    def _leave(self, turn: threading.Event) -> None:
        with self._guard:
            self._queue.remove(turn)
            if self._queue:
                self._queue[0].set()
