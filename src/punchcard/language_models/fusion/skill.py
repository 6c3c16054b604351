"""A skill: a program that keeps the contract of `skills/skill.h`, and where its variables are on the card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from punchcard.card.layout import Layout
from punchcard.errors import ProgramError, did_you_mean
from punchcard.language_models.fusion.embedding import BYTES
from punchcard.language_models.fusion.python_skill import python_skill
from punchcard.machines.registry import installed
from punchcard.machines.riscv.isa import WORD_BYTES
from punchcard.machines.riscv.languages.c import BASE
from punchcard.machines.riscv.machine import multiplies
from punchcard.machines.riscv.program import RiscvProgram

SKILLS = Path(__file__).parent / "skills"
"""The shipped ones: sources, and executables in `bin/`, so that no compiler is needed."""
TOKENS = 256
"""Tokens of the window."""
STACK = 2048
SYMBOLS = {"context": TOKENS * BYTES, "next": BYTES, "never": 32, "opinion": 4}
"""The variables of the contract, and their bytes."""
NEEDED = ("context", "opinion")


@dataclass(frozen=True)
class Skill:
    """A program and its name."""

    name: str
    program: RiscvProgram

    def __post_init__(self) -> None:
        symbols, where = self.program.symbols, self.program.where or f"{self.name}: "
        missing = [f"card_{name}" for name in NEEDED if f"card_{name}" not in symbols]
        if "card_next" not in symbols and "card_never" not in symbols:
            missing.append("card_next or card_never")
        if missing:
            raise ProgramError(f"{where}a skill needs the variable {missing[0]}, which the program does not have"
                               f"{did_you_mean(missing[0], symbols)}: include skill.h, and use it")
        for name, size in SYMBOLS.items():
            address = symbols.get(f"card_{name}")
            if address is not None and address % WORD_BYTES:
                raise ProgramError(f"{where}card_{name} is at {address:#x}: it must be an array of words, as in skill.h")
            for segment in self.program.segments:
                if address is not None and segment.address <= address < segment.end and any(
                        segment.data[address - segment.address : address - segment.address + size]):
                    raise ProgramError(f"{where}card_{name} must be zero when the program begins")
        if multiplies(self.program):
            raise ProgramError(f"{where}the program has instructions of the M extension: compile it for rv32i")

    def places(self, layout: Layout) -> dict[str, Any]:
        """The columns of its variables, and for views its entry and its names."""
        first = layout.region("memory").start - self.program.base // WORD_BYTES
        found = {name: first + self.program.symbols[f"card_{name}"] // WORD_BYTES for name in SYMBOLS
                 if f"card_{name}" in self.program.symbols}
        for name, column in found.items():
            if column + SYMBOLS[name] // WORD_BYTES > layout.region("memory").stop:
                raise ProgramError(f"{self.program.where}card_{name} takes {SYMBOLS[name]} bytes, beyond the memory")
        return {"name": self.name, **found, "entry": self.program.entry, "symbols": dict(self.program.symbols)}


def shipped() -> list[str]:
    """The names of the skills that come with the package."""
    return sorted(path.stem for path in (SKILLS / "bin").glob("*.elf"))


def load_skill(program: str | Path | RiscvProgram | Skill) -> Skill:
    """A skill by the name of a shipped one, from a file (.c, .py, .s or .elf), or from a program."""
    if isinstance(program, Skill):
        return program
    if isinstance(program, RiscvProgram):
        return Skill(Path(program.source).stem or "program", program)
    path = Path(program)
    if str(program) in shipped():
        path = SKILLS / "bin" / f"{program}.elf"
    elif not path.suffix:
        raise ProgramError(f"{str(program)!r} is not a skill{did_you_mean(str(program), shipped())}: there are "
                           f"{', '.join(shipped())}, or give a file (.c, .py, .s, .elf)")
    if path.suffix == ".py":
        return Skill(path.stem, python_skill(path))
    options: dict[str, dict[str, Any]] = {".c": {"cflags": f"-I'{SKILLS}'", "stack": STACK}, ".s": {"base": BASE}}
    found = installed().load(path, **options.get(path.suffix, {}))
    if not isinstance(found, RiscvProgram):
        raise ProgramError(f"{str(program)!r} is a {type(found).__name__}: a skill is a RISC-V program (.c, .s or .elf) or "
                           "a function of Python (.py)")
    return Skill(path.stem, found)
