"""Machines whose weights are changed: by noise, rounding and flipped bits; and the heads that FLEQ needs for an error.

The sweeps are files in `examples/sweeps/`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.report.section import Figures, Say, Shown, short
from punchcard.machines.base import AnyMachine
from punchcard.sweep.chunk import run_job
from punchcard.sweep.plan import Sweep
from punchcard.sweep.results import row_of
from punchcard.sweep.trial import built, measure
from punchcard.transformer.exactness import loop_sums
from punchcard.transformer.sums import LayerSums

FILES = Path(__file__).parent.parent.parent / "examples" / "sweeps"
NAMES = ("noise", "rounding", "flips", "heads")
KEPT = ("machine", "design", "options", "amount", "to", "layer", "bits", "unchanged_error")
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
            kept = counted.setdefault(key, {**dict(zip(KEPT, key, strict=True)), "runs": 0, "right": 0})
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


def measured(quick: bool, say: Say) -> Figures:
    found: Figures = {}
    for name in NAMES:
        say(f"the sweep {name}")
        found[name] = rows_of(name, quick)
    margins: dict[str, float] = {}
    for job in Sweep.load(FILES / "noise.toml").jobs:
        label = json.dumps(dict(job.setup.options))
        if label not in margins and not (quick and margins):
            margins[label] = margin(built(job.setup)[0])
    found["margins"] = margins
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
    amounts = {amount: _share(some) for (amount,), some in sorted(_groups(rows, "amount").items())}
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
                 "The small designs of 8-bit words bear noise of 1e-8 on their weights; the paper's design and real numbers "
                 "bear almost none.")
    page.say("""Machines with changed weights, compared with the right run after every loop. The sweeps are files in
             `examples/sweeps/`: see [sweeps](sweep.md). Noise adds to each weight w a normal number of deviation
             amount × max(1, |w|), with three seeds for each amount. The margin is half a bit over the largest sum of a row
             or a hidden unit, as the prover bounds it. It is the noise that could turn a bit if all of a sum's errors
             had one sign. Zero weights get noise too, and the next layers enlarge it, so a machine may break below its
             margin. The paper's formulas decide exactly at an integer, so that any noise may turn a bit: its margin says
             nothing.""")
    page.table(["machine", "design", "options", "all right up to", "none right from", "margin"], [
        [machine, design, _label(options), *_thresholds(some), _margin(figures["margins"].get(options, 0.0))]
        for (machine, design, options), some in _groups(figures["noise"], "machine", "design", "options").items()],
        numbers=3)
    page.say("""Weights rounded to another number format and back. Weights that overflow to infinity are refused before a
             run, and count as wrong.""")
    formats = ("float32", "float16", "bfloat16", "int8")
    page.table(["machine", "design", "options", *formats], [
        [machine, design, _label(options), *(_verdict(some, to) for to in formats)]
        for (machine, design, options), some in _groups(figures["rounding"], "machine", "design", "options").items()],
        numbers=3)
    page.say("""One bit of one weight that is not 0 is flipped in a layer, 40 times: the share of runs that end right.""")
    kinds = ("sign", "exponent", "mantissa")
    page.table(["design of SUBLEQ", "layer", *kinds], [
        [design, layer, *(_percent([row for row in some if row["bits"] == bits]) for bits in kinds)]
        for (design, layer), some in sorted(_groups(figures["flips"], "design", "layer").items())], numbers=1)
    page.say("""Heads of FLEQ's soft product: the error of the final memory of Newton's iteration, over the range.""")
    page.table(["design", "options", "error"], [
        [design, _label(options), short(some[0]["unchanged_error"] or 0.0)]
        for (design, options), some in _groups(figures["heads"], "design", "options").items()], numbers=2)
    return page


def _margin(value: float) -> str:
    return short(value) if value else ""


def _verdict(rows: Sequence[Row], to: str) -> str:
    return "right" if any(row["to"] == to and row["right"] for row in rows) else "wrong"


def _percent(rows: Sequence[Row]) -> str:
    return f"{100 * _share(rows):.0f} %" if rows else ""
