"""The error of every function block of FLEQ, measured and bound: in every design and number format, and against the size."""

from __future__ import annotations

from docs.draw.chart import Chart

from benchmarks.fleq_errors import CASES, wrong_pointers
from benchmarks.report.curves import charts, decades, doublings, pair
from benchmarks.report.section import Figures, Say, Shown, short, within
from punchcard.machines.registry import built_in

DTYPES = ("float64", "float32")
SIZE, SEED = 4, 0
APART = 1.1
"""Errors of two designs that differ by this factor are shown apart."""
AGAINST_SIZE = ("mul, 1 head", "mul, 2 heads", "mul, 3 heads", "mul, anchors")


def measured(quick: bool, say: Say) -> Figures:
    designs, trials = built_in().kind("fleq").designs, 1 if quick else 20
    cases = [case for case in CASES if not quick or case.title in ("mul, 3 heads", "add")]
    lines = []
    for case in cases:
        say(case.title)
        errors, bounds = {}, {}
        for dtype in DTYPES:
            count = max(1, trials // 4) if case.shape == "scalar" else trials  # each of these is ten
            found = {design: case.measure(SIZE, dtype, design, count, SEED) for design in designs}
            errors[dtype] = {design: error for design, (error, _) in found.items()}
            bounds[dtype] = max(bound for _, bound in found.values())
        lines.append({"block": case.title, "errors": errors, "bounds": bounds})
    say("pointers")
    pointers = {dtype: {design: wrong_pointers(SIZE, dtype, design, trials, SEED) for design in designs} for dtype in DTYPES}
    sizes = []
    for case in [case for case in cases if case.title in AGAINST_SIZE]:
        for dtype in DTYPES:
            for d in (2, 4) if quick else (2, 4, 8, 16, 32):
                say(f"{case.title}, d = {d}, {dtype}")
                error, bound = case.measure(d, dtype, designs[0], max(1, trials // 2), SEED)
                sizes.append({"block": case.title, "dtype": dtype, "size": d, "error": error, "bound": bound})
    return {"designs": list(designs), "trials": trials, "lines": lines, "pointers": pointers, "sizes": sizes}


def shown(figures: Figures) -> Shown:
    lines, designs = figures["lines"], figures["designs"]
    pairs = [(error, line["bounds"][dtype]) for line in lines for dtype in DTYPES
             for error in line["errors"][dtype].values()]
    beyond = sum(error > bound for error, bound in pairs)
    nearest = max((error / bound for error, bound in pairs if bound), default=0.0)
    page = Shown("Errors of the function blocks", (
        f"{len(lines)} blocks in {len(designs)} designs and {len(DTYPES)} number formats: {beyond} of {len(pairs)} errors "
        f"are beyond their bound; the largest is {100 * nearest:.0f} % of it."))
    page.say(f"""Each trial is a program of one instruction on a machine of size d = {SIZE}, run once and compared with
        the exact function of the operands on the card, {figures['trials']} times (50 or more where the operand is a
        number). Errors are absolute, of the worst entry; those of `mul` are in units of d times the largest entry of a
        and of b, which are 1. The bound is what the machine promises for all operands within its range. An error beyond
        its bound would be in bold type. [Intervals](proof-fleq.md) enclose errors over the whole range instead.""")
    page.table(["block", *(cell for dtype in DTYPES for cell in (dtype, "bound"))],
               [[line["block"], *(cell for dtype in DTYPES for cell in (
                   within(max(line["errors"][dtype].values()), line["bounds"][dtype]), short(line["bounds"][dtype])))]
                for line in lines])
    apart = [(line["block"], dtype, line["errors"][dtype]) for line in lines for dtype in DTYPES
             if max(line["errors"][dtype].values()) > APART * min(line["errors"][dtype].values())]
    page.say(f"""An error there is the largest of the designs {', '.join(designs)}. They have the same formulas in other
        columns. In {len(lines) * len(DTYPES) - len(apart)} of {len(lines) * len(DTYPES)} cases they are within
        {round(100 * (APART - 1))} % of each other{'; these are not:' if apart else '.'}""")
    if apart:
        page.table(["block", "format", *designs],
                   [[block, dtype, *(short(errors[design]) for design in designs)] for block, dtype, errors in apart],
                   numbers=2)
    wrong = sum(count for by_design in figures["pointers"].values() for count in by_design.values())
    page.say(f"""`incr_pointer` and `reset_pointer` change bits, so they are right or wrong: {wrong} of
        {figures['trials'] * len(designs) * len(DTYPES)} changed instructions are not, bit by bit, what they should be.""")
    page.heading("Against the size")
    page.picture("size", "Error of a product against d, by heads and number format", charts(
        "The error of a product against its size", "Largest error of an entry, in units of d; entries up to 1.",
        [_against_size(figures["sizes"], dtype) for dtype in DTYPES], dashed="the bound."))
    page.say("""Two heads cancel one more power of c than one head, and three cancel two more. So c may be larger, and
        the division by c multiplies less rounding. The paper's own product, with anchors, has an error of first order
        in c. The constants are chosen for products up to root d times the range, so in units of d the bound falls.""")
    return page


def _against_size(sizes: list[Figures], dtype: str) -> Chart:
    own = [line for line in sizes if line["dtype"] == dtype]
    curves = []
    for number, name in enumerate(dict.fromkeys(line["block"] for line in own)):
        lines = [line for line in own if line["block"] == name]
        curves += pair(number, name.removeprefix("mul, "), [(line["size"], line["error"]) for line in lines],
                       [(line["size"], line["bound"]) for line in lines])
    values = [line[kind] for line in own for kind in ("error", "bound")]
    return Chart(dtype, doublings("size d", [line["size"] for line in own]), decades("", values), curves,
                 "error / d, one product")
