"""The error of one matrix product on FLEQ against the temperature of the hard heads, and against the constants c and C.

    python -m benchmarks.product_error

Writes docs/pictures/product-error.csv, which `make pictures` draws. The operands are 4 x 4, with entries between -1 and 1,
in float64; an error is the largest of an entry over some random products, compared with the exact product of the
operands on the card. Machines choose the least error; here they are built with other constants.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from punchcard.machines.fleq.blocks.block import AnchoredMatrixProduct, Block, MatrixProduct
from punchcard.machines.fleq.blocks.product import AnchoredProduct, anchor_scales, best_c
from punchcard.machines.fleq.blocks.transport import Share
from punchcard.machines.fleq.blocks.workspace import Workspace
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.functions import MUL
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.transformer.expression import Expression
from punchcard.transformer.precision import Precision

FILE = Path(__file__).parent.parent / "docs" / "pictures" / "product-error.csv"
SIZE, TRIALS, UNIT = 4, 20, 2.0**-53
SMALL_ANCHOR = 2.0**-24  # the roundoff for which C is 8
TEMPERATURES = range(8, 41)
Row = tuple[str, str, float, float]


class ChosenAnchors(AnchoredProduct):
    """The product with anchors as it would be built for another reach and roundoff, and so with other constants."""

    def __init__(self, reach: float, unit: float) -> None:
        super().__init__()
        self.reach_chosen, self.unit_chosen = reach, unit

    def as_if(self, work: Workspace) -> Workspace:
        return replace(work, reach=self.reach_chosen, unit=self.unit_chosen)

    def shares(self, work: Workspace) -> list[Share]:
        return super().shares(self.as_if(work))

    def finish(self, work: Workspace, off: Expression) -> Expression:
        return super().finish(self.as_if(work), off)


def reach_for(c: float, choose: Callable[[float], float]) -> float | None:
    """A reach for which a block takes this c."""
    return next((reach for k in range(-60, 120) if choose(reach := 2.0 ** (k / 2)) == c), None)


def with_constant(c: float, heads: int) -> Block | None:
    reach = reach_for(c, lambda reach: best_c(reach, heads, UNIT))
    return None if reach is None else MatrixProduct(MUL, heads, reach)


def with_anchors(c: float, unit: float) -> Block | None:
    reach = reach_for(c, lambda reach: anchor_scales(SIZE, reach, unit).c)
    if reach is None:
        return None
    block = AnchoredMatrixProduct(MUL)
    block.transport = ChosenAnchors(reach, unit)
    return block


def error(block: Block, precision: Precision) -> float:
    """The largest error of an entry."""
    p = Builder()
    p.call("mul", p.matrix("a", shape=(SIZE, SIZE)), p.matrix("b", shape=(SIZE, SIZE)), into="c")
    program = p.program(1.0)
    machine = FleqMachine(functions=[block], size=SIZE, memory=program.columns, instructions=2, range=1.0,
                          precision=precision)
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(TRIALS):
        a, b = (values / np.abs(values).max() for values in rng.uniform(-1, 1, (2, SIZE, SIZE)))
        card = machine.model(machine.punch(replace(program, values={"a": a, "b": b, "c": np.zeros((SIZE, SIZE))})))
        # Written, it stands beside the old value until the next loop. Reading it so works at any temperature.
        memory = machine.layout.get(card, "data", "memory") + machine.layout.get(card, "incoming", "memory")
        found = memory[:SIZE, 2 * SIZE : 3 * SIZE].numpy()
        largest = max(largest, float(np.abs(found - a.T @ b).max()))
    return largest


def measured() -> Iterator[Row]:
    for heads in (1, 3):
        for temperature in TEMPERATURES:
            yield ("temperature", f"{heads} head{'s' * (heads > 1)}", temperature,
                   error(MatrixProduct(MUL, heads), Precision(temperature=float(temperature))))
    for k in range(0, 45, 2):
        c = 2.0**-k
        blocks = {f"{heads} head{'s' * (heads > 1)}": with_constant(c, heads) for heads in (1, 2, 3)}
        blocks |= {"anchors, C = 18": with_anchors(c, UNIT), "anchors, C = 8": with_anchors(c, SMALL_ANCHOR)}
        for name, block in blocks.items():
            if block is not None:
                yield "c", name, c, error(block, Precision())


def main() -> None:
    torch.set_num_threads(1)
    with FILE.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["against", "product", "value", "error"])
        for against, product, value, found in measured():
            rows.writerow([against, product, repr(value), f"{found:.3e}"])
            print(f"{against:<12} {value:<10.4g} {product:<16} {found:.1e}", flush=True)


if __name__ == "__main__":
    main()
