"""The FLEQ machine as it is known before one is built."""

from __future__ import annotations

from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.fleq.text.values import parse_value
from punchcard.machines.fleq.text.writer import disassemble
from punchcard.machines.kind import Kind, Language, Option, Timing

DESIGNS = ("compact", "paper")

FLEQ = Kind(
    "fleq", "matrices, function blocks, and pointers that programs change", FleqProgram,
    languages=(Language("FLEQ text", (".fleq",), assemble, takes=("folder", "functions")),),
    disassemble=disassemble,
    options=(
        Option("functions", "the functions that are plugged in", str, many=True),
        Option("size", "d, rows and columns of the largest operand", least=1),
        Option("memory", "memory columns of the machine", least=1),
        Option("instructions", "instructions of the machine", least=1),
        Option("range", "every value stays within ±R", float),
        Option("heads", "heads of a soft product: more heads, smaller error", least=1, most=3),
        Option("anchors", "mul as the paper has it, with anchors", bool),
    ),
    designs=DESIGNS,
    parse_value=parse_value,
    timing=Timing("FLEQ, float64, one thread; csr is the equation with sparse weights, numpy executes decoded instructions",
                  "punchcard.machines.fleq.workloads:workloads", columns=(150, 1000), designs=("compact",), quick="compact",
                  rival="numpy"),
    machine="punchcard.machines.fleq.machine:FleqMachine",
)
