"""The designs of the FLEQ machine beside each other: sizes, errors against the interpreter, and loops a second.

    python -m benchmarks.fleq_designs [--heads 1] [--loops 400] [--size 4]

The tables in docs/fleq.md. Speed is counted in seconds of the processor, on one thread, so that others on the computer
disturb it little. The first loops, which compile, are not counted.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from punchcard.errors import LoweringError
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.machines.fleq.workloads import newton, sgd

MACHINES = {
    "add, sub, mul, transpose": ("add", "sub", "mul", "transpose"),
    "mul": ("mul",),
    "the calculator's six": ("add", "sub", "mul", "percentage", "inverse", "sqrt"),
    "with pointer functions": ("add", "sub", "mul", "transpose", "incr_pointer", "reset_pointer"),
}
ENGINES = {"lowered": 100_000, "scratchpad": 60, "dense": 20}
"""Loops that are timed."""


def sizes() -> None:
    print("| machine | design | layers | heads | rows | columns | parameters |\n|---|---|---|---|---|---|---|")
    for title, functions in MACHINES.items():
        for design in FleqMachine.designs:
            machine = FleqMachine(functions=functions, design=design)
            shapes = machine.model.shapes
            heads = ", ".join(str(shape.heads) for shape in shapes)
            print(f"| {title} | {design} | {len(shapes)} | {heads} | {machine.layout.width} | {machine.layout.columns} | "
                  f"{machine.model.parameter_count()[0]:,} |")


def error(machine: FleqMachine, program: FleqProgram, loops: int, engine: str) -> float:
    """The largest difference from the interpreter's memory after so many loops."""
    interpreter = FleqInterpreter(program)
    while interpreter.steps < loops and not interpreter.halted:
        interpreter.step()
    found = machine.run(program, max_steps=loops, engine=engine).state
    expected = interpreter.state
    if found.program_counter != expected.program_counter:
        return float("inf")
    rows, columns = expected.memory.shape
    return float(np.abs(found.memory[:rows, :columns] - expected.memory).max())


def speed(machine: FleqMachine, program: FleqProgram, engine: str) -> str:
    """Loops a second of the processor."""
    loops = ENGINES[engine]
    try:
        machine.run(program, max_steps=min(loops, 200), engine=engine)
    except LoweringError:
        return "–"
    started = time.process_time()
    machine.run(program, max_steps=loops, engine=engine)
    return f"{loops / (time.process_time() - started):,.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--loops", type=int, default=400)
    parser.add_argument("--size", type=int, default=4)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sizes()
    print("\n| program | d | design | error after the loops | " + " | ".join(ENGINES) + " |")
    print("|---" * (4 + len(ENGINES)) + "|")
    d = arguments.size
    for name, program in (("newton", newton(d)), ("sgd", sgd(d, 8))):
        for design in FleqMachine.designs:
            machine = FleqMachine.for_program(program, design=design, heads=arguments.heads)
            wrong = error(machine, program, arguments.loops, "scratchpad" if design == "paper" else "lowered")
            found = [speed(machine, program, engine) for engine in ENGINES]
            print(f"| {name} | {d} | {design} | {wrong:.1e} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main()
