"""Lemma (write): copy a vector from the scratchpad to the column that a pointer names. One layer, one head."""

from __future__ import annotations

from punchcard.primitives.read import ADDRESS_GAP
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Rows
from punchcard.transformer.gate import gated


def write(
    *, pointer: Rows, position: Rows, source: Rows, into: Rows, via: Rows, inside: Rows, gate: float
) -> Part:
    """`into` of the column named by `pointer` := `source` of the scratchpad.

    The attention is that of `read`. The gate is open outside the scratchpad:

        column i           via = (v_i + v_new) / 2    into += 2 via - 2 v_i = v_new - v_i, so into = v_new
        any other column   via = v_j, its own         into += 2 v_j - 2 v_j = 0
        scratchpad         the gate is closed         into stays

    The print has a plus before the second ReLU; with 3 stored and -2 to write it gives 8. It is a minus:
    v += relu(-C b + 2 via - 2 v) - relu(-C b - 2 via + 2 v). Hidden units: 4 for each row written.
    """
    address = pointer + position
    return (
        attend(query=address, key=address, value=source + into, into=via, gap=ADDRESS_GAP, winners=2)
        + assign(into, into + gated(2 * via - 2 * into, inside, gate))
        + clear(via)
    )
