"""How a machine cuts the proof of its loop: into stages of layers, and a stage into cases. Plain data, without a solver.

A stage takes a card from one layout to the next. The card in the middle of a loop has a layout of its own, with facts of its
own: the stage before shows them, and the stage after assumes them. A case is what some bits hold in a region of one column,
such as the opcode of an instruction. The proof shows that the cases of a stage cover every card.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from punchcard.card.layout import Layout
from punchcard.machines.meaning import Meaning


@dataclass(frozen=True)
class Case:
    """Cards on which the number at some rows, in a region of one column, has these bits in the mask.

    `but` has masks and bits that it does not have: a case of all the rest is made so.
    """

    name: str
    region: str
    rows: str
    mask: int
    match: int
    but: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Stage:
    """Layers from one to another, counted from 0, between two layouts.

    layers    the first, and the one after the last
    begin     the layout when it begins, with the facts that are assumed
    end       the layout when it ends, with the facts that are shown
    meaning   says what the stage does, as `Machine.meaning` does for a loop
    cases     each is shown by itself. Empty: all cards are shown at once
    by_case   blocks of the cases' region that depend on the case. Empty: all of them. All else is shown once
    """

    name: str
    layers: tuple[int, int]
    begin: Layout
    end: Layout
    meaning: Callable[[Meaning], None]
    cases: tuple[Case, ...] = ()
    by_case: tuple[str, ...] = ()
