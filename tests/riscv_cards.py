"""Cards of the RISC-V machine in the middle of programs that nobody wrote: any instruction, any words, and all facts."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import REGISTER_COUNT, SINK
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.numbers import ELSE
from tests.riscv_cases import any_instruction, extreme, program_of


def cards_of_cases(machine: RiscvMachine, count: int, seed: int = 0) -> tuple[list[str], Tensor]:
    """So many cards of each case, with the names of their cases.

    A loop of the right model fetches and decodes the instruction: so all facts hold.
    """
    rng = random.Random(seed)
    known = machine.sizes.decoder.instructions
    cases = [case for case in (*(one.name for one in known), ELSE) for _ in range(count)]
    before = torch.stack([_card(machine, rng, _word(machine, rng, case)) for case in cases])
    after = torch.cat([machine.model(some) for some in torch.split(before, 24)])
    if machine.design.lags:
        for card in after:
            _let_something_be_pending(machine, rng, card)
    return cases, after


def _word(machine: RiscvMachine, rng: random.Random, case: str) -> int:
    """A word of a case. One that is not an instruction is often nearly one."""
    known = machine.sizes.decoder.instructions
    while case == ELSE:
        word = any_instruction(rng, rng.choice(known)) ^ 1 << rng.choice((*range(7), *range(12, 15), *range(25, 32)))
        word = rng.choice((word, word, rng.getrandbits(32)))
        if all(word & one.mask != one.match for one in known):
            return word
    return any_instruction(rng, isa.BY_NAME[case])


def _card(machine: RiscvMachine, rng: random.Random, word: int) -> Tensor:
    """A jump to a word, which may be behind the memory's end: then it is found by the low bits of the address."""
    sizes, layout = machine.sizes, machine.layout
    card = machine.punch(program_of([rng.getrandbits(32) for _ in range(sizes.memory)], sizes.base, sizes.base))
    place = rng.randrange(sizes.memory)
    first, pages = sizes.base // 4, 1 << 30 - sizes.pointer_bits
    page = rng.choice((0, 0, rng.randrange(pages)))
    entry = 4 * ((first + place + (page << sizes.pointer_bits)) % (1 << 30))
    machine.design.reset(sizes, layout, entry, card)
    layout.put_number_at(card, "memory", layout.region("memory").start + place, word)
    near = [extreme(rng), 4 * rng.randrange(sizes.memory) + sizes.base, rng.randrange(sizes.base, sizes.end)]
    registers = [0, *(rng.choice((*near, extreme(rng))) for _ in range(REGISTER_COUNT - 1))]
    layout.put_numbers(card, "registers", {"memory": registers})
    return card


def _let_something_be_pending(machine: RiscvMachine, rng: random.Random, card: Tensor) -> None:
    space = rng.getrandbits(1)
    position = rng.choice((SINK, *range(1, REGISTER_COUNT))) if space else rng.randrange(1 << machine.sizes.pointer_bits)
    machine.layout.put_numbers(card, "scratchpad", {
        "pending.position": [position], "pending.space": [space], "value": [extreme(rng)]})
