"""What is timed on the von Neumann machine: an image that counts without end and changes its own code."""

from __future__ import annotations

from collections.abc import Iterator

from punchcard.machines.kind import Workload
from punchcard.machines.von_neumann.languages.asq.assembler import assemble

COUNT = """
loop:   one sum
        step store+1               # the store below goes to another of eight cells
        one left
        zero zero store
store:  one cells
        zero zero test
test:   zero left reset
        zero zero loop
reset:  back store+1               # and begins again with the first
        left
        minus_eight left loop
        zero zero loop
. zero:0 one:1 step:-1 back:8 minus_eight:-8 sum:0 left:8 cells:0 0 0 0 0 0 0 0 0
"""
WORD_BITS = 16
PORTS = 2


def workloads(design: str, columns: int) -> Iterator[Workload | str]:
    """The counting image on a card of about so many columns: the memory is a power of two."""
    image = assemble(COUNT)
    memory = 1 << max(0, columns - 1 - PORTS).bit_length() - 1 if columns > PORTS + 1 else 0
    if memory < len(image.words):
        yield f"von-neumann, {columns} columns: left out, the image needs {len(image.words) + 1 + PORTS}"
        return
    bits = max(WORD_BITS, memory.bit_length() - 1)  # all cells have an address
    yield Workload("count", image, {"word_bits": bits, "memory": memory, "design": design})
