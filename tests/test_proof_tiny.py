"""Proofs of machines of a few bits that are wrong on purpose: nothing may be shown that a card does not bear out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from punchcard.card.facts import Copies
from punchcard.card.layout import Layout, Region, RowBlock, holding
from punchcard.errors import ProofError
from punchcard.transformer.weights import LayerArrays, Weights

pytest.importorskip("z3", reason="proofs need z3")

from punchcard.proof.prover import prove
from tests.random_machines import TinyMachine

Unit = tuple[Mapping[int, float], float, Mapping[int, float]]
"""A hidden unit: the rows that it takes, its bias, and the rows that it is added to."""


def layer(width: int, *units: Unit) -> LayerArrays:
    """A layer without heads."""
    w1, b1, w2 = np.zeros((len(units), width)), np.zeros((len(units), 1)), np.zeros((width, len(units)))
    for place, (takes, bias, gives) in enumerate(units):
        w1[place, list(takes)], b1[place], w2[list(gives), place] = list(takes.values()), bias, list(gives.values())
    none = np.zeros((0, 1, width))
    return LayerArrays(none, none, np.zeros((0, width, width)), np.zeros(0), w1, b1, w2, np.zeros((width, 1)))


def flipped(row: int) -> Sequence[Unit]:
    """Units that turn a bit around."""
    return ({row: 1.0}, 0.0, {row: -2.0}), ({row: -1.0}, 0.0, {row: 2.0})


def machine(layout: Layout, layers: list[LayerArrays], meaning: Any) -> Any:
    return TinyMachine(layout, Weights(layout.width, "float64", layers), meaning)


PAIR = RowBlock("pair", 2, parts={"one": 1, "other": 1}, holds=holding("bits", "cells"))


def test_a_part_that_nobody_mentions_stays_as_it_is_beside_one_that_is_left() -> None:
    layout = Layout([PAIR], [Region("cells", 2)])
    it = machine(layout, [layer(2, *flipped(0))], lambda card: card.leave("pair.other", "cells"))
    assert prove(it).failed == "step: pair in cells is what the step says, row 1"
    it = machine(layout, [layer(2, *flipped(1))], lambda card: card.leave("pair.other", "cells"))
    assert prove(it).proven


def test_a_copy_of_a_block_of_which_a_part_is_left() -> None:
    blocks = [PAIR, *(RowBlock(name, 2, holds=holding("bits", "head")) for name in ("copy", "by"))]
    layout = Layout(blocks, [Region("cells", 2), Region("head", 1)], [Copies("copy", "head", "pair", "by")])
    it = machine(layout, [layer(layout.width, *flipped(0))], lambda card: card.leave("pair.one", "cells"))
    with pytest.raises(ProofError, match="the step leaves 'pair' in 'cells' open, so nothing is a copy of it"):
        prove(it)
