"""Formulas to weights: what is written is what the layer computes, and what is kept; what cannot be computed is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.errors import FormulaError, UnknownNameError
from punchcard.machines.riscv.designs.three_layer import RiscvThreeLayer
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.transformer.build import LayerWeights, Part, assign, attend, build, clear, compile_layer
from punchcard.transformer.expression import Expression, constant, gated, relu, rows, stack
from punchcard.transformer.precision import Precision
from tests.lowered_cases import code_kept_in

LAYOUT = Layout([RowBlock("a", 3), RowBlock("b", 3), RowBlock("c", 1), RowBlock("one", 1)],
                [Region("scratchpad", 1), Region("memory", 4)])
A, B, C, ONE = (rows(LAYOUT, name) for name in ("a", "b", "c", "one"))


def apply(part: Part, card: Tensor) -> Tensor:
    return torch.as_tensor(build([part], LAYOUT.width, Precision())(card))


def evaluate(expression: Expression, x: np.ndarray) -> np.ndarray:
    """An expression at a column, by its definition."""
    hidden = np.maximum(expression.inner @ x + expression.bias, 0)
    return np.asarray(expression.linear @ x + expression.constant + expression.outer @ hidden)


COLUMNS = st.lists(st.integers(-3, 3), min_size=8, max_size=8).map(lambda v: np.array(v, dtype=np.float64))


@given(COLUMNS)
def test_the_algebra_means_what_it_says(x: np.ndarray) -> None:
    a, b, c = x[:3], x[3:6], x[6:7]
    for expression, expected in [
        (A + B, a + b),
        (2 * A - B * 0.5 + 1, 2 * a - b / 2 + 1),
        (1 - A, 1 - a),
        (-A[1:], -a[1:]),
        (A[-1] + C, a[-1:] + c),
        (A.total(), a.sum(keepdims=True)),
        (A.total([1, 2, 4]), np.array([a @ [1, 2, 4]])),
        (A + C, a + c),
        (relu(A - B)[:2], np.maximum(a - b, 0)[:2]),
        (3 * relu(A).total() - relu(-C), 3 * np.maximum(a, 0).sum(keepdims=True) - np.maximum(-c, 0)),
        (stack(A, relu(B), C), np.concatenate([a, np.maximum(b, 0), c])),
        (constant(4.0, 8), np.array([4.0])),
        (np.float64(2.0) * A, 2 * a),
    ]:
        assert evaluate(expression, x).tolist() == expected.tolist()


@given(COLUMNS)
def test_assignment_handles_the_residual(x: np.ndarray) -> None:
    card = torch.from_numpy(np.repeat(x[:, None], 5, axis=1))
    after = apply(assign(A, B + 2) + assign(C, C + relu(B).total()) + clear(B), card)[:, 0].numpy()
    assert after[:3].tolist() == (x[3:6] + 2).tolist()
    assert after[3:6].tolist() == [0, 0, 0]
    assert after[6] == x[6] + np.maximum(x[3:6], 0).sum()
    assert after[7] == x[7]


@given(COLUMNS, st.booleans())
def test_gating_by_an_indicator(x: np.ndarray, is_open: bool) -> None:
    x[7] = is_open
    card = torch.from_numpy(np.repeat(x[:, None], 5, axis=1))
    after = apply(assign(A, gated(A - B, 1 - ONE, gate=8.0)), card)[:3, 0].numpy()
    assert after.tolist() == ((x[:3] - x[3:6]) * is_open).tolist()


def test_attention_moves_the_value_of_the_match() -> None:
    card = torch.zeros(8, 5, dtype=torch.float64)
    card[0:3] = torch.tensor([[0, 1, 1, -1, -1], [0, 1, -1, 1, -1], [0, 1, 1, 1, 1]])  # keys
    card[3:6, 0] = torch.tensor([-1.0, 1.0, 1.0])  # the first column's query
    card[6] = torch.arange(5) + 10.0
    after = apply(attend(query=A + B, key=A, value=C, into=ONE, gap=2), card)
    assert after[7].tolist() == [13, 11, 12, 13, 14]


def test_equal_hidden_units_are_shared() -> None:
    weights = compile_layer(assign(A, A + relu(C) + relu(C)) + assign(B, B - relu(C)), LAYOUT.width)
    assert weights.hidden == 1
    assert weights.w2[:6, 0].tolist() == [2, 2, 2, -1, -1, -1]


def test_assigning_a_row_to_itself_costs_nothing() -> None:
    assert compile_layer(assign(A, A), LAYOUT.width).hidden == 0


@pytest.mark.parametrize("design", ["paper", "two-layer", "one-layer"])
def test_units_know_the_formulas_that_they_serve(design: str) -> None:
    """By the compiler's own record, and by compiling each assignment alone: it has the same relu there."""
    def relus(weights: LayerWeights) -> list[bytes]:
        return [unit.tobytes() for unit in np.hstack([weights.w1, weights.b1[:, None]]) + 0.0]

    machine = SubleqMachine(word_bits=4, memory=2, instructions=2, design=design)
    for layer in (compile_layer(part, machine.layout.width) for part in machine.formulas()):
        alone = [relus(compile_layer(Part(assignments=(each,)), layer.w2.shape[0])) for each in layer.part.assignments]
        assert list(layer.serves) == [tuple(number for number, units in enumerate(alone) if unit in units)
                                      for unit in relus(layer)]
        assert len(layer.part.heads) == len(layer.key)


def test_what_an_assignment_adds_twice_may_cancel() -> None:
    weights = compile_layer(assign(A, A + relu(C) - relu(C)) + assign(B, B + relu(C)), LAYOUT.width)
    assert weights.serves == ((1,),) * weights.hidden


@pytest.mark.parametrize(("formula", "message"), [
    (lambda: A + B[:2], "formulas with 3 and 2 entries do not add"),
    (lambda: assign(A, B[:2]), "formulas with 3 and 2 entries do not add"),
    (lambda: assign(C, A), "a formula with 3 entries does not fit 'c' with 1 rows"),
    (lambda: relu(relu(A)), "relu of a relu"),
    (lambda: A * B, "a product of two row formulas is not affine"),  # type: ignore[operator]
    (lambda: A[3], "row 3 of 'a', which has 3 rows"),
    (lambda: (A + 1)[5], "index 5 of a formula with 3 entries"),
    (lambda: A.total([1, 2]), "2 weights for a formula with 3 entries"),
    (lambda: attend(query=A, key=C, value=C, into=ONE, gap=1), "a query with 3 entries cannot match a key with 1"),
    (lambda: attend(query=A, key=B, value=A, into=ONE, gap=1), "a value with 3 entries does not fit 'one'"),
    (lambda: attend(query=A + 1, key=B, value=C, into=ONE, gap=1), "the query of a head has a constant"),
    (lambda: attend(query=A, key=relu(B), value=C, into=ONE, gap=1), "the key of a head has a relu"),
    (lambda: attend(query=A, key=B, value=C, into=ONE, gap=0), "gap 0"),
    (lambda: attend(query=A, key=B, value=C, into=ONE, gap=1, winners=3), "3 winners"),
    (lambda: compile_layer(clear(A) + assign(A[1:], 1.0), LAYOUT.width), "'a\\[1:\\]' is set twice in one layer"),
])
def test_what_one_layer_cannot_do_is_refused(formula: object, message: str) -> None:
    assert callable(formula)
    with pytest.raises(FormulaError, match=message):
        formula()


def test_unknown_rows_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="no row block 'd'"):
        rows(LAYOUT, "d")


# Weights that are kept on disk


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
                assert not mine.flags.writeable
            with pytest.raises(TypeError):
                RiscvMachine(memory=65)
            with pytest.raises(TypeError):
                RiscvMachine(memory=64, precision="float64")
        files[0].write_bytes(files[0].read_bytes()[:-1] + b"?")
        assert RiscvMachine(memory=64).weights.digest() == first.weights.digest(), "damaged: worked out anew"
