"""The error of blocks against what a machine is built with: temperature, the constant c, heads, range, terms of a fit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from docs.draw.chart import Chart

from benchmarks.fleq_errors import CASES, Case
from benchmarks.product_error import SIZE, UNIT, error, with_anchors, with_constant
from benchmarks.report.curves import charts, decades, doublings, even, pair
from benchmarks.report.section import Figures, Say, Shown, short
from punchcard.machines.fleq.blocks.block import FittedFunction, Scale
from punchcard.machines.fleq.blocks.fit import fit, fit_threshold
from punchcard.machines.fleq.blocks.product import AnchorScales, anchor_scales, rounding, truncation
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.functions import INVERSE, SQRT, Function
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.transformer.precision import Precision

TEMPERED = ("add", "transpose", "sigmoid, ±16", "mul, 1 head", "mul, 3 heads")
HEADS = (1, 2, 3)
TEMPERATURES = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40)
FITTED = {"1/x on 0.1 to 10": (INVERSE, 0.1, 10.0), "sqrt on 0.01 to 16": (SQRT, 0.01, 16.0)}
Curves = dict[str, list[list[float]]]


def measured(quick: bool, say: Say) -> Figures:
    def each(values: Iterable[float]) -> list[float]:
        return list(values)[:2] if quick else list(values)

    named = {case.title: case for case in CASES}
    temperature: Curves = {}
    for name in TEMPERED[-1:] if quick else TEMPERED:
        say(f"{name} against the temperature")
        temperature[name] = [[t, at_temperature(named[name], float(t))] for t in each(TEMPERATURES)]
    card = named["add"].machine(SIZE, "float64", "compact").layout
    constant: dict[str, Curves] = {"error": {}, "bound": {}}
    for c in each(2.0**-k for k in range(0, 45, 2)):
        say(f"products with c = {c:.1e}")
        for name, bound in soft_bounds(c).items():
            block = with_anchors(c, UNIT) if name == "anchors" else with_constant(c, int(name[0]))
            if block is not None:
                constant["error"].setdefault(name, []).append([c, error(block, Precision())])
                constant["bound"].setdefault(name, []).append([c, bound])
    ranges: dict[str, Curves] = {"error": {}, "bound": {}}
    for heads in (3,) if quick else HEADS:
        for limit in each(2.0**k for k in range(-6, 15, 2)):
            say(f"products of {heads} heads with range {limit:g}")
            found, bound = at_range(heads, limit, 1 if quick else 10)
            ranges["error"].setdefault(_heads(heads), []).append([limit, found])
            ranges["bound"].setdefault(_heads(heads), []).append([limit, bound])
    terms: dict[str, Curves] = {}
    for name, (function, low, high) in list(FITTED.items())[: 1 if quick else None]:
        terms[name] = {"error": [], "bound": [], "partition": []}
        for m in (8, 16) if quick else (8, 16, 24, 32, 48, 64, 96, 128, 192, 256):
            say(f"{name} with {m} sigmoids")
            for kind, value in zip(("error", "bound", "partition"), with_terms(function, low, high, m), strict=True):
                terms[name][kind].append([m, value])
    return {"temperature": temperature, "card": [card.width, card.columns], "constant": constant, "range": ranges,
            "terms": terms}


def _heads(heads: int) -> str:
    return f"{heads} head{'s' * (heads > 1)}"


def at_temperature(case: Case, temperature: float, trials: int = 10) -> float:
    """The largest error of an entry on a machine all of whose hard heads have this temperature.

    The result goes into an empty cell: an old value is erased only where the tail of the softmax is exactly 0.
    """
    program, machine = case.program(SIZE), case.machine(SIZE, Precision(temperature=temperature), "compact")
    rng = np.random.default_rng(0)
    columns = program.values["c"].shape[1]
    largest = 0.0
    for _ in range(trials):
        values = {name: case.entries(rng, value.shape) if name != "c" else value for name, value in program.values.items()}
        card = machine.model(machine.punch(replace(program, values=values)))
        # Written, a result stands beside the old value until the next loop. Reading it so works at any temperature.
        memory = machine.layout.get(card, "data", "memory") + machine.layout.get(card, "incoming", "memory")
        found = memory[:SIZE, program.columns - columns : program.columns].numpy()
        operands = [values[name] for name in "ab" if name in values]
        largest = max(largest, float(np.abs(found - case.declared.reference(*operands)).max()))
    return largest


def soft_bounds(c: float) -> dict[str, float]:
    """The bound of a product's error with this constant, by how it is computed."""
    reach = Scale(SIZE, 1.0, UNIT).reach
    found = {_heads(heads): truncation(reach, c, heads) + rounding(c, heads, UNIT) for heads in HEADS}
    anchor = anchor_scales(SIZE, reach, UNIT)
    return {**found, "anchors": AnchorScales(c, anchor.anchor, anchor.factor).bound(reach, UNIT)}


def at_range(heads: int, limit: float, trials: int) -> tuple[float, float]:
    """Error and bound of a product on a machine with this range, over the range; the largest result is half the range.

    The operands have equal size, and a product of them fills the range: a program that keeps its promise has no larger one.
    """
    largest = min(limit, math.sqrt(limit / SIZE))
    case = Case("", "mul", lambda rng, shape: largest * rng.uniform(-1, 1, shape), range=limit, heads=heads)
    found, bound = case.measure(SIZE, "float64", "compact", trials, 0)
    return found / limit, bound / limit


def with_terms(function: Function, low: float, high: float, terms: int) -> tuple[float, float, float]:
    """Error and bound of a fit with so many sigmoids, run on a machine; and the error of the paper's partition."""
    fitted = fit(function.reference, low, high, terms, rounding=2 * UNIT)
    block = FittedFunction(replace(function, domain=(low, high)), fitted)
    machine = FleqMachine(functions=[block], size=1, memory=2, instructions=2, range=16.0)
    p = Builder(functions=[block.function])
    p.call(block.function, p.matrix("a", shape=(1, 1)), into="c")
    program, found = p.program(16.0), 0.0
    for x in np.geomspace(low, high, 60):
        values = {"a": np.array([[x]]), "c": np.zeros((1, 1))}
        card = machine.model(machine.punch(replace(program, values=values)))
        found = max(found, abs(float(program.named(machine.read(card).memory)["c"][0, 0] - function.reference(x))))
    steps = fit_threshold(lambda x: np.asarray(function.reference(x)), low, high, terms)
    points = np.geomspace(low, high, 9999)
    return found, machine.bound(block.name), float(np.abs(steps(points) - function.reference(points)).max())


def shown(figures: Figures) -> Shown:
    constant, ranges, terms = figures["constant"], figures["range"], figures["terms"]
    least = {name: min(points, key=lambda point: point[1]) for name, points in constant["error"].items()}
    page = Shown("Errors against the constants", (
        "The best constant c leaves " + ", ".join(f"{short(value)} ({name})" for name, (_, value) in least.items())
        + " in one 4 × 4 product; a machine chooses it by the bound."))
    page.say(f"""One instruction on operands of 4 × 4 with entries up to 1, compact design, float64. Left: the
        temperature of the heads that must be hard. A machine takes 512 or more, where nothing is left of the tail; the
        soft heads of a product or a sigmoid have no temperature. Below 20 the instruction fails altogether: gates
        multiply what the tail leaves by 2^60. The dashed line is the paper's condition, lambda > log(G d n³ / eps),
        read as a bound on what one head leaves: eps = G d n³ exp(-lambda), with G = 1, {figures['card'][0]} rows and
        {figures['card'][1]} columns. From 20 on it is far above what is measured. The result goes into an empty cell
        here: an old value is erased only where the tail is exactly 0.""")
    page.say("""Right: the constant c of the soft product. To the left of the best c the softmax is not linear enough,
        to the right of it rounding is divided by c. The bounds count the first powers of c, so they hold around the
        best c and to the right.""")
    page.picture("constants", "Error of one instruction against the temperature, and of a product against c", charts(
        "The two constants of a product", "Largest error of an entry in one instruction, entries up to 1.",
        [_temperature(figures), _constant(constant)], dashed="the bound; on the left the paper's."))
    page.table(["product", "best c", "error there", "bound there"],
               [[name, f"2^{round(math.log2(c))}", short(value), short(dict(map(tuple, constant["bound"][name]))[c])]
                for name, (c, value) in least.items()])
    page.heading("Against the range, and against the terms of a fit")
    page.say("""Left: the range R is a size of a machine, and all values of a program stay within ±R. The constants are
        chosen for it. So the error of products that fill the range is, from R = 1 on, the same part of R; the bound
        counts the rounding of the dot product, too, which grows with the square of R. Right: a function as a sum of m
        sigmoids. The paper partitions the domain into m steps; here the sigmoids are fitted by least squares. With 192
        terms or more a fit may have a sigmoid that is nearly a step, and the bound counts its rounding in full: there
        it is loose.""")
    page.picture("range-terms", "Error over the range against the range, and error against the number of sigmoids", charts(
        "What a range costs, and what sigmoids buy", "Left: products, error over the range. Right: error on the domain.",
        [_range(ranges), _terms(terms)], names=210, dashed="the bound."))
    rows = [[name, m, short(value), short(bound), short(partition)] for name, kinds in terms.items()
            for (m, value), (_, bound), (_, partition) in zip(*kinds.values(), strict=True)]
    page.table(["function", "sigmoids", "error", "bound", "error of the paper's partition"], rows)
    return page


def _temperature(figures: Figures) -> Chart:
    rows, columns = figures["card"]
    found = figures["temperature"]
    values = [t for points in found.values() for t, _ in points]
    stated = [(t, rows * columns**3 * math.exp(-t)) for t in sorted(set(values))]
    curves = [curve for number, (name, points) in enumerate(found.items())
              for curve in pair(number, name, _drawn(points), stated if number == 0 else ())]
    return Chart("The temperature of hard heads", even("temperature", min(values), max(values), range(0, 41, 8)[1:]),
                 decades("", [1e-16, 1e4]), curves, "largest error")


def _drawn(points: list[list[float]]) -> list[tuple[float, float]]:
    """With an error of 0 at the lower end of the chart."""
    return [(x, max(y, 1e-16)) for x, y in points]


def _constant(constant: dict[str, Curves]) -> Chart:
    curves = [curve for number, (name, points) in enumerate(constant["error"].items())
              for curve in pair(number, name, points, constant["bound"][name])]
    used = [c for points in constant["error"].values() for c, _ in points]
    x = decades("c: scores are c times the product", used)
    x = replace(x, low=max(used), high=min(used), ticks=[tick for tick in x.ticks if min(used) <= tick <= max(used)])
    return Chart("The constant c of the soft product", x, decades("", [1e-15, 10]), curves, "largest error")


def _range(ranges: dict[str, Curves]) -> Chart:
    curves = [curve for number, (name, points) in enumerate(ranges["error"].items())
              for curve in pair(number, name, points, ranges["bound"][name])]
    used = [limit for points in ranges["error"].values() for limit, _ in points]
    values = [y for kind in ranges.values() for points in kind.values() for _, y in points]
    return Chart("The range of values", decades("range R", used), decades("", values), curves, "error / R of one product")


def _terms(terms: dict[str, Curves]) -> Chart:
    curves = []
    for number, (name, kinds) in enumerate(terms.items()):
        curves += pair(number, name.split(" on")[0], kinds["error"], kinds["bound"])
        curves += pair(4 + number, f"{name.split(' on')[0]}, partition", kinds["partition"], mark=False)
    used = [m for kinds in terms.values() for m, _ in kinds["error"]]
    values = [y for kinds in terms.values() for points in kinds.values() for _, y in points]
    return Chart("The terms of a fit", doublings("sigmoids m", used, 5), decades("", values), curves, "largest error")
