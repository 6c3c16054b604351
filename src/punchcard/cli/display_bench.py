"""What `punchcard bench` shows: a table for each machine, or the records as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from punchcard.benchmark.tables import Options, Record, measure
from punchcard.cli.display import out, remark
from punchcard.errors import PunchcardError

BASELINES = {"subleq": "python", "fleq": "numpy"}
ABOUT = {
    "subleq": "SUBLEQ, 16-bit words, float32, one thread: repeated multiplication; python is an interpreter in plain Python",
    "fleq": "FLEQ, float64, one thread; csr is the equation with sparse weights, numpy executes decoded instructions",
}


def show_bench(options: Options, *, as_json: bool) -> None:
    """Measure and show."""
    console = Console(stderr=True, highlight=False)
    records: list[Record] = []
    with console.status("measuring") as status:
        for group in measure(options, lambda text: status.update(f"measuring {text}"), remark):
            records += group
    if not records:
        raise PunchcardError("nothing to measure: no machine has this design, or no card of these columns")
    if as_json:
        out(json.dumps(records))
        return
    for machine in BASELINES:
        if rows := [record for record in records if record["machine"] == machine]:
            show(machine, rows)
    if any(record["ratio_to_dense"] is None for record in records):
        out(f"–: the dense engine is measured up to {options.dense_columns:,} columns (--dense-columns)")
    for note in dict.fromkeys(f"{r['engine']}: {note}" for r in records for note in r["notes"]):
        out(f"note: {note}")


def show(machine: str, records: Sequence[Record]) -> None:
    """One machine's table."""
    table = Table(title=ABOUT[machine])
    for heading in headings(machine):
        table.add_column(heading, justify="left" if heading in ("design", "program", "engine") else "right")
    last = None
    for record, row in zip(records, rows(machine, records), strict=True):
        here = [record.get(name) for name in ("design", "program", "size", "columns")]
        if last not in (None, here):
            table.add_section()
        table.add_row(*row)
        last = here
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def headings(machine: str) -> list[str]:
    """The columns of a machine's table."""
    which = ["program", "d"] if machine == "fleq" else []
    figures = ["steps a second", "times dense", f"times {BASELINES[machine]}", "compile s"]
    return ["design", *which, "columns", "engine", *figures]


def rows(machine: str, records: Iterable[Record]) -> Iterable[list[str]]:
    """The records as text under `headings`."""
    for r in records:
        which = [r["program"], str(r["size"])] if machine == "fleq" else []
        compiled = r["compile_seconds"]
        yield [r["design"], *which, f"{r['columns']:,}", r["engine"], figure(r["steps_per_second"]),
               figure(r["ratio_to_dense"]), figure(r[f"ratio_to_{BASELINES[machine]}"]),
               "–" if compiled is None else f"{compiled:.2f}"]


def figure(number: float | None) -> str:
    """Three digits that count; a dash where there is no figure."""
    if number is None:
        return "–"
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"
