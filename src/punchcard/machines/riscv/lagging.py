"""An interpreter that keeps step with a machine whose results lag one loop.

Such a machine fetches an instruction while the store of the one before is still pending. Where that store goes to the very
instruction, a jump to itself is executed in its place, and then the instruction as stored. That is one step more.
"""

from __future__ import annotations

from punchcard.machines.riscv.isa import STALL, WORD_BYTES, Decoded
from punchcard.machines.riscv.oracle import RiscvInterpreter


class LaggingInterpreter(RiscvInterpreter):
    """The same program with the same results, in as many steps as the machine has loops."""

    stalls = False
    """Whether the last instruction has stored to the next."""

    def _word(self) -> int:
        return STALL if self.stalls else super()._word()

    def _execute(self, decoded: Decoded) -> None:
        stored = self._address(decoded) // WORD_BYTES if decoded.instruction.writes_memory else None
        super()._execute(decoded)
        self.stalls = stored == self.program_counter // WORD_BYTES
