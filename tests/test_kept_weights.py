"""Weights that are kept on disk are those that the formulas give."""

from __future__ import annotations

from pathlib import Path

import pytest

from punchcard.machines.riscv.designs.three_layer import RiscvThreeLayer
from punchcard.machines.riscv.machine import RiscvMachine
from tests.lowered_cases import code_kept_in


def test_formulas_are_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with code_kept_in(tmp_path / "code"):
        first = RiscvMachine(memory=64)
        files = list((tmp_path / "code").iterdir())
        assert len(files) == 1
        with monkeypatch.context() as without:
            without.setattr(RiscvThreeLayer, "layers", None)
            again = RiscvMachine(memory=64)
            assert again.weights.digest() == first.weights.digest()
            assert (again.needed_bits, again.precision) == (first.needed_bits, first.precision)
            for (name, mine), (_, its) in zip(again.weights.state(), first.weights.state(), strict=True):
                assert mine.tobytes() == its.tobytes(), name
                assert mine.flags.writeable
            with pytest.raises(TypeError):
                RiscvMachine(memory=65)
            with pytest.raises(TypeError):
                RiscvMachine(memory=64, precision="float64")
        files[0].write_bytes(files[0].read_bytes()[:-1] + b"?")
        assert RiscvMachine(memory=64).weights.digest() == first.weights.digest(), "damaged: worked out anew"
