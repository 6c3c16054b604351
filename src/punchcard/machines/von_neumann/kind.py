"""The von Neumann machine as it is known before one is built."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from punchcard.lazy import call_name
from punchcard.machines.kind import Kind, Language, Option, Timing
from punchcard.machines.source import parse_integer
from punchcard.machines.von_neumann.isa import DIALECTS, MAX_WORD_BITS, MIN_WORD_BITS, Image, find_dialect
from punchcard.machines.von_neumann.languages.options import CELLS, ENDS_OF_INPUT, IMAGE_EXTENSIONS, MAX_CELLS

DESIGNS = ("two-layer",)

disassemble = partial(call_name, "punchcard.machines.von_neumann.languages.asq.writer:disassemble")
write_words = partial(call_name, "punchcard.machines.von_neumann.languages.images:write")


def resolve(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Word and memory sizes as a machine will have them."""
    word_bits, memory = find_dialect(given.get("dialect") or "standard").sizes(given.get("word_bits"), given.get("memory"))
    return {**given, "word_bits": word_bits, "memory": memory}


VON_NEUMANN = Kind(
    "von-neumann", "SUBLEQ with one memory for code and data, input and output", Image,
    languages=(
        Language("SUBLEQ assembly, one memory", (".asq",),
                 partial(call_name, "punchcard.machines.von_neumann.languages.asq.assembler:assemble"),
                 takes=("word_bits", "dialect")),
        Language("memory image, decimal words", IMAGE_EXTENSIONS,
                 partial(call_name, "punchcard.machines.von_neumann.languages.images:parse"),
                 takes=("word_bits", "memory", "dialect")),
        Language("Brainfuck", (".bf",), partial(call_name, "punchcard.machines.von_neumann.languages.brainfuck:assemble"), (
            Option("cells", "size of a cell", str, choices=CELLS),
            Option("eof", "what `,` stores at the end of the input", str, choices=ENDS_OF_INPUT),
            Option("tape", "number of cells of the tape", least=1, most=MAX_CELLS),
        ), takes=("word_bits", "memory", "dialect")),
        Language("Python (integers)", (".py",), partial(call_name, "punchcard.python.files:assemble"), options=(
            Option("call", "the function to run, and its arguments", str),
            Option("check_overflow", "stop with an error if a result does not fit a word", bool),
        ), takes=("word_bits", "memory"), owns=partial(call_name, "punchcard.python.files:is_for_integers"),
            sizes_itself=True),
    ),
    disassemble=disassemble,
    write=lambda image: image.listing or write_words(image),
    writers={".asq": lambda image: image.listing or disassemble(image), **dict.fromkeys(IMAGE_EXTENSIONS, write_words)},
    options=(
        Option("word_bits", "bits of a word", flag="--bits", least=MIN_WORD_BITS, most=MAX_WORD_BITS),
        Option("memory", "memory cells of the machine", least=1),
        Option("dialect", "which addresses are the ports", str, choices=tuple(DIALECTS)),
    ),
    designs=DESIGNS,
    resolve=resolve,
    parse_value=parse_integer,
    timing=Timing("Images, 16-bit words, one thread: a loop that counts; python is a plain interpreter",
                  "punchcard.machines.von_neumann.workloads:workloads", columns=(67, 1027, 32771), designs=("two-layer",),
                  quick="two-layer"),
    machine="punchcard.machines.von_neumann.machine:VonNeumannMachine",
    variation="punchcard.machines.von_neumann.variation:ImageVariation",
)
