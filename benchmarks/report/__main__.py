"""Measure and write the report: `python -m benchmarks.report [NAME ...] [--draw] [--quick] [--folder docs]`.

Each section's figures are kept as soon as they are measured, and the page is written from all that are kept. So a run that
is interrupted loses one section at most, and leaves nothing half written.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import torch

from benchmarks.report.page import DOCS, SECTIONS, draw, keep, measured_on


def measure(name: str, folder: Path, *, quick: bool) -> None:
    """Measure a section, keep its figures, and say on standard error what is going on."""
    begin, used = time.perf_counter(), cpu_seconds()

    def say(text: str) -> None:
        line = f"{name}: {time.perf_counter() - begin:4.0f} s  {text}"
        print(f"\r\033[K{line[:110]}" if sys.stderr.isatty() else line, end="" if sys.stderr.isatty() else "\n",
              file=sys.stderr, flush=True)

    figures = SECTIONS[name].measured(quick, say)
    say("done")
    if sys.stderr.isatty():
        print(file=sys.stderr)
    keep(name, {"seconds": round(cpu_seconds() - used, 1), "on": measured_on(), "figures": figures}, folder)


def cpu_seconds() -> float:
    """What this process and those that it started and waited for have used: it hardly depends on what else is running."""
    return sum(os.times()[:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"sections, by default all: {', '.join(SECTIONS)}")
    parser.add_argument("--draw", action="store_true", help="write the page from kept figures, measure nothing")
    parser.add_argument("--quick", action="store_true", help="measure as little as possible, to see that it runs")
    parser.add_argument("--folder", type=Path, default=DOCS)
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in SECTIONS]:
        parser.error(f"{unknown[0]} is not a section: there are {', '.join(SECTIONS)}")
    torch.set_num_threads(1)
    try:
        for name in () if given.draw else given.names or SECTIONS:
            measure(name, given.folder, quick=given.quick)
    except KeyboardInterrupt:
        print("\ninterrupted: the sections that were finished are kept", file=sys.stderr)
        sys.exit(130)
    finally:
        missing = draw(given.folder)
    if missing:
        print(f"never measured: {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
