"""The engines' speed: the tables of `punchcard bench` as markdown, and a picture of them.

    python benchmarks/engines.py [--seconds 0.2] [--dense-columns 16384] [--picture docs/engines.png] [--records FILE]

The dense engine makes a single loop on cards beyond 2,048 columns, which at 16,384 takes some 4 GB and half a minute. With
--records the measured records are kept in a file, or taken from it if it is there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import matplotlib as mpl

from punchcard.benchmark.tables import BenchOptions, Record, measure
from punchcard.cli.bench import headings, rows
from punchcard.machines.registry import built_in

mpl.use("Agg")
from matplotlib import pyplot as plt

STYLES = {
    "dense": ("#999999", "o"), "csr": ("#b07aa1", "v"), "scratchpad": ("#4e79a7", "s"), "lowered": ("#e15759", "D"),
    "python": ("#222222", ""), "numpy": ("#222222", ""),
}
PICTURED = "two-layer"


def measured(options: BenchOptions) -> list[Record]:
    records: list[Record] = []
    for group in measure(options, lambda text: print(text, file=sys.stderr), lambda text: print(text, file=sys.stderr)):
        records += group
    return records


def markdown(about: str, records: list[Record]) -> str:
    """A machine's table."""
    titles = headings(records)
    lines = [f"{about}:", "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in rows(records)]
    notes = dict.fromkeys(f"{r['engine']}, {r['columns']:,} columns: {note}" for r in records for note in r["notes"])
    return "\n".join([*lines, "", *notes])


def picture(records: list[Record], path: Path) -> None:
    """Steps a second: SUBLEQ over the columns, FLEQ by program, size and columns."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True)
    subleq = [r for r in records if r["machine"] == "subleq" and r["design"] == PICTURED]
    for name in dict.fromkeys(r["engine"] for r in subleq):
        points = [(r["columns"], r["steps_per_second"]) for r in subleq if r["engine"] == name]
        colour, marker = STYLES.get(name, ("#59a14f", "^"))
        left.plot(*zip(*points, strict=True), color=colour, marker=marker, linestyle="-" if marker else "--", label=name)
    left.set(xscale="log", yscale="log", xlabel="columns", ylabel="steps a second", title=f"SUBLEQ, {PICTURED}, float32")
    left.set_xticks(ticks := list(dict.fromkeys(r["columns"] for r in subleq)), [f"{n:,}" for n in ticks])
    left.minorticks_off()
    fleq = [r for r in records if r["machine"] == "fleq"]
    places = list(dict.fromkeys(f"{r['program']}\nd = {r['size']}\n{r['columns']:,}" for r in fleq))
    names = list(dict.fromkeys(r["engine"] for r in fleq))
    for i, name in enumerate(names):
        of_engine = {f"{r['program']}\nd = {r['size']}\n{r['columns']:,}": r["steps_per_second"]
                     for r in fleq if r["engine"] == name}
        where = [places.index(place) + (i - (len(names) - 1) / 2) * 0.8 / len(names) for place in of_engine]
        right.bar(where, list(of_engine.values()), 0.8 / len(names), color=STYLES.get(name, ("#59a14f", "^"))[0], label=name)
    right.set_xticks(range(len(places)), places, fontsize=8)
    right.set(title="FLEQ, compact, float64")
    for axes in (left, right):
        axes.grid(axis="y", alpha=0.3)
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=6, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--dense-columns", type=int, default=16384)
    parser.add_argument("--columns", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--picture", type=Path, default=Path(__file__).parent.parent / "docs" / "engines.png")
    parser.add_argument("--records", type=Path)
    given = parser.parse_args()
    if given.records is not None and given.records.exists():
        records: list[Record] = json.loads(given.records.read_text())
    else:
        records = measured(BenchOptions(seconds=given.seconds, dense_columns=given.dense_columns, columns=given.columns))
    if given.records is not None:
        given.records.write_text(json.dumps(records, indent=1))
    for kind in built_in():
        chosen = [record for record in records if record["machine"] == kind.name]
        if chosen and kind.timing is not None:
            print(f"\n{markdown(kind.timing.about, chosen)}")
    picture(records, given.picture)


if __name__ == "__main__":
    main()
