"""The engines' speed: the tables of `punchcard bench` as markdown. `make pictures` draws them from docs/engines.md.

    python benchmarks/engines.py [--seconds 0.2] [--dense-columns 16384] [--records FILE]

The dense engine makes a single loop on cards beyond 2,048 columns, which at 16,384 takes some 4 GB and half a minute. With
--records the measured records are kept in a file, or taken from it if it is there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from punchcard.benchmark.measurements import BenchOptions, Record, measure
from punchcard.cli.bench import headings, rows
from punchcard.machines.registry import built_in


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--dense-columns", type=int, default=16384)
    parser.add_argument("--columns", type=lambda text: tuple(map(int, text.split(","))))
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


if __name__ == "__main__":
    main()
