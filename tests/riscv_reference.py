"""RV32IM by its manual, as plainly as it can be written. It shares no code with the package.

A run stops before an instruction that needs a host or cannot be executed: a system call, a word that is not an instruction,
an address that is misaligned or outside the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

WORD = 1 << 32


def signed(number: int, bits: int = 32) -> int:
    return number - (1 << bits) if number >> bits - 1 else number


def divide(a: int, b: int) -> int:
    """Rounded towards zero; -1 where the divisor is 0."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    """With the sign of the dividend; the dividend where the divisor is 0."""
    return a if b == 0 else abs(a) % abs(b) * (1 if a >= 0 else -1)


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sll": lambda a, b: a << b % 32,
    "slt": lambda a, b: signed(a) < signed(b),
    "sltu": lambda a, b: a < b,
    "xor": lambda a, b: a ^ b,
    "srl": lambda a, b: a >> b % 32,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "mul": lambda a, b: a * b,
    "mulh": lambda a, b: signed(a) * signed(b) >> 32,
    "mulhsu": lambda a, b: signed(a) * b >> 32,
    "mulhu": lambda a, b: a * b >> 32,
    "div": lambda a, b: divide(signed(a), signed(b)),
    "divu": lambda a, b: divide(a, b),
    "rem": lambda a, b: remainder(signed(a), signed(b)),
    "remu": lambda a, b: remainder(a, b),
    "sub": lambda a, b: a - b,
    "sra": lambda a, b: signed(a) >> b % 32,
}
NAMES = {0x00: "add sll slt sltu xor srl or and".split(), 0x01: "mul mulh mulhsu mulhu div divu rem remu".split(),
         0x20: "sub - - - - sra - -".split()}
BRANCHES: dict[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b, 1: lambda a, b: a != b, 4: lambda a, b: signed(a) < signed(b),
    5: lambda a, b: signed(a) >= signed(b), 6: lambda a, b: a < b, 7: lambda a, b: a >= b}


class Stop(Exception):
    """The next instruction is not executed."""


def computed(
    word: int, counter: int, x: Sequence[int], names: Mapping[int, Sequence[str]],
) -> tuple[int, int, int] | None:
    """Where an instruction that uses no memory goes on, the register that changes, and its number; None: it is another."""
    opcode, rd, funct3, funct7 = word % 128, word >> 7 & 31, word >> 12 & 7, word >> 25
    a, b, number, following = x[word >> 15 & 31], x[word >> 20 & 31], signed(word >> 20, 12), counter + 4
    if opcode == 0x37:
        return following, rd, word >> 12 << 12
    if opcode == 0x17:
        return following, rd, counter + (word >> 12 << 12)
    if opcode == 0x6F:
        distance = (word >> 31) << 20 | (word >> 12 & 255) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 1023) << 1
        return counter + signed(distance, 21), rd, following
    if opcode == 0x67 and funct3 == 0:
        return (a + number) % WORD & ~1, rd, following
    if opcode == 0x63 and funct3 in BRANCHES:
        distance = (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 63) << 5 | (word >> 8 & 15) << 1
        return counter + signed(distance, 13) if BRANCHES[funct3](a, b) else following, 0, 0
    if opcode == 0x13 and (funct3 not in (1, 5) or funct7 == 0 or (funct3 == 5 and funct7 == 0x20)):
        return following, rd, OPERATIONS[NAMES[funct7 if funct3 == 5 else 0][funct3]](a, number % WORD)
    if opcode == 0x33 and funct7 in names and names[funct7][funct3] != "-":
        return following, rd, OPERATIONS[names[funct7][funct3]](a, b)
    return (following, 0, 0) if opcode == 0x0F and funct3 < 2 else None


class Reference:
    """A memory of bytes from `base` on, 32 registers and a program counter.

    `stored_ahead`: whether the last instruction stored to the word after it, where the memory's end is its beginning.
    """

    def __init__(self, memory: bytes, registers: list[int], base: int, *, multiply: bool = True) -> None:
        self.memory, self.x, self.base, self.counter = bytearray(memory), list(registers), base, base
        self.stored_ahead = False
        self.names = {funct7: names for funct7, names in NAMES.items() if multiply or funct7 != 0x01}

    def run(self, steps: int) -> int:
        """Execute up to so many instructions; how many it has executed."""
        for made in range(steps):
            try:
                self.step()
            except Stop:
                return made
        return steps

    def step(self) -> None:
        word = int.from_bytes(self._bytes(self.counter, 4), "little")
        opcode, rd, funct3 = word % 128, word >> 7 & 31, word >> 12 & 7
        a, b, following, result = self.x[word >> 15 & 31], self.x[word >> 20 & 31], self.counter + 4, 0
        self.stored_ahead = False
        if opcode == 0x03 and funct3 in (0, 1, 2, 4, 5):
            data = self._bytes((a + signed(word >> 20, 12)) % WORD, 1 << funct3 % 4)
            result = int.from_bytes(data, "little", signed=funct3 < 4)
        elif opcode == 0x23 and funct3 in (0, 1, 2):
            address, size, rd = (a + signed(word >> 25 << 5 | rd, 12)) % WORD, 1 << funct3, 0
            self._bytes(address, size)
            self.stored_ahead = (address // 4 - following // 4) % (len(self.memory) // 4) == 0
            self.memory[address - self.base : address - self.base + size] = b.to_bytes(4, "little")[:size]
        elif (found := computed(word, self.counter, self.x, self.names)) is None:
            raise Stop
        else:
            following, rd, result = found
        if following % 4:
            raise Stop
        if rd:
            self.x[rd] = result % WORD
        self.counter = following % WORD

    def _bytes(self, address: int, size: int) -> bytes:
        place = address - self.base
        if address % size or not 0 <= place <= len(self.memory) - size:
            raise Stop
        return bytes(self.memory[place : place + size])
