"""Input that is typed line by line, when the machine waits for it: a run without a person, with the same loops each time.

A program that is not ready loses what is typed: a kernel clears its serial port, a login drops what came before its
question. So the next line is typed once the machine, since the last byte written or read, has waited long enough, and for
a good part of the time: the processor waited (wfi), or asked again and again whether a byte has come.
"""

from __future__ import annotations

from collections.abc import Sequence

from punchcard.errors import PunchcardError
from punchcard.machines.riscv.system.platform import TIMER_HERTZ
from punchcard.machines.streams import END_OF_INPUT, NOT_YET, Input, LiveInput, Read, reader

PATIENCE = TIMER_HERTZ // 4
"""Loops that it must wait: a quarter of a second of the machine's time."""
SHARE = 4
"""It must have waited in one of so many: a kernel that has nothing to do still serves its timer."""
NEAR, URGENCY = 256, 10
"""Loops between two questions for a byte, where it does little but ask; and for how many that wait each of them counts."""
NEWLINE = 10


class Script:
    """A reader of an input that gives a line when the machine waits for one. Its host says when that is.

    now    the loops made so far
    live   the input, if a person may still be typing it
    """

    def __init__(self, source: Input) -> None:
        self._read: Read = reader(source)
        self.live = source if isinstance(source, LiveInput) else None
        self.now, self._since, self._waited, self._asked, self._in_line = 0, 0, 0, 0, False

    def __call__(self) -> int:
        if not self._in_line and not self._is_awaited():
            return NOT_YET
        byte = self._read()
        self._in_line = self._in_line if byte == NOT_YET else byte not in (NEWLINE, END_OF_INPUT)
        if byte >= 0:
            self.moved()
        return byte

    def _is_awaited(self) -> bool:
        apart = self.now - self._asked
        self._asked = self.now
        if apart <= NEAR:
            self._waited += URGENCY * apart
        if self._waited < PATIENCE:
            return False
        is_awaited = SHARE * self._waited >= self.now - self._since
        self.moved()  # what comes next counts by itself
        return is_awaited

    def moved(self) -> None:
        """A byte was written or read: it begins to be quiet."""
        self._since, self._waited = self.now, 0

    def waited(self, loops: int) -> None:
        """The processor waits in the next loops."""
        self._waited += loops

    @property
    def saved_state(self) -> tuple[int, ...]:
        """All that it remembers but the input, as numbers."""
        return self._since, self._waited, self._asked, int(self._in_line)

    def keep(self, kept: Sequence[int]) -> None:
        """Continue from the saved state."""
        if len(kept) != 4 or min(kept) < 0:
            raise PunchcardError(f"a script was saved as {kept!r}: it is four numbers, 0 or more")
        self._since, self._waited, self._asked = kept[:3]
        self._in_line = bool(kept[3])


def typed(source: Input) -> Script:
    """An input as a script; one that is a script already stays as it is."""
    return source if isinstance(source, Script) else Script(source)


