"""How errors grow over the loops of a run, compared after every loop: Newton's iteration, power iteration, learning."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from docs.draw.chart import Axis, Chart, powers

from benchmarks.linear_algebra_errors import matrices
from benchmarks.report.curves import charts, decades, pair
from benchmarks.report.section import Figures, Say, Shown, short
from punchcard.card.layout import Card
from punchcard.engines import Controls
from punchcard.learning.planning import plan
from punchcard.linalg.algorithms import inverse_program, power_program
from punchcard.machines.fleq.blocks.block import MatrixProduct
from punchcard.machines.fleq.functions import MUL
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import FleqInterpreter

MACHINES = {"float64, 1 head": (1, "float64"), "float64, 2 heads": (2, "float64"), "float64, 3 heads": (3, "float64"),
            "float32, 3 heads": (3, "float32")}
SEED, D = 0, 4
LEAST = 1e-16
"""Where an error of 0 is drawn."""


def newton(quick: bool) -> FleqProgram:
    """The inverse of a matrix of condition 10; it settles after some rounds, and goes on."""
    return inverse_program(single(matrices(D, SEED)[0]), 2 if quick else 160)


def power(quick: bool) -> FleqProgram:
    """The leading eigenvector of a symmetric matrix, normalised in every round."""
    return power_program(single(matrices(D, SEED)[1]) / 4, 1 if quick else 80)


def descent(quick: bool) -> FleqProgram:
    """A linear model of three features, learned from eight points one after the other."""
    rng = np.random.default_rng(SEED)
    x, y = single(rng.uniform(-1, 1, (8, D - 1))), single(rng.uniform(-1, 1, 8))
    return plan(x, y, epochs=1 if quick else 30, rate=2.0**-4).program


def backpropagation(quick: bool) -> FleqProgram:
    """A network with a hidden layer of sigmoids, learned in the same way."""
    rng = np.random.default_rng(SEED)
    x, y = single(rng.uniform(-1, 1, (4, D - 1))), single(rng.uniform(-1, 1, 4))
    return plan(x, y, hidden=D, epochs=1 if quick else 30, rate=2.0**-4).program


PROGRAMS: dict[str, Callable[[bool], FleqProgram]] = {
    "Newton's iteration": newton, "power iteration": power, "gradient descent": descent,
    "backpropagation": backpropagation}


def single(values: np.ndarray) -> np.ndarray:
    """Rounded to float32, so that both number formats begin with the same numbers."""
    return values.astype(np.float32).astype(np.float64)


def measured(quick: bool, say: Say) -> Figures:
    found: Figures = {}
    for title, make in PROGRAMS.items():
        program = make(quick)
        found[title] = {}
        for name, (heads, dtype) in list(MACHINES.items())[-1 if quick else 0 :]:
            say(f"{title}, {name}")
            machine = FleqMachine.for_program(program, heads=heads, precision=dtype,
                                              blocks=[MatrixProduct(MUL, heads, program.range)])
            errors = followed(machine, program, "scratchpad" if quick else "auto")  # compiling takes seconds
            bound = max(machine.bound(block) for block in machine.blocks) / machine.range
            found[title][name] = {"loops": len(errors), "bound": bound, "points": thinned(errors)}
    return found


def followed(machine: FleqMachine, program: FleqProgram, engine: str) -> list[float]:
    """After every loop, the largest difference of any number in the memory from the interpreter's, over the range."""
    interpreter, errors = FleqInterpreter(program, check_range=False), list[float]()

    def watch(loop: int, card: Card) -> None:
        interpreter.step()
        found = machine.read(card).memory[: program.rows, : program.columns]
        errors.append(float(np.abs(found - interpreter.memory[:, : program.columns]).max()) / machine.range)

    result = machine.run(program, max_steps=1_000_000, controls=Controls(watch=watch), engine=engine, guarded=False)
    assert result.halted, "the program did not halt"
    assert result.state.program_counter == interpreter.program_counter, "the run went another way than the interpreter"
    return errors


def thinned(errors: list[float]) -> list[list[float]]:
    """The largest error so far, at about ten loops a decade."""
    so_far = np.maximum.accumulate(errors)
    places = sorted({min(len(errors), round(10 ** (k / 10))) for k in range(math.ceil(10 * math.log10(len(errors))) + 1)})
    return [[t, float(so_far[t - 1])] for t in places]


def growth(points: list[list[float]]) -> float | None:
    """The power of T by which the error grew over the second half of the run's decades: 1 is linear."""
    end, error = points[-1]
    middle = next((p for p in points if p[0] >= math.sqrt(end)), None)
    if middle is None or middle[0] == end or not middle[1] or not error:
        return None
    return math.log(error / middle[1]) / math.log(end / middle[0])


def shown(figures: Figures) -> Shown:
    powers_found = [g for runs in figures.values() for run in runs.values() if (g := growth(run["points"])) is not None]
    beyond = sum(y > t * run["bound"] for runs in figures.values() for run in runs.values() for t, y in run["points"])
    page = Shown("Errors over loops", (
        f"No error grows faster than T^{max(powers_found, default=0):.2f} in T loops; {beyond} points are above T times the "
        "bound of one instruction."))
    page.say("""The paper says that errors over T operations grow at most linearly. Here they are measured after every
        loop: the largest difference of any number in the memory from a plain interpreter in float64 that runs the same
        program, over the range of the machine. A curve shows the largest so far. In a program that contracts, such as
        Newton's iteration, old errors fade, and the curve is flat; a network that learns keeps some of them.""")
    page.picture("loops", "The largest error so far against the number of loops, for four programs", charts(
        "Errors over loops", "Largest difference from the interpreter so far, over the range.",
        [_chart(title, runs) for title, runs in figures.items()],
        dashed="T times the bound of one instruction, which is linear growth."))
    rows = []
    for title, runs in figures.items():
        for name, run in runs.items():
            grown = growth(run["points"])
            rows.append([title, name, f"{run['loops']:,}", short(run["points"][-1][1]), short(run["bound"]),
                         "–" if grown is None else f"T^{grown:.2f}"])
    page.table(["program", "machine", "loops T", "largest error", "bound of one instruction", "growth from root T to T"],
               rows, numbers=2)
    return page


def _chart(title: str, runs: Figures) -> Chart:
    curves = [curve for number, (name, run) in enumerate(runs.items())
              for curve in pair(number, name.replace("float", "f"), [(t, max(y, LEAST)) for t, y in run["points"]],
                                [(t, t * run["bound"]) for t, _ in run["points"]], mark=False)]
    end = max(run["loops"] for run in runs.values())
    values = [value for run in runs.values() for t, y in run["points"] for value in (max(y, LEAST), t * run["bound"])]
    x = Axis("loops T", 1, end, powers(0, int(math.log10(end))), log=True)
    return Chart(title, x, decades("", values), curves, "largest error so far")
