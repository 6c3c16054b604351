"""Weights that nobody can change are named once; those that somebody may have changed, every time."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from punchcard.machines.checkpoint import _digest
from punchcard.machines.riscv.machine import RiscvMachine
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
