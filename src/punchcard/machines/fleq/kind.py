"""The FLEQ machine as it is known before one is built; its programs need NumPy, which is imported when one is read."""

from __future__ import annotations

from functools import partial

from punchcard.lazy import call_name
from punchcard.machines.kind import Kind, Language, Option, Timing

DESIGNS = ("compact", "three-layer", "paper")

FLEQ = Kind(
    "fleq", "matrices, function blocks, and pointers that programs change", "punchcard.machines.fleq.isa:FleqProgram",
    languages=(
        Language("FLEQ text", (".fleq",), partial(call_name, "punchcard.machines.fleq.text.assembler:assemble"),
                 takes=("folder", "functions")),
        Language("Python (arrays)", (".py",), partial(call_name, "punchcard.python.files:assemble_arrays"),
                 options=(Option("call", "the function to run, and its arguments", str),),
                 owns=partial(call_name, "punchcard.python.files:is_for_arrays"), sizes_itself=True),
    ),
    disassemble=partial(call_name, "punchcard.machines.fleq.text.writer:disassemble"),
    write=partial(call_name, "punchcard.machines.fleq.text.writer:with_comments"),
    options=(
        Option("functions", "names of the functions that the machine has", str, many=True),
        Option("size", "d, rows and columns of the largest operand", least=1),
        Option("memory", "memory columns of the machine", least=1),
        Option("instructions", "instructions of the machine", least=1),
        Option("range", "R: every value must stay within ±R", float),
        Option("heads", "heads of a product: more heads, smaller error", least=1, most=3),
        Option("anchors", "use the paper's matrix product, with anchors", bool),
    ),
    designs=DESIGNS,
    parse_value=partial(call_name, "punchcard.machines.fleq.text.values:parse_value"),
    timing=Timing("FLEQ, float64, one thread; csr is the equation with sparse weights, numpy executes decoded instructions",
                  "punchcard.machines.fleq.workloads:workloads", columns=(150, 1000), designs=("compact",), quick="compact",
                  rival="numpy"),
    machine="punchcard.machines.fleq.machine:FleqMachine",
    variation="punchcard.machines.fleq.variation:FleqVariation",
)
