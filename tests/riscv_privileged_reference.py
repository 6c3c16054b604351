"""RV32IMA with traps, one loop after the other, as plainly as it can be written. It shares no code with the package.

Control registers are numbers as a program reads them. The CLINT is at 0x11000000. What the processor cannot do itself goes
to `bus.serve(word, self)`: a number for rd, or None, which refuses it.
"""

from __future__ import annotations

from typing import Any

from tests.riscv_reference import NAMES, WORD, computed, signed

MSTATUS, MISA, MIE, MTVEC, MSCRATCH, MEPC, MCAUSE, MTVAL, MIP = 0x300, 0x301, 0x304, 0x305, 0x340, 0x341, 0x342, 0x343, 0x344
WRITABLE = {MSTATUS: 0x1888, MIE: 0x888, MTVEC: 0xFFFFFFFC, MSCRATCH: 0xFFFFFFFF, MEPC: 0xFFFFFFFC, MCAUSE: 0x8000001F,
            MTVAL: 0xFFFFFFFF}
ZEROS = {0x30A, 0x310, 0x31A, 0x320, *range(0x323, 0x340), *range(0x3A0, 0x3F0), *range(0x7A0, 0x7A4),
         *range(0xB03, 0xB20), *range(0xB83, 0xBA0), *range(0xF11, 0xF16)}
CYCLE = {0xB00: 0, 0xB02: 0, 0xC00: 0, 0xC02: 0, 0xB80: 32, 0xB82: 32, 0xC80: 32, 0xC82: 32}
TIME = {0xC01: 0, 0xC81: 32}
MSIP, COMPARE, NOW = 0x11000000, 0x11004000, 0x1100BFF8
WFI, MRET = 0x10500073, 0x30200073
SWAP, ADD, LR, SC, XOR, OR, AND, MIN, MAX, MINU, MAXU = 1, 0, 2, 3, 4, 8, 12, 16, 20, 24, 28


class Trapped(Exception):
    """Cause and mtval."""


class PrivilegedReference:
    """A memory of bytes from `base` on. `fetched` is the word of the next loop; None: it is outside the memory.

    `trapped` counts traps.
    """

    def __init__(self, memory: bytes, registers: list[int], base: int, bus: Any, *, multiply: bool = True) -> None:
        self.memory, self.x, self.base, self.counter, self.bus = bytearray(memory), list(registers), base, base, bus
        self.names = {funct7: names for funct7, names in NAMES.items() if multiply or funct7 != 0x01}
        self.csr = dict.fromkeys(WRITABLE, 0)
        self.misa = 0x40101101 if multiply else 0x40100101
        self.machine, self.now, self.cycles, self.compare, self.msip = True, 0, 0, WORD * WORD - 1, 0
        self.reserved, self.reserved_place = False, 0
        self.port, self.ready, self.refused, self.asks = 0, False, False, False
        self.trapped = 0
        self.fetched = self._fetch()

    def rows(self) -> dict[str, int]:
        """The control state, by the names of the rows that hold it."""
        status, enabled, cause = self.csr[MSTATUS], self.csr[MIE], self.csr[MCAUSE]
        return {
            "mode": int(self.machine), "mstatus.mie": status >> 3 & 1, "mstatus.mpie": status >> 7 & 1,
            "mstatus.mpp": status >> 11 & 1, "mie.software": enabled >> 3 & 1, "mie.timer": enabled >> 7 & 1,
            "mie.external": enabled >> 11, "mip.software": self.msip, "mip.timer": int(self.now >= self.compare),
            "mtvec": self.csr[MTVEC] >> 2, "mscratch": self.csr[MSCRATCH], "mepc": self.csr[MEPC] >> 2,
            "mcause.code": cause & 31, "mcause.interrupt": cause >> 31, "mtval": self.csr[MTVAL],
            "mtime": self.now % WORD, "mtimeh": self.now // WORD, "mtimecmp": self.compare % WORD,
            "mtimecmph": self.compare // WORD, "mcycle": self.cycles % WORD, "mcycleh": self.cycles // WORD,
            "reservation.address": self.reserved_place, "reservation.valid": int(self.reserved), "port.word": self.port,
            "port.ready": int(self.ready), "port.refused": int(self.refused)}

    def register(self, index: int) -> int:
        return self.x[index]

    def load(self, address: int, size: int) -> bytes:
        return bytes(self.memory[address - self.base : address - self.base + size])

    def store(self, address: int, data: bytes) -> None:
        self.memory[address - self.base : address - self.base + len(data)] = data

    def step(self) -> None:
        """One loop; what the one before has asked for is answered first."""
        if self.asks:
            found = self.bus.serve(self.fetched, self)
            self.ready, self.refused, self.asks = found is not None, found is None, False
            self.port = self.port if found is None else found
        self.next_now, self.next_cycles = (self.now + 1) % WORD**2, (self.cycles + 1) % WORD**2
        self.next_ready = False
        try:
            following, rd, result = self._execute()
        except Trapped as trap:
            cause, value = trap.args
            status = self.csr[MSTATUS]
            self.csr[MSTATUS] = (status & 8) << 4 | (0x1800 if self.machine else 0)
            self.csr[MCAUSE], self.csr[MTVAL], self.csr[MEPC] = cause, value % WORD, self.counter
            self.machine, self.reserved = True, False
            self.trapped += 1
            following, rd, result = self.csr[MTVEC], 0, 0
        if rd:
            self.x[rd] = result % WORD
        self.now, self.cycles, self.ready, self.refused = self.next_now, self.next_cycles, self.next_ready, False
        self.counter = following % WORD
        self.fetched = self._fetch()

    def _fetch(self) -> int | None:
        return self._word(self.counter) if self._holds(self.counter, 4) else None

    def _holds(self, address: int, size: int) -> bool:
        return address % size == 0 and self.base <= address <= self.base + len(self.memory) - size

    def _word(self, address: int) -> int:
        return int.from_bytes(self.load(address, 4), "little")

    @property
    def pending(self) -> int:
        return self.csr[MIE] & (self.msip << 3 | (self.now >= self.compare) << 7)

    def _execute(self) -> tuple[int, int, int]:
        """Where it goes on, the register that changes, and what it becomes."""
        word, enabled = self.fetched, not self.machine or self.csr[MSTATUS] & 8
        if self.pending and enabled and not self.ready and not self.refused and word != WFI:
            raise Trapped(0x80000003 if self.pending & 8 else 0x80000007, 0)
        if word is None:
            raise Trapped(1, self.counter)
        opcode, funct3 = word & 127, word >> 12 & 7
        if opcode == 0x73:
            return self._system(word, funct3)
        if opcode in (0x03, 0x23, 0x2F):
            return self._access(word, opcode, funct3)
        found = computed(word, self.counter, self.x, self.names)
        if found is None:
            raise Trapped(2, word)
        if found[0] % 4:
            raise Trapped(0, found[0])
        return found

    def _system(self, word: int, funct3: int) -> tuple[int, int, int]:
        status = self.csr[MSTATUS]
        if word == 0x73:
            raise Trapped(11 if self.machine else 8, 0)
        if word == 0x100073:
            raise Trapped(3, self.counter)
        if word == WFI:
            return self.counter + (4 if self.pending else 0), 0, 0
        if word == MRET and self.machine:
            self.machine, self.reserved = status & 0x1800 == 0x1800, False
            self.csr[MSTATUS] = 0x80 | status >> 4 & 8
            return self.csr[MEPC], 0, 0
        if funct3 in (0, 4):
            raise Trapped(2, word)
        number, field = word >> 20, word >> 15 & 31
        writes, value = funct3 & 3 == 1 or field > 0, field if funct3 & 4 else self.x[field]
        old = self._read(number)
        if old is None or (not self.machine and number & 0x300) or (writes and number >> 10 == 3):
            raise Trapped(2, word)
        if writes:
            self._write(number, {1: value, 2: old | value, 3: old & ~value}[funct3 & 3])
        return self.counter + 4, word >> 7 & 31, old

    def _read(self, number: int) -> int | None:
        if number in self.csr:
            return self.csr[number]
        if number in CYCLE or number in TIME:
            return (self.cycles >> CYCLE[number] if number in CYCLE else self.now >> TIME[number]) % WORD
        if number == MIP:
            return self.msip << 3 | (self.now >= self.compare) << 7
        return {MISA: self.misa, 0x306: 7, 0x3B0: WORD - 1}.get(number, 0 if number in ZEROS else None)

    def _write(self, number: int, value: int) -> None:
        if number == MSTATUS and value & 0x1800 != 0x1800:
            value &= ~0x1800
        if number in self.csr:
            self.csr[number] = value & WRITABLE[number]
        elif number in (0xB00, 0xB02):
            self.next_cycles = self.cycles // WORD * WORD + value
        elif number in (0xB80, 0xB82):
            self.next_cycles = self.cycles % WORD + value * WORD

    def _access(self, word: int, opcode: int, funct3: int) -> tuple[int, int, int]:
        a, b, rd, following = self.x[word >> 15 & 31], self.x[word >> 20 & 31], word >> 7 & 31, self.counter + 4
        stores, kind, offset = opcode == 0x23, word >> 27, 0
        if opcode == 0x03 and funct3 in (0, 1, 2, 4, 5):
            offset = signed(word >> 20, 12)
        elif opcode == 0x23 and funct3 < 3:
            rd, offset = 0, signed(word >> 25 << 5 | rd, 12)
        elif opcode == 0x2F and funct3 == 2 and (kind < 5 or kind % 4 == 0) and (kind != LR or not word >> 20 & 31):
            stores = kind != LR
        else:
            raise Trapped(2, word)
        address, size = (a + offset) % WORD, 1 << funct3 % 4
        if opcode == 0x2F and kind != LR and (self.ready or self._holds(address, 4)):
            return self._atomic(kind, address, b, rd)
        if self._holds(address, size):
            if stores:
                self.store(address, b.to_bytes(4, "little")[:size])
                self.reserved = False
                return following, 0, 0
            if opcode == 0x2F:
                self.reserved, self.reserved_place = True, address // 4
            return following, rd, int.from_bytes(self.load(address, size), "little", signed=funct3 < 2)
        if self.ready:
            self.reserved = self.reserved and not stores
            return following, rd, self.port
        if self.refused:
            raise Trapped((6 if stores else 4) if address % size else (7 if stores else 5), address)
        if opcode != 0x2F and size == 4 and address in (MSIP, COMPARE, COMPARE + 4, NOW, NOW + 4):
            if not stores:
                return following, rd, self._clint(address)
            self._set_clint(address, b)
            self.reserved = False
            return following, 0, 0
        self.asks = True
        return self.counter, 0, 0

    def _clint(self, address: int) -> int:
        whole = self.msip if address == MSIP else self.compare if address < NOW else self.now
        return whole >> (32 if address % 8 else 0) & WORD - 1

    def _set_clint(self, address: int, value: int) -> None:
        if address == MSIP:
            self.msip = value & 1
        elif address == COMPARE:
            self.compare = self.compare // WORD * WORD + value
        elif address == COMPARE + 4:
            self.compare = self.compare % WORD + value * WORD
        elif address == NOW:
            self.next_now = self.now // WORD * WORD + value
        else:
            self.next_now = self.now % WORD + value * WORD

    def _atomic(self, kind: int, address: int, b: int, rd: int) -> tuple[int, int, int]:
        """Two loops: the memory in the first, rd in the second."""
        held = self.reserved and self.reserved_place == address // 4
        self.reserved = False
        if self.ready:
            return self.counter + 4, rd, self.port
        old = self._word(address)
        new = {SWAP: b, ADD: old + b, XOR: old ^ b, OR: old | b, AND: old & b, MINU: min(old, b), MAXU: max(old, b),
               MIN: min(old, b, key=signed), MAX: max(old, b, key=signed), SC: b if held else old}[kind]
        self.store(address, (new % WORD).to_bytes(4, "little"))
        self.port, self.next_ready = (int(not held) if kind == SC else old), True
        return self.counter, 0, 0
