"""What the command line shows of FLEQ runs and machines."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from punchcard.checks.step_errors import FleqReport
from punchcard.cli.display import Progress, ending, out, print_json, run_facts, show_engine, show_next, show_table
from punchcard.machines.fleq.isa import Array, Call, FleqProgram, Halt, PointerUpdate, Step
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.running import Mark


class FleqProgress(Progress):
    """Follows a FLEQ run from a mark."""

    def __init__(self, machine: FleqMachine, program: FleqProgram, mark: Mark, *, trace: bool) -> None:
        super().__init__(trace=trace)
        self._machine = machine
        self._program = program
        self._counter = machine.read(mark.card).program_counter
        self._card = mark.card

    def trace_line(self, loop: int, card: Tensor) -> str:
        number, self._counter = self._counter, self._machine.read(card).program_counter
        pointers = self._machine.pointers(self._card, number)
        text = _describe(self._program, number, pointers)
        self._card = card
        action = getattr(self._program.instructions[number], "action", None)
        if isinstance(action, Call) and (action.c_shape.rows, action.c_shape.columns) == (1, 1):
            text += f" = {self._machine.read(card).memory[0, pointers['c']]:.6g}"
        return f"loop {loop:>5}  [{number}] {text:<52} goto {self._counter}"


def show_fleq_report(
    program: FleqProgram, machine: FleqMachine, report: FleqReport, *, as_json: bool, checkpoint: str | None = None
) -> None:
    """The result of a run, with its errors relative to the range; `checkpoint` is the file that it was kept in."""
    result = report.result
    if as_json:
        print_json({
            "halted": result.halted, "steps": result.steps,
            "memory": {name: _plain(value) for name, value in result.memory.items()},
            "max_error": report.max_error, "max_step_error": report.max_step_error, "bound": report.bound,
            "agrees": report.agrees, "why": report.why, "loops": result.loops,
            "program_counter": result.state.program_counter, "interrupted": result.interrupted,
            "design": machine.design.name, "heads": machine.heads,
            "dtype": machine.precision.name, "size": machine.sizes.size, "range": machine.range,
            "columns": machine.layout.columns, **run_facts(result, checkpoint),
        })
    else:
        for name, value in result.memory.items():
            out(f"{name} = {_shown(value, indent=len(name) + 3)}")
        out(f"{ending(result)} after {result.steps:,} instructions in {result.loops:,} loops of a transformer with "
            f"{len(machine.model.shapes)} layers, {machine.layout.width} rows and {machine.layout.columns} columns")
        show_engine(result)
        if report.agrees is None:
            out("not compared with the interpreter")
        else:
            out(f"largest error of an instruction {report.max_step_error:.1e} ({report.worst or 'none'}), bound "
                f"{report.bound:.1e}; of the final memory against the interpreter {report.max_error:.1e} "
                f"(relative to the range {machine.range:g})")
            out("every instruction is within its bound" if report.agrees else f"DISAGREES: {report.why}")
    show_next(result, result.state.program_counter, checkpoint)


def show_fleq_info(machine: FleqMachine, *, as_json: bool) -> None:
    """The size of a machine, beside what the paper states."""
    facts = fleq_info(machine)
    if as_json:
        print_json(facts)
        return
    paper = facts["paper"]
    show_table(
        f"fleq, design {machine.design.name!r}: size {machine.sizes.size}, range {machine.range:g}, "
        f"functions {', '.join(machine.blocks)}",
        [
            ("layers", str(facts["layers"]), str(paper["layers"])),
            ("heads per layer", ", ".join(map(str, facts["heads"])), str(paper["heads"])),
            ("width (rows)", str(facts["width"]), str(paper["width"])),
            ("columns", f"{facts['columns']}, of which {machine.sizes.scratchpad} scratchpad", "n"),
            ("hidden units", ", ".join(map(str, facts["hidden"])), ""),
            ("parameters", f"{facts['parameters']:,}, of which {facts['nonzero']:,} are not zero", ""),
            ("temperature", f"{facts['temperature']:g} in hard heads, 1 in soft ones", str(paper["temperature"])),
            *((f"error bound of {name}", f"{bound:.1e}", "") for name, bound in facts["bounds"].items()),
        ],
    )


def fleq_info(machine: FleqMachine) -> dict[str, Any]:
    """The figures of `show_fleq_info` as plain data."""
    shapes = machine.model.shapes
    parameters, nonzero = machine.model.parameter_count()
    temperatures = [float(t) for key, tensor in machine.model.state_dict().items() if key.endswith("temperature")
                    for t in tensor]
    deepest = max(block.lemma.depth for block in machine.blocks.values())
    heads = sum(block.lemma.heads for block in machine.blocks.values())
    return {
        "machine": "fleq", "design": machine.design.name, "size": machine.sizes.size, "range": machine.range,
        "memory": machine.sizes.memory, "instructions": machine.sizes.instructions, "dtype": machine.precision.name,
        "functions": list(machine.blocks), "layers": len(shapes), "heads": [s.heads for s in shapes],
        "hidden": [s.hidden for s in shapes], "width": machine.layout.width, "columns": machine.layout.columns,
        "scratchpad": machine.sizes.scratchpad, "parameters": parameters, "nonzero": nonzero,
        "temperature": max(temperatures), "bounds": {name: machine.bound(name) for name in machine.blocks},
        "paper": {
            "layers": 9 + deepest, "heads": f"theorem: {heads}, the sum over the blocks; table: 1; step 2: 3",
            "width": "O(M d + log n)", "temperature": "above log(G d n^3 / eps)",
            "statement": "Theorem (unified), section 5.2: 9 + max l_i layers",
        },
    }


def _describe(program: FleqProgram, number: int, pointers: dict[str, int]) -> str:
    """An instruction with the pointers that it has on the card."""
    instruction = program.instructions[number]
    if isinstance(instruction, Halt):
        return "halt"
    parts = [_action(program, instruction, pointers)] if instruction.action is not None else []
    if instruction.branch is not None:
        test = "" if instruction.branch.flag is None else f"if {_place(program, pointers['flag'])} <= 0 "
        parts.append(f"{test}goto {pointers['p']}")
    return "; ".join(parts)


def _action(program: FleqProgram, step: Step, pointers: dict[str, int]) -> str:
    action = step.action
    if isinstance(action, PointerUpdate):
        value = "" if action.value is None else f", {action.value}"
        return f"{action.function}({action.instruction}.{action.field}{value})"
    assert isinstance(action, Call)
    operands = [f"{_place(program, pointers[x])} {shape}" for x, shape in (("a", action.a_shape), ("b", action.b_shape))
                if shape is not None]
    return f"{_place(program, pointers['c'])} {action.c_shape} = {action.function}({', '.join(operands)})"


def _place(program: FleqProgram, address: int) -> str:
    """A whole variable by its name, a column of one as `A[2]`."""
    whole = next((v.name for v in program.variables if v.address == address), None)
    return whole or program.column_name(address)


def _plain(value: Array) -> Any:
    return float(value[0, 0]) if value.shape == (1, 1) else value.tolist()


def _shown(value: Array, indent: int) -> str:
    if value.shape == (1, 1):
        return f"{value[0, 0]:.10g}"
    with np.printoptions(precision=8, suppress=True, linewidth=110):
        return str(value).replace("\n", "\n" + " " * indent)
