"""The models of the set: machines by kind, design and sizes, each in several disguises.

A model's weights depend on its sizes and its disguise alone. Its seed is made of its name, so it is the same to the last bit
wherever and whenever it is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from punchcard.export.disguise import Disguise
from punchcard.export.disguise_options import Rotation

COPIES = 1.0
VARIANTS: Mapping[str, tuple[Rotation, float]] = {
    "plain": ("none", 0.0), "permuted": ("permuted", 0.0), "rotated": ("exact", 0.0), "idle": ("permuted", COPIES),
    "idle-rotated": ("exact", COPIES)}
"""By name: how the basis is hidden, and the share of rows that have idle copies."""
UNROTATED = ("plain", "permuted", "idle")
"""Those in which no number is rounded, for machines of real numbers."""
TURING = "punchcard.ground_truth.turing:TuringMachine"
"""The example of a machine in one file, examples/turing/turing.py."""
FLEQ = """.data
A    matrix 2x2   1 0.25 ; 0.5 0.75
B    matrix 2x2   0.5 0.25 ; 0 0.5
C    matrix 2x2
t    scalar -9
one  scalar 1
.code
loop:   C = mul(A, B)
        B = sub(C, A)
        A = transpose(B)
        t = add(t, one); if t <= 0 goto loop
        halt
"""
RISCV = """
        .text
        .globl  _start
_start: lw      a0, first
        lw      a1, second
again:  add     a2, a0, a1
        sub     a0, a2, a1
        addi    a1, a1, -1
        bnez    a1, again
        j       _start
        .data
first:  .word   5
second: .word   3
"""


@dataclass(frozen=True)
class ModelSpec:
    """One model of the set, and the job of making it.

    text      a program, of kinds without random ones
    machine   "module:Class" of a machine that is not installed
    """

    name: str
    kind: str
    options: tuple[tuple[str, Any], ...]
    variant: str
    pairs: int
    text: str = ""
    machine: str = ""
    folder: str = ""
    base_seed: int = 0

    @property
    def key(self) -> str:
        return self.name

    @property
    def group(self) -> str:
        return self.name

    @property
    def seed(self) -> int:
        """Of everything random in the model."""
        return int(hashlib.sha256(f"{self.base_seed}:{self.name}".encode()).hexdigest()[:12], 16)

    @property
    def disguise(self) -> Disguise:
        rotation, copies = VARIANTS[self.variant]
        return Disguise(rotation, seed=self.seed, copies=copies)

    @property
    def is_test(self) -> bool:
        """Whether its truth is kept apart: about a third of the models, by their names."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 3 == 0


def specs(which: str, pairs: int | None = None) -> Iterator[ModelSpec]:
    """The models of the set "small" or "full"."""
    full = which == "full"
    count = pairs or (200 if full else 40)
    for design, bits, (cells, instructions) in product(
            ("paper", "two-layer", "one-layer"), (4, 5, 6, 8) if full else (5,), ((4, 4), (6, 8)) if full else ((4, 4),)):
        options = {"design": design, "word_bits": bits, "memory": cells, "instructions": instructions}
        yield from _variants("subleq", options, f"{design}-{bits}bit-{cells}x{instructions}", count)
    for bits, memory in product((5, 6, 8) if full else (5,), (18, 24) if full else (18,)):
        yield from _variants("von-neumann", {"word_bits": bits, "memory": memory}, f"{bits}bit-{memory}", count)
    for states, symbols, squares in ((2, 2, 6), (3, 3, 10), (4, 3, 14)) if full else ((2, 2, 6),):
        options = {"states": states, "symbols": symbols, "squares": squares}
        yield from _variants("turing", options, f"{states}x{symbols}-{squares}", count, machine=TURING)
    for design in ("compact", "paper") if full else ("compact",):
        yield from _variants("fleq", {"design": design}, design, count, FLEQ, UNROTATED)
    if full:
        yield from _variants("riscv", {"memory": 16}, "16", max(4, count // 2), RISCV, ("plain", "permuted"))


def _variants(kind: str, options: Mapping[str, Any], sizes: str, pairs: int, text: str = "",
              variants: Iterable[str] = tuple(VARIANTS), machine: str = "") -> Iterator[ModelSpec]:
    for variant in variants:
        yield ModelSpec(f"{kind}-{sizes}-{variant}", kind, tuple(options.items()), variant, pairs, text, machine)
