"""Layers, heads, rows and parameters of every machine and design, beside the paper's theorems and published projects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.draw.chart import Axis, Chart

from benchmarks.report.certificates import built
from benchmarks.report.curves import charts, doublings, pair
from benchmarks.report.section import Figures, Say, Shown
from benchmarks.report.sizes import options
from punchcard.machines.registry import built_in
from punchcard.machines.subleq.designs.base import SubleqSizes

FUNCTIONS = {"mul": ("mul",), "inverse of a matrix": ("add", "sub", "mul", "transpose"),
             "calculator": ("add", "sub", "mul", "percentage", "inverse", "sqrt")}
THEOREMS = (
    ("SUBLEQ (lemma, section 5.1)", "9 layers, 2 heads, width O(log n + N)", "subleq", ""),
    ("FLEQ with mul (theorem, section 5.2)", "9 + 2 layers, 1 head, width O(M d + log n)", "fleq", "mul"),
    ("Inverse of a matrix (lemma, section 8)", "13 layers, 1 head, width O(d)", "fleq", "inverse of a matrix"),
    ("Calculator (theorem, section 7)", "12 layers, m heads, width O(log n)", "fleq", "calculator"),
)
PEERS = (
    ("[Loom](https://github.com/mkturkcan/Loom)", "a computer of 22 opcodes, argmax in place of softmax", "8"),
    ("[the authors' code](https://github.com/jysohn1108/Looped-Transformer)", "SUBLEQ, code and data apart", "10"),
    ("[subleq-transformer](https://github.com/anadim/subleq-transformer)", "SUBLEQ in one memory, 97.8 % of its own tests",
     "4, with 8 heads"),
    ("[transformer-vm](https://github.com/Percepta-Core/transformer-vm)", "WebAssembly, in a decoder that writes its trace",
     "–"),
    ("[torchwright](https://github.com/physicsrob/torchwright)", "computation graphs, compiled to weights", "–"),
)
"""Published projects: what they execute, and their layers, as they state them."""
WIDTHS = tuple(1 << k for k in range(4, 19, 2))


def measured(quick: bool, say: Say) -> Figures:
    machines = []
    for kind, about, given in cases(quick):
        for design in built_in().kind(kind).designs:
            say(f"{kind}, {design} {about}")
            machine = built(kind, design=design, **given)
            shapes, (all_of, nonzero) = machine.model.shapes, machine.model.parameter_count()
            machines.append({
                "machine": kind, "about": about, "design": design, "layers": len(shapes), "heads": [s.heads for s in shapes],
                "rows": machine.layout.width, "columns": machine.layout.columns, "hidden": max(s.hidden for s in shapes),
                "parameters": all_of, "nonzero": nonzero, "dtype": machine.precision.name})
    say("widths")
    rows: dict[str, list[list[int]]] = {}
    designs = built_in().kind("subleq").designs
    for design in designs:
        rows[design] = [[n, rows_of(design, n, 16)] for n in (WIDTHS[:2] if quick else WIDTHS)]
    words = {design: [[bits, rows_of(design, 1024, bits)] for bits in ((4, 8) if quick else range(4, 45, 8))]
             for design in designs}
    return {"machines": machines, "columns": rows, "words": words}


def cases(quick: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A kind of machine, what tells it from others of the kind, and what it is built with."""
    for kind in built_in():
        known = {option.name for option in kind.options}
        if "functions" in known:
            for name, functions in list(FUNCTIONS.items())[: 1 if quick else None]:
                yield kind.name, name, {"functions": list(functions), "size": 4}
        elif "word_bits" in known:
            yield kind.name, "16-bit words", options(kind.name, 256, 16)
        elif not quick:
            yield kind.name, "", options(kind.name, 1 << 16, None)


def rows_of(design: str, columns: int, bits: int) -> int:
    """The rows of a SUBLEQ card, without building its weights."""
    machine = built_in().kind("subleq").machine_class()
    return int(machine.designs[design].layout(SubleqSizes(**options("subleq", columns, bits))).width)


def shown(figures: Figures) -> Shown:
    machines = figures["machines"]
    least = min((m for m in machines if m["machine"] == "subleq"), key=lambda m: m["layers"])
    fleq = min((m for m in machines if m["machine"] == "fleq"), key=lambda m: m["layers"])
    page = Shown("Layers, heads, rows and parameters", (
        f"SUBLEQ takes {least['layers']} layer{'s' * (least['layers'] > 1)} where the paper has 9, FLEQ {fleq['layers']} "
        "where it has up to 13."))
    page.say("""All machines of the registry in all their designs. SUBLEQ has a card of 256 columns; FLEQ d = 4, with
        the functions that are named; RISC-V 65,536 words. Parameters are all entries of K, Q, V, the temperatures, W1,
        b1, W2 and b2.""")
    page.table(["machine", "design", "layers", "heads by layer", "rows", "widest hidden layer", "parameters, not zero"],
               [[_named(m), m["design"], m["layers"], ", ".join(map(str, m["heads"])), m["rows"], f"{m['hidden']:,}",
                 f"{m['parameters']:,}, {m['nonzero']:,}"]
                for m in machines], numbers=2)
    page.heading("Beside the paper's theorems")
    page.say("""Layers, and the most heads of a layer. The paper counts the heads of the function blocks alone, which is
        right for its step 4. Widths are compared as curves below.""")
    rows = []
    for name, stated, kind, about in THEOREMS:
        own = [m for m in machines if m["machine"] == kind and (not about or m["about"] == about)]
        if own:
            rows.append([name, stated, "; ".join(f"{m['design']}: {m['layers']}, {max(m['heads'])}" for m in own)])
    page.table(["statement", "stated", "built: layers, most heads"], rows, numbers=3)
    page.picture("widths", "Rows of a SUBLEQ card against columns and against the bits of a word", charts(
        "Widths grow as the theorem says", "Rows of a SUBLEQ card: O(log n + N) in both charts.",
        [_width("columns n, words of 16 bits", figures["columns"], log=True),
         _width("bits N of a word, 1,024 columns", figures["words"], log=False)],
        dashed="8 log n + 3 N + 1 rows, which the paper's proof counts; it leaves out v_new."))
    page.heading("Beside published projects")
    page.say("""Layers that one instruction takes. What others have is as they state it, from the repositories that are
        linked; none of it was measured here. A dash: there is not one depth to compare.""")
    own = [[f"Punchcard, {_named(m)}, {m['design']}", _exact(m["machine"]), f"{m['layers']}, with {max(m['heads'])} heads"]
           for m in machines if m["machine"] != "fleq"]
    page.table(["project", "what it executes", "layers"], [*own, *PEERS], numbers=2)
    return page


def _exact(kind: str) -> str:
    return {"subleq": "SUBLEQ, code and data apart", "von-neumann": "SUBLEQ in one memory", "riscv": "RV32I"}.get(kind, kind)


def _named(machine: Figures) -> str:
    return str(machine["machine"]) + (f", {machine['about']}" if machine["about"] else "")


def _width(label: str, found: dict[str, list[list[int]]], *, log: bool) -> Chart:
    points = next(iter(found.values()))
    values = [x for x, _ in points]
    stated = [(x, 8 * (x - 1).bit_length() + 3 * 16 + 1 if log else 8 * 10 + 3 * x + 1) for x in values]
    curves = [curve for number, (design, line) in enumerate(found.items())
              for curve in pair(number, design, line, stated if design == "paper" else ())]
    most = 100 * -(-max(y for line in found.values() for _, y in line) // 100)
    x = doublings(label, values, 5) if log else Axis(label, values[0], values[-1], values)
    y = Axis("", 0, most, range(0, most + 1, 100))
    return Chart("Against columns" if log else "Against the word", x, y, curves, "rows")
