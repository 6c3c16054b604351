"""Weights are named once as long as nobody changes them; those of a module, which anybody may have changed, every time."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from punchcard.machines.checkpoint import _digest
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.subleq.machine import SubleqMachine
from tests.lowered_cases import code_kept_in


def test_weights_from_the_disk_are_those_that_were_kept(tmp_path: Path) -> None:
    with code_kept_in(tmp_path / "cache"):
        first, second = RiscvMachine(memory=16).weights, RiscvMachine(memory=16).weights
    assert first.is_frozen
    assert second.is_frozen
    assert second.names == {"digest": first.digest().hex()}
    assert (second._digest(), _digest(second)) == (first._digest(), _digest(first))
    assert second.names.keys() == {"digest", "checkpoint"}
    with pytest.raises(ValueError, match="read-only"):
        second.layers[0].w1[0, 0] = 3.0


def test_a_module_is_named_anew(tmp_path: Path) -> None:
    with code_kept_in(tmp_path / "cache"), warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = RiscvMachine(memory=16).weights
        before, module = weights.digest(), weights.module
    assert not weights.is_frozen
    assert weights.digest() == before
    weight = module.layers[0].get_parameter("w1")
    weight.data[0, 0] += 1.0
    assert weights.digest() != before


@pytest.mark.parametrize("change", [1.0, -0.0, float("nan")])
def test_weights_that_may_be_changed_are_named_again_once_they_are(change: float) -> None:
    """By what the numbers are, bit by bit: 0 and -0 are two, and not a number is itself."""
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5)
    weights, made = machine.weights, list[str]()

    def name() -> str:
        made.append("")
        return str(len(made))

    assert not weights.is_frozen
    assert [weights.name("own", name) for _ in range(3)] == ["1", "1", "1"]
    before, array = weights.digest(), weights.layers[1].w1
    place = tuple(np.argwhere(array == 0)[0])
    array[place] = change
    assert [weights.name("own", name) for _ in range(2)] == ["2", "2"]
    assert weights.digest() != before
    array[place] = 0.0
    assert weights.digest() == before
    assert weights.name("own", name) == "3"
    machine.model.layers[1].get_parameter("w1").data[place] = 2.0
    assert weights.digest() != before, "a module is asked every time"
