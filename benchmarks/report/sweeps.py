"""Machines whose weights are changed: by noise, rounding and flipped bits; and the heads that FLEQ needs for an error.

The sweeps are files in `examples/sweeps/`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from docs.draw.chart import Chart

from benchmarks.report.curves import charts, decades, even, pair
from benchmarks.report.section import Figures, Say, Shown, short
from punchcard.formatting import plural
from punchcard.machines.base import AnyMachine
from punchcard.sweep.chunk import run_job
from punchcard.sweep.plan import Sweep
from punchcard.sweep.results import row_of
from punchcard.sweep.trial import build_machine, measure
from punchcard.transformer.exactness import loop_sums
from punchcard.transformer.sums import LayerSums

FILES = Path(__file__).parent.parent.parent / "examples" / "sweeps"
NAMES = ("noise", "rounding", "flips", "heads")
KEPT = ("machine", "design", "options", "amount", "where", "to", "layer", "bits", "unchanged_error")
Row = dict[str, Any]


def rows_of(name: str, quick: bool) -> list[Row]:
    """Runs of a sweep by what the page tells apart: how many there are, and how many end right."""
    sweep = Sweep.load(FILES / f"{name}.toml")
    if quick:
        jobs = sweep.jobs[:: max(1, len(sweep.jobs) // 2)][:2]
        found = [row_of(job, run_job(measure, job, sweep.limit)) for job in jobs]
    else:
        with TemporaryDirectory() as folder:
            found = sweep.run(Path(folder) / "results").table().to_pylist()
    counted: dict[tuple[Any, ...], Row] = {}
    for row in found:
        if row["status"] == "ok":
            key = tuple(row.get(name) for name in KEPT)
            about = {name: value for name, value in zip(KEPT, key, strict=True) if value not in (None, "")}
            kept = counted.setdefault(key, {**about, "runs": 0, "right": 0})
            kept["runs"] += 1
            kept["right"] += bool(row["right"])
    return list(counted.values())


def margin(machine: AnyMachine) -> float:
    """Half a bit over the largest sum of a row or a hidden unit, as the prover bounds it; 0 for real numbers."""
    if not machine.needed_bits:
        return 0.0
    layers = [LayerSums(arrays, number, [1] * arrays.heads) for number, arrays in enumerate(machine.weights.layers, start=1)]
    sums = [each for each in loop_sums(layers, machine.layout) if "score" not in each.where]
    return 0.5 / max(float(each.totals.max(initial=0.0)) for each in sums)


def gain(machine: AnyMachine) -> float:
    """How much a layer's feed-forward may enlarge an error of all rows: 1 and the largest sum of a row of |W2| |W1|."""
    layers = ((np.abs(arrays.w1), np.abs(arrays.w2)) for arrays in machine.weights.layers)
    return float(max((1 + second @ first.sum(axis=1)).max(initial=1.0) for first, second in layers))


def measured(quick: bool, say: Say) -> Figures:
    found: Figures = {}
    for name in NAMES:
        say(f"the sweep {name}")
        found[name] = rows_of(name, quick)
    limits: dict[str, list[float]] = {}
    for job in Sweep.load(FILES / "noise.toml").jobs:
        label = json.dumps(dict(job.setup.options))
        if label not in limits and not (quick and limits):
            machine = build_machine(job.setup)[0]
            limits[label] = [margin(machine), gain(machine)]
    found["limits"] = limits
    return found


def _groups(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _label(options: str) -> str:
    given = json.loads(options)
    given.pop("design", None)
    return ", ".join(f"{name} {value}" for name, value in given.items())


def _share(rows: Sequence[Row]) -> float:
    return float(sum(row["right"] for row in rows) / sum(row["runs"] for row in rows))


def _thresholds(rows: Sequence[Row]) -> tuple[str, str]:
    """The largest amount up to which all runs are right, and the least from which none is."""
    amounts = _shares(rows)
    right, wrong = "none", "none"
    for amount, share in amounts.items():
        if share < 1:
            break
        right = short(amount)
    for amount, share in reversed(amounts.items()):
        if share > 0:
            break
        wrong = short(amount)
    return right, wrong


def shown(figures: Figures) -> Shown:
    page = Shown("Noise, rounding and flipped bits",
                 "The small designs of 8-bit words bear noise of 1e-8 on their weights; the paper's design, RISC-V and real "
                 "numbers bear almost none.")
    page.say("""Machines with changed weights, compared with the right run after every loop. The sweeps are files in
             `examples/sweeps/`: see [sweeps](sweep.md). Noise adds to each weight w a normal number of deviation
             amount × max(1, |w|), with three seeds for each amount. Float64 has 16 digits, so noise below 1e-16 reaches
             weights of 0 alone.""")
    all_weights, nonzero = ([row for row in figures["noise"] if row["where"] == where] for where in ("all", "nonzero"))
    page.picture("noise", "The share of runs that end right against noise on the weights, by machine and design",
                 charts("Noise on weights", "A normal number of deviation amount × max(1, |w|) on each weight w",
                        [_chart("SUBLEQ", [row for row in all_weights if row["machine"] == "subleq"]),
                         _chart("Other machines", [row for row in all_weights if row["machine"] != "subleq"])],
                        names=200))
    page.say("""The margin is half a bit over the largest sum of a row or a hidden unit, as the prover bounds it: the noise
             that could turn a bit if all of a sum's errors had one sign. A layer that comes after enlarges an error, by its
             gain at most: 1 and the largest sum of a row of |W2| |W1|, of the layer where that is largest. Margin over gain
             is the noise that one layer more could enlarge to half a bit. Designs of one and two layers bear that and more,
             since signs are mixed. Through two layers more an error is enlarged twice: so RISC-V's three-layer design breaks
             far below it. The paper's formulas decide exactly at an integer, so that any noise may turn a bit: its margin
             says nothing. FLEQ is about real numbers and has no margin: its gates add 2^60 and take it away again, and
             enlarge noise as much. The last column is for noise of amount × |w|, where weights of 0 stay. 1e-17 changes no
             weight, and 1e-16 the last bit of some: of 2^60 that is 256.""")
    last = _groups(nonzero, "machine", "design", "options")
    page.table(["machine", "design", "options", "all right up to", "none right from", "margin", "gain", "margin / gain",
                "weights not 0: all right up to"], [
        [machine, design, _label(options), *_thresholds(some), *_limits(*figures["limits"].get(options, (0.0, 0.0))),
         _thresholds(last.get((machine, design, options), []))[0]]
        for (machine, design, options), some in _groups(all_weights, "machine", "design", "options").items()],
        numbers=3)
    page.say("""Weights rounded to another number format and back. Weights that overflow to infinity are refused before a
             run, and count as wrong.""")
    formats = ("float32", "float16", "bfloat16", "int8")
    page.table(["machine", "design", "options", *formats], [
        [machine, design, _label(options), *(_verdict(some, to) for to in formats)]
        for (machine, design, options), some in _groups(figures["rounding"], "machine", "design", "options").items()],
        numbers=3)
    page.say("""One bit of one weight that is not 0 is flipped in a layer, 20 times: the share of runs that end right. A
             flip that makes a weight infinite is refused before a run, and is not counted.""")
    kinds = ("sign", "exponent", "mantissa")
    by_layer = _groups(figures["flips"], "machine", "design", "options", "layer")
    page.table(["machine", "design", "options", "layer", *kinds], [
        [machine, design, _label(options), layer,
         *(_percent([row for row in some if row["bits"] == bits]) for bits in kinds)]
        for (machine, design, options, layer), some in by_layer.items()], numbers=3)
    page.say("""Heads of FLEQ's soft product: the error of the final memory of Newton's iteration, over the range.""")
    by_heads = _groups([{**row, **json.loads(row["options"])} for row in figures["heads"]], "design", "range", "dtype")
    heads = sorted({row["heads"] for some in by_heads.values() for row in some})
    page.table(["design", "range", "format", *(plural(count, "head") for count in heads)], [
        [design, size, dtype, *(_error([row for row in some if row["heads"] == count]) for count in heads)]
        for (design, size, dtype), some in by_heads.items()], numbers=3)
    return page


def _chart(title: str, rows: Sequence[Row]) -> Chart:
    """The share of right runs against the amount of noise, a curve for each machine."""
    curves = []
    for number, ((machine, design, options), some) in enumerate(_groups(rows, "machine", "design", "options").items()):
        given = json.loads(options)
        name = f"{design}, {given['word_bits']} bits" if "word_bits" in given else f"{machine}, {design}"
        name += ", privileged" if given.get("privileged") else ""
        curves += pair(number, name, [(amount, 100 * share) for amount, share in _shares(some).items()])
    used = [x for curve in curves for x, _ in curve.points]
    return Chart(title, decades("amount", used), even("right at the end, %", 0, 100, (0, 50, 100)), curves)


def _shares(rows: Sequence[Row]) -> dict[float, float]:
    """By amount: the share of runs that end right."""
    return {amount: _share(some) for (amount,), some in sorted(_groups(rows, "amount").items())}


def _limits(margin: float, gain: float) -> list[str]:
    return [short(margin) if margin else "", short(gain) if gain else "", short(margin / gain) if margin else ""]


def _error(rows: Sequence[Row]) -> str:
    return short(rows[0]["unchanged_error"] or 0.0) if rows else ""


def _verdict(rows: Sequence[Row], to: str) -> str:
    return "right" if any(row["to"] == to and row["right"] for row in rows) else "wrong"


def _percent(rows: Sequence[Row]) -> str:
    return f"{100 * _share(rows):.0f} %" if rows else ""
