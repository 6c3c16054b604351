"""The SUBLEQ machine as it is known before one is built."""

from __future__ import annotations

from punchcard.errors import ProgramError
from punchcard.machines.kind import Kind, Language, Option, Timing
from punchcard.machines.source import parse_integer
from punchcard.machines.subleq import minsky, text
from punchcard.machines.subleq.isa import Program

DESIGNS = ("paper", "two-layer", "one-layer")


def from_minsky(source_text: str, source: str = "") -> Program:
    """A Minsky machine, translated."""
    return minsky.translate(minsky.assemble(source_text, source))


def check_register(name: str, value: int) -> None:
    """A register counts from 0 up."""
    if value < 0:
        raise ProgramError(f"--set {name}={value}: a register holds an integer, 0 or more")


def from_json(source_text: str, source: str = "") -> Program:
    """What `punchcard asm` wrote."""
    try:
        return Program.from_json(source_text)
    except ProgramError as error:
        raise ProgramError(f"{source}: {error}") from None


SUBLEQ = Kind(
    "subleq", "the paper's one-instruction computer", Program,
    languages=(
        Language("SUBLEQ assembly, code and data apart", (".subleq",), text.assemble),
        Language("Minsky machine", (".minsky",), from_minsky, check_value=check_register),
        Language("assembled by `punchcard asm`", (".json",), from_json),
    ),
    disassemble=text.disassemble,
    write=lambda program: program.to_json() + "\n",
    options=(
        Option("word_bits", "bits of a word", flag="--bits"),
        Option("memory", "memory cells of the machine", least=1),
        Option("instructions", "instructions of the machine", least=1),
    ),
    designs=DESIGNS,
    view_design="two-layer",
    parse_value=parse_integer,
    timing=Timing("SUBLEQ, 16-bit words, float32, one thread: repeated multiplication; python is a plain interpreter",
                  "punchcard.machines.subleq.workloads:workloads", columns=(64, 1024, 16384, 65536),
                  designs=("two-layer", "paper", "one-layer"), quick="two-layer"),
    machine="punchcard.machines.subleq.machine:SubleqMachine",
    variation="punchcard.machines.subleq.variation:SubleqVariation",
)
