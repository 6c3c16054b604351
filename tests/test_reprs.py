"""What people print is short, says what the thing is, and never dumps a tensor."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import punchcard
from punchcard.formatting import format_value, join_some
from punchcard.learning.model import Model
from punchcard.learning.programs.network import Network
from punchcard.learning.training import Learned
from punchcard.machines.checkpoint import begin
from punchcard.machines.result import Report
from punchcard.transformer.precision import Precision
from tests.cases import EXAMPLES, load_subleq

PROGRAM = load_subleq("multiply.subleq")


@pytest.fixture(scope="module")
def machine() -> Any:
    return punchcard.build(PROGRAM, design="two-layer")


@pytest.fixture(scope="module")
def report(machine: Any) -> Report[Any]:
    return punchcard.run(PROGRAM, machine, engine="scratchpad")


def test_a_run(machine: Any, report: Report[Any]) -> None:
    result = ("<Result: halted after 27 instructions in 28 loops on the scratchpad engine; a 7, b 0, product 63, "
              "minus_a -7, one 1, zero 0>")
    assert repr(report.result) == result
    assert repr(report) == f"<Report: agrees with the interpreter; {result}>"
    batch = machine.run_batch([PROGRAM, PROGRAM], engine="scratchpad")
    assert repr(batch).startswith("<Batch of 2 runs (2 halted): 54 instructions on the scratchpad engine")


def test_a_machine_and_its_parts(machine: Any) -> None:
    assert repr(machine) == "<SubleqMachine, design 'two-layer': 2 layers, 65 rows, 14 columns, float64>"
    assert repr(machine.design) == "<design 'two-layer'>"
    assert repr(machine.weights) == "<Weights of 2 layers for 65 rows, float64: 57,336 parameters, 2,607 not zero>"
    assert "(0): TransformerLayer(2 heads with keys of 4, 176 hidden units)" in repr(machine.model)
    assert repr(punchcard.kinds()) == "<Registry of the machines subleq, fleq, von-neumann, riscv>"
    assert repr(machine.kind) == "<Kind 'subleq': the paper's one-instruction computer (.subleq .minsky .json)>"


def test_what_was_observed(machine: Any) -> None:
    with machine.observe(PROGRAM) as seen:
        assert repr(seen) == "<Observed: no snapshots>"
        machine.run(PROGRAM, max_steps=1)
    assert repr(seen) == "<Observed: 4 snapshots, loops 0 to 1, layers 0 to 1>"
    assert repr(seen[0]) == "<Snapshot: loop 0, layer 0, card of 65 rows and 14 columns; changed difference in scratchpad>"
    assert repr(seen[2].moves(0)) == "[<scratchpad takes 1 of a>]"


@pytest.mark.parametrize("precision", [Precision(), Precision("float32", temperature=30.0, gate=16.0)])
def test_a_precision_can_be_typed_again(precision: Precision) -> None:
    assert eval(repr(precision)) == precision


@pytest.mark.parametrize(("file", "begins"), [
    ("multiply.subleq", "<Program: 5 instructions, 6 cells: a 7, b 9"),
    ("newton.fleq", "<FleqProgram: 8 instructions, 9 variables: A 2x2, E 2x2"),
    ("von_neumann/hello.asq", "<Image: "),
    ("riscv/bin/collatz.elf", "<RiscvProgram: "),
])
def test_programs(file: str, begins: str) -> None:
    told = repr(punchcard.load(EXAMPLES / file))
    assert told.startswith(begins)
    assert len(told) < 300
    assert "\n" not in told


def test_a_checkpoint(machine: Any) -> None:
    told = repr(begin(PROGRAM, machine))
    assert told == f"<Checkpoint: <Mark after 0 loops> of {PROGRAM!r} on {machine!r}>"


def test_what_was_learned() -> None:
    weights = {"W1": np.array([[0.6281]]), "b1": np.array([0.35289])}
    learned = Learned(
        model=Model(Network(1), weights), history=[weights], losses=np.array([0.04629]), initial_loss=5 / 6,
        errors=np.array([1e-13]), reference=[weights], loops=63, loops_per_point=9, program=cast(Any, None),
        machine=cast(Any, None), engine="dense", interrupted=False, largest=2.0)
    assert repr(learned) == ("<Learned in 1 epoch, 63 loops on the dense engine: loss 0.8333 to 0.04629, error 1e-13; "
                             "<Model: <Network 1-1, squared loss>; W1 [0.6281], b1 [0.3529]>>")


def test_values_in_one_line() -> None:
    assert format_value(np.array([[4.0, 1.0], [2.0, 1 / 3]])) == "[4 1 ; 2 0.3333]"
    assert format_value(np.ones((30, 30))).endswith("(30 by 30)")
    assert len(format_value(np.ones((30, 30)))) < 70
    assert format_value("_1[1]00_") == "_1[1]00_"
    assert format_value("a\nb") == "'a\\nb'"
    assert join_some(list("abc"), most=2) == "a, b and 1 more"


def test_what_a_notebook_shows(machine: Any, report: Report[Any]) -> None:
    shown = report._repr_html_()
    for part in ("halted after 27 instructions", "✓ agrees with the interpreter", ">product</td>", ">63</td>", "<svg"):
        assert part in shown
    assert len(shown) < 20_000
    assert "✗ differs from the interpreter: a is &lt;b&gt;" in Report(report.result, False, ("a is <b>",))._repr_html_()
    assert ">57336</td>" in machine._repr_html_()
    assert ">pointer</td>" in machine._repr_html_()
