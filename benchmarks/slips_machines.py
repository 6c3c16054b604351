"""Slips in the primitives (sections 3 and 4) and in SUBLEQ (section 5.1, appendix C), run."""

from __future__ import annotations

import math
from itertools import count, product

import numpy as np

from benchmarks.slip import Slip, first, relu, shown, softmax
from punchcard.card.encoding import encode_bits
from punchcard.machines.subleq.designs.base import SubleqSizes
from punchcard.machines.subleq.machine import SubleqMachine


def write() -> Slip:
    """The second ReLU of the write has a plus."""

    def written(x: tuple[int, int], sign: int) -> float:
        old, new = x
        via = (old + new) / 2  # what attention brings
        return old + relu(2 * via - 2 * old) + sign * relu(-2 * via + 2 * old)

    pairs = ((old, new) for size in count() for old in range(size + 1) for new in range(-size, size + 1))
    (old, new), gives, right = first(pairs, lambda x: written(x, +1), lambda x: written(x, -1))
    return Slip("write: v + relu(2 v_new - 2 v) + relu(2 v - 2 v_new)", f"{old} stored, {new} to write", shown(gives),
                shown(right))


def word_flag() -> Slip:
    """The flag's constant has the wrong sign."""

    def flag(x: tuple[int, int], constant: int) -> float:
        bits, value = x
        b = encode_bits([value], bits, signed=True)[:, 0]
        return relu(float(b[-1])) + relu(constant - float(b.sum()))

    words = ((bits, value) for bits in count(2) for value in sorted(range(-(1 << bits - 1), 1 << bits - 1), key=abs))
    (bits, value), gives, right = first(words, lambda x: flag(x, 1 + x[0]), lambda x: float(x[1] <= 0))
    assert flag((bits, value), 1 - bits) == right
    return Slip("flag: relu(b_N) + relu(1 + N - sum b)", f"{value} in {bits} bits", shown(gives), shown(right))


def adder_order() -> Slip:
    """a_i is called the i-th most significant bit; the formula is right for the i-th least."""

    def added(x: tuple[int, int, int], order: int) -> int:
        bits, a, b = x
        digits = [[value >> k & 1 for k in range(bits)][::order] for value in (a, b)]
        total = []
        for i in range(bits):
            s = sum(sum(d[k] << k for k in range(i + 1)) for d in digits)
            total.append(int(1 << i <= s < 2 << i or 3 << i <= s))
        return sum(bit << k for k, bit in enumerate(total[::order]))

    pairs = ((bits, a, b) for bits in count(1) for a, b in product(range(1 << bits), repeat=2) if a + b < 1 << bits)
    (bits, a, b), gives, right = first(pairs, lambda x: added(x, -1), lambda x: x[1] + x[2])
    assert added((bits, a, b), 1) == right
    return Slip("addition: a_i is the i-th most significant bit", f"{a} + {b} in {bits} bits", shown(gives), shown(right))


def adder_range() -> Slip:
    """d bits do not hold every sum below 2^(d + 1)."""
    (a, b), gives, right = first(((a, b) for a, b in product(range(2), repeat=2)), lambda x: sum(x) % 2, lambda x: sum(x))
    return Slip("addition: d output bits are the sum, if it is below 2^(d + 1)", f"{a} + {b} with d = 1", shown(gives),
                f"{right}, modulo 2^d: 0")


def bit_flip() -> Slip:
    """The flip writes into columns that hold nothing."""
    x, gives, right = first((0, 1, -1), lambda b: 2 * relu(-b) - 1, lambda b: b - 2 * b)
    return Slip("flip: 2 relu(-b) - 1 in every column", f"a column that holds {x}", shown(gives), shown(right))


def encodings() -> Slip:
    """Two different encodings differ in a bit, which is worth 2."""
    length = 1
    every = encode_bits(np.arange(2), length)
    gives, right = length - 1, int((every.T @ every)[0, 1])
    return Slip("encodings: e_i . e_j is at most log n - 1", "n = 2", f"up to {gives}", f"{right}, log n - 2")


def tail() -> Slip:
    """The tail over a full cube."""
    length, temperature = 1, 1.0
    every = encode_bits(np.arange(2), length)
    w = softmax(temperature * every.T @ every)[:, 0]
    return Slip("the losers of a softmax over encodings weigh n e^(-lambda)", "n = 2, lambda = 1",
                shown(2 * math.exp(-temperature)), f"{shown(float(w[1] / w[0]))}, (1 + e^(-2 lambda))^L - 1")


def first_column() -> Slip:
    """Column 1, the scratchpad, has no encoding: a pointer to it is nearer to some other column."""
    position = np.column_stack([np.zeros(2), encode_bits(np.array([1, 2]), 2)])
    weights = softmax(20 * position.T @ encode_bits(np.array([0]), 2))
    taken = (np.array([[5.0, 7.0, 9.0]]) @ weights).item()
    return Slip("column 1 has an encoding of zeros", "n = 3, columns that hold 5, 7, 9, a pointer to the first",
                shown(taken), "5")


def averaging_write() -> Slip:
    """v + 2 via - 2 v, with a via that has a tail of the other cells in it, changes every cell in every loop."""
    every = encode_bits(np.arange(2), 1)
    weights, cells = softmax(4 * every.T @ every), np.array([[1.0, 0.0]])
    for _ in range(100):
        cells = cells + 2 * cells @ weights - 2 * cells
    return Slip("a write leaves all other cells as they are", "n = 2, lambda = 4, the cell 1 beside 0 after 100 loops",
                shown(float(cells[0, 0])), "1")


def subleq_layers() -> Slip:
    """The steps of the proof, one after the other."""
    steps = {"read the instruction": 1, "read the data": 1, "flip, add 1, add": 3, "write": 1, "flag": 1,
             "program counter + 1": 1, "select": 1, "correct": 1}
    built = len(SubleqMachine(word_bits=2, memory=1, instructions=1, design="paper").weights.layers)
    return Slip("SUBLEQ has nine layers", "the steps of its proof, added up", str(built),
                f"{sum(steps.values())}, or 9 where flag and program counter + 1 share one")


def subleq_rows() -> Slip:
    """v_new, which attention moves things into, is not counted."""
    sizes = SubleqSizes(2, 1, 1)
    length, n = sizes.pointer_bits, sizes.word_bits
    found = SubleqMachine.designs["paper"].layout(sizes).width
    return Slip("SUBLEQ has 8 log n + 3 N + 1 rows", f"N = {n}, log n = {length}", str(8 * length + 3 * n + 1),
                f"{found}, with max(3 log n, 2 N) for v_new")


def indicator_of_all_columns() -> Slip:
    """An adder's constants reach every column whose indicator is 1, also those of the scratchpad that hold no bits."""

    def incremented(bits: list[float], one: float) -> list[float]:
        found = []
        for i in range(len(bits)):
            s = sum(2**k * 0.5 * (b + one) for k, b in enumerate(bits[: i + 1])) + one
            steps = [(s, 2**i), (-s, 1 - 2 ** (i + 1)), (s, 3 * 2**i)]
            found.append(2 * sum(relu(x - (at - 1) * one) - relu(x - at * one) for x, at in steps) - 3 * one)
        return found

    assert incremented([-1.0, -1.0], 1.0) == [1.0, -1.0]
    assert incremented([1.0, 1.0], 1.0) == [-1.0, -1.0]
    bits, gives, right = first(([0.0] * length for length in count(1)), lambda b: incremented(b, 1.0),
                               lambda b: incremented(b, 0.0))
    return Slip("the indicator is 1 on all s columns of the scratchpad", f"s = 2, {shown(bits)} in the second, plus 1",
                shown(gives), shown(right))


def bias_in_every_column() -> Slip:
    """b2 1^T has no indicator."""
    card = np.zeros((1, 2))
    card = card + np.array([[1.0]]) @ np.ones((1, 2))
    return Slip("constants are added by b2", "n = 2, 1 for the scratchpad: the memory gets", shown(float(card[0, 1])), "0")


def end_of_file() -> Slip:
    """EOF jumps to itself as long as mem[b] - mem[a] <= 0, with the cells 0 and -1 for a and b."""

    def loops(zero: int) -> int:
        minus_one, made = -1, 0
        while (minus_one := minus_one - zero) <= 0 and made < 1000:
            made += 1
        return made

    x, gives, _ = first((0, -1), loops, lambda zero: 1000)
    return Slip("EOF is a fixed point", f"an instruction has written {x} into its cell 0", f"left after {gives} loop",
                "stays, if no instruction can write its cells")


def least_word() -> Slip:
    """-2^(N - 1) is outside the lemma's range, and a difference reaches it."""
    bits = 2
    a, b = 1, -1
    word = (b - a + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    return Slip("words are -2^(N - 1) + 1 to 2^(N - 1) - 1", f"N = {bits}: mem[b] = {b}, mem[a] = {a}",
                "no such word", f"{word}, and the flag of it is right")


def minsky() -> Slip:
    """Every operand pair of the translation is swapped."""
    memory = {"a": 0, "c_-1": -1}

    def subleq(a: str, b: str) -> int:
        after = memory | {b: memory[b] - memory[a]}
        return after["a"]

    return Slip("add(a) is SUBLEQ(a, c_-1, j + 1)", "a = 0", f"a = {subleq('a', 'c_-1')}", f"a = {subleq('c_-1', 'a')}")


