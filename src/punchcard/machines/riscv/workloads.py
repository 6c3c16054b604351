"""What is timed on the RISC-V machine: a sieve of primes that begins again when it is done."""

from __future__ import annotations

from collections.abc import Iterator

from punchcard.machines.kind import Workload
from punchcard.machines.riscv.languages.assembly.assembler import assemble

SIEVE = """
        .equ count, 200                # bytes, one for each number
_start: la   s0, flags
        li   s1, count
again:  li   t0, 2
next:
        add  t1, s0, t0
        lbu  t2, 0(t1)
        bnez t2, on                    # not a prime
        add  t3, t0, t0
        li   t4, 1
strike: bgeu t3, s1, found
        add  t5, s0, t3
        sb   t4, 0(t5)
        add  t3, t3, t0
        j    strike
found:  addi s2, s2, 1
on:     addi t0, t0, 1
        bltu t0, s1, next
        mv   t0, s0                    # all numbers may be primes again
        add  t1, s0, s1
wipe:   sw   zero, 0(t0)
        addi t0, t0, 4
        bltu t0, t1, wipe
        slli t2, s2, 3                 # and a checksum of how many there were
        xor  s3, s3, t2
        j    again
        .align 2
flags:  .space count
"""
OTHER_COLUMNS = 35
"""The scratchpad, the registers, the sink and nothing."""


def workloads(design: str, columns: int) -> Iterator[Workload | str]:
    """The sieve on a card of about so many columns: the memory is a power of two."""
    program = assemble(SIEVE, "sieve.s")
    memory = 1 << max(1, columns - OTHER_COLUMNS).bit_length() - 1
    if memory < program.needed_words:
        yield f"riscv, {columns} columns: left out, the program needs {program.needed_words + OTHER_COLUMNS}"
        return
    yield Workload("sieve", program, {"memory": memory, "design": design})
