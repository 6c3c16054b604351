"""RV32IMA with traps in plain C, written from the tables of instructions and control registers.

The loop in C stops after a step that asks the bus, which Python serves.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from functools import cache

from punchcard.machines.in_c import CFunction
from punchcard.machines.riscv import csrs, isa, traps
from punchcard.machines.riscv.csrs import CLINT, COUNTERS, CSRS, ROWS, Csr
from punchcard.machines.riscv.in_c import LEAVES, MANY, Ways, cases
from punchcard.machines.riscv.isa import INSTRUCTIONS, Instruction
from punchcard.machines.riscv.privileged import Bus, PrivilegedInterpreter, row
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.semantics import OPERANDS, WORD_BITS
from punchcard.words.text import c_text
from punchcard.words.word import Word, constant, variable

PLACES = {name: place for place, name in enumerate(ROWS)}
LATER = tuple(name for pair in COUNTERS for name in pair)
"""Rows that count: what is written to one of them is kept until the end of the step."""
ATOMIC, STORES, TO_REGISTER, SERVED = 8, 16, 32, 64
"""What an access is, besides its bytes: for what is not done in the memory. `SERVED`: the CLINT takes it."""
_NAMES = {**LEAVES, "value": "value", "cause": "cause", "trap_value": "trap_value", "old": "old"}


def _row(name: str) -> str:
    return f"r[{PLACES[name]}]"


def _text(word: Word) -> str:
    return c_text(lambda leaf: _row(str(leaf.data)) if leaf.data in ROWS else _NAMES[str(leaf.data)])(word)


def _set(words: Mapping[str, Word]) -> str:
    """Rows that change at once."""
    made = [f"const uint32_t new{i} = {_text(word)};" for i, word in enumerate(words.values())]
    kept = [f"later[{LATER.index(name)}]" if name in LATER else _row(name) for name in words]
    stay = [f"later[{LATER.index(name)}] = {_row(name)};" for pair in COUNTERS if not words.keys().isdisjoint(pair)
            for name in pair]
    return " ".join(["{", *made, *stay, *(f"{place} = new{i};" for i, place in enumerate(kept)), "}"])


def _trap(cause: int, value: str = "0") -> str:
    return f"cause = {cause:#x}u; trap_value = {value}; goto trap;"


def _outside(instruction: Instruction) -> str:
    """An access that is not in the memory, or misaligned."""
    sort = instruction.access_bytes | ATOMIC * (instruction.extension == "A") | STORES * instruction.writes_memory
    sort |= TO_REGISTER * ("rd" in instruction.uses) | SERVED * (instruction.name in ("lw", "sw"))
    second = "if (ready) goto answer; " if instruction.has_two_results else ""
    return f"address = a + immediate; sort = {sort}; {second}goto outside;"


def _accessed(instruction: Instruction) -> str:
    """What a load or store in the memory does to a reservation."""
    if instruction.format == "reserve":
        return f"{_row('reservation.valid')} = 1; {_row('reservation.address')} = (a + immediate) >> 2;"
    return f"{_row('reservation.valid')} = 0;" if instruction.writes_memory else ""


def _special(instruction: Instruction) -> str:
    """What a plain interpreter does not have."""
    outcome = instruction.semantics(OPERANDS)
    if instruction.uses_csr:
        assert outcome.update is not None
        writes = "1" if instruction.name.startswith("csrrw") else "(word >> 15 & 31) > 0"
        given = f"const uint32_t writes = {writes}; uint32_t value; "
        read = "if (!read_csr(r, word >> 20, writes, multiply, &value)) goto illegal; "
        update = f"if (writes) write_csr(r, later, word >> 20, {_text(outcome.update)}); "
        return f"{given}{read}{update}x[rd] = value;"
    if instruction.has_two_results:
        return _first_half(instruction)
    mode, counter = _row("mode"), "counter"
    return {
        "ecall": f"if ({mode}) {{ {_trap(csrs.MACHINE_CALL)} }} {_trap(csrs.USER_CALL)}",
        "ebreak": _trap(csrs.BREAKPOINT, counter),
        "wfi": f"if (!{_text(traps.is_awake(row))}) next = counter;",
        "mret": f"if (!{mode}) goto illegal; next = {_text(traps.address(row, 'mepc'))}; {_set(traps.exit(row))}",
    }[instruction.name]


def _first_half(instruction: Instruction) -> str:
    """The memory gets its word, and the other result waits in the port; the second half takes it from there."""
    outcome, valid = instruction.semantics(OPERANDS), _row("reservation.valid")
    assert outcome.result is not None
    assert outcome.update is not None
    text = f"if (ready) {{ sort = {STORES | TO_REGISTER}; goto answer; }} uint32_t update = {_text(outcome.update)}; "
    text += f"uint32_t result = {_text(outcome.result)}; "
    if instruction.name == "sc.w":
        reserved = f"{valid} && {_row('reservation.address')} == (a + immediate) >> 2"
        text += f"if (!({reserved})) {{ update = value; result = 1; }} "
    return (f"{text}memcpy(place, &update, 4); {_row('port.word')} = result; {_row('port.ready')} = 1; {valid} = 0; "
            "next = counter;")


def _csr_read(csr: Csr) -> str:
    """A case for each control register."""
    with_m, without = (_text(csr.read(row, constant(csrs.fixed_bits(csr, m), WORD_BITS))) for m in (True, False))
    refused = [f"!{_row('mode')}"] * (not csr.user) + ["writes"] * csr.read_only
    test = f"if ({' || '.join(refused)}) return 0; " if refused else ""
    value = with_m if with_m == without else f"multiply ? {with_m} : {without}"
    return f"case {csr.number:#x}: {test}*old = {value}; return 1;"


def _csr_write(csr: Csr) -> str:
    return f"case {csr.number:#x}: {_set(csr.written(variable('value', WORD_BITS)))} break;"


def _clint() -> Iterator[str]:
    """A case for each word of the CLINT."""
    for address, name in CLINT.items():
        written = _set({name: variable("y", WORD_BITS)[: ROWS[name]], "reservation.valid": constant(0, 1)})
        yield f"case {address:#x}u: if (sort & {STORES}) {written} else x[rd] = {_row(name)}; goto done;"


@cache
def source() -> str:
    """The interpreter in C."""
    ways = Ways("goto illegal;", "goto misaligned;", _outside, _special, _accessed)
    lines = "\n            "
    counted = [text for pair in COUNTERS for text in map(_text, traps.counted(row, *pair).values())]
    ready, refused, valid = (_row(name) for name in ("port.ready", "port.refused", "reservation.valid"))
    interrupted, wait = _text(traps.is_interrupted(row)), isa.BY_NAME["wfi"].match
    entry = traps.entry(row, OPERANDS.counter, variable("cause", WORD_BITS), variable("trap_value", WORD_BITS))
    return f"""
#include <stdint.h>
#include <string.h>

static int read_csr(const uint32_t *r, uint32_t number, uint32_t writes, int64_t multiply, uint32_t *old)
{{
    switch (number) {{
        {lines.join(map(_csr_read, CSRS))}
        default: return 0;
    }}
}}

static void write_csr(uint32_t *r, uint32_t *later, uint32_t number, uint32_t value)
{{
    switch (number) {{
        {lines.join(_csr_write(csr) for csr in CSRS if csr.writable)}
    }}
}}

/* Executes up to `steps` steps, until one that asks the bus or makes the word `tohost` odd; how many it has executed.
   `state` is the program counter, the instruction there, whether it is in the memory, and whether the bus is asked. */
int64_t run(uint32_t *memory, uint32_t *x, uint32_t *r, uint32_t *state, int64_t steps, int64_t start, uint64_t bytes,
            int64_t multiply, int64_t tohost)
{{
    const uint32_t base = start;
    uint32_t counter = state[0], word = state[1], inside = state[2];
    int64_t left = steps;

    for (; left > 0 && !state[3] && !(tohost >= 0 && memory[tohost] & 1); left--) {{
        uint32_t later[] = {{{", ".join(counted)}}};
        const uint32_t ready = {ready}, refused = {refused};
        const uint32_t rd = word >> 7 & 31, a = x[word >> 15 & 31], b = x[word >> 20 & 31];
        uint32_t next = counter + 4, cause, trap_value, address, sort;
        {ready} = {refused} = 0;
        if ({interrupted} && !ready && !refused && !(inside && word == {wait:#x}u)) {{
            cause = {_text(traps.interrupt(row))};
            trap_value = 0;
            goto trap;
        }}
        if (!inside) {{
            {_trap(csrs.FETCH_FAULT, "counter")}
        }}
        switch (word & 0x7f) {{
            {lines.join(cases(INSTRUCTIONS, ways))}
        }}
        goto done;
    illegal:
        {_trap(csrs.ILLEGAL, "word")}
    misaligned:
        {_trap(csrs.MISALIGNED_FETCH, "next")}
    outside:
        if (ready) {{
    answer:
            if (sort & {STORES})
                {valid} = 0;
            if (sort & {TO_REGISTER})
                x[rd] = {_row("port.word")};
            goto done;
        }}
        if (refused) {{
            const uint32_t odd = address % (sort & 7);
            trap_value = address;
            cause = sort & {STORES} ? (odd ? {csrs.MISALIGNED_STORE} : {csrs.STORE_FAULT})
                                    : (odd ? {csrs.MISALIGNED_LOAD} : {csrs.LOAD_FAULT});
            goto trap;
        }}
        if (sort & {SERVED})
            switch (address) {{
                {lines.join(_clint())}
            }}
        state[3] = 1;
        next = counter;
        goto done;
    trap:
        next = {_text(traps.address(row, "mtvec"))};
        {_set(entry)}
    done:
        x[0] = 0;
        {" ".join(f"{_row(name)} = later[{i}];" for i, name in enumerate(LATER))}
        {_row("mip.timer")} = {_text(traps.is_due(row))};
        counter = next;
        inside = counter - base < bytes;
        word = inside ? memory[(counter - base) / 4] : 0;
    }}
    state[0] = counter;
    state[1] = word;
    state[2] = inside;
    return steps - left;
}}
"""


class PrivilegedInC(PrivilegedInterpreter):
    """The interpreter with traps, with its inner loop in C."""

    def __init__(self, program: RiscvProgram, memory: int, bus: Bus | None = None, *, multiply: bool = True) -> None:
        super().__init__(program, memory, bus, multiply=multiply)
        self._words, self._numbers = array("I", self.memory), array("I", self.registers)
        self.memory, self.registers = self._words, self._numbers
        self._run = CFunction(source())

    def run(self, max_steps: int | None = None) -> None:
        """Continue until it halts, or until `max_steps` steps have been made in all."""
        limit = MANY if max_steps is None else max_steps
        while self.steps < limit and not self.halted:
            self.serve()
            rows = array("I", self.rows.values())
            state = array("I", (self.program_counter, self.word or 0, self.word is not None, 0))
            self.steps += self._run(self._words, self._numbers, rows, state, limit - self.steps, self._addresses.start,
                                    len(self._addresses), int("M" in self._extensions),
                                    -1 if self._tohost is None else self._tohost)
            self.rows = dict(zip(ROWS, rows, strict=True))
            self.program_counter, word, inside, asked = state
            self.word, self.requested, self.trapped = word if inside else None, bool(asked), None
