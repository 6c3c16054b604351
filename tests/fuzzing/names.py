"""A target that is names: of symbols, source files, columns and paths, with characters that would change a terminal."""

from __future__ import annotations

import random
from pathlib import Path

from tests import hostile
from tests.fuzzing import samples
from tests.fuzzing.judging import command
from tests.fuzzing.workers import Attempt

PARTS = (*hostile.CONTROLS, "\x1b[", "\x1b]8;;", "\x1b\\", "\n", "\t", "\x85", "\x9d", "\u2029", "\ufeff", "\udce9", "[b]",
         "]", "{", "a", "é", "漢", "😀", ":smile:", "<i>", "$", "'", '"', "\\", "--", " ")
SMALL = ("--memory", "64")
LINES = (
    ("run", ".elf", "--trace", *SMALL), ("run", ".elf", "--max-steps", "1", *SMALL), ("info", ".elf"), ("disasm", ".elf"),
    ("run", ".bad.elf", *SMALL), ("asm", ".s"), ("run", ".none.s"), ("run", ".bad.s"), ("info", ".bad.fleq"),
    ("asm", ".bad.asq"), ("run", ".fleq", "--trace"), ("run", ".fleq", "--set", "NAME"), ("asm", ".fleq", "-o", "none/NAME"),
    ("prove", "--verify", ".certificate"), ("export", ".bad.safetensors", "--to", "safetensors", "-o", "NAME"),
    ("calc", "NAME"), ("calc", "a", "NAME=1"), ("learn", ".csv", "--target", "NAME"),
    ("predict", ".bad.safetensors", ".csv"),
    ("bench", ".fleq", "--design", "NAME"), ("view", ".fleq", "--record", "NAME"), ("debug", ".bad.py"), ("NAME",),
)


def lines(folder: Path) -> Attempt:
    """Command lines with hostile names in them and in their files."""
    main = samples.command_line()

    def attempt(rng: random.Random) -> None:
        name = "".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 12)))
        for old in folder.iterdir():
            old.unlink()
        files = hostile.write_files(folder, name)
        words = [str(files.get(word, folder / f"{name}{word}")) if word.startswith(".") else word.replace("NAME", name)
                 for word in rng.choice(LINES)]
        command(main, words, writes=False)

    return attempt
