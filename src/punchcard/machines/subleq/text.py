"""Assembler and disassembler of the paper's SUBLEQ: `.subleq` text to a Program and back."""

from __future__ import annotations

from punchcard.machines.assembler import parse
from punchcard.machines.subleq.isa import HALT, OPERATIONS, SUBLEQ, Halt, Instruction, Program, Subleq


def assemble(text: str, source: str = "") -> Program:
    """The program of a `.subleq` text; `source` names it in error messages."""
    parsed = parse(text, OPERATIONS, source)
    code: list[Instruction] = [
        Halt() if operation is HALT else Subleq(*(operands if len(operands) == 3 else (*operands, number + 1)))
        for number, (operation, operands, _) in enumerate(parsed.statements)
    ]
    return Program.create(code, parsed.values, tuple(parsed.symbols.values()), parsed.labels,
                          [statement.line for statement in parsed.statements])


def disassemble(program: Program) -> str:
    """A `.subleq` text that assembles to the same program."""
    width = max(len(s.name) for s in program.symbols) + 2
    data = [
        f"{s.name:<{width}}{' '.join(map(str, program.memory[s.address : s.address + s.size]))}"
        for s in program.symbols
    ]
    cells = program.cell_names()
    labels: dict[int, list[str]] = {}
    for name, target in program.labels:
        labels.setdefault(target, []).append(name)
    indent = max((len(name) for name, _ in program.labels), default=0) + 2
    code = []
    for number, instruction in enumerate(program.instructions):
        *alone, last = labels.get(number, [""])
        code += [f"{name}:" for name in alone]
        prefix = f"{last}:" if last else ""
        code.append(f"{prefix:<{indent}}{_statement(instruction, number, cells, labels)}")
    return "\n".join([".data", *data, ".code", *code, ""])


def _statement(instruction: Instruction, number: int, cells: list[str], labels: dict[int, list[str]]) -> str:
    if isinstance(instruction, Halt):
        return HALT.mnemonic
    operands = [cells[instruction.a], cells[instruction.b]]
    if instruction.c != number + 1:
        operands.append(labels[instruction.c][0] if instruction.c in labels else str(instruction.c))
    return f"{SUBLEQ.mnemonic} {', '.join(operands)}"
