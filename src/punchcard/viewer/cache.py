"""What was computed lately, by the number of its loop."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

Value = TypeVar("Value")


class BoundedCache(OrderedDict[int, Value]):
    """A dict of the entries that were written last, `most` of them.

    Its owner computes what is missing. A function that is cached in its own object would make that object hold itself, and
    the cards in it would stay in memory until a full garbage collection.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: int, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)
