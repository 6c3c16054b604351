"""What a card must hold so that the code applies to it, beyond what every packed card of its layout holds.

A loop that the code makes keeps these requirements: what it stores is checked. They are checked when a card comes from
elsewhere: when a run begins, after a port, and after a loop that a slower engine made.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.card.packed import PackedCard
from punchcard.engines.lowered.analysis.card_rows import row_of
from punchcard.engines.lowered.analysis.columns import limit_of
from punchcard.engines.lowered.analysis.passive import Passive


class CardRequirements:
    """The requirements on the cards of one machine: static rows, limits of numbers, active columns that hold the same."""

    def __init__(self, passive: Passive, card: PackedCard) -> None:
        columns, read, layout = passive.columns, passive.read, passive.columns.layout
        self.passive = passive
        self.static: list[tuple[str, slice, AnyArray]] = []
        self.limits: list[tuple[str, float]] = []
        for block in layout.blocks:
            field, rows = card.fields.get(block.name), layout.rows(block.name)
            if field is None:
                continue
            if field.dtype.kind == "f":
                self.limits.append((block.name, limit_of(block, "real")))
            for region, content in block.holds.items():
                asked = region not in columns.active and bool(read & set(range(rows.start, rows.stop)))
                if content == "fixed" or (asked and content != "one"):
                    place = layout.region(region)
                    self.static.append((block.name, place, field[place].copy()))
        self.alike = sorted(columns.shared_rows())
        self.active = [c for g in columns.groups for c in range(g.start, g.stop)]

    @cached_property
    def digest(self) -> bytes:
        """A name for the static rows."""
        digest = hashlib.sha256()
        for name, place, values in self.static:
            digest.update(f"{name} {place.start} {values.dtype} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).data)
        return digest.digest()

    def hold(self, card: PackedCard, *, everywhere: bool = True) -> bool:
        """Whether the code was made for cards like this; or at least for its active columns."""
        columns: Any = slice(None) if everywhere else self.active
        if any(not bool(np.all(np.abs(card.fields[name][columns]) <= limit)) for name, limit in self.limits):
            return False
        if everywhere and any(not np.array_equal(card.fields[name][place], values) for name, place, values in self.static):
            return False
        if everywhere and not self.passive.keeps_limits(card):
            return False
        if len(self.active) == 1:
            return True
        return all(bool(np.all((found := row_of(card, row, self.active)) == found[0])) for row in self.alike)
