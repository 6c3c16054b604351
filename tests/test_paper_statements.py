"""Statements of the paper about errors, widths and costs, each as an experiment that could fail."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from punchcard.card.encoding import encode_bits
from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.machines.fleq.blocks.block import Block, Elementwise, MatrixProduct
from punchcard.machines.fleq.functions import Function, product_shape, same_shape
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.subleq.designs.base import SubleqSizes
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.primitives.memory import PAPER_UNITS, read, transpose, write
from punchcard.transformer.build import Part, build
from punchcard.transformer.expression import rows
from punchcard.transformer.model import LayerShape, TransformerLayer
from punchcard.transformer.precision import Precision
from punchcard.transformer.weights import active_columns
from tests.random_programs import random_program
from tests.test_primitives import memory_access, memory_card

F64 = torch.float64


# Section 8: a 30 x 30 matrix in one layer


def entries_card(size: int, values: Tensor) -> tuple[Layout, Tensor]:
    """An entry a column, in the order of rows; the encodings of (row, column) and of (column, row)."""
    bits = max(1, (size - 1).bit_length())
    layout = Layout([RowBlock("entry", 1), RowBlock("position", 2 * bits), RowBlock("target", 2 * bits)],
                    [Region("entries", size * size)])
    card = layout.blank()
    row, column = (torch.tensor(encode_bits(index.ravel(), bits)) for index in np.indices((size, size)))
    layout.put(card, "entry", "entries", values.reshape(1, -1))
    layout.put(card, "position", "entries", torch.cat([row, column]))
    layout.put(card, "target", "entries", torch.cat([column, row]))
    return layout, card


def transposing(layout: Layout) -> TransformerLayer:
    """The layer, with as many hidden units as the paper gives it: 8 a row. Those that it does not need are 0."""
    entry, position, target = (rows(layout, name) for name in ("entry", "position", "target"))
    thin = build([transpose(entry=entry, position=position, target=target)], layout.width, Precision()).layers[0]
    assert isinstance(thin, TransformerLayer)
    used = thin.shape.hidden
    full = TransformerLayer(layout.width, LayerShape(1, thin.shape.key_size, PAPER_UNITS * layout.width))
    for name in ("key", "query", "value", "temperature", "b2"):
        getattr(full, name).copy_(getattr(thin, name))
    full.w1[:used], full.b1[:used], full.w2[:, :used] = thin.w1, thin.b1, thin.w2
    return full


def test_a_matrix_of_30_by_30_is_transposed_by_one_layer_of_width_168() -> None:
    numbers = torch.arange(900, dtype=F64).reshape(30, 30)
    sixteenths = torch.randint(-(2**40), 2**40, (30, 30), generator=torch.Generator().manual_seed(0)).to(F64) / 16
    for values in (numbers, sixteenths, torch.eye(30, dtype=F64)[torch.randperm(30)]):
        layout, card = entries_card(30, values)
        layer = transposing(layout)
        assert (layout.width, layer.shape) == (21, LayerShape(heads=1, key_size=10, hidden=168))
        after = layer(card)
        assert torch.equal(layout.get(after, "entry", "entries").reshape(30, 30), values.T)
        assert torch.equal(after[1:], card[1:]), "both sets of encodings stay, so that the layer can be applied again"
        assert torch.equal(layer(after), card), "and then the matrix is the old one"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_other_sizes_and_numbers_that_round(size: int) -> None:
    values = torch.randn(size, size, dtype=F64, generator=torch.Generator().manual_seed(size))
    layout, card = entries_card(size, values)
    after = layout.get(transposing(layout)(card), "entry", "entries").reshape(size, size)
    assert float((after - values.T).abs().max()) <= 4 * 2.0**-53 * (float(values.abs().max()) + 1)


def test_the_print_leaves_the_residual() -> None:
    """The permutation alone, as printed: V moves the entry into its own row, where the old one still stands."""
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=F64)
    layout, card = entries_card(2, values)
    layer = transposing(layout)
    layer.value.zero_()[0, 0, 0] = 1.0
    after = layout.get(layer.attend(card), "entry", "entries").reshape(2, 2)
    assert after.tolist() == [[2.0, 5.0], [5.0, 8.0]], "A + A^T"


# Appendix B: the tail of a softmax over encodings


@pytest.mark.parametrize("length", [1, 2, 5, 8])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 8.0])
def test_the_tail_over_a_full_cube(length: int, temperature: float) -> None:
    """The losers' weights, over the winner's, add up to (1 + e^(-2 lambda))^L - 1, and not to n e^(-lambda)."""
    every = torch.tensor(encode_bits(np.arange(1 << length), length))
    weights = torch.softmax(temperature * every.T @ every, dim=0)
    tail = (1 + math.exp(-2 * temperature)) ** length - 1
    assert torch.allclose(weights.diagonal(), torch.tensor(1 / (1 + tail), dtype=F64), rtol=1e-12, atol=0)
    printed = (1 << length) * math.exp(-temperature)
    assert tail <= printed, "the print is a bound"
    if length >= 2:
        assert tail < 0.8 * printed, "and not the tail"


# Appendix B: lambda > log(G d n^3 / eps)


def least_temperature(largest: float, card: Tensor, eps: float) -> float:
    """Just above log(G d n^3 / eps). G bounds the entries of the card, d is its rows and n its columns."""
    d, n = card.shape
    return math.log(largest * d * n**3 / eps) * (1 + 1e-12)


def distance(moved: Tensor, wanted: Tensor) -> float:
    """The norm of appendix B: the largest sum of a column's absolute differences."""
    return float((moved - wanted).abs().sum(dim=0).max())


@pytest.mark.parametrize("eps", [1e-1, 1e-3, 1e-8])
@pytest.mark.parametrize(("bits", "memory"), [(3, 2), (6, 20), (8, 90)])
def test_the_temperature_for_an_error(bits: int, memory: int, eps: float) -> None:
    """X P is within eps of X P*, for every head of the paper's SUBLEQ design, on random cards. G is 1: they hold bits."""
    sizes = {"word_bits": bits, "memory": memory, "instructions": memory + 3, "design": "paper"}
    hard = SubleqMachine(**sizes)  # type: ignore[arg-type]
    rng = random.Random(f"{bits} {memory} {eps}")
    card = hard.punch(random_program(rng, bits, memory, memory + 3))
    temperature = least_temperature(1.0, card, eps)
    soft = SubleqMachine(**sizes, precision=Precision(temperature=temperature))  # type: ignore[arg-type]
    for exact, near in zip(hard.model.layers, soft.model.layers, strict=True):
        assert isinstance(exact, TransformerLayer)
        assert isinstance(near, TransformerLayer)
        for head in range(exact.shape.heads):
            assert float(card.abs().max()) == 1.0
            found, wanted = card @ near.attention(card, head), card @ exact.attention(card, head)
            assert distance(found, wanted) <= eps
        card = exact(card)


@pytest.mark.parametrize("largest", [0.5, 40.0])
@pytest.mark.parametrize("eps", [1e-2, 1e-6])
def test_the_temperature_for_an_error_of_real_data(largest: float, eps: float) -> None:
    """Lemma (read) alone on real numbers up to G; a temperature that is too low by log n^3 misses the error."""
    layout, card, part = one_read(cells=31, largest=largest)
    temperature = least_temperature(max(1.0, largest), card, eps)
    exact, near = (layer_of(build([part], layout.width, precision)) for precision in
                   (Precision(gate=2.0**10), Precision(temperature=temperature, gate=2.0**10)))
    assert distance(card @ near.attention(card, 0), card @ exact.attention(card, 0)) <= eps
    low = layer_of(build([part], layout.width, Precision(temperature=0.3 * math.log(1 / eps), gate=2.0**10)))
    assert distance(card @ low.attention(card, 0), card @ exact.attention(card, 0)) > eps


def layer_of(model: torch.nn.Module) -> TransformerLayer:
    layer = model.layers[0]  # type: ignore[index]
    assert isinstance(layer, TransformerLayer)
    return layer


def one_read(cells: int, largest: float, moving: Callable[..., Part] = read) -> tuple[Layout, Tensor, Part]:
    """A card with a scratchpad and cells of 3 real numbers, and a read (or a write) at a pointer in its middle."""
    rng = np.random.default_rng(cells)
    values, scratchpad = (torch.tensor(rng.uniform(-largest, largest, (3, count))) for count in (cells, 1))
    layout, card, r = memory_card(values, scratchpad, cells // 2)
    return layout, card, memory_access(moving, r, 2.0**10)


# Appendix B: T operations


@pytest.mark.parametrize("temperature", [4.0, 6.0, 9.0])
def test_errors_of_writes_grow_at_most_linearly(temperature: float) -> None:
    """Lemma (write), looped: every loop averages all cells a little. After t loops the card is off by t errors at most."""
    layout, card, part = one_read(cells=15, largest=1.0, moving=write)
    model = build([part], layout.width, Precision(temperature=temperature, gate=2.0**10))
    wanted = build([part], layout.width, Precision(gate=2.0**10))(card)
    d, n = card.shape
    stated = d * n**3 * math.exp(-temperature)
    once, off = 0.0, []
    for _ in range(60):
        card = model(card)
        off.append(distance(card, wanted))
        once = once or off[0]
    assert off[0] > 0
    for t, error in enumerate(off, start=1):
        assert error <= t * once * (1 + 1e-9), f"loop {t}: {error:g}, one loop {once:g}"
        assert error <= t * stated
    assert off[-1] > 5 * once, "it does grow: bits are snapped, real numbers cannot be"


def test_errors_of_products_grow_at_most_linearly() -> None:
    """x = A x with an orthogonal A, so |A| = 1, 60 times: after t products the error is t bounds of one at most."""
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    start = np.array([0.5, -0.25, 0.75, 0.125])
    text = " ; ".join(" ".join(repr(float(v)) for v in row) for row in turn)
    program = assemble(f".range 2\n.data\nA matrix 4x4 {text}\nx vector 4 {' '.join(map(str, start))}\none scalar 1\n"
                       "zero scalar\n.code\nx = mul(A, x); if zero <= 0 goto 0\nhalt")
    machine = FleqMachine.for_program(program, anchors=True)
    once = 2 * machine.bound("mul")  # in the Euclidean norm, of four entries
    exact, card, worst = start, machine.punch(program), []
    for t in range(1, 61):
        card, exact = machine.model(card), turn.T @ exact
        found = program.named(machine.read(card).memory)["x"][:, 0]
        worst.append(float(np.linalg.norm(found - exact)))
        assert worst[-1] <= t * once, f"product {t}"
    assert worst[-1] > 1e-8 > worst[0] / 10, "the errors of this product are large enough to be seen to add up"
    slope = np.polyfit(np.log(np.arange(5, 61)), np.log(worst[4:]), 1)[0]
    assert slope <= 1.1, f"they grow like t^{slope:.2f}"


# Widths


def exact_fit(features: list[list[float]], found: list[int]) -> list[int]:
    """The integer coefficients of a formula that gives all figures exactly; there are more figures than coefficients."""
    matrix = np.array(features)
    assert np.linalg.matrix_rank(matrix) == matrix.shape[1] < len(found)
    coefficients = np.rint(np.linalg.lstsq(matrix, np.array(found, dtype=float), rcond=None)[0]).astype(int)
    assert np.array_equal(matrix @ coefficients, found), f"{coefficients} gives {matrix @ coefficients}, not {found}"
    return [int(c) for c in coefficients]


@pytest.mark.parametrize(("design", "formula"), [("paper", [8, 3, 1, 1]), ("two-layer", None), ("one-layer", None)])
def test_subleq_has_width_log_n_plus_n(design: str, formula: list[int] | None) -> None:
    """rows = a L + b N + c, exactly; the paper's design has max(3 L, 2 N) rows for v_new too, which the print leaves out."""
    features, found = [], []
    for bits in (4, 7, 11, 16):
        for memory in (2, 9, 40, 300):
            sizes = SubleqSizes(bits, memory, 3)
            length = sizes.pointer_bits
            moved = [max(3 * length, 2 * bits)] if formula else []
            features.append([length, bits, *moved, 1.0])
            found.append(SubleqMachine.designs[design].layout(sizes).width)
    coefficients = exact_fit(features, found)
    assert formula is None or coefficients == formula
    assert all(width <= 16 * (f[0] + f[1]) for f, width in zip(features, found, strict=True)), "O(log n + N)"


@pytest.mark.parametrize("design", ["compact", "three-layer", "paper"])
def test_fleq_has_width_m_d_plus_log_n(design: str) -> None:
    """rows = a L + b d + c M + e M d + w log d + constant, exactly, for M / 2 sums and as many products.

    Functions that share a transport share rows in the compact design, so there M d has no part. Data have as many rows as
    an instruction, 5 log n + 5 log d + M + 1, which is above d here.
    """
    features, found = [], []
    for d in (2, 4, 8):
        for pairs in (1, 2, 3):
            for memory in (8, 100, 1000):
                blocks: list[Block] = []
                for i in range(pairs):
                    blocks.append(Elementwise(Function(f"add{i}", 2, same_shape, np.add), lambda a, b, one: a + b))
                    blocks.append(MatrixProduct(Function(f"mul{i}", 2, product_shape, lambda a, b: a.T @ b)))
                made = FleqMachine.designs[design].with_blocks(d, memory, 4, blocks)
                assert made.sizes.instruction_rows >= d
                features.append([made.sizes.pointer_bits, d, pairs, pairs * d, made.sizes.width_bits, 1.0])
                found.append(made.card.width)
    coefficients = exact_fit(features, found)
    assert all(c >= 0 for c in coefficients[:4])
    assert (coefficients[3] > 0) == (design == "paper"), coefficients


# Section 5.2: do we need full attention?


def test_only_the_scratchpad_needs_global_attention() -> None:
    """Keys and queries change in the scratchpad alone, however long the card is: 2 s n scores a head, not n^2."""
    scores = {}
    for memory in (10, 100, 1000):
        machine = SubleqMachine(word_bits=4, memory=memory, instructions=5, design="paper")
        active, n = active_columns(machine.model, machine.layout), machine.layout.columns
        assert active.tolist() == list(range(machine.layout.region("scratchpad").stop))
        scores[n] = (2 * len(active) * n, n * n)
    assert scores == {18: (36, 324), 108: (216, 11664), 1008: (2016, 1016064)}
    fleq = FleqMachine(functions=["add"], size=2, memory=20, instructions=5)
    assert active_columns(fleq.model, fleq.layout).tolist() == list(range(fleq.sizes.scratchpad))
