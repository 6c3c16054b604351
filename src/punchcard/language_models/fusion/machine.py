"""The machine in a fused model: which one is built for skills, and its sizes as plain data for a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from punchcard.card.layout import Pattern
from punchcard.errors import ProgramError
from punchcard.export.folder import pattern_places
from punchcard.language_models.fusion.embedding import BYTES, HEIGHT, STEP
from punchcard.language_models.fusion.skill import TOKENS, Skill
from punchcard.machines.riscv.languages.options import LEAST_STACK
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.transformer.weights import active_columns

LEAST_MEMORY, MOST_MEMORY = 1 << 11, 1 << 16
POSITION_BITS = 20
PROPER = 1
"""The first of the events is a call of the host: the end of a program. The others are faults."""


def machine_for(skills: Sequence[Skill]) -> RiscvMachine:
    """A machine with room for every one of the programs. Its weights depend on that size alone."""
    first = skills[0].program
    for skill in skills[1:]:
        if skill.program.base != first.base:
            raise ProgramError(f"{skill.name} begins at {skill.program.base:#x} and {skills[0].name} at {first.base:#x}: "
                               "link them for the same address")
    needed = max(skill.program.needed_words for skill in skills) + LEAST_STACK // 4
    memory = max(LEAST_MEMORY, 1 << (needed - 1).bit_length())
    if memory > MOST_MEMORY:
        raise ProgramError(f"the skills need {needed} words of memory: a fused model has {MOST_MEMORY} at most")
    return RiscvMachine(memory=memory, base=first.base, precision="float32")


def sizes_of(machine: RiscvMachine, skills: Sequence[Skill], vocabulary: int, most_loops: int) -> dict[str, Any]:
    """What `CardStream` is built from."""
    layout = machine.layout
    return {
        "vocabulary": vocabulary, "bytes": BYTES, "tokens": TOKENS, "position_bits": POSITION_BITS,
        "width": layout.width, "columns": layout.columns, "word_row": layout.rows("memory").start,
        "shapes": [[layer.heads, layer.key_size, layer.hidden] for layer in machine.weights.layers],
        "ends": [pattern_places(layout, pattern) for pattern in machine.events], "proper": PROPER,
        "active": active_columns(machine.weights, layout).tolist(), "height": HEIGHT, "step": STEP,
        "most_loops": most_loops, "skills": [skill.places(layout) for skill in skills],
        "machine": {"memory": machine.sizes.memory, "base": machine.sizes.base},
    }


def machine_of(sizes: Mapping[str, Any]) -> RiscvMachine:
    """The machine of a stream: its layout, for engines. The weights that run are the stream's own."""
    return RiscvMachine(**sizes["machine"], precision="float32")


def patterns_of(machine: RiscvMachine) -> tuple[Pattern, ...]:
    """The patterns at which a run ends, in the order of `ends`."""
    return machine.events
