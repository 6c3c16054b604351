"""What is timed on the SUBLEQ machine: multiplication without end."""

from __future__ import annotations

from collections.abc import Iterator

from punchcard.machines.kind import Workload
from punchcard.machines.subleq.isa import Program
from punchcard.machines.subleq.text import assemble

MULTIPLY = """
; product = a * b by adding, over and over; products wrap, as words do
.data
a        1234
b        1000
product  0
count    0
minus_a  0
minus_b  0
one      1
zero     0
.code
        subleq a, minus_a
        subleq b, minus_b
again:  subleq product, product
        subleq count, count
        subleq minus_b, count
loop:   subleq minus_a, product, next
next:   subleq one, count, again
        subleq zero, zero, loop
"""
WORD_BITS = 16
APART = 3  # the scratchpad and two constant cells


def multiply() -> Program:
    """Products by repeated addition, without end."""
    return assemble(MULTIPLY)


def workloads(design: str, columns: int) -> Iterator[Workload | str]:
    """Multiplication on a card of so many columns, float32."""
    program = multiply()
    least = APART + len(program.memory) + len(program.instructions)
    if columns < least:
        yield f"subleq, {columns} columns: left out, the program needs {least}"
        return
    room = columns - APART
    memory = max(len(program.memory), min(room - len(program.instructions), room * 2 // 5))
    yield Workload("multiply", program, {"word_bits": WORD_BITS, "memory": memory, "instructions": room - memory,
                                         "design": design, "precision": "float32"})
