"""Examples on machines of every kind, built once, and opened as views open them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import punchcard
from punchcard.machines.streams import reader
from punchcard.viewer.session import Session, session_of
from tests.cases import EXAMPLES, turing_example

TURING = turing_example().TuringMachine
MACHINES = punchcard.kinds().including(TURING)


class Opened(NamedTuple):
    program: Any
    machine: Any
    session: Session

    def oracle(self, steps: int) -> tuple[Any, bytes]:
        """The interpreter after so many instructions, and what it has written."""
        written = bytearray()
        oracle = self.machine.oracle(self.program, reader(self.session.input), written.append)
        oracle.run(steps)
        return oracle, bytes(written)


@cache
def built(file: str = "multiply.subleq", **options: Any) -> tuple[Any, Any]:
    """A program, and a machine for it that no test changes."""
    program = punchcard.load(EXAMPLES / file, machines=MACHINES)
    return program, punchcard.build(program, machines=MACHINES, **options)


def opened(file: str = "multiply.subleq", *, input: bytes = b"", max_steps: int | None = None, **options: Any) -> Opened:
    program, machine = built(file, **options)
    return Opened(program, machine, session_of(machine, program, EXAMPLES / file, input=input, max_steps=max_steps))
