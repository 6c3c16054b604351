"""The largest error of every function block, next to its bound.

    python benchmarks/fleq_errors.py [--seed 0] [--trials 40] [--design compact]

Each trial punches a program of one instruction, runs the model once and compares the result with the exact function of
the operands on the card. Products: entries uniform in [-1, 1], scaled so that the largest of each operand is 1, on a
machine of range 1; errors in units of d max|A| max|B| = d (hadamard: 1). All others: absolute errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.functions import LOSS_SLOPES, Array, Function, known_function
from punchcard.machines.fleq.isa import Field, FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.transformer.precision import Precision

SIZES = (2, 4, 8, 16)
Entries = Callable[[np.random.Generator, tuple[int, int]], Array]


def unit_entries(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    values = rng.uniform(-1, 1, shape)
    return np.asarray(values / np.abs(values).max())


def between(low: float, high: float) -> Entries:
    return lambda rng, shape: rng.uniform(low, high, shape)


def indicator(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """A 1 at some place of a vector, which chooses a function."""
    return np.eye(shape[0])[:, [rng.integers(shape[0])]]


SHAPES: dict[str, Callable[[int], list[tuple[int, int]]]] = {
    "matrix": lambda d: [(d, d), (d, d)],
    "vector": lambda d: [(d, 1), (d, 1)],
    "scalar": lambda d: [(1, 1), (1, 1)],
    "scaled": lambda d: [(1, 1), (d, d)],
    "chosen": lambda d: [(2, 1), (len(LOSS_SLOPES), 1)],
}
"""The shapes of the operands, by the size of the machine."""


@dataclass(frozen=True)
class Case:
    """A line of the table: a function, how its machine is built, its operands, and the unit of its error."""

    title: str
    function: str
    entries: Entries = unit_entries
    second: Entries | None = None
    range: float = 1.0
    heads: int = 1
    anchors: bool = False
    shape: str = "matrix"
    per_size: bool = False
    least: int = 1
    """The least machine that has room for the operands."""

    @property
    def declared(self) -> Function:
        found = known_function(self.function)
        assert found is not None, self.function
        return found

    def program(self, d: int) -> FleqProgram:
        shapes = SHAPES[self.shape](d)[: self.declared.arity]
        p = Builder()
        p.call(self.function, *(p.matrix(name, shape=shape) for name, shape in zip("ab", shapes, strict=False)), into="c")
        return p.program(self.range)

    def machine(self, d: int, precision: str | Precision, design: str) -> FleqMachine:
        return FleqMachine(functions=[self.function], size=d, memory=self.program(d).columns, instructions=2,
                           range=self.range, heads=self.heads, anchors=self.anchors, precision=precision, design=design)

    def measure(self, d: int, dtype: str, design: str, trials: int, seed: int) -> tuple[float, float]:
        """The largest error and the bound."""
        program, machine = self.program(d), self.machine(d, dtype, design)
        rng = np.random.default_rng([seed, d])
        largest = 0.0
        for _ in range(trials * (10 if self.shape == "scalar" else 1)):
            values = {name: (self.second or self.entries if name == "b" else self.entries)(rng, value.shape)
                      .astype(dtype).astype(np.float64) for name, value in program.values.items()}
            card = machine.punch(replace(program, values=values))
            found = program.named(machine.read(machine.model(card)).memory)["c"]
            operands = [values[name] for name in "ab" if name in values]
            largest = max(largest, float(np.abs(found - self.declared.reference(*operands)).max()))
        unit = float(d) if self.per_size else 1.0
        return largest / unit, machine.bound(self.function) / unit


CASES = (
    Case("mul, 1 head", "mul", per_size=True),
    Case("mul, 2 heads", "mul", heads=2, per_size=True),
    Case("mul, 3 heads", "mul", heads=3, per_size=True),
    Case("mul, anchors", "mul", anchors=True, per_size=True),
    Case("hadamard, 1 head", "hadamard", shape="vector"),
    Case("hadamard, 3 heads", "hadamard", heads=3, shape="vector"),
    Case("entrywise, 1 head", "entrywise"),
    Case("entrywise, 3 heads", "entrywise", heads=3),
    Case("scale, 1 head", "scale", shape="scaled"),
    Case("scale, 3 heads", "scale", heads=3, shape="scaled"),
    Case("add", "add"),
    Case("sub", "sub"),
    Case("transpose", "transpose"),
    Case("percentage", "percentage"),
    Case("relu", "relu"),
    Case("abs", "abs"),
    Case("maximum", "maximum"),
    Case("minimum", "minimum"),
    Case("positive, ±16", "positive", between(-16, 16), range=16.0),
    Case("sigmoid, ±16", "sigmoid", between(-16, 16), range=16.0),
    Case("tanh, ±16", "tanh", between(-16, 16), range=16.0),
    Case("1/x, 0.1 to 10", "inverse", between(0.1, 10), range=16.0, shape="scalar"),
    Case("sqrt, 0 to 16", "sqrt", between(0, 16), range=16.0, shape="scalar"),
    Case("exp, -4 to 2", "exp_m4_2", between(-4, 2), range=16.0, shape="vector"),
    Case("log, 0.1 to 10", "log_0d1_10", between(0.1, 10), range=16.0, shape="vector"),
    Case("sin, -4 to 4", "sin_m4_4", between(-4, 4), range=16.0, shape="vector"),
    Case("cos, -4 to 4", "cos_m4_4", between(-4, 4), range=16.0, shape="vector"),
    Case("loss slope, ±8, chosen", "loss_slope", between(-8, 8), second=indicator, range=16.0, shape="chosen",
         least=len(LOSS_SLOPES)),
)


def pointer_program(values: Array, field: Field, to: int | None, a: int, c: int) -> FleqProgram:
    """A[c] = percentage(A[a]), after one of its pointers was counted on, or set."""
    p = Builder()
    matrix = p.matrix("A", values)
    if to is None:
        p.incr_pointer("x", field)
    else:
        p.reset_pointer("x", field, matrix[to])
    p.label("x")
    p.percentage(matrix[a], into=matrix[c])
    return p.program()


def wrong_pointers(d: int, dtype: str, design: str, trials: int, seed: int) -> int:
    """How many of `trials` pointer increments and resets leave an instruction that is not, bit by bit, the right one."""
    columns = 20
    machine = FleqMachine(functions=["percentage", "incr_pointer", "reset_pointer"], size=d, memory=columns + 1,
                          instructions=3, precision=dtype, design=design)
    rng = np.random.default_rng([seed, d])
    values = rng.uniform(-1, 1, (d, columns))
    wrong = 0
    for _ in range(trials):
        a, c, target = (int(x) for x in rng.integers(0, columns - 1, 3))
        field: Field = "a" if rng.integers(2) else "c"
        to = None if rng.integers(2) else target
        before = {"a": a, "c": c}
        after = before | {field: before[field] + 1 if to is None else to}
        card = machine.model(machine.punch(pointer_program(values, field, to, **before)))
        found = machine.layout.get(card, "data", "instructions") + machine.layout.get(card, "incoming", "instructions")
        right = machine.punch(pointer_program(values, field, to, **after))
        wrong += not torch.equal(found, machine.layout.get(right, "data", "instructions"))
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--design", default="compact")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for dtype in ("float64", "float32"):
        print(f"\n{dtype}, design {options.design}: largest error / bound (ratio)\n")
        print("| block | " + " | ".join(f"d = {d}" for d in SIZES) + " |")
        print("|---" * (len(SIZES) + 1) + "|")
        for case in CASES:
            cells = []
            for d in SIZES:
                if d < case.least:
                    cells.append("–")
                    continue
                error, bound = case.measure(d, dtype, options.design, options.trials, options.seed)
                ratio = f"{error / bound:.2g}" if bound else "exact" if error == 0 else "BEYOND"
                cells.append(f"{error:.1e} / {bound:.1e} ({ratio})")
            print(f"| {case.title} | " + " | ".join(cells) + " |", flush=True)
        wrong = [wrong_pointers(d, dtype, options.design, options.trials, options.seed) for d in SIZES]
        print("| pointers | " + " | ".join(f"{w} of {options.trials} wrong" for w in wrong) + " |", flush=True)


if __name__ == "__main__":
    main()
