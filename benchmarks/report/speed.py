"""Instructions a second of every engine on every machine, beside interpreters: what `punchcard bench` measures."""

from __future__ import annotations

from docs.draw.chart import COLOURS, MARKS, Axis, Chart, Curve, powers
from docs.draw.engines import LOOKS, NAMES

from benchmarks.engines import markdown
from benchmarks.report.curves import charts, doublings
from benchmarks.report.section import Figures, Say, Shown
from punchcard.benchmark.measurements import BenchOptions, Record, measure
from punchcard.cli.bench import figure
from punchcard.machines.registry import built_in

MOST_COLUMNS = 20_000
QUICK = BenchOptions(machine="fleq", engines=("dense", "scratchpad"), seconds=0.001, repeats=1, quick=True)


def usual() -> list[BenchOptions]:
    """What each machine is timed on by itself, without the longest cards: on these some engines take seconds a loop."""
    return [BenchOptions(machine=kind.name, columns=tuple(n for n in kind.timing.columns if n <= MOST_COLUMNS),
                         seconds=0.1, dense_columns=2048) for kind in built_in() if kind.timing is not None]


def measured(quick: bool, say: Say) -> Figures:
    records: list[Record] = []
    remarks: list[str] = []
    for options in [QUICK] if quick else usual():
        for group in measure(options, say, remarks.append):
            records += group
    return {"records": records, "remarks": remarks}


def shown(figures: Figures) -> Shown:
    records = figures["records"]
    ratios = [r["ratio_to_dense"] for r in records if r["engine"] == "lowered" and r["ratio_to_dense"]]
    page = Shown("Speed of the engines", (
        f"Machine code from the weights is up to {figure(max(ratios))} times as fast as the equation itself." if ratios
        else "Every engine beside the equation itself."))
    page.say("""Steps are instructions. Figures of one group (one card) are measured in turn in one process on one
        thread, so their ratios hold, while the figures themselves depend on the machine. All engines give the same
        cards, up to rounding in FLEQ's real numbers: an engine that does not end where the interpreter ends is refused.""")
    drawn = [chart for kind in built_in() if (chart := _chart(kind.name, records)) is not None]
    page.picture("speed", "Instructions a second of the engines against the columns of the card", charts(
        "How fast the engines are", "Instructions a second on one thread, against the columns of the card.", drawn))
    for kind in built_in():
        own = [record for record in records if record["machine"] == kind.name]
        if own and kind.timing is not None:
            page.parts.append(markdown(kind.timing.about, own).strip())
    for remark in dict.fromkeys(figures["remarks"]):
        page.say(f"{remark}.")
    return page


def _chart(kind: str, records: list[Record]) -> Chart | None:
    """The first design and program of a machine that has the most engines."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in (r for r in records if r["machine"] == kind):
        groups.setdefault((record["program"], record["design"], str(record.get("size", ""))), []).append(record)
    if not groups:
        return None
    (program, design, _), own = max(groups.items(), key=lambda item: len({r["engine"] for r in item[1]}))
    curves = []
    for engine in dict.fromkeys(record["engine"] for record in own):
        look = LOOKS.get(engine, 5)
        points = sorted((r["columns"], r["steps_per_second"]) for r in own
                        if r["engine"] == engine and r["steps_per_second"])
        if points:
            curves.append(Curve(NAMES.get(engine, engine).removesuffix(" interpreter"), points, COLOURS[look], MARKS[look],
                                dashed=not MARKS[look]))
    columns = sorted({record["columns"] for record in own})
    ends = columns if len(columns) > 1 else [columns[0] // 2, *columns]
    speeds = Axis("", 1, 1e9, powers(0, 9, 3), log=True)
    return Chart(f"{kind}, {design}", doublings("columns", ends, 3), speeds, curves, program)
