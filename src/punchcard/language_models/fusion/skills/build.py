"""Makes the executables in `bin/` from the sources beside this file:

    python -m punchcard.language_models.fusion.skills.build

They are compiled for RV32I with the package's own start-up files and arithmetic, so that they hold nothing but what is in
this repository.
"""

from __future__ import annotations

from dataclasses import replace

from punchcard.files import write_atomic
from punchcard.language_models.fusion.skill import SKILLS, STACK
from punchcard.machines.riscv.languages import c, toolchain

FLAGS = ("-Os", "-g0", "-Wall", "-Wextra", "-Werror", "-Wl,-z,max-page-size=16")


def build_skill(name: str) -> bytes:
    """The executable of a shipped skill."""
    tools = replace(toolchain.find("gcc", "rv32i", "own"), arithmetic=None)
    source = SKILLS / f"{name}.c"
    return c.build_elf(tools, source.read_text(), source.name, flags=FLAGS, folder=SKILLS, stack=STACK)


def main() -> None:
    for source in sorted(SKILLS.glob("*.c")):
        write_atomic(SKILLS / "bin" / f"{source.stem}.elf", build_skill(source.stem))


if __name__ == "__main__":
    main()
