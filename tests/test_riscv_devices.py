"""The devices and the bus: a serial port as drivers use it, a switch, and what is refused."""

from __future__ import annotations

from collections import deque

import pytest

from punchcard.errors import PunchcardError
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.system.bus import Bus
from punchcard.machines.riscv.system.devices import Syscon, Uart
from punchcard.machines.riscv.system.platform import RAM, SYSCON, UART
from punchcard.machines.streams import END_OF_INPUT
from tests.guests import ByteGuest

DATA, IER, IIR, LCR, MCR, LSR, MSR, SCR = range(8)


class Wire:
    """The other end of a serial line."""

    def __init__(self, given: bytes = b"") -> None:
        self.given, self.sent, self.asked = deque(given), bytearray(), 0
        self.uart = Uart(self.receive, self.sent.append)

    def receive(self) -> int:
        self.asked += 1
        return self.given.popleft() if self.given else END_OF_INPUT


def test_bytes_go_out_and_come_in() -> None:
    wire = Wire(b"ab")
    uart = wire.uart
    assert uart.load(LSR, 1) == 0x61 == uart.load(LSR, 1)
    assert wire.asked == 1, "a byte is taken once, however often the program looks"
    assert [uart.load(DATA, 1), uart.load(LSR, 1), uart.load(DATA, 1)] == [ord("a"), 0x61, ord("b")]
    assert uart.load(LSR, 1) == 0x60
    assert uart.load(DATA, 1) == 0
    wire.given.append(ord("c"))
    assert uart.load(LSR, 1) == 0x61, "input may come later"
    assert uart.load(DATA, 1) == ord("c")
    for byte in b"hi":
        assert uart.store(DATA, 1, byte)
    assert bytes(wire.sent) == b"hi"


def test_the_divisor_is_not_sent() -> None:
    wire = Wire(b"x")
    wire.uart.store(LCR, 1, 0x83)
    wire.uart.store(DATA, 1, 0x6D)
    wire.uart.store(IER, 1, 0x01)
    assert [wire.uart.load(at, 1) for at in (DATA, IER, LCR)] == [0x6D, 0x01, 0x83]
    wire.uart.store(LCR, 1, 0x03)
    assert [wire.uart.load(at, 1) for at in (IER, DATA)] == [0, ord("x")]
    assert not wire.sent


def test_what_drivers_probe() -> None:
    """A scratch register, four bits of IER, loopback, and queues that are there once they are switched on."""
    wire = Wire()
    uart = wire.uart
    for value in (0xA5, 0x5A):
        uart.store(SCR, 1, value)
        assert uart.load(SCR, 1) == value
    uart.store(IER, 1, 0xFF)
    assert uart.load(IER, 1) == 0x0F
    uart.store(IER, 1, 0)
    uart.store(MCR, 1, 0x1A)
    assert uart.load(MSR, 1) == 0x90, "in loopback MSR shows OUT2 and RTS"
    uart.store(DATA, 1, 7)
    assert (uart.load(LSR, 1), uart.load(DATA, 1), bytes(wire.sent)) == (0x61, 7, b"")
    uart.store(MCR, 1, 0x0B)
    assert uart.load(MSR, 1) == 0xB0
    assert uart.load(MCR, 1) == 0x0B
    assert uart.load(IIR, 1) == 0x01
    uart.store(IIR, 1, 0x01)
    assert uart.load(IIR, 1) == 0xC1
    assert uart.load(0x20, 1) == 0
    assert uart.store(0x20, 1, 1)
    assert uart.load(0x100, 1) is None
    assert not uart.store(0x100, 1, 1)


def test_interrupts_that_are_polled() -> None:
    wire = Wire()
    uart = wire.uart
    uart.store(IER, 1, 2)
    assert [uart.load(IIR, 1) for _ in range(2)] == [2, 1], "the transmitter is empty, which is said once"
    uart.store(DATA, 1, 65)
    assert [uart.load(IIR, 1) for _ in range(2)] == [2, 1]
    uart.store(IER, 1, 3)
    wire.given.append(66)
    assert [uart.load(IIR, 1), uart.load(IIR, 1), uart.load(DATA, 1), uart.load(IIR, 1)] == [4, 4, 66, 1]


def test_clearing_the_queue_drops_a_byte_that_was_taken() -> None:
    wire = Wire(b"ab")
    wire.uart.load(LSR, 1)
    wire.uart.store(IIR, 1, 0x07)
    assert wire.uart.load(DATA, 1) == ord("b")


def test_a_uart_goes_on_from_what_was_kept() -> None:
    wire = Wire(b"ab")
    uart = wire.uart
    for at, value in ((LCR, 0x83), (DATA, 9), (IER, 1), (LCR, 3), (IER, 2), (IIR, 1), (MCR, 0x0B), (SCR, 0x77)):
        uart.store(at, 1, value)
    uart.load(LSR, 1)
    again = Uart(wire.receive, wire.sent.append, uart.saved_state)
    assert again.saved_state == uart.saved_state
    assert [again.load(at, 1) for at in (DATA, IER, IIR, IIR, LCR, MCR, SCR)] == [ord("a"), 2, 0xC2, 0xC1, 3, 0x0B, 0x77]
    for wrong in ((1, 2), (0,) * 7 + (256,)):
        with pytest.raises(PunchcardError, match="a UART was saved as"):
            Uart(wire.receive, wire.sent.append, wrong)


@pytest.mark.parametrize(("offset", "value", "power"), [
    (0, 0x1234, "on"), (4, 0x5555, "on"), (0, 0x7777, "reboot"), (0, 0x5555, "off"),
])
def test_the_switch(offset: int, value: int, power: str) -> None:
    switch = Syscon()
    assert switch.load(offset, 4) == 0
    assert switch.store(offset, 4, value)
    assert switch.power == power


class Memory(ByteGuest):
    """Some bytes at the beginning of the memory; a bus changes no register."""

    def __init__(self, a0: int = 0, a1: int = 0) -> None:
        super().__init__(bytearray(range(16)), RAM, {10: a0, 11: a1})

    def set_register(self, index: int, value: int) -> None:
        raise AssertionError


def word_of(text: str) -> int:
    return int.from_bytes(assemble(text).segments[0].data[:4], "little")


def bus(wire: Wire, misaligned: str = "complete") -> Bus:
    return Bus(range(RAM, RAM + 16), wire.uart, misaligned)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "a0", "given", "found"), [
    ("lbu a1, 5(a0)", UART, b"", 0x60), ("lw a1, 4(a0)", UART, b"", 0), ("lb a1, 0(a0)", UART, b"\xff", 0xFFFFFFFF),
    ("lbu a1, 0(a0)", UART, b"\xff", 0xFF), ("lw a1, 0(a0)", SYSCON, b"", 0), ("lw a1, 0(a0)", 0x30000000, b"", None),
    ("lbu a1, 0(a0)", UART + 0x1000, b"", None), ("lw a1, 0(a0)", RAM + 16, b"", None), ("lw a1, -1(a0)", 0, b"", None),
    ("lh a1, 1(a0)", UART, b"", None),
])
def test_loads_of_devices(text: str, a0: int, given: bytes, found: int | None) -> None:
    assert bus(Wire(given)).serve(word_of(text), Memory(a0=a0)) == found


def test_stores_to_devices() -> None:
    wire = Wire()
    served = bus(wire)
    assert served.serve(word_of("sb a1, 0(a0)"), Memory(a0=UART, a1=0x12341)) == 0
    assert bytes(wire.sent) == b"A"
    assert served.serve(word_of("sw a1, 0(a0)"), Memory(a0=0x40000000, a1=1)) is None
    assert served.serve(word_of("sw a1, 0(a0)"), Memory(a0=SYSCON, a1=1)) == 0
    assert served.power == "on"
    for value, power in ((0x5555, "off"), (0x7777, "reboot")):
        served, guest = bus(wire), Memory(a0=SYSCON, a1=value)
        assert served.switches(word_of("sw a1, 0(a0)"), guest)
        assert served.power == "on"
        assert served.serve(word_of("sw a1, 0(a0)"), guest) is None
        assert served.power == power
        assert not served.switches(word_of("sw a1, 4(a0)"), guest)
        assert not served.switches(word_of("lw a1, 0(a0)"), guest)
        assert not served.switches(word_of("sb a1, 0(a0)"), guest)


@pytest.mark.parametrize(("text", "found"), [
    ("lw a1, 1(a0)", 0x04030201), ("lh a1, 3(a0)", 0x0403), ("lhu a1, 5(a0)", 0x0605), ("lw a1, 13(a0)", None),
    ("lw a1, -1(a0)", None),
])
def test_misaligned_loads(text: str, found: int | None) -> None:
    assert bus(Wire()).serve(word_of(text), Memory(a0=RAM)) == found
    assert bus(Wire(), "trap").serve(word_of(text), Memory(a0=RAM)) is None


def test_misaligned_stores() -> None:
    guest = Memory(a0=RAM, a1=0xAABBCCDD)
    assert bus(Wire()).serve(word_of("sw a1, 3(a0)"), guest) == 0
    assert bytes(guest.memory[:8]) == bytes.fromhex("000102ddccbbaa07")
    assert bus(Wire()).serve(word_of("sh a1, 9(a0)"), guest) == 0
    assert bytes(guest.memory[8:12]) == bytes.fromhex("08ddcc0b")
    guest.memory[15] = 0x80
    assert bus(Wire()).serve(word_of("sh a1, 15(a0)"), guest) is None
    assert guest.memory[15] == 0x80
    negative = Memory(a0=RAM)
    negative.memory[2] = 0x80
    assert bus(Wire()).serve(word_of("lh a1, 1(a0)"), negative) == 0xFFFF8001


def test_what_a_bus_is_not_for() -> None:
    with pytest.raises(PunchcardError, match="0x00b50533: not a load or store"):
        bus(Wire()).serve(word_of("add a0, a0, a1"), Memory())
    with pytest.raises(PunchcardError, match="misaligned='ignore': it must be 'complete' or 'trap'"):
        bus(Wire(), "ignore")
