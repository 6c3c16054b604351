"""Programs from files: the extension says which language it is."""

from __future__ import annotations

from pathlib import Path

from punchcard.errors import ProgramError
from punchcard.isa.fleq import FleqProgram
from punchcard.isa.subleq import Program
from punchcard.lang import fleq, minsky, subleq
from punchcard.lang.source import read_text

EXTENSIONS = {
    ".subleq": "SUBLEQ assembly",
    ".fleq": "FLEQ text",
    ".minsky": "Minsky machine",
    ".json": "assembled by `punchcard asm`",
}


def disassemble(program: Program | FleqProgram) -> str:
    """A program as text that assembles to the same program."""
    return fleq.disassemble(program) if isinstance(program, FleqProgram) else subleq.disassemble(program)


def load(path: str | Path) -> Program | FleqProgram:
    """The program in a file."""
    suffix = Path(path).suffix.lower()
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
    known = ", ".join(f"{extension} ({about})" for extension, about in EXTENSIONS.items())
    raise ProgramError(f"{source!r} has the extension {suffix!r}, which is no known language: there are {known}")
