"""FLEQ in three layers: its sizes, and what a fetch that runs ahead must not get wrong, against the interpreter.

What all designs have in common is tested for each of them in `test_fleq_machine.py`.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.fleq_cases import POINTER_FUNCTIONS, RANGE, compare

DESIGN = "three-layer"


@pytest.fixture(scope="module")
def scalars() -> FleqMachine:
    return FleqMachine(functions=("add", *POINTER_FUNCTIONS), size=1, memory=14, instructions=7, range=RANGE, design=DESIGN)


CHANGED = """
.range 64
.data
x scalar 1
y scalar 2
z scalar 3
f scalar {flag}
o scalar 1
m scalar -1
.code
{change}; if f <= 0 goto {to}
y = add(x, x); if o <= 0 goto 4
z = add(y, y); if o <= 0 goto 4
halt
x = add(x, z)
f = add(f, o)
halt
"""


def changes(number: int) -> list[str]:
    """Each pointer of an instruction, counted on and set."""
    values = {"a": "z", "b": "z", "c": "x", "flag": "m", "p": "5"}
    return [f"incr_pointer({number}.{field})" for field in values] + [
        f"reset_pointer({number}.{field}, {value})" for field, value in values.items()]


def test_an_instruction_that_changes_the_next_one(scalars: FleqMachine) -> None:
    """The one after it or the one that it jumps to, or both at once; it jumps or not; each of the five pointers."""
    programs = [assemble(CHANGED.format(change=change, flag=flag, to=to))
                for number, flag, to in product((1, 2), (-1, 0, 1), (1, 2)) for change in changes(number)]
    compare(scalars, programs)


def test_the_registers_are_facts_on_every_card(scalars: FleqMachine) -> None:
    """What a loop has prepared for the next, also where the instruction that comes next was changed."""
    for change in ("incr_pointer(1.a)", "reset_pointer(2.flag, m)"):
        card = scalars.punch(assemble(CHANGED.format(change=change, flag=0, to=2)))
        for _ in range(6):
            assert scalars.layout.violations(card) == []
            card = scalars.model(card)
    card[scalars.layout.rows("off").start, 0] = 0.5
    assert any("off in scratchpad indicates what it should" in wrong for wrong in scalars.layout.violations(card))


def test_an_instruction_that_changes_itself(scalars: FleqMachine) -> None:
    """It is fetched again in the same loop, in which it is changed."""
    programs = [assemble(CHANGED.format(change=change, flag=flag, to=0)) for flag in (1,) for change in changes(0)
                if ".a" not in change and ".b" not in change and ".c" not in change]
    compare(scalars, programs)


def test_two_changes_one_after_the_other(scalars: FleqMachine) -> None:
    """The second changes what the first has just changed, and that comes next."""
    programs = [assemble(".range 64\n.data\nx scalar 1\ny scalar 2\nz scalar 3\no scalar 1\nm scalar -1\n.code\n"
                         f"{first}(2.{field}{', y' * (first == 'reset_pointer')})\n"
                         f"{second}(2.{other}{', y' * (second == 'reset_pointer')})\nz = add(x, x)\nhalt")
                for first, second in product(POINTER_FUNCTIONS, repeat=2) for field, other in product("abc", repeat=2)]
    compare(scalars, programs)


def test_the_result_is_read_written_and_asked_at_once(scalars: FleqMachine) -> None:
    """What was just written is the next operand, the flag of the branch, and the flag of the branch after it."""
    text = (".range 64\n.data\nx scalar {}\none scalar 1\n.code\nx = add(x, one); if x <= 0 goto 0\n"
            "x = add(x, x); if x <= 0 goto 3\nif x <= 0 goto 0\nx = add(x, x); if one <= 0 goto 1\nhalt")
    programs = [assemble(text.format(start)) for start in range(-4, 3)]
    compare(scalars, programs)


def test_after_the_last_instruction_comes_itself() -> None:
    """Its fetch finds a column, and the column after the card is not asked for: all facts of the layout hold."""
    program = assemble(".range 64\n.data\nn scalar -2\none scalar 1\n.code\nhere: goto there\nhalt\n"
                       "there: n = add(n, one); if n <= 0 goto here\ngoto 1")
    machine = FleqMachine.for_program(program, design=DESIGN)
    card = machine.punch(program)
    for _ in range(12):
        card = machine.model(card)
        assert machine.layout.violations(card) == []
    assert machine.run(program, engine="dense").halted


def test_large_numbers_leave_the_registers_alone() -> None:
    """Junk of the range's size in every neighbouring cell: pointers are still bits, and what is not written is unchanged."""
    text = ".range 1024\n.data\nj scalar -1021.5\nx scalar 1000.25\nk scalar 1023.5\ny scalar\nn scalar {}\n.code\n" \
           "y = add(x, j)\ny = add(k, j); if n <= 0 goto 3\nhalt\n" \
           "reset_pointer(4.a, k); if n <= 0 goto 4\ny = add(x, j)\nhalt"
    programs = [assemble(text.format(flag)) for flag in (-3, 4)]
    machine = FleqMachine.for_program(programs[0], design=DESIGN)
    compare(machine, programs)
    held = {name: machine.run(programs[0], engine="dense").memory[name] for name in "jxk"}
    assert {name: float(np.ravel(value)[0]) for name, value in held.items()} == {"j": -1021.5, "x": 1000.25, "k": 1023.5}
