"""Programs from files: the extension says which language it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from punchcard.errors import ProgramError
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text import assembler as fleq
from punchcard.machines.source import read_text
from punchcard.machines.subleq import text as subleq
from punchcard.machines.subleq.isa import Program
from punchcard.machines.subleq.minsky import text as minsky
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages import brainfuck, images
from punchcard.machines.von_neumann.languages.asq import assembler as asq
from punchcard.machines.von_neumann.languages.asq import writer as asq_text

AnyProgram: TypeAlias = Program | FleqProgram | Image

EXTENSIONS = {
    ".subleq": "SUBLEQ assembly, code and data apart",
    ".fleq": "FLEQ text",
    ".minsky": "Minsky machine",
    ".json": "assembled by `punchcard asm`",
    ".asq": "SUBLEQ assembly, one memory",
    **dict.fromkeys(images.EXTENSIONS, "memory image, decimal words"),
    ".bf": "Brainfuck",
}


def disassemble(program: AnyProgram) -> str:
    """A program as text that assembles to the same program."""
    if isinstance(program, Image):
        return asq_text.disassemble(program)
    return fleq.disassemble(program) if isinstance(program, FleqProgram) else subleq.disassemble(program)


def load(path: str | Path, *, word_bits: int | None = None, memory: int | None = None, **options: Any) -> AnyProgram:
    """The program in a file.

    Where `word_bits` and `memory` are given, an image that does not fit them is refused with line and column.
    `options` are those of `brainfuck.assemble`, and only for Brainfuck.
    """
    suffix = Path(path).suffix.lower()
    if options and suffix != ".bf":
        raise ProgramError(f"{', '.join(options)}: options for Brainfuck (.bf), and {str(path)!r} is none")
    text = read_text(path)
    source = str(path)
    if suffix == ".subleq":
        return subleq.assemble(text, source)
    if suffix == ".fleq":
        return fleq.assemble(text, source, folder=Path(path).parent)
    if suffix == ".minsky":
        return minsky.translate(minsky.assemble(text, source))
    if suffix == ".json":
        try:
            return Program.from_json(text)
        except ProgramError as error:
            raise ProgramError(f"{source}: {error}") from None
    if suffix == ".asq":
        return asq.assemble(text, source, word_bits=word_bits)
    if suffix in images.EXTENSIONS:
        return images.parse(text, source, word_bits=word_bits, memory=memory)
    if suffix == ".bf":
        return brainfuck.assemble(text, source, **options)
    known = ", ".join(f"{extension} ({about})" for extension, about in EXTENSIONS.items())
    raise ProgramError(f"{source!r} has the extension {suffix!r}, which is no known language: there are {known}")
