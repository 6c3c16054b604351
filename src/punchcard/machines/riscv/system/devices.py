"""The devices that a host serves: a serial port and a switch. They know nothing of cards.

A device has registers at offsets. `load` gives the number in a register, or None where there is none; `store` says whether
there is one. What is not there is refused, and the processor traps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from punchcard.errors import PunchcardError
from punchcard.machines.riscv.system.platform import POWER_OFF, REBOOT, UART_SIZE
from punchcard.machines.streams import Read, Write

Power: TypeAlias = Literal["on", "off", "reboot"]
BYTE = 0xFF


class Device(Protocol):
    """Registers at offsets, for aligned accesses of 1, 2 or 4 bytes. Numbers are unsigned."""

    def load(self, offset: int, size: int) -> int | None:
        """What a register holds; reading may change the device."""

    def store(self, offset: int, size: int, value: int) -> bool:
        """Write to a register."""


DATA, INTERRUPTS, IDENTITY, LINE, MODEM, LINE_STATUS, MODEM_STATUS, SCRATCH = range(8)
"""The registers of a 16550 (RBR and THR, IER, IIR and FCR, LCR, MCR, LSR, MSR, SCR), a byte each."""
RECEIVED, SENT = 1, 2
"""Interrupts of IER: a byte has come; the transmitter is empty."""
NO_INTERRUPT, SENT_INTERRUPT, RECEIVED_INTERRUPT, WITH_QUEUES = 1, 2, 4, 0xC0
DIVISOR = 0x80
"""The bit of LCR by which the first two registers are the divisor of the clock."""
QUEUES, CLEAR_RECEIVED = 1, 2
"""Bits of FCR."""
READY, IDLE = 1, 0x60
"""Bits of LSR: a byte is there; the transmitter is empty, always."""
LOOPBACK, CONNECTED = 0x10, 0xB0
"""The bit of MCR by which what is sent is received; MSR when a receiver is at the other end."""
KEPT = 8


class Uart:
    """A serial port: the subset of a 16550 that drivers probe and use. A byte is sent at once.

    `receive` gives the next byte of the input, or a negative number: then nothing has come so far. It is asked when the
    program looks and holds no byte, so a byte that nobody looks for is not taken. There are no interrupts on a line, but IIR
    says which there would be, and drivers poll it.
    """

    def __init__(self, receive: Read, send: Write, kept: Sequence[int] = ()) -> None:
        self._receive, self._send = receive, send
        if len(kept) not in range(1) and (len(kept) < KEPT or not all(type(n) is int and 0 <= n <= BYTE for n in kept)):
            raise PunchcardError(f"a UART was saved as {kept!r}: it is {KEPT} bytes or more")
        self._registers = [*kept[:7]] or [0] * 7
        self._sent_interrupt = bool(kept[7]) if kept else False
        self._held = [*kept[KEPT:]]

    @property
    def saved_state(self) -> tuple[int, ...]:
        """All that it remembers, as numbers."""
        return (*self._registers, int(self._sent_interrupt), *self._held)

    def load(self, offset: int, size: int) -> int | None:
        if offset == LINE_STATUS:
            return IDLE | READY if self._has_byte() else IDLE
        if offset in _OTHERS:
            return _OTHERS[offset](self)
        return 0 if offset < UART_SIZE else None

    def store(self, offset: int, size: int, value: int) -> bool:
        byte, registers = value & BYTE, self._registers
        if offset == DATA and not registers[_LCR] & DIVISOR:
            if registers[_MCR] & LOOPBACK:
                self._held.append(byte)
            else:
                self._send(byte)
            self._sent_interrupt = True
        elif offset == INTERRUPTS and not registers[_LCR] & DIVISOR:
            self._sent_interrupt = self._sent_interrupt or bool(byte & ~registers[_IER] & SENT)
            registers[_IER] = byte & 0xF
        elif offset == IDENTITY:
            registers[_FCR] = byte
            if byte & CLEAR_RECEIVED:
                self._held.clear()
        elif offset in _WRITTEN:
            registers[_WRITTEN[offset]] = byte
        return offset < UART_SIZE

    def _has_byte(self) -> bool:
        if not self._held:
            byte = self._receive()
            if byte < 0:
                return False
            self._held.append(byte)
        return True

    def _data(self) -> int:
        if self._registers[_LCR] & DIVISOR:
            return self._registers[_DLL]
        return self._held.pop(0) if self._has_byte() else 0

    def _interrupts(self) -> int:
        return self._registers[_DLM if self._registers[_LCR] & DIVISOR else _IER]

    def _identity(self) -> int:
        """IIR: the first interrupt that there would be. Reading that the transmitter is empty takes this interrupt away."""
        enabled, queues = self._registers[_IER], WITH_QUEUES if self._registers[_FCR] & QUEUES else 0
        if enabled & RECEIVED and self._has_byte():
            return RECEIVED_INTERRUPT | queues
        if enabled & SENT and self._sent_interrupt:
            self._sent_interrupt = False
            return SENT_INTERRUPT | queues
        return NO_INTERRUPT | queues

    def _modem_status(self) -> int:
        """Connected; in loopback the four outputs of MCR."""
        modem = self._registers[_MCR]
        if not modem & LOOPBACK:
            return CONNECTED
        return (modem & 1) << 5 | (modem & 2) << 3 | (modem & 0xC) << 4


_IER, _FCR, _LCR, _MCR, _SCR, _DLL, _DLM = range(7)
_WRITTEN = {LINE: _LCR, MODEM: _MCR, SCRATCH: _SCR, DATA: _DLL, INTERRUPTS: _DLM}
"""Registers that only hold what was written; the first two as the divisor."""
_OTHERS: dict[int, Callable[[Uart], int]] = {
    DATA: Uart._data, INTERRUPTS: Uart._interrupts, IDENTITY: Uart._identity, MODEM_STATUS: Uart._modem_status,
    LINE: lambda uart: uart._registers[_LCR], MODEM: lambda uart: uart._registers[_MCR],
    SCRATCH: lambda uart: uart._registers[_SCR],
}


class Syscon:
    """A register that switches the machine off, or asks for a new start. It reads 0, and other numbers do nothing."""

    power: Power = "on"

    def load(self, offset: int, size: int) -> int | None:
        return 0

    def store(self, offset: int, size: int, value: int) -> bool:
        if offset == 0 and value in (POWER_OFF, REBOOT):
            self.power = "off" if value == POWER_OFF else "reboot"
        return True
