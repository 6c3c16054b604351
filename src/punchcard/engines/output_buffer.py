"""A port that an engine can serve without calling Python: a number is recorded, and another is put in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from punchcard.card.layout import Card, Layout


class OutputBuffer:
    """When its pattern is on the card: takes the number in `rows` of one column, puts `then` there, and lets the run go on.

    It is a port like any other: each call takes one number. An engine that knows it may record the numbers itself, and
    call `take` with many of them: in order, before it calls another port, now and then, and when its run ends.
    """

    def __init__(self, layout: Layout, rows: str, column: int, then: int, take: Callable[[Sequence[int]], None]) -> None:
        layout.check_number(rows, then)
        self.layout, self.rows, self.column, self.then, self.take = layout, rows, column, then, take

    def __call__(self, loop: int, card: Card) -> bool:
        number = self.layout.number_at(card, self.rows, self.column)
        self.layout.put_number_at(card, self.rows, self.column, self.then)
        self.take((number,))
        return True
