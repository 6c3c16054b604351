"""Each slip of the paper with the smallest input on which the print fails: `benchmarks/slips.py` runs them."""

from __future__ import annotations

from benchmarks.report.section import Figures, Say, Shown
from benchmarks.slips import SLIPS, cells


def measured(quick: bool, say: Say) -> Figures:
    found: dict[str, list[Figures]] = {}
    for part, functions in SLIPS.items():
        found[part] = []
        for function in functions[: 1 if quick else None]:
            say(f"{part}: {function.__name__.replace('_', ' ')}")
            slip = function()
            found[part].append({"cells": list(cells(slip)), "run": slip.run})
    return {"slips": found}


def shown(figures: Figures) -> Shown:
    every = [slip for slips in figures["slips"].values() for slip in slips]
    ran = sum(slip["run"] for slip in every)
    page = Shown("Slips of the paper, run", (
        f"{ran} of {len(every)} slips fail when they are run as printed; the others are of the wording."))
    page.say("""What the print says, the smallest input on which it fails, what it gives there, and what is right. What
        was read and not run says so. Everything here is built as it is right; [the paper statement by
        statement](PAPER.md) says where.""")
    for part, slips in figures["slips"].items():
        page.heading(part)
        page.table(["printed", "smallest input that shows it", "gives", "right"], [slip["cells"] for slip in slips],
                   numbers=4)
    return page
