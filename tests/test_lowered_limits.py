"""Where the lowered engine is at its limits: the least numbers of a format, and the smallest cards."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import punchcard
from punchcard.errors import LoweringError

PROGRAM = punchcard.assemble(".data\nx 1\n.code\nsubleq x, x")


@pytest.mark.parametrize("precision", ["float64", pytest.param("float32", marks=pytest.mark.soak)])
def test_a_transpose_of_the_least_numbers(precision: str) -> None:
    """A hard average of d columns: each is a d-th, which below the normal numbers is rounded. Above them nothing is."""
    least = float(np.finfo(precision).smallest_subnormal)
    normal = float(np.finfo(precision).smallest_normal)
    for d in (2, 4):
        program = punchcard.assemble(f".data\nx matrix {d}x{d}\ny matrix {d}x{d}\n.code\ny = transpose(x)", "fleq")
        machine = punchcard.FleqMachine.for_program(program, precision=precision)
        for value in (least, 3 * least, 1000 * least, normal, 3.1 * normal, 2 * d * normal, 1.7 * 2 * d * normal):
            x = np.full((d, d), value, dtype=precision).astype(np.float64)
            given = program.with_values({"x": x})
            dense, lowered = (machine.run(given, engine=engine).memory["y"] for engine in ("dense", "lowered"))
            assert np.array_equal(dense, x.T), value
            assert np.abs(lowered - x.T).max() <= (d * least if value < 2 * d * normal else 0.0), value


@pytest.mark.parametrize("design", ["paper", "two-layer", "one-layer"])
def test_the_smallest_cards(design: str) -> None:
    """On a card of so few columns the analysis may find no passive ones; then another engine runs it."""
    for memory, instructions in ((1, 2), (3, 3), (5, 2)):
        machine = punchcard.SubleqMachine(word_bits=4, memory=memory, instructions=instructions, design=design)
        wanted = machine.run(PROGRAM, engine="dense").card
        assert torch.equal(machine.run(PROGRAM).card, wanted)
        must = design == "two-layer" or (design == "paper" and machine.layout.columns >= 10)
        try:
            found = machine.run(PROGRAM, engine="lowered").card
        except LoweringError:
            found = None
        assert found is not None or not must
        assert found is None or torch.equal(found, wanted)
