"""System calls: what a program asks its host for by `ecall`, with the numbers of Linux. No tensor here.

    a7            which call;  a0, a1, a2  its arguments;  a0  is then its result, or a negative error number

The interpreter and the host of the card serve calls with this one file, each as a `Guest`: registers and bytes of memory.
A call that ends the program changes nothing: the program counter stays at the `ecall`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from punchcard.machines.riscv.isa import WORD_BYTES
from punchcard.machines.riscv.program import STACK_POINTER, RiscvProgram
from punchcard.machines.streams import END_OF_INPUT, Read, Write

if TYPE_CHECKING:
    from punchcard.engines.controls import NumbersAhead

A0, A1, A2, A7 = 10, 11, 12, 17
ESRCH, EBADF, EFAULT, EINVAL, ENOTTY, ESPIPE, ENOSYS = 3, 9, 14, 22, 25, 29, 38
"""Errors, as Linux numbers them."""

EXIT, EXIT_GROUP, KILL, TGKILL = 93, 94, 129, 131
SIGNAL_AT = {KILL: A1, TGKILL: A2}
"""The register of the signal."""
SIGNALLED = 128
"""A program that is ended by signal s has the status 128 + s, as in a shell."""

STDIN, STDOUT, STDERR = range(3)
STACK_ROOM = 1024
"""Bytes that the heap leaves free below the stack pointer."""
MOST_VECTORS = 1024
OWN_PROCESS = 1
STAT_SIZE, STAT_MODE, STAT_LINKS, STAT_BLOCK = 128, 16, 20, 56
TERMINAL = 0o020620
"""The file type and rights of a terminal."""


class Guest(Protocol):
    """What a call sees of a program. Numbers are unsigned; addresses are bytes, and are in the memory."""

    def register(self, index: int) -> int:
        """Register x0 to x31."""

    def set_register(self, index: int, value: int) -> None:
        """Change a register."""

    def load(self, address: int, size: int) -> bytes:
        """Bytes of the memory."""

    def store(self, address: int, data: bytes) -> None:
        """Change bytes of the memory."""


class SystemCall(NamedTuple):
    """A call's name, and what serves it, given the guest and three arguments."""

    name: str
    serve: Callable[..., int] | None


UNKNOWN = SystemCall("", None)


class Calls:
    """Serves the calls of one run.

    read, write     a byte of the input, and of the output: what is written to file 1
    complain        takes what is written to file 2
    memory          the byte addresses that there are
    brk_start       where the heap begins; `brk` is where it ends now
    brk_end         where it must end: at the arguments, or with the memory
    ahead           the input that is there without waiting: then it is not read byte by byte
    input_ended     the end of the input was read, so no more is asked for
    status          the exit status, once the program has `ended`
    """

    def __init__(
        self, read: Read, write: Write, *, memory: range, brk_start: int, brk_end: int | None = None, brk: int | None = None,
        input_ended: bool = False, complain: Callable[[bytes], None] = lambda message: None,
        ahead: NumbersAhead | None = None,
    ) -> None:
        self._read, self._write, self._memory, self._complain = read, write, memory, complain
        self.brk_start, self._brk_end = brk_start, memory.stop if brk_end is None else brk_end
        self.brk = brk_start if brk is None else brk
        self.input_ended, self._ahead = input_ended, ahead
        self.status: int | None = None

    @classmethod
    def of(cls, program: RiscvProgram, memory: int, read: Read, write: Write, **more: Any) -> Calls:
        """The calls of a program in a memory of so many words."""
        addresses = range(program.base, program.base + WORD_BYTES * memory)
        stack = program.stack_pointer(memory)
        return cls(read, write, memory=addresses, brk_start=program.heap_start,
                   brk_end=stack if stack >= program.heap_start else None, **more)

    @property
    def ended(self) -> bool:
        return self.status is not None

    def ending(self, guest: Guest) -> int | None:
        """The exit status, if the current call ends the program; nothing is changed."""
        number = guest.register(A7)
        if number in (EXIT, EXIT_GROUP):
            return guest.register(A0) & 0xFF
        signal_at = SIGNAL_AT.get(number)
        if signal_at is not None and guest.register(A0) in (0, OWN_PROCESS):
            signal = guest.register(signal_at)
            return SIGNALLED + signal if 0 < signal < SIGNALLED - 1 else None
        return None

    def serve(self, guest: Guest) -> bool:
        """Do what the call asks for; False, and nothing is changed, where it ends the program."""
        self.status = self.ending(guest)
        if not self.ended:
            self.serve_one(guest)
        return not self.ended

    def serve_one(self, guest: Guest) -> None:
        """Do what a call asks for that does not end the program.

        What `read` or `write` raises passes through before anything of the guest is changed.
        """
        call, register = CALLS.get(guest.register(A7), UNKNOWN), guest.register
        result = -ENOSYS if call.serve is None else call.serve(self, guest, register(A0), register(A1), register(A2))
        guest.set_register(A0, result & 0xFFFFFFFF)

    def _has(self, address: int, size: int) -> bool:
        return size == 0 or (address in self._memory and address + size - 1 in self._memory)

    def _read_bytes(self, size: int) -> bytes:
        """Up to `size` bytes of the input: to the end of a line, as a terminal gives them, or to the end."""
        found = bytearray()
        while len(found) < size and not self.input_ended and not found.endswith(b"\n"):
            known = self._ahead and self._ahead.ahead(size - len(found))
            if self._ahead and known:
                line = bytes(known[0])
                line = line[: line.find(b"\n") + 1] or line
                self.input_ended = not line and known[1]
                self._ahead.take(len(line), int(self.input_ended))
                found += line
                continue
            byte = self._read()
            if byte == END_OF_INPUT:
                self.input_ended = True  # a terminal could continue after its end: the program must not see that
            else:
                found.append(byte)
        return bytes(found)

    def read(self, guest: Guest, file: int, address: int, size: int) -> int:
        if file != STDIN:
            return -EBADF
        if not self._has(address, size):
            return -EFAULT
        found = self._read_bytes(size)
        guest.store(address, found)
        return len(found)

    def write(self, guest: Guest, file: int, address: int, size: int) -> int:
        if file not in (STDOUT, STDERR):
            return -EBADF
        if not self._has(address, size):
            return -EFAULT
        data = guest.load(address, size)
        if file == STDERR:
            self._complain(data)
        else:
            for byte in data:
                self._write(byte)
        return size

    def vectors(self, guest: Guest, address: int, count: int) -> list[tuple[int, int]] | int:
        """Pairs of an address and a size, or an error; all of them are in the memory."""
        if count > MOST_VECTORS:
            return -EINVAL
        if not self._has(address, 8 * count):
            return -EFAULT
        words = guest.load(address, 8 * count)
        pairs = [tuple(int.from_bytes(words[at : at + 4], "little") for at in (8 * i, 8 * i + 4)) for i in range(count)]
        good = all(self._has(*pair) for pair in pairs)
        return [(where, size) for where, size in pairs] if good else -EFAULT

    def write_vectors(self, guest: Guest, file: int, address: int, count: int) -> int:
        pairs = self.vectors(guest, address, count)
        if isinstance(pairs, int):
            return pairs
        results = [self.write(guest, file, *pair) for pair in pairs]
        return next((result for result in results if result < 0), sum(results))

    def read_vectors(self, guest: Guest, file: int, address: int, count: int) -> int:
        """One line, or what there is of it, over the places in turn."""
        pairs = self.vectors(guest, address, count)
        if isinstance(pairs, int):
            return pairs
        if file != STDIN:
            return -EBADF
        found = self._read_bytes(sum(size for _, size in pairs))
        done = 0
        for where, size in pairs:
            guest.store(where, found[done : done + size])
            done += size
        return len(found)

    def set_brk(self, guest: Guest, wanted: int, *rest: int) -> int:
        """Move the end of the heap, if there is room for that; the result is where it is then."""
        stack = guest.register(STACK_POINTER)
        limit = stack - STACK_ROOM if self.brk_start < stack <= self._memory.stop else self._brk_end
        if self.brk_start <= wanted <= limit:
            self.brk = wanted
        return self.brk

    def status_of(self, guest: Guest, file: int, address: int, *rest: int) -> int:
        """All three streams are character devices, so that a library writes line by line."""
        if file > STDERR:
            return -EBADF
        if not self._has(address, STAT_SIZE):
            return -EFAULT
        found = bytearray(STAT_SIZE)
        for place, value in ((STAT_MODE, TERMINAL), (STAT_LINKS, 1), (STAT_BLOCK, 1024)):
            found[place : place + 4] = value.to_bytes(4, "little")
        guest.store(address, bytes(found))
        return 0

    def signal(self, guest: Guest, process: int, *rest: int) -> int:
        """A signal that ends nothing: 0 asks whether a process is there."""
        wanted = rest[0] if guest.register(A7) == KILL else rest[1]
        return -ESRCH if process not in (0, OWN_PROCESS) else -EINVAL if wanted else 0


def on_stream(result: int) -> Callable[..., int]:
    """A call that gives this for one of the three streams, and does nothing."""
    return lambda calls, guest, file, *rest: result if file <= STDERR else -EBADF


def always(result: int) -> Callable[..., int]:
    return lambda calls, guest, *rest: result


CALLS: Mapping[int, SystemCall] = {
    29: SystemCall("ioctl", on_stream(-ENOTTY)),
    57: SystemCall("close", on_stream(0)),
    62: SystemCall("lseek", on_stream(-ESPIPE)),
    63: SystemCall("read", Calls.read),
    64: SystemCall("write", Calls.write),
    65: SystemCall("readv", Calls.read_vectors),
    66: SystemCall("writev", Calls.write_vectors),
    80: SystemCall("fstat", Calls.status_of),
    EXIT: SystemCall("exit", None),
    EXIT_GROUP: SystemCall("exit_group", None),
    96: SystemCall("set_tid_address", always(OWN_PROCESS)),
    KILL: SystemCall("kill", Calls.signal),
    TGKILL: SystemCall("tgkill", Calls.signal),
    172: SystemCall("getpid", always(OWN_PROCESS)),
    174: SystemCall("getuid", always(0)),
    175: SystemCall("geteuid", always(0)),
    176: SystemCall("getgid", always(0)),
    177: SystemCall("getegid", always(0)),
    178: SystemCall("gettid", always(OWN_PROCESS)),
    214: SystemCall("brk", Calls.set_brk),
}
"""The calls by number. Those without a function end the program."""
