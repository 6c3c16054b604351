"""FLEQ programs in which the next instruction finds something else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from punchcard.machines.fleq.isa import Call, FleqProgram, FleqState, Step, Variable, with_pointer
from punchcard.machines.variation import DATA, INSTRUCTION, POINTER, ChangedProgram, Variation

MOST = 0.25
"""How far an entry is moved."""


class FleqVariation(Variation):
    """Of mem[c] = f(mem[a], mem[b]): an operand, one of its addresses, or the function or the target of the branch."""

    def changed(self, program: FleqProgram, kind: str, state: FleqState) -> ChangedProgram | None:
        now = program.instructions[state.program_counter]
        if not isinstance(now, Step):
            return None
        if kind == DATA:
            return self._data(program, now)
        return self._pointer(program, now, state) if kind == POINTER else self._instruction(program, now, state)

    def _data(self, program: FleqProgram, now: Step) -> ChangedProgram | None:
        """A flag is an integer and counts loops: it stays."""
        flags = {step.branch.flag for step in program.instructions if isinstance(step, Step) and step.branch is not None}
        free = [each for each in program.variables if not flags & set(each.columns)]
        used = [each for each in free if isinstance(now.action, Call) and {now.action.a, now.action.b} & set(each.columns)]
        if not free:
            return None
        name = self.pick(used or free).name
        entries = program.values[name] + self.generator.uniform(-MOST, MOST, program.values[name].shape)
        entries = np.clip(entries, -program.range, program.range)
        return ChangedProgram(program.with_values({name: entries}), DATA, f"{name}: entries moved by up to {MOST}")

    def _pointer(self, program: FleqProgram, now: Step, state: FleqState) -> ChangedProgram | None:
        if not isinstance(now.action, Call):
            return None
        field = self.pick(list(now.action.shapes))
        before, shape = getattr(now.action, field), now.action.shapes[field]
        same: list[Variable] = [each for each in program.variables if each.shape == shape and each.address != before]
        if not same:
            return None
        other = self.pick(same)
        return self._replaced(program, state, with_pointer(now, field, other.address), POINTER,
                              f"{field}: {program.column_name(before)} -> {other.name}")

    def _instruction(self, program: FleqProgram, now: Step, state: FleqState) -> ChangedProgram | None:
        found = []
        if now.branch is not None:
            found += [(with_pointer(now, "p", target), f"p: {now.branch.target} -> {target}")
                      for target in range(len(program.instructions)) if target != now.branch.target]
        action = now.action
        if isinstance(action, Call):
            others = {each.function for each in program.actions() if isinstance(each, Call) and each.shapes == action.shapes}
            found += [(replace(now, action=replace(action, function=name)), f"{action.function} -> {name}")
                      for name in sorted(others - {action.function})]
        if not found:
            return None
        step, about = self.pick(found)
        return self._replaced(program, state, step, INSTRUCTION, about)

    def _replaced(self, program: FleqProgram, state: FleqState, step: Step, kind: str, about: str) -> ChangedProgram:
        code, number = list(program.instructions), state.program_counter
        code[number] = step
        return ChangedProgram(replace(program, instructions=tuple(code), listing=""), kind, f"instruction {number}, {about}")
