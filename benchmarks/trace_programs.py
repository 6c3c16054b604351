"""Programs that never end, for `benchmarks/traces.py`: small ones in assembly, images, and C programs begun again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import punchcard as pc
from punchcard.machines.riscv.program import RiscvProgram

EXAMPLES = Path(__file__).parent.parent / "examples"
RISCV = EXAMPLES / "riscv"
DIVISORS = """
.data
n        2
d        0
rest     0
minus_n  0
minus_d  0
sum      0
one      1
zero     0
minus    -1
limit    400
.code
again:  subleq n, n
        subleq minus, n
next:   subleq minus, n
        subleq d, d
        subleq minus, d
        subleq minus_n, minus_n
        subleq n, minus_n
try:    subleq minus, d
        subleq rest, rest
        subleq minus_n, rest
take:   subleq d, rest, none
        subleq zero, zero, take
none:   subleq one, sum
        subleq minus_d, minus_d
        subleq d, minus_d
        subleq minus_n, minus_d, done
        subleq zero, zero, try
done:   subleq rest, rest
        subleq n, rest
        subleq limit, rest, next
        subleq zero, zero, again
        halt
"""
"""Divides numbers by all smaller ones, as a search for primes does, with loops in loops."""
EXCHANGE = """
        subleq t, t
        subleq u, u
        subleq {a}, t
        subleq t, u
        subleq {b}, u, on{n}
        subleq u, {a}
        subleq t, t
        subleq u, t
        subleq t, {b}
on{n}:"""
SUBLEQ_SORT = f"""
.data
a 0
b 0
c 0
t 0
u 0
x 3709
y -911
z 1213
zero 0
.code
again:  subleq x, a
        subleq y, b
        subleq z, c
        {EXCHANGE.format(a="a", b="b", n=1)}{EXCHANGE.format(a="b", b="c", n=2)}{EXCHANGE.format(a="a", b="b", n=3)}
        subleq zero, zero, again
        halt
"""
"""Sorts three numbers that differ each time."""
XORSHIFT = """
        li   a0, 12345
        la   a2, cells
again:  slli t0, a0, 13
        xor  a0, a0, t0
        srli t0, a0, 17
        xor  a0, a0, t0
        slli t0, a0, 5
        xor  a0, a0, t0
        andi t1, a0, 28
        add  t1, t1, a2
        lw   t2, 0(t1)
        add  t2, t2, a0
        sw   t2, 0(t1)
        j    again
        .data
cells:  .word 0, 0, 0, 0, 0, 0, 0, 0
"""
SORT = """
        .equ count, 32
begin:  la   s0, cells
        li   s1, count
        li   t0, 0
fill:   slli t1, t0, 2
        add  t1, t1, s0
        mul  t2, t0, s2
        addi t2, t2, 77
        andi t2, t2, 255
        sw   t2, 0(t1)
        addi t0, t0, 1
        bltu t0, s1, fill
        addi s2, s2, 13
outer:  addi s1, s1, -1
        beqz s1, begin
        mv   t0, s0
        mv   t3, s1
inner:  lw   t1, 0(t0)
        lw   t2, 4(t0)
        bleu t1, t2, on
        sw   t2, 0(t0)
        sw   t1, 4(t0)
on:     addi t0, t0, 4
        addi t3, t3, -1
        bnez t3, inner
        j    outer
        .data
cells:  .space 132
"""
"""Bubble sort of numbers that differ each time. `mul` is replaced by `add` on machines without products."""
DIGITS = """
        li   s1, 10
begin:  add  s0, s0, s2
        addi s2, s2, 77
        mv   t0, s0
next:   divu t1, t0, s1
        remu t2, t0, s1
        add  s3, s3, t2
        mv   t0, t1
        bnez t0, next
        j    begin
"""
"""Adds up decimal digits of numbers that differ each time: two quotients in a loop of five instructions."""
GCD = """
begin:  addi s0, s0, 77
        xori s1, s1, 0x555
        sub  s1, s1, s0
        mv   t0, s0
        mv   t1, s1
again:  beqz t1, done
        rem  t2, t0, t1
        mv   t0, t1
        mv   t1, t2
        j    again
done:   add  s2, s2, t0
        div  t3, s1, t0
        add  s2, s2, t3
        j    begin
"""
"""Greatest common divisors of signed numbers that differ each time."""
IMAGES = {
    "brainfuck.bf": "+[>++++++++[>+++++++[>+++[>+<-]<-]<-]>>>[-]<<<<]",
    "queens.py": (EXAMPLES / "python" / "queens.py").read_text().replace(  # with one list: none is freed
        "    print(ways(0, [0] * SIZE))", "    columns = [0] * SIZE\n    while True:\n        ways(0, columns)"),
    "sort.py": """
def main() -> None:
    numbers = [0] * 24
    seed = 7
    while True:
        for i in range(24):
            seed = (seed * 5 + 77) % 1024
            number = seed
            place = i
            while place > 0 and numbers[place - 1] > number:
                numbers[place] = numbers[place - 1]
                place -= 1
            numbers[place] = number
""",
}
"""Images by the names of their files: from Brainfuck, and from Python with integers."""
AGAIN = """
#include <stddef.h>
#undef main
int example(int, char **);
static const unsigned char given[] = {%s};
static size_t next;
long __real___system_call(long a, long b, long c, long number);
long __wrap___system_call(long a, long b, long c, long number)
{
    if (number == 64) /* write: it is all written */
        return c;
    if (number != 63)
        return __real___system_call(a, b, c, number);
    long count = 0; /* read a line, or the end */
    while (count < c && next < sizeof given - 1) {
        ((unsigned char *)b)[count++] = given[next++];
        if (given[next - 1] == '\\n')
            break;
    }
    next = count ? next : 0;
    return count;
}
static char *arguments[] = {"rpn", "3", "4", "+", 0};
int main(void)
{
    for (;;)
        example(4, arguments);
}
"""
"""Calls a program's own main again and again, with the same input. What it writes is lost."""
DHRYSTONE = """
#include <string.h>
typedef struct Record {
    struct Record *next;
    int kind, number;
    char text[32];
} Record;
static Record one, two;
static int table[16], square[8][8], checks;
static char first[32] = "a text of a record, for a copy", second[32];
static int differ(const char *a, const char *b) { return strcmp(a, b) > 0; }
static void change(Record *record, int number)
{
    Record *next = record->next;
    *next = *record;
    next->number = number + 5;
    next->next = record;
    if (next->kind == 0)
        next->number += 6;
    else
        *record = *next;
}
static void store(int at, int value)
{
    int place = at + 5 & 7;
    table[place] = value;
    table[place + 1] = table[place];
    for (int i = place; i <= place + 1 && i < 8; i++)
        square[place][i] = place;
    square[place & 3][place] += 1;
}
int main(void)
{
    one.next = &two;
    for (unsigned round = 0;; round++) {
        strcpy(second, first);
        second[round & 7] = 'b';
        one.kind = round & 1;
        one.next = &two;
        change(&one, (int)(round & 255));
        checks += differ(first, second);
        for (int i = 0; i < 3; i++)
            store((int)(round + i), two.number);
        strcpy(one.text, second);
        checks ^= table[round & 7];
    }
}
"""
"""What a processor's old benchmark does: copies of records and texts, calls, arrays, branches."""
C_SIEVE = """
static unsigned char struck[2048];
int main(void)
{
    for (unsigned found = 0;;) {
        for (unsigned i = 0; i < sizeof struck; i++)
            struck[i] = 0;
        for (unsigned i = 2; i < sizeof struck; i++)
            if (!struck[i]) {
                found++;
                for (unsigned j = 2 * i; j < sizeof struck; j += i)
                    struck[j] = 1;
            }
        struck[0] = (unsigned char)found;
    }
}
"""


def image(name: str) -> object:
    """One of the images."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(IMAGES[name])
        return pc.load(file)


def c_programs() -> Iterator[str]:
    """The names of the C programs: the examples, and two more."""
    yield from ("sieve.c", "dhrystone.c")
    yield from (path.name for path in sorted(RISCV.glob("*.c")) if path.stem != "lisp")  # which fills its memory


def c_program(name: str, march: str) -> RiscvProgram:
    """A C program at -O2, for a machine with these instructions."""
    own = {"sieve.c": C_SIEVE, "dhrystone.c": DHRYSTONE}.get(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        if own is not None:
            file.write_text(own)
            return pc.load(file, RiscvProgram, march=march)
        given = RISCV / "input" / f"{file.stem}.txt"
        numbers = [*(given.read_bytes() if given.exists() else b""), 0]
        again = Path(folder) / "again.c"
        again.write_text(AGAIN % ", ".join(map(str, numbers)))
        return pc.load(RISCV / name, RiscvProgram, march=march, files=[str(again)],
                       cflags="-Dmain=example -Wl,--wrap=__system_call")
