"""Errors and speeds of the numerical programs in examples/python, as the table in docs/python.md.

    python benchmarks/python_programs.py [--heads 3] [--precision float64] [--repeats 5] [--only ridge kalman]

Both times are of one process: the loops of the compiled engine, without compiling, punching and checking; and NumPy running
the same function. Each is the least of some repeats, taken in turn.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path

import torch

from punchcard.python.arrays.program import ArrayProgram

FOLDER = Path(__file__).parent.parent / "examples" / "python"
NAMES = ("ridge", "conjugate_gradients", "pagerank", "kalman", "kmeans", "logistic", "network", "attention")
LONG_ENOUGH = 0.02
"""Seconds of one repeat in NumPy: a function that is quicker is called several times."""


def loaded(name: str) -> tuple[ArrayProgram, tuple[object, ...]]:
    """The program of an example, and its arguments."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program = next(value for value in vars(module).values() if isinstance(value, ArrayProgram))
    return program, module.example()


def numpy_seconds(program: ArrayProgram, arguments: tuple[object, ...]) -> float:
    calls, seconds = 0, 0.0
    while seconds < LONG_ENOUGH:
        started = time.perf_counter()
        program.expected(*arguments)
        seconds += time.perf_counter() - started
        calls += 1
    return seconds / calls


def line(name: str, repeats: int, **options: object) -> str:
    """A row of the table: source lines, size, instructions, columns, loops, error, times."""
    program, arguments = loaded(name)
    report = program.with_options(**options).run(*arguments)
    assert report.agrees, f"{name}: {report.report.why}"
    machine, code = report.machine, report.program
    ours, numpy = [], []
    for _ in range(repeats + 1):
        ours.append(machine.run(code, max_steps=report.steps + 1, engine="lowered").seconds)
        numpy.append(numpy_seconds(program, arguments))
    mine, theirs = min(ours[1:]), min(numpy[1:])
    node = program.source.node
    lines = (node.end_lineno or 0) - node.lineno + 1
    sizes = machine.sizes
    cells = [name, lines, sizes.size, len(code.instructions), sizes.columns, f"{report.loops:,}", f"{report.range:g}",
             f"{report.difference:.1e}", f"{1e6 * mine:,.0f}", f"{1e6 * theirs:,.0f}", f"{theirs / mine:.2f}"]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, default=3)
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| program | lines | d | instructions | columns | loops | range | error / range | µs | NumPy, µs | NumPy / ours |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in given.only:
        print(line(name, given.repeats, heads=given.heads, precision=given.precision), flush=True)


if __name__ == "__main__":
    main()
