"""Lemma (read): copy the vector that a pointer names into the scratchpad. One layer, one head."""

from __future__ import annotations

from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Rows
from punchcard.transformer.gate import gated

ADDRESS_GAP = 2.0
"""Two different ±1 encodings of log n bits differ in at least one bit, so their product is at most log n - 2."""


def read(
    *, pointer: Rows, position: Rows, source: Rows, into: Rows, via: Rows, inside: Rows, gate: float
) -> Part:
    """`into` := the `source` rows of the column named by `pointer`, in the scratchpad's columns.

    K = Q = pointer + position: the scratchpad's column holds a pointer and no position, every other column its position
    and no pointer. So the scratchpad finds itself and the column i that it points at, with weight 1/2 each, and any
    other column finds itself (column i also finds the scratchpad). V moves source + into to `via`:

        scratchpad         via = (v_old + v_i) / 2    into += 2 via - 2 v_old = v_i - v_old, so into = v_i
        any other column   via = something            the gate is closed: into stays

    Then `via` is cleared. Hidden units: 4 for each row read.
    """
    address = pointer + position
    return (
        attend(query=address, key=address, value=source + into, into=via, gap=ADDRESS_GAP, winners=2)
        + assign(into, into + gated(2 * via - 2 * into, 1 - inside, gate))
        + clear(via)
    )
