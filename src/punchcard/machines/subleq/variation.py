"""Random SUBLEQ programs, and programs in which the next instruction finds something else."""

from __future__ import annotations

from dataclasses import replace

from punchcard.machines.subleq.isa import Halt, Program, State, Subleq
from punchcard.machines.variation import DATA, POINTER, ChangedProgram, Variation


class SubleqVariation(Variation):
    """Of mem[b] -= mem[a]; if mem[b] <= 0 goto c: a cell, one of a and b, or c."""

    def random(self) -> Program:
        options = self.machine.options
        cells, count = options["memory"], options["instructions"]
        code = [Subleq(self.below(cells), self.below(cells), self.below(count - 1)) for _ in range(count - 1)]
        return Program.create([*code, Halt()], [self._word() for _ in range(cells)])

    def changed(self, program: Program, kind: str, state: State) -> ChangedProgram | None:
        code, memory, number = list(program.instructions), list(program.memory), state.program_counter
        now = code[number]
        if not isinstance(now, Subleq):
            return None
        if kind == DATA:
            cell = self.pick((now.a, now.b))
            before, memory[cell] = memory[cell], self._word()
            about = f"{program.cell_name(cell)}: {before} -> {memory[cell]}"
        else:
            field = self.pick("ab") if kind == POINTER else "c"
            value = self.below(len(memory) if kind == POINTER else len(code))
            code[number] = replace(now, **{field: value})
            about = f"instruction {number}, {field}: {getattr(now, field)} -> {value}"
        return ChangedProgram(replace(program, instructions=tuple(code), memory=tuple(memory)), kind, about)

    def _word(self) -> int:
        size: int = 1 << self.machine.options["word_bits"]
        return self.below(size) - size // 2
