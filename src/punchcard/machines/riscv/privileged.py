"""The interpreter with traps: control registers, two modes, interrupts, a timer, atomic instructions, and a bus to devices.

A step is one loop of the machine. What would be a fault elsewhere is a trap to the program's own handler. Two things take
more than one step: an instruction with two results (sc.w, amo) stores to the memory in its first and to rd in its second;
and an access that the processor cannot do itself asks the bus in its first and ends in its second. That is an access outside
the memory and the CLINT, or one that is misaligned: whether it is done or refused is the bus's policy.

All decisions of a step are by the state that it begins with. Numbers are in `rows`, by the names in `csrs.ROWS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from punchcard.machines.riscv import csrs, traps
from punchcard.machines.riscv.calls import Guest
from punchcard.machines.riscv.csrs import CLINT, COUNTERS, RESET, ROWS
from punchcard.machines.riscv.isa import MASK, PRIVILEGED, WORD_BITS, WORD_BYTES, Decoded, decode
from punchcard.machines.riscv.oracle import RiscvInterpreter, RiscvState, functions_of
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.words.text import python_text
from punchcard.words.word import Word, constant, variable


class Bus(Protocol):
    """What serves the accesses that the processor cannot do."""

    @property
    def power(self) -> str:
        """Whether the machine is "on": an access may switch it off, or ask for a new start."""

    def serve(self, word: int, guest: Guest) -> int | None:
        """Do the access of an instruction: what rd becomes, or 0 for a store; or None if it is refused: a trap."""

    def switches(self, word: int, guest: Guest) -> bool:
        """Whether the access of an instruction would end the run. Nothing is changed."""


class EmptyBus:
    """A bus without devices: every access is refused."""

    power = "on"

    def serve(self, word: int, guest: Guest) -> int | None:
        return None

    def switches(self, word: int, guest: Guest) -> bool:
        return False


class Trap(Exception):
    """The instruction does nothing; the program continues in its handler."""

    def __init__(self, cause: int, value: int = 0) -> None:
        super().__init__(f"{csrs.CAUSES[cause]}, mtval {value:#x}")
        self.cause, self.value = cause, value


@dataclass(frozen=True, repr=False)
class PrivilegedState(RiscvState):
    """What a run is judged by: `control` are the numbers of all rows in `csrs.ROWS`, in that order."""

    control: tuple[int, ...] = ()


Rows = Mapping[str, int]


def row(name: str) -> Word:
    """Rows as a variable of their name."""
    return variable(name, ROWS[name])


def number_function(word: Word, *names: str) -> Callable[..., int]:
    """A Python function of the rows, and of variables with other names: the number of a word."""
    made: Callable[..., int] = eval(f"lambda {', '.join(('rows', *names))}: int({_text(word)})", {})
    return made


def rows_function(words: Mapping[str, Word], *names: str) -> Callable[..., dict[str, int]]:
    """The same for several words: their numbers, by the names that they have."""
    pairs = ", ".join(f"{name!r}: int({_text(word)})" for name, word in words.items())
    made: Callable[..., dict[str, int]] = eval(f"lambda {', '.join(('rows', *names))}: {{{pairs}}}", {})
    return made


def _text(word: Word) -> str:
    return python_text(lambda leaf: f"rows[{leaf.data!r}]" if leaf.data in ROWS else str(leaf.data))(word)


def _words(*names: str) -> tuple[Word, ...]:
    return tuple(variable(name, WORD_BITS) for name in names)


is_awake, is_interrupted, interrupt, is_due = (
    number_function(word(row)) for word in (traps.is_awake, traps.is_interrupted, traps.interrupt, traps.is_due))
entry = rows_function(traps.entry(row, *_words("counter", "cause", "value")), "counter", "cause", "value")
exit_ = rows_function(traps.exit(row))
mtvec, mepc = (number_function(traps.address(row, name)) for name in ("mtvec", "mepc"))
counts = [(pair, rows_function(traps.counted(row, *pair))) for pair in COUNTERS]


@cache
def csr_functions(number: int, multiply: bool) -> tuple[Callable[[Rows], int], Callable[[Rows, int], dict[str, int]]]:
    """The value of a control register; and the rows that a write sets, for what is written."""
    csr = csrs.BY_NUMBER[number]
    fixed = constant(csrs.fixed_bits(csr, multiply), WORD_BITS)
    return number_function(csr.read(row, fixed)), rows_function(csr.written(*_words("value")), "value")


class PrivilegedInterpreter(RiscvInterpreter):
    """Executes a program with traps, from machine mode on. It halts when the bus switches it off, or it writes to `tohost`.

    word        the instruction of the next step, fetched at the end of the one before; None if it is outside the memory
    requested   whether the last step asks the bus. The bus answers with the next step, or before, by `serve`
    trapped     the cause of the trap that the last step has taken, or None
    """

    def __init__(self, program: RiscvProgram, memory: int, bus: Bus | None = None, *, multiply: bool = True) -> None:
        super().__init__(program, memory, multiply=multiply)
        self.bus: Bus = EmptyBus() if bus is None else bus
        self.rows = {**dict.fromkeys(ROWS, 0), **RESET}
        self.requested, self._tohost = False, program.tohost_word
        self.trapped: int | None = None
        self._extensions |= set(PRIVILEGED)
        self.word = self._fetched()

    @property
    def state(self) -> PrivilegedState:
        return PrivilegedState(tuple(self.registers), tuple(self.memory), self.program_counter,
                               tuple(self.rows[name] for name in ROWS))

    @property
    def fault(self) -> None:
        """Nothing ends a run but the bus: what goes wrong is a trap."""
        return None

    @property
    def halted(self) -> bool:
        if self.requested and self.bus.power == "on" and self._asked() and self.bus.switches(self._asked(), self):
            self.serve()
        return self.bus.power != "on" or (self._tohost is not None and bool(self.memory[self._tohost] & 1))

    @property
    def waits(self) -> bool:
        return self.requested

    def step(self) -> None:
        if self.halted:
            return
        self.serve()
        new = {"port.ready": 0, "port.refused": 0}
        self.trapped = None
        try:
            following = self._attempt(new)
        except Trap as trap:
            new |= entry(self.rows, self.program_counter, trap.cause, trap.value)
            following, self.trapped = mtvec(self.rows), trap.cause
        for pair, count in counts:
            new |= count(self.rows) if new.keys().isdisjoint(pair) else {}
        self.rows |= new
        self.rows["mip.timer"] = is_due(self.rows)
        self.program_counter = following
        self.word = self._fetched()
        self.steps += 1

    def serve(self) -> None:
        """Let the bus answer, as the host of a card does after the loop that asks."""
        if self.requested and self.bus.power == "on":
            found = self.bus.serve(self._asked(), self)
            if self.bus.power != "on":
                return
            self.requested = False
            self.rows |= {"port.refused": 1} if found is None else {"port.ready": 1, "port.word": found}

    def _fetched(self) -> int | None:
        return self._word() if self.program_counter in self._addresses else None

    def _asked(self) -> int:
        """The instruction that asks the bus."""
        assert self.word is not None
        return self.word

    # One step

    def _attempt(self, new: dict[str, int]) -> int:
        """Execute the instruction, or raise `Trap`: the rows that it changes go to `new`. Where the program continues."""
        answered = self.rows["port.ready"] or self.rows["port.refused"]
        decoded = None if self.word is None else decode(self.word)
        waits = decoded is not None and decoded.instruction.name == "wfi"  # an interrupt is taken after it, not in it
        if is_interrupted(self.rows) and not answered and not waits:
            raise Trap(interrupt(self.rows))
        if self.word is None:
            raise Trap(csrs.FETCH_FAULT, self.program_counter)
        if decoded is None or decoded.instruction.extension not in self._extensions:
            raise Trap(csrs.ILLEGAL, self.word)
        if decoded.instruction.uses_csr:
            return self._control(decoded, self.word, new)
        if decoded.instruction.format == "system":
            return self._system(decoded.instruction.name, self.word, new)
        if decoded.instruction.access_bytes:
            return self._access(decoded, new)
        target = self._target(decoded)
        if target % WORD_BYTES:
            raise Trap(csrs.MISALIGNED_FETCH, target)
        for result in functions_of(decoded.instruction.name).result(*self._operands(decoded)):
            self.set_register(decoded.rd, result)
        return target

    @property
    def _following(self) -> int:
        return (self.program_counter + WORD_BYTES) & MASK

    def _system(self, name: str, word: int, new: dict[str, int]) -> int:
        mode, counter = self.rows["mode"], self.program_counter
        if name == "ecall":
            raise Trap(csrs.MACHINE_CALL if mode == csrs.MACHINE else csrs.USER_CALL)
        if name == "ebreak":
            raise Trap(csrs.BREAKPOINT, counter)
        if name == "wfi":
            return self._following if is_awake(self.rows) else counter
        if mode != csrs.MACHINE:
            raise Trap(csrs.ILLEGAL, word)
        new |= exit_(self.rows)
        return mepc(self.rows)

    def _control(self, decoded: Decoded, word: int, new: dict[str, int]) -> int:
        """A control register: rd becomes what it was."""
        if not csrs.is_lawful(decoded.csr, self.rows["mode"], decoded.writes_csr):
            raise Trap(csrs.ILLEGAL, word)
        read, written = csr_functions(decoded.csr, "M" in self._extensions)
        old = read(self.rows)
        if decoded.writes_csr:
            operands = self._operands(decoded, loaded=old)
            new |= written(self.rows, functions_of(decoded.instruction.name).update(*operands)[0])
        self.set_register(decoded.rd, old)
        return self._following

    # Accesses

    def _access(self, decoded: Decoded, new: dict[str, int]) -> int:
        """A load, a store or an atomic instruction. Each that writes ends a reservation, once it is done."""
        instruction, address = decoded.instruction, self._address(decoded)
        size, ready = instruction.access_bytes, self.rows["port.ready"]
        clint = CLINT.get(address) if instruction.name in ("lw", "sw") else None
        if instruction.has_two_results and ready:
            self._answer(decoded, new)
        elif address % size == 0 and address in self._addresses:
            if instruction.has_two_results:
                self._first_half(decoded, address, new)
                return self.program_counter
            self._move(decoded, address, new)
        elif ready:
            self._answer(decoded, new)
        elif self.rows["port.refused"]:
            raise Trap(_refusal(instruction.writes_memory, address % size > 0), address)
        elif clint is not None and instruction.writes_memory:
            new |= {clint: self.registers[decoded.rs2] & (1 << ROWS[clint]) - 1, "reservation.valid": 0}
        elif clint is not None:
            self.set_register(decoded.rd, self.rows[clint])
        else:
            self.requested = True
            return self.program_counter
        return self._following

    def _move(self, decoded: Decoded, address: int, new: dict[str, int]) -> None:
        """A load or store in the memory, which has bytes: those at the address are the lowest of a word."""
        instruction, size = decoded.instruction, decoded.instruction.access_bytes
        loaded = int.from_bytes(self.load(address, size), "little") if instruction.reads_memory else 0
        result = functions_of(instruction.name).result(*self._operands(decoded, 0, loaded))[0]
        if instruction.writes_memory:
            self.store(address, result.to_bytes(WORD_BYTES, "little")[:size])
            new["reservation.valid"] = 0
            return
        self.set_register(decoded.rd, result)
        if instruction.format == "reserve":
            new |= {"reservation.valid": 1, "reservation.address": address // WORD_BYTES}

    def _first_half(self, decoded: Decoded, address: int, new: dict[str, int]) -> None:
        """sc.w or an amo: the memory gets its word, and the other result waits in the port."""
        loaded = int.from_bytes(self.load(address, WORD_BYTES), "little")
        functions, operands = functions_of(decoded.instruction.name), self._operands(decoded, 0, loaded)
        result, update = functions.result(*operands)[0], functions.update(*operands)[0]
        reserved = self.rows["reservation.valid"] and self.rows["reservation.address"] == address // WORD_BYTES
        if decoded.instruction.name == "sc.w" and not reserved:
            result, update = 1, loaded
        self.store(address, update.to_bytes(WORD_BYTES, "little"))
        new |= {"port.word": result, "port.ready": 1, "reservation.valid": 0}

    def _answer(self, decoded: Decoded, new: dict[str, int]) -> None:
        """What is in the port goes to rd; a store has none."""
        if decoded.instruction.writes_memory:
            new["reservation.valid"] = 0
        if "rd" in decoded.instruction.uses:
            self.set_register(decoded.rd, self.rows["port.word"])


def _refusal(stores: bool, misaligned: bool) -> int:
    """The cause of a trap by an access that the bus refuses."""
    if misaligned:
        return csrs.MISALIGNED_STORE if stores else csrs.MISALIGNED_LOAD
    return csrs.STORE_FAULT if stores else csrs.LOAD_FAULT
