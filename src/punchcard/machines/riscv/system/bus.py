"""Accesses that the processor leaves to its host: those of devices, and those inside the memory that are misaligned.

The interpreter and the host of a card serve them with this one file, each as a `Guest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, get_args

from punchcard.errors import PunchcardError
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.calls import Guest
from punchcard.machines.riscv.isa import MASK, decode
from punchcard.machines.riscv.system.devices import Device, Power, Syscon, Uart
from punchcard.machines.riscv.system.platform import SYSCON, UART

Misaligned: TypeAlias = Literal["complete", "trap"]
"""What happens to a load or store of the memory at an address that is not a multiple of its size: the host does it, as
firmware would, or the processor traps."""
PAGE_BITS = 12
OFFSET = (1 << PAGE_BITS) - 1


class Access(NamedTuple):
    """A load or store, by its instruction."""

    base: int
    """The register with the address."""
    offset: int
    source: int
    """The register that is stored."""
    size: int
    stores: bool
    extends_sign: bool
    is_atomic: bool


@lru_cache(maxsize=1 << 12)
def access_of(word: int) -> Access:
    """The access of an instruction."""
    decoded = decode(word)
    if decoded is None or not decoded.instruction.access_bytes:
        raise PunchcardError(f"the host is asked for an access, and the instruction is {word:#010x}: not a load or store")
    instruction = decoded.instruction
    is_atomic = instruction.opcode not in (isa.LOAD, isa.STORE)
    return Access(decoded.rs1, 0 if is_atomic else decoded.immediate, decoded.rs2, instruction.access_bytes,
                  instruction.writes_memory, instruction.name in ("lb", "lh"), is_atomic)


class Bus:
    """The devices of a machine, and what is done for its processor.

    memory       the byte addresses of the memory
    misaligned   see `Misaligned`
    """

    def __init__(self, memory: range, uart: Uart, misaligned: Misaligned) -> None:
        if misaligned not in get_args(Misaligned):
            raise PunchcardError(f"misaligned={misaligned!r}: it must be {' or '.join(map(repr, get_args(Misaligned)))}")
        self.uart, self._syscon = uart, Syscon()
        self._memory, self._completes = memory, misaligned == "complete"
        self._devices: Mapping[int, Device] = {UART >> PAGE_BITS: uart, SYSCON >> PAGE_BITS: self._syscon}

    @property
    def power(self) -> Power:
        """Whether the machine was switched off, or is to start again."""
        return self._syscon.power

    def serve(self, word: int, guest: Guest) -> int | None:
        """Do the access of an instruction. What it loads, as a register gets it, 0 for a store, or None if it is refused.

        An access that switches the machine off is refused, and `power` says so: the program goes no further.
        """
        access = access_of(word)
        address = (guest.register(access.base) + access.offset) & MASK
        if address % access.size:
            return self._complete(access, address, guest)
        device = self._devices.get(address >> PAGE_BITS)
        if device is None or access.is_atomic:
            return None
        if access.stores:
            value = guest.register(access.source) & (1 << 8 * access.size) - 1
            stored = device.store(address & OFFSET, access.size, value)
            return 0 if stored and self._syscon.power == "on" else None
        loaded = device.load(address & OFFSET, access.size)
        return None if loaded is None else _extended(access, loaded)

    def switches(self, word: int, guest: Guest) -> bool:
        """Whether the access of an instruction would switch the machine off. Nothing is changed."""
        access, asked = access_of(word), Syscon()
        address = (guest.register(access.base) + access.offset) & MASK
        if access.stores and not access.is_atomic and address >> PAGE_BITS == SYSCON >> PAGE_BITS:
            asked.store(address & OFFSET, access.size, guest.register(access.source) & (1 << 8 * access.size) - 1)
        return asked.power != "on"

    def _complete(self, access: Access, address: int, guest: Guest) -> int | None:
        """A misaligned access, byte by byte, where all of it is in the memory."""
        is_inside = address in self._memory and address + access.size - 1 in self._memory
        if not self._completes or access.is_atomic or not is_inside:
            return None
        if access.stores:
            guest.store(address, guest.register(access.source).to_bytes(4, "little")[: access.size])
            return 0
        return _extended(access, int.from_bytes(guest.load(address, access.size), "little"))


def _extended(access: Access, loaded: int) -> int:
    """A loaded number as 32 bits."""
    top = 1 << 8 * access.size - 1
    return (loaded & top - 1) - (loaded & top) & MASK if access.extends_sign else loaded
