"""Slips in FLEQ (section 5.2, appendix D) and in the function blocks (sections 6 and 7, appendices A, B and E), run."""

from __future__ import annotations

import math
from itertools import count, pairwise

import numpy as np

from benchmarks.slip import Slip, first, relu, shown, softmax
from punchcard.machines.fleq.blocks.block import AnchoredMatrixProduct, Elementwise, Transposition
from punchcard.machines.fleq.designs.base import FleqSizes
from punchcard.machines.fleq.designs.paper import PaperFleqDesign
from punchcard.machines.fleq.functions import ADD, MUL, TRANSPOSE, Array, sigmoid
from punchcard.transformer.precision import Precision


def one_width() -> Slip:
    """One width d_w for all operands: that of a vector masks the second column of the matrix."""
    a, b = np.array([[1.0, 2.0]]), np.array([[1.0]])
    masked = a * (np.arange(2) < b.shape[1])
    return Slip("an instruction has one width d_w", "A^T b with A = (1 2), b = (1), d_w = 1", shown((masked.T @ b).ravel()),
                shown((a.T @ b).ravel()))


def data_height() -> Slip:
    """Pointer functions read instructions as data, which have to fit a column."""
    sizes = FleqSizes(1, 1, 1, ("add",), 3)
    return Slip("a data column has d rows", "d = 1, an instruction read as data", f"{sizes.size} row",
                f"{sizes.instruction_rows} rows, an instruction's")


def first_mask() -> Slip:
    """The first mask has a 2 d too much."""

    def mask(x: tuple[int, int, int], shift: int) -> float:
        _, width, i = x
        return relu(shift + width - i + 1) - relu(shift + width - i)

    cases = ((d, width, i) for d in count(1) for width in range(1, d + 1) for i in range(1, 3 * d + 1))
    (d, width, i), gives, right = first(cases, lambda x: mask(x, 2 * x[0]), lambda x: float(x[2] <= x[1]))
    assert mask((d, width, i), 0) == right
    return Slip("b_mask1 = relu(2 d + d_w - i + 1) - relu(2 d + d_w - i)", f"d = {d}, d_w = {width}, column i = {i}",
                shown(gives), shown(right))


def masks_of_step_2() -> Slip:
    """All but one of the six terms have the first mask, where the second and third operand have masks of their own."""
    gate, masks = 100.0, {1: 0.0, 2: 1.0}  # in column d + 1, which holds the second operand

    def kept(value: int) -> float:
        return relu(value - gate * (1 - masks[2])) - relu(-value - gate * (1 - masks[1]))

    value, gives, right = first((0, 1, -1), kept, float)
    return Slip("step 2 repeats mask 1 in the terms of b and c", f"{value} in the first column of b", shown(gives),
                shown(right))


def pointers_from_one() -> Slip:
    """Columns count from 1, so a + i skips the operand's first column."""
    gives, right = [8 + i for i in (1, 2)], [8 + i - 1 for i in (1, 2)]
    return Slip("column i reads mem[a + i]", "a = 8, two columns", f"columns {gives}", f"columns {right}, a + i - 1")


def negative_lanes() -> Slip:
    """The pointer c + i - 2 d is below c, and below 0, in the first columns of the scratchpad."""
    (d, i), gives, _ = first(((d, i) for d in count(1) for i in range(1, 3 * d + 1)), lambda x: x[1] - 2 * x[0] >= 0,
                             lambda x: True)
    assert not gives
    return Slip("the adder makes the encoding of i - 2 d", f"d = {d}, column i = {i}", str(i - 2 * d),
                "lanes count from 0 in every part")


def field_order() -> Slip:
    """The instruction is printed in three orders."""
    orders = {"theorem": "a b c m flag p", "appendix D": "a b c flag m p", "step 1": "a b c flag p m"}
    return Slip("the order of an instruction's fields", "the fifth field: theorem, appendix D, step 1",
                ", ".join(order.split()[4] for order in orders.values()), "p, after a, b, c and flag", run=False)


def pointer_field() -> Slip:
    """incr_pointer(instr) does not say which field it increments."""
    return Slip("incr_pointer(mem[instr_17])", "instr_17 reads and writes through one pointer: b and c",
                "does not say which", "it names a field, and is called for each", run=False)


def heads() -> Slip:
    """The table, the theorem and step 2 disagree."""
    block = Elementwise(ADD, lambda a, b, one: a + b)
    design = PaperFleqDesign().with_blocks(1, 2, 2, [block])
    parts = design.layers(design.sizes, design.card, Precision())
    most = max(len(part.heads) for part in parts)
    return Slip("a machine has as many heads as its blocks together", "one block of one head", str(block.lemma.heads),
                f"{most}: step 2 reads a and b")


def one_temperature() -> Slip:
    """A temperature that makes reads hard makes a sigmoid a step."""
    x, hard = 0.5, 512.0
    return Slip("one temperature lambda for all layers", "sigmoid(0.5) by a softmax with lambda = 512",
                shown(float(softmax(hard * np.array([x, 0.0]))[0])), shown(float(sigmoid(np.array(x)))))


def sigmoid_bias() -> Slip:
    """The bias of the sigmoid lemma has the wrong sign."""
    d, x = 1, 0.0
    others = 3 * d - 1

    def weight(bias: float) -> float:
        return float(softmax(np.array([x + bias] + [0.0] * others))[0])

    right = weight(math.log(others))
    assert abs(right - float(sigmoid(np.array(x)))) < 1e-15
    return Slip("sigmoid: each a_i ends with -log(3 d - 1)", f"d = {d}, x = 0", shown(weight(-math.log(others))),
                shown(right))


def sigmoid_one_head() -> Slip:
    """Without a column whose key is zero, the softmax of the one-head lemma has one live column."""
    m, x, far = 2, 0.0, 1000.0
    scores = np.full((m, m), x - far) + far * np.eye(m)
    gives = float(softmax(scores)[0, 0])
    right = float(softmax(np.vstack([scores, np.zeros(m)]))[0, 0])
    return Slip("one head: m columns, and Q has a last row of zeros", f"m = {m}, x = 0", shown(gives), shown(right))


def product_order() -> Slip:
    """The value matrix keeps the first d rows of M^T M, and the displayed result has A^T B there; the lemma has A^T B^T."""
    a, b = np.array([[1.0]]), np.array([[1.0, 2.0]])
    try:
        gives = shown(a.T @ b.T)
    except ValueError:
        gives = "no such product: 1x1 and 2x1"
    return Slip("appendix A.4: the block outputs A^T B^T", "A of 1x1, B of 1x2", gives, f"A^T B = {shown(a.T @ b)}")


def product_display() -> Slip:
    """D_d keeps the first d rows, those of A^T; the displayed result has B^T A and B^T B below them."""
    m = np.array([[1.0, 2.0]])  # A = 1, B = 2
    kept = np.diag([1.0, 0.0]) @ (m.T @ m)
    return Slip("matmul: V has n e^C D_d, and B^T A is displayed", "A = 1, B = 2: the entry B^T A", shown(float(kept[1, 0])),
                f"{shown(float((m.T @ m)[1, 0]))}, or not displayed")


def product_value() -> Slip:
    """n e^C does not fit the denominator sum e^(c z) + n (e^C + 1): for z = 0 the result is not 0."""
    n, c, anchor = 2, 0.1, 1.0
    weight = 1 / (n + n * (math.exp(anchor) + 1))
    right = 1 / (n + n * math.exp(anchor)) * n * (math.exp(anchor) + 1)
    return Slip("matmul: V has n e^C", "d = 1, z = 0, C = 1, c = 0.1", shown((n * math.exp(anchor) * weight - 1) / c),
                shown((right - 1) / c))


def product_algebra() -> Slip:
    """n e^C / (sum e^(c x) + n (e^C + 1)) is not 1 / (1 + sum e^(c x - C - log n) + n); here x and C are 0."""
    n, gives, right = first(count(1), lambda n: 1 / (1 + n * math.exp(-math.log(n)) + n), lambda n: n / (n + n * 2))
    return Slip("matmul: the denominator is 1 + sum e^(c x - C - log n) + n", f"n = {n}, x = 0, C = 0", shown(gives),
                shown(right))


def product_constant() -> Slip:
    """eps_1 = C_1 log(n eps) is to be a small positive number."""
    pairs = ((n, eps) for n in (2, 4) for eps in (1.0, 0.1))
    (n, eps), _, _ = first(pairs, lambda x: math.log(x[0] * x[1]) > 0, lambda x: True)
    return Slip("matmul: eps_1 = C_1 log(n eps)", f"n = {n}, eps = {eps}, C_1 = 1", shown(math.log(n * eps)),
                "positive and small")


def product_division() -> Slip:
    """The softmax gives 1 + c x, and the division by c multiplies its rounding."""
    x, c = 0.3, 2.0**-50
    found = ((1 + c * x) - 1) / c
    return Slip("matmul: the smaller c, the smaller the error", "x = 0.3, c = 2^-50 in float64",
                f"off by {abs(found - x):.2g}", "truncation + rounding / c: there is a best c")


def transpose_copy() -> Slip:
    """Copying by a one-hot encoding that d columns share gives their average."""
    d = 2
    lanes = np.tile(np.eye(d), (1, d))  # the encodings 1 .. d, d times
    card = np.zeros((1, d * d))
    card[0, :d] = [4.0, 6.0]
    weights = softmax(50 * lanes.T @ lanes)
    return Slip("transpose: the first layer makes d copies of A", "d = 2, A = (4 6)", shown((card @ weights)[0]),
                shown((d * card @ weights)[0]))


def permuted(a: Array) -> Array:
    """X + V X P for a matrix that is given entry by entry: each column takes the entry of the column (c, r)."""
    d = len(a)
    row, column = (np.eye(d)[index.ravel()].T for index in np.indices((d, d)))
    weights = softmax(50 * np.vstack([row, column]).T @ np.vstack([column, row]))
    entries = a.reshape(1, -1)
    return np.asarray((entries + entries @ weights).reshape(d, d))


def transpose_residual() -> Slip:
    """The permutation adds to what is there."""
    a = np.array([[0.0, 1.0], [0.0, 0.0]])
    return Slip("transpose: X + V X P has A^T in the second row block", "A = (0 1 ; 0 0)", shown(permuted(a)), shown(a.T))


def transpose_of_30() -> Slip:
    """Section 8 gives one layer 2 log n + 1 rows: the encodings and the entry, and no row for what the head takes."""
    a = np.arange(900.0).reshape(30, 30)
    return Slip("section 8: one layer of 21 rows transposes 30 x 30", "entries 0 to 899, the residual included: a_(0 1) is",
                shown(float(permuted(a)[0, 1])), f"{shown(float(a.T[0, 1]))}, taken into the row of a known bit")


def calculator_steps() -> Slip:
    """f_i 1[x >= a_i] - f_i 1[x < a_(i+1)] is not 0 below a_i."""
    ends = [0.0, 1.0, 4.0, 9.0]

    def root(x: float, *, printed: bool) -> float:
        steps = ((x >= low) - (x < high if printed else x >= high) for low, high in pairwise(ends))
        return float(sum(i * step for i, step in enumerate(steps)))

    x, gives, right = first(range(9), lambda x: root(x, printed=True), lambda x: root(x, printed=False))
    return Slip("sqrt: i eps 1[x >= a_i] - i eps 1[x < a_(i+1)]", f"x = {x}, eps = 1, on 0 to 9", shown(gives), shown(right))


def one_head_copy() -> Slip:
    """The corollary copies x with a factor d where the softmax averages m columns."""
    x = 3.0

    def copied(m: int, factor: int) -> float:
        card = np.eye(1, m) * x
        return float((factor * card @ softmax(np.zeros((m, m))))[0, -1])

    m, gives, right = first(count(1), lambda m: copied(m, 1), lambda m: copied(m, m))
    return Slip("one head: V = d I copies x to all m columns", f"d = 1, m = {m}, x = 3", shown(gives),
                f"{shown(right)}, by m I")


def layers_of_the_theorem() -> Slip:
    """The informal theorem says less than 13 layers; the table has 13, and so has a machine with a transpose."""
    blocks = [AnchoredMatrixProduct(MUL), Transposition(TRANSPOSE), Elementwise(ADD, lambda a, b, one: a + b)]
    design = PaperFleqDesign().with_blocks(1, 2, 2, blocks)
    made = design.layers(design.sizes, design.card, Precision())
    return Slip("the informal theorem: less than 13 layers", "mul, transpose and add, as for an inverse", "12 at most",
                str(len(made)))
