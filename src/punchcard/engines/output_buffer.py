"""A port that an engine can serve without calling anybody: a number is noted, and another put in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from punchcard.card.layout import Card, Layout


class OutputBuffer:
    """Where its pattern stands, takes the number in `rows` of one column, puts `then` there, and lets the run go on.

    It is a port like any other: each call takes one number. An engine that knows it may note the numbers itself, and hand
    them to `take` together: in order, before it calls another port, every now and then, and when its run ends.
    """

    def __init__(self, layout: Layout, rows: str, column: int, then: int, take: Callable[[Sequence[int]], None]) -> None:
        layout.check_number(rows, then)
        self.layout, self.rows, self.column, self.then, self.take = layout, rows, column, then, take

    def __call__(self, loop: int, card: Card) -> bool:
        number = self.layout.number_at(card, self.rows, self.column)
        self.layout.put_number_at(card, self.rows, self.column, self.then)
        self.take((number,))
        return True
