"""System calls of a RISC-V program, one by one, on a guest that is nothing but registers and bytes."""

from __future__ import annotations

import pytest

from punchcard.machines.riscv.calls import A0, A1, A2, A7, CALLS, STACK_ROOM, Calls
from punchcard.machines.riscv.program import STACK_POINTER
from punchcard.machines.streams import reader
from tests.guests import ByteGuest

BASE, SIZE, HEAP = 0x1000, 0x4000, 0x2000
ENOSYS, EBADF, EFAULT, EINVAL, ESRCH, ESPIPE, ENOTTY = -38, -9, -14, -22, -3, -29, -25


def guest() -> ByteGuest:
    return ByteGuest(bytearray(SIZE), BASE, {STACK_POINTER: BASE + SIZE})


class Host:
    """Calls on a guest; `call` gives the result as a signed number."""

    def __init__(self, given: bytes = b"") -> None:
        self.guest, self.written, self.errors = guest(), bytearray(), bytearray()
        self.calls = Calls(reader(given), self.written.append, memory=range(BASE, BASE + SIZE), brk_start=HEAP,
                           complain=self.errors.extend)

    def call(self, name: str, *arguments: int) -> int:
        number = next(number for number, call in CALLS.items() if call.name == name)
        return self.numbered(number, *arguments)

    def put(self, number: int, *arguments: int) -> None:
        for register, value in zip((A0, A1, A2, A7), (*arguments, *[0] * (3 - len(arguments)), number), strict=True):
            self.guest.registers[register] = value & 0xFFFFFFFF

    def numbered(self, number: int, *arguments: int) -> int:
        self.put(number, *arguments)
        assert self.calls.serve(self.guest)
        result = self.guest.registers[A0]
        return result - (1 << 32) if result >> 31 else result

    def end(self, number: int, *arguments: int) -> int | None:
        self.put(number, *arguments)
        before = list(self.guest.registers), bytes(self.guest.memory)
        assert self.calls.ending(self.guest) is not None
        assert not self.calls.ended, "it is asked, not served"
        assert not self.calls.serve(self.guest)
        assert before == (self.guest.registers, bytes(self.guest.memory)), "the end changes nothing"
        assert self.calls.ended
        return self.calls.status


def test_write_hands_on_bytes() -> None:
    host = Host()
    host.guest.store(0x1100, b"hello\0")
    assert host.call("write", 1, 0x1100, 6) == 6
    assert host.call("write", 2, 0x1101, 2) == 2
    assert (bytes(host.written), bytes(host.errors)) == (b"hello\0", b"el")
    assert host.call("write", 1, 0, 0) == 0, "no byte is anywhere"
    for file in (0, 3, -1):
        assert host.call("write", file, 0x1100, 1) == EBADF
    for address, size in ((0x0FFF, 1), (BASE + SIZE, 1), (BASE + SIZE - 1, 2), (0x1100, -1), (-1, 2)):
        assert host.call("write", 1, address, size) == EFAULT
    assert host.written == b"hello\0"


def test_read_gives_a_line_at_most() -> None:
    host = Host(b"ab\ncdef")
    assert host.call("read", 0, 0x1100, 100) == 3
    assert host.guest.load(0x1100, 4) == b"ab\n\0"
    assert host.call("read", 0, 0x1100, 2) == 2
    assert host.call("read", 0, 0x1102, 100) == 2
    assert host.guest.load(0x1100, 4) == b"cdef"
    assert host.calls.input_ended
    assert host.call("read", 0, 0x1100, 100) == 0
    assert host.call("read", 1, 0x1100, 1) == EBADF
    assert host.call("read", 0, BASE + SIZE, 1) == EFAULT


def test_a_read_that_cannot_be_stored_takes_nothing() -> None:
    host = Host(b"x")
    assert host.call("read", 0, 4, 1) == EFAULT
    assert host.call("read", 0, 0x1100, 0) == 0
    assert host.call("read", 0, 0x1100, 1) == 1


def test_after_its_end_nobody_is_asked_for_input() -> None:
    given = iter([65, -1, 66])
    calls = Calls(lambda: next(given), lambda byte: None, memory=range(BASE, BASE + SIZE), brk_start=HEAP)
    reads = guest()
    for expected in (1, 0, 0):
        reads.registers[A0], reads.registers[A1], reads.registers[A2], reads.registers[A7] = 0, 0x1100, 9, 63
        assert calls.serve(reads)
        assert reads.registers[A0] == expected


def test_vectors() -> None:
    host = Host(b"abcde\nf")
    for i, word in enumerate((0x1200, 2, 0x1300, 0, 0x1400, 9)):
        host.guest.store(0x1100 + 4 * i, word.to_bytes(4, "little"))
    assert host.call("readv", 0, 0x1100, 3) == 6
    assert host.guest.load(0x1200, 3) == b"ab\0"
    assert host.guest.load(0x1400, 5) == b"cde\n\0"
    assert host.call("writev", 1, 0x1100, 1) == 2
    assert host.call("writev", 1, 0x1100, 3) == 11
    assert host.written == b"ababcde\n\0\0\0\0\0"
    assert host.call("writev", 5, 0x1100, 1) == EBADF
    assert host.call("readv", 1, 0x1100, 1) == EBADF
    assert host.call("writev", 1, 0x1100, 1025) == EINVAL
    assert host.call("writev", 1, BASE + SIZE - 8, 2) == EFAULT
    host.guest.store(0x1114, (SIZE).to_bytes(4, "little"))
    assert host.call("writev", 1, 0x1100, 3) == EFAULT
    assert host.call("readv", 0, 0x1100, 3) == EFAULT
    assert len(host.written) == 13


def test_brk_moves_within_its_room() -> None:
    host = Host()
    assert host.call("brk", 0) == HEAP
    assert host.call("brk", HEAP + 100) == HEAP + 100
    assert host.call("brk", HEAP - 1) == HEAP + 100, "refused: below the heap"
    limit = BASE + SIZE - STACK_ROOM
    assert host.call("brk", limit) == limit
    assert host.call("brk", limit + 1) == limit, "refused: the stack is near"
    assert host.call("brk", HEAP) == HEAP
    host.guest.registers[STACK_POINTER] = 0
    assert host.call("brk", BASE + SIZE) == BASE + SIZE, "without a stack the memory is the limit"
    assert host.call("brk", BASE + SIZE + 1) == BASE + SIZE


def test_streams_look_like_a_terminal() -> None:
    host = Host()
    for file in range(3):
        assert host.call("close", file) == 0
        assert host.call("lseek", file) == ESPIPE
        assert host.call("ioctl", file) == ENOTTY
        assert host.call("fstat", file, 0x1100) == 0
    mode = int.from_bytes(host.guest.load(0x1110, 4), "little")
    assert mode & 0o170000 == 0o020000, "a character device"
    for name in ("close", "lseek", "ioctl", "fstat"):
        assert host.call(name, 3, 0x1100) == EBADF
    assert host.call("fstat", 1, BASE + SIZE - 127) == EFAULT


@pytest.mark.parametrize(("number", "arguments", "status"), [
    (93, (0,), 0), (93, (7,), 7), (94, (256 + 3,), 3), (93, (-1,), 255), (129, (1, 6), 134), (131, (1, 1, 9), 137),
])
def test_the_end(number: int, arguments: tuple[int, ...], status: int) -> None:
    assert Host().end(number, *arguments) == status


def test_a_signal_that_ends_nothing() -> None:
    host = Host()
    assert host.call("kill", 1, 0) == 0
    assert host.call("kill", 7, 9) == ESRCH
    assert host.call("tgkill", 1, 1, 1000) == EINVAL


@pytest.mark.parametrize("number", [0, 56, 98, 1024, 0xFFFFFFFF])
def test_an_unknown_call(number: int) -> None:
    assert Host().numbered(number, 1, 2, 3) == ENOSYS


def test_who_one_is() -> None:
    host = Host()
    assert [host.call(name) for name in ("getpid", "gettid", "getuid", "getegid", "set_tid_address")] == [1, 1, 0, 0, 1]
