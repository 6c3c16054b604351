"""A function block of one's own: the maximum of two matrices, entry by entry, in all designs of the FLEQ machine.

    python examples/own_block.py
"""

from __future__ import annotations

import numpy as np

import punchcard
from punchcard.machines.fleq.blocks.block import Elementwise
from punchcard.machines.fleq.functions import Function, same_shape
from punchcard.transformer.expression import relu

MAXIMUM = Function("maximum", arity=2, shape=same_shape, reference=np.maximum)
BLOCK = Elementwise(MAXIMUM, lambda a, b, one: b + relu(a - b))

TEXT = """
.data
a  matrix 2x2   1 -2 ; 3 0.5
b  matrix 2x2   0 -1 ; 4 0.25
c  matrix 2x2
.code
   c = maximum(a, b)
   halt
"""


def main() -> None:
    program = punchcard.assemble(TEXT, "fleq", functions={"maximum": MAXIMUM})
    for design in ("compact", "three-layer", "paper"):
        report = punchcard.run(program, design=design, blocks=[BLOCK])
        print(design, report.result.memory["c"].tolist(), "largest error", report.max_error)


if __name__ == "__main__":
    main()
