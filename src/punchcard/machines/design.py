"""The contract of a design: sizes become a layout and layers; it never sees a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from punchcard.card.layout import Card, Cards, Layout, Pattern
from punchcard.machines.story import Story
from punchcard.transformer.build import Part
from punchcard.transformer.precision import Precision

Sizes = TypeVar("Sizes")


class Design(ABC, Generic[Sizes]):
    """A layout and layers for given sizes, and how values get on the card and off it.

    warm_up   loops before the first instruction is executed
    idle      loops of a run that ended by a halting pattern in which nothing is executed
    paper     what the paper states of such a machine, for `info`
    exact     whether all its numbers are integers, so that no sum may be rounded
    column_pointers   rows whose numbers are columns: a view shows the names of the columns
    """

    name: ClassVar[str]
    warm_up: ClassVar[int] = 0
    idle: ClassVar[int] = 0
    paper: ClassVar[Mapping[str, str | int]] = {}
    exact: ClassVar[bool] = True
    column_pointers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def layout(self, sizes: Sizes) -> Layout:
        """The rows and columns of the card, and the facts about them."""

    def weights(self, sizes: Sizes, layout: Layout) -> int:
        """About how many weights the layers will have, before they are made: what building is refused by.

        The designs of integers have 12 to 17 times the square of the rows.
        """
        return 16 * layout.width**2

    @abstractmethod
    def layers(self, sizes: Sizes, layout: Layout, precision: Precision) -> list[Part]:
        """The layers, first to last."""

    @abstractmethod
    def punch(self, sizes: Sizes, layout: Layout, content: Any, card: Card) -> None:
        """Write what a machine gives, and the initial scratchpad, on a blank card, by calls of its layout."""

    @abstractmethod
    def read(self, sizes: Sizes, layout: Layout, card: Cards) -> Any:
        """Read values off a card, or a batch of them, by calls of its layout."""

    def halting(self, sizes: Sizes) -> tuple[Pattern, ...]:
        """The patterns that the card shows once a program has halted."""
        return ()

    def story(self, sizes: Sizes, layout: Layout) -> Story:
        """What each half layer does, in a sentence (see `machines/story.py`). Default: made from the formulas."""
        return ()

    def __repr__(self) -> str:
        return f"<design {self.name!r}>"

    def events(self, sizes: Sizes) -> tuple[Pattern, ...]:
        """The patterns at which a host has something to do between two loops."""
        return ()


def event_patterns(count: int) -> tuple[Pattern, ...]:
    """A pattern for each of so many flags in the rows `event` of the scratchpad: it is set, and the others may be."""
    return tuple(Pattern("event", "scratchpad", tuple(int(i == j) for j in range(count))) for i in range(count))


AnyDesign = TypeVar("AnyDesign", bound=Design[Any])


def by_name(*designs: AnyDesign) -> dict[str, AnyDesign]:
    """Designs as a machine names them, the usual one first."""
    return {design.name: design for design in designs}
