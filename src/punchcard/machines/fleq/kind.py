"""The FLEQ machine as it is known before one is built; its programs need NumPy, which is imported when one is read."""

from __future__ import annotations

from punchcard.machines.kind import Kind, Language, Option, Timing, later

HOME = "punchcard.machines.fleq"
DESIGNS = ("compact", "three-layer", "paper")

FLEQ = Kind(
    "fleq", "matrices, function blocks, and pointers that programs change", f"{HOME}.isa:FleqProgram",
    languages=(
        Language("FLEQ text", (".fleq",), later(f"{HOME}.text.assembler:assemble"), takes=("folder", "functions")),
        Language("Python, arrays", (".py",), later("punchcard.python.files:assemble_arrays"),
                 options=(Option("call", "the function to run, and its arguments", str),),
                 owns=later("punchcard.python.files:is_for_arrays"), sizes_itself=True),
    ),
    disassemble=later(f"{HOME}.text.writer:disassemble"),
    write=later(f"{HOME}.text.writer:with_comments"),
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
    parse_value=later(f"{HOME}.text.values:parse_value"),
    timing=Timing("FLEQ, float64, one thread; csr is the equation with sparse weights, numpy executes decoded instructions",
                  f"{HOME}.workloads:workloads", columns=(150, 1000), designs=("compact",), quick="compact", rival="numpy"),
    machine=f"{HOME}.machine:FleqMachine",
)
