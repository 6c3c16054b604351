"""Disassembler of FLEQ: a FleqProgram to text that assembles to an equal program.

Values are printed exactly. Branch targets are labels where there are some, else numbers of instructions from 0.
"""

from __future__ import annotations

import numpy as np

from punchcard.errors import ProgramError
from punchcard.machines.fleq.functions import Shape
from punchcard.machines.fleq.isa import Branch, Call, FleqProgram, Halt, Instruction, PointerUpdate, Variable


def disassemble(program: FleqProgram) -> str:
    """A `.fleq` text that assembles to an equal program, when `assemble` is given the same functions."""
    width = max((len(v.name) for v in program.variables), default=0) + 2
    limit = [] if program.range == FleqProgram.range else [f".range {float(program.range)!r}"]
    data = [f"{v.name:<{width}}{_declaration(v, program)}" for v in program.variables]
    labels: dict[int, list[str]] = {}
    for name, number in program.labels:
        labels.setdefault(number, []).append(name)
    indent = max((len(name) for name, _ in program.labels), default=0) + 2
    names = _Names(program, labels)
    code = []
    for number, instruction in enumerate(program.instructions):
        *alone, last = labels.get(number, [""])
        code += [f"{name}:" for name in alone]
        prefix = f"{last}:" if last else ""
        code.append(f"{prefix:<{indent}}{names.statement(instruction, number)}")
    return "\n".join([*limit, ".data", *data, ".code", *code, ""])


def with_comments(program: FleqProgram) -> str:
    """The same with the comments that a compiler gave it."""
    return program.listing or disassemble(program)


def _declaration(variable: Variable, program: FleqProgram) -> str:
    shape, value = variable.shape, program.values[variable.name]
    kind = "scalar" if shape == Shape(1, 1) else f"vector {shape.rows}" if shape.columns == 1 else f"matrix {shape}"
    if not value.any() and not np.signbit(value).any():
        return kind
    rows = [" ".join(repr(float(entry)) for entry in row) for row in value]
    return f"{kind}  {' ; '.join(rows) if shape.columns > 1 else ' '.join(rows)}"


class _Names:
    """The text of instructions: numbers of columns and instructions as names."""

    def __init__(self, program: FleqProgram, labels: dict[int, list[str]]) -> None:
        self._labels = labels
        self._columns: dict[int, str] = {}
        self._places: dict[tuple[int, Shape], str] = {}
        for v in program.variables:
            for i, address in enumerate(v.columns):
                self._columns[address] = f"{v.name}[{i}]" if i else v.name
                self._places[address, Shape(v.shape.rows, 1)] = f"{v.name}[{i}]"
            self._places[v.address, v.shape] = v.name

    def statement(self, instruction: Instruction, number: int) -> str:
        if isinstance(instruction, Halt):
            return "halt"
        parts = []
        try:
            if isinstance(instruction.action, Call):
                parts.append(self._call(instruction.action))
            elif isinstance(instruction.action, PointerUpdate):
                parts.append(self._pointer_update(instruction.action))
            if instruction.branch is not None:
                parts.append(self._branch(instruction.branch))
        except KeyError as error:
            raise ProgramError(f"instruction {number} uses memory where no variable begins: {error.args[0]}") from None
        if not parts:
            raise ProgramError(f"instruction {number} does nothing: the language has no text for that")
        return "; ".join(parts)

    def _target(self, number: int) -> str:
        return self._labels[number][0] if number in self._labels else str(number)

    def _call(self, call: Call) -> str:
        operands = [self._places[getattr(call, name), shape] for name, shape in call.operand_shapes.items()]
        return f"{self._places[call.c, call.c_shape]} = {call.function}({', '.join(operands)})"

    def _pointer_update(self, update: PointerUpdate) -> str:
        pointer = f"{self._target(update.instruction)}.{update.field}"
        if update.value is None:
            return f"incr_pointer({pointer})"
        value = self._target(update.value) if update.field == "p" else self._columns[update.value]
        return f"reset_pointer({pointer}, {value})"

    def _branch(self, branch: Branch) -> str:
        goto = f"goto {self._target(branch.target)}"
        return goto if branch.flag is None else f"if {self._columns[branch.flag]} <= 0 {goto}"
