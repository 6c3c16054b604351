"""A guest that is nothing but registers and bytes, for what serves programs of RISC-V."""

from __future__ import annotations


class ByteGuest:
    """Registers by number, and a memory from `base` on."""

    def __init__(self, memory: bytearray, base: int, registers: dict[int, int]) -> None:
        self.memory, self.base = memory, base
        self.registers = [registers.get(number, 0) for number in range(32)]

    def register(self, index: int) -> int:
        return self.registers[index]

    def set_register(self, index: int, value: int) -> None:
        assert 0 <= value < 1 << 32
        self.registers[index] = value

    def load(self, address: int, size: int) -> bytes:
        return bytes(self.memory[address - self.base : address - self.base + size])

    def store(self, address: int, data: bytes) -> None:
        self.memory[address - self.base : address - self.base + len(data)] = data
