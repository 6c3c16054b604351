"""The host of a RISC-V machine with traps: it serves its devices between loops, and lets time pass while it waits.

The card tells it when to look, by the rows `event`:

    bus    the instruction is an access that the processor leaves to its host. The host does it, and puts what was loaded
           into the rows `port`, which the next loop takes it from; or it refuses, and the next loop traps
    wait   the next instruction is wfi. Where nothing will happen but that time passes, the host moves the clocks ahead, up
           to one loop before the timer is due: as many loops are counted as would have been made, and the card is theirs

A program with the symbol `tohost` ends its run by an odd number in that word, as tests for bare machines do. That is not a
row of the card's: the host has a port at the word itself.

Some runs do nothing for ever, and no device is asked. So the host looks at the card now and then whether what it has is
such a state: then no loop to come changes anything but clocks and what traps write.

The host remembers the devices' registers, and which looks for input found a byte: with the bytes read, that is all that a
run depends on beside its card.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING

from punchcard.card.layout import Card, Pattern
from punchcard.engines import Port, Skip
from punchcard.errors import PunchcardError
from punchcard.machines.ports import BYTE, StreamHost
from punchcard.machines.riscv.csrs import COUNTERS, MACHINE
from punchcard.machines.riscv.designs.control import read_control
from punchcard.machines.riscv.host import CardGuest
from punchcard.machines.riscv.isa import MASK, WORD_BITS, decode
from punchcard.machines.riscv.privileged import mtvec
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.syntax import text_of
from punchcard.machines.riscv.system.bus import Bus
from punchcard.machines.riscv.system.devices import Uart
from punchcard.machines.riscv.system.platform import TIMER_HERTZ
from punchcard.machines.riscv.system.script import Script
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, NOT_YET, LiveInput, Read, TimedInput, Traffic, Write

if TYPE_CHECKING:
    from punchcard.machines.riscv.machine import RiscvMachine

READY = 1 << WORD_BITS
"""The bit of the rows `port` behind the word."""
AT_LEAST_FOR_EVER = 1 << 60
"""Loops that are not waited for."""
LEFT_ALONE = 300 * TIMER_HERTZ
"""Loops without a byte read or written after which a machine that waits, and whose input has ended, is left alone."""
LOOKS_EVERY, SMALL = 1 << 24, 1 << 18
"""Loops between two looks whether the processor does the same for ever, with a memory of up to so many words. Each look
copies the card, so with a larger memory they are as many times more."""


@dataclass(frozen=True)
class SystemFault:
    """Why a run ends that no program has ended."""

    message: str

    def __str__(self) -> str:
        return self.message


def lasting(rows: Mapping[str, int], counter: int, word: int | None) -> SystemFault | None:
    """What a processor does for ever, by its rows, where it is and the instruction there, or None if nothing shows it.

    Each follows from the state alone. An exception and an interrupt both lead to mtvec, which only an instruction changes:
    where the processor is at mtvec and the instruction there traps whatever the registers hold, it comes back to it after
    every loop. A jump to itself changes its register once, and is left by an interrupt only.

    word   None: the counter is outside the memory
    """
    decoded = None if word is None else decode(word)
    if counter == mtvec(rows) and (decoded is None or decoded.instruction.name in ("ebreak", "ecall")):
        where = "outside the memory" if word is None else f"at {text_of(word, counter)}, which traps"
        return SystemFault(f"the processor traps for ever: mtvec is {counter:#x}, {where}")
    is_deaf = not (rows["mie.timer"] or rows["mie.software"]) or (rows["mode"] == MACHINE and not rows["mstatus.mie"])
    if decoded is not None and (decoded.instruction.name, decoded.immediate) == ("jal", 0) and is_deaf:
        return SystemFault(f"the processor jumps to itself for ever at {counter:#x}, and no interrupt can come: mie or "
                           "mstatus.MIE is 0")
    return None


WAITS_FOR_EVER = SystemFault("the processor waits (wfi), and no interrupt can come: no timer is set, or mie lacks it")
ALONE = SystemFault(f"the input has ended, and the machine has been waiting for {LEFT_ALONE // TIMER_HERTZ} seconds of its "
                    "time: let the input switch it off, or limit the run with --max-steps")


class SystemHost(StreamHost):
    """Serves devices, and skips waiting."""

    _seen: Card | None = None

    def __init__(
        self, machine: RiscvMachine, begin: Mark, read: Read, write: Write, last: int, program: RiscvProgram | None
    ) -> None:
        super().__init__(machine, begin, read, write, last)
        self._sizes = machine.sizes
        if last - begin.loops >= AT_LEAST_FOR_EVER:
            self.looks_every = LOOKS_EVERY * max(1, self._sizes.memory // SMALL)
        self._see(begin.raw_card)
        self._timed = read if isinstance(read, TimedInput) else TimedInput(read, lambda: None)
        source = inspect.unwrap(self._timed.untimed)
        self._script = source if isinstance(source, Script) else None
        self._live = source.live if isinstance(source, Script) else source if isinstance(source, LiveInput) else None
        uart, script, self._moved, self._polls = _unpacked(begin.traffic)
        if self._script is not None and script:
            self._script.keep(script)
        self._loop, self._input_ended = begin.loops, False  # who continues may have other input
        self._uart = Uart(self._receive, self._send, uart)
        memory = range(self._sizes.base, self._sizes.end)
        self._bus = Bus(memory, self._uart, "trap" if program is None else program.misaligned)
        self._tohost = None if program is None else program.tohost_word

    @property
    def ports(self) -> Mapping[Pattern, Port]:
        if self._tohost is None:
            return super().ports
        odd = (1, *[0] * (WORD_BITS - 1))
        return {**super().ports, Pattern("memory", "memory", odd, self._tohost): self._end}

    def _end(self, loop: int, card: Card) -> bool:
        """The program has written to `tohost` how it ends."""
        self._see(card)
        assert self._tohost is not None
        self._served, self.ended, self.status = loop, "halted", self._guest.word(self._tohost) >> 1 & BYTE
        return False

    @property
    def traffic(self) -> Traffic:
        script = self._script.saved_state if self._script else ()
        return replace(super().traffic, kept=_packed(self._uart.saved_state, script, self._moved, self._polls))

    def __call__(self, loop: int, card: Card) -> bool | Skip:
        if loop == self._served:
            return self.ended is None
        self._served, self._waiting = loop, False
        self._see(card)
        if self._event.get():
            self._serve_access(loop)
            return self.ended is None
        return self._wait(loop, card)

    # Devices

    def _serve_instruction(self, loop: int, card: Card) -> None:
        self._see(card)
        if self._tohost is not None and self._guest.word(self._tohost) & 1:
            self._end(loop, card)
        elif self._event.get():
            self._serve_access(loop)
        elif self._over:
            self.ended, self.fault = "fault", self._lasting(card) or WAITS_FOR_EVER

    def look(self, card: Card) -> None:
        """End a run without a limit whose processor does the same for ever."""
        if (found := self._lasting(card)) is not None:
            self.ended, self.fault = "fault", found

    def _lasting(self, card: Card) -> SystemFault | None:
        counter, word = (self._layout.number_at(card, rows, self._scratch) for rows in ("counter", "word"))
        is_inside = counter in range(self._sizes.base, self._sizes.end)
        return lasting(read_control(self._layout, card), counter, word if is_inside else None)

    def _see(self, card: Card) -> None:
        """Look at a card. An engine shows the same one again and again."""
        if card is not self._seen:
            self._seen, self._guest = card, CardGuest(self._layout, self._sizes, card)
            self._word, self._event, self._port, self._refused = (
                self._layout.cell(card, rows, self._scratch) for rows in ("word", "event.bus", "port", "port.refused"))

    def _serve_access(self, loop: int) -> None:
        guest, word, self._loop = self._guest, self._word.get(), loop
        if loop >= self._last and not self._bus.switches(word, guest):
            self._waiting = True
            return
        try:
            found = self._bus.serve(word, guest)
        except KeyboardInterrupt:
            self.ended, self._waiting = "interrupted", True
            return
        if self._bus.power != "on":
            self.ended = "halted" if self._bus.power == "off" else "reboot"
            self.status = 0
        elif found is None:
            self._refused.put(1)
            self._event.put(0)
        else:
            self._port.put(READY | found)
            self._event.put(0)

    def _receive(self) -> int:
        """A byte for the UART, or a negative number; each look is remembered."""
        if self._input_ended:
            return END_OF_INPUT
        if self._script is not None:
            self._script.now = self._loop
        byte = self._timed.untimed()
        if not NOT_YET <= byte <= BYTE:
            raise PunchcardError(f"the input gives {byte!r}: it must be a byte, 0 to 255, -1 at its end, or -2 for not yet")
        if byte >= 0:
            self._read.add(bytes((byte,)))
            self._polls.append(0)
            self._moved = self._loop
        else:
            self._input_ended = byte == END_OF_INPUT
            self._polls[-1] += 1
        return byte

    def _send(self, byte: int) -> None:
        self._written.add(bytes((byte,)))
        self._to(byte)
        self._moved = self._loop
        if self._script is not None:
            self._script.now = self._loop
            self._script.moved()

    # Waiting

    def _wait(self, loop: int, card: Card) -> bool | Skip:
        """At wfi: how many loops will do nothing but count."""
        at, scratch = self._layout.number_at, self._scratch
        enabled, pending = (at(card, name, scratch) & 3 for name in ("mie", "mip"))
        if enabled & pending:
            return True
        self._loop = loop
        if self._script is not None:
            self._script.waited(1)
        due, now = (at(card, low, scratch) | at(card, f"{low}h", scratch) << WORD_BITS for low in ("mtimecmp", "mtime"))
        left = due - now if due > now else AT_LEAST_FOR_EVER  # else the timer is pending already, and nobody cares
        if self._last - loop >= AT_LEAST_FOR_EVER and (left >= AT_LEAST_FOR_EVER or not at(card, "mie.timer", scratch)):
            self.ended, self.fault = "fault", WAITS_FOR_EVER
        elif self._input_ended and loop - self._moved > LEFT_ALONE:
            self.ended, self.fault = "interrupted", ALONE  # with other input it may continue
        return self.ended is None and (Skip(left - 1, self._skip) if left > 1 else True)

    def _skip(self, card: Card, loops: int) -> None:
        """Change the card as so many loops would that wait. At a terminal the time passes for its person, too."""
        for names in COUNTERS:
            number = sum(self._layout.number_at(card, name, self._scratch) << WORD_BITS * i for i, name in enumerate(names))
            for i, name in enumerate(names):
                self._layout.put_number_at(card, name, self._scratch, number + loops >> WORD_BITS * i & MASK)
        if self._script is not None:
            self._script.waited(loops)
        if self._live is not None:
            self._timed.wait(self._live, loops / TIMER_HERTZ)


def looks(traffic: Traffic) -> Iterator[int]:
    """What the UART got each time it looked for a byte of the input, for an interpreter that makes the same run again."""
    polls = _unpacked(traffic)[3]
    for byte, empty in zip(traffic.read, polls, strict=False):
        yield from repeat(NOT_YET, empty)
        yield byte
    yield from repeat(NOT_YET, polls[-1])


def _packed(uart: Sequence[int], script: Sequence[int], moved: int, polls: Sequence[int]) -> tuple[int, ...]:
    """What a host remembers, as numbers: parts with their lengths before them."""
    return len(uart), *uart, len(script), *script, moved, *polls


def _unpacked(traffic: Traffic) -> tuple[tuple[int, ...], tuple[int, ...], int, list[int]]:
    """The same parts again: the UART's, a script's, the loop of the last byte, and the looks for input before each byte."""
    rest, parts = list(traffic.kept), []
    if not rest:
        return (), (), 0, [0] * (len(traffic.read) + 1)
    for _ in range(2):
        size = rest.pop(0) if rest else -1
        if not 0 <= size <= len(rest):
            break
        parts.append(tuple(rest[:size]))
        del rest[:size]
    if len(parts) < 2 or len(rest) < 2 or min(rest) < 0:
        raise PunchcardError(f"the devices of a machine were saved as {len(traffic.kept)} numbers, which do not fit them")
    return parts[0], parts[1], rest[0], rest[1:]
