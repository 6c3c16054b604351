"""The small C library's printf, scanf, strtod and setjmp, on generated inputs, against the C library of this computer."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from punchcard.machines.riscv.languages import c, elf, toolchain
from punchcard.machines.riscv.program import RiscvProgram
from tests.riscv_runs import interpret_in_c, native, needs_clang, needs_gcc, needs_native

FLAGS = ("", "-", "0", "+", " ", "#", "-0", "+0", "#0", "-#", " 0", "+ ", "-+#0 ")
WIDTHS = ("", "1", "7", "26")
PRECISIONS = ("", ".", ".0", ".1", ".3", ".12", ".21")
INTEGERS = (0, 1, -1, 7, 8, 9, 10, 0o777, 127, 128, 255, -128, 32767, 65535, 123456789, 2**31 - 1, -(2**31))
WIDE = (0, 1, -1, 8, 2**32, -(2**32) - 5, 10**18 + 7, 2**63 - 1, -(2**63))
TEXTS = ("", "a", "hello", "a longer text, of 32 characters!")
DOUBLES = (0.0, -0.0, 1.0, -1.5, 0.1, 0.5, 1.5, 2.5, 9.5, 0.05, 0.95, 99.5, 9.9999995, 1e-5, 1e-4, 123456.0, 1234567.0, 1e15,
           1e21, 1e22, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 3.141592653589793, 1 / 3)
READ_REALS = (
    *"0 -0 1 +1.5 .5 5. 1e3 1E-3 1e+400 -1e400 1e-400 inf -INFINITY nan infi 1e 1e+ . - e5 0x1p3 -0X.8P-1 0x".split(),
    "", "0x1p-1075", "0x1.fffffffffffff8p0", "0x1.fffffffffffff7fffp0", "9007199254740993", "9007199254740992.5",
    "9007199254740993.00000000000000000000001", "4.9406564584124654e-324", "2.4703282292062327e-324",
    "2.4703282292062328e-324", "1.7976931348623158e308", "1.7976931348623159e308", "2.2250738585072011e-308",
    "16777217", "3.4028236e38", "1e-45", "7e-46",
    "1" + "0" * 308)


def chosen(items: Iterable[str], count: int, seed: int) -> list[str]:
    """So many of them, in their order; all where there are no more."""
    found = list(items)
    places = sorted(random.Random(seed).sample(range(len(found)), min(count, len(found))))
    return [found[i] for i in places]


def formats(letters: str, sizes: tuple[str, ...] = ("",), *, without: str = "") -> Iterator[str]:
    """All that C defines: no flags that have no meaning for a letter."""
    for letter in letters:
        for size in sizes:
            for flags in FLAGS:
                if not set(flags) & set(without):
                    yield from (f"%{flags}{width}{precision}{size}{letter}" for width in WIDTHS for precision in PRECISIONS)


def table(name: str, kind: str, items: Iterable[str]) -> str:
    return f"static const {kind} {name}[] = {{{', '.join(items)}}};\n"


def literal(text: str) -> str:
    return json.dumps(text)


def real(number: float) -> str:
    return number.hex().replace("-0x0.0p+0", "-0.0")


def random_doubles(count: int, seed: int) -> list[float]:
    chance = random.Random(seed)
    bits = [chance.getrandbits(64) & ~(1 << 62) | chance.getrandbits(1) << 61 for _ in range(count)]
    return [struct.unpack("<d", struct.pack("<Q", each))[0] for each in bits]


def printing(count: int) -> str:
    """A program that prints values of each type by many formats, and what printf returned."""
    groups = (
        ("int", chosen([*formats("di", ("", "hh", "h"), without="#"), *formats("oxX", ("", "hh", "h"), without="+ "),
                        *formats("u", without="+ #")], count, 1), map(str, INTEGERS)),
        ("long long", chosen([*formats("d", ("ll", "j"), without="#"), *formats("ox", ("ll", "j"), without="+ ")], count, 2),
         [f"(long long){number % 2**64}ull" for number in WIDE]),
        ("double", chosen(formats("aAeEfFgG"), count, 3),
         [*map(real, (*DOUBLES, *random_doubles(4, 5))), "__builtin_inf()", "-__builtin_inf()", "__builtin_nan(\"\")"]),
        ("char *", chosen(formats("s", without="0+ #"), count, 4), map(literal, TEXTS)),
        ("int", [f"%{flags}{width}c" for flags in ("", "-") for width in WIDTHS], ["'x'"]),
        ("void *", [f"%{flags}{width}p" for flags in ("", "-") for width in WIDTHS], ["(void *)0x1230"]),
    )
    body, tables = "", ""
    for number, (kind, texts, values) in enumerate(groups):
        tables += table(f"f{number}", "char *", map(literal, texts)) + table(f"v{number}", kind, values)
        body += (f"for (unsigned i = 0; i < sizeof f{number} / sizeof *f{number}; i++)"
                 f"    for (unsigned j = 0; j < sizeof v{number} / sizeof *v{number}; j++) {{"
                 f"        printf(\"%s %u: [\", f{number}[i], j); int n = printf(f{number}[i], v{number}[j]);"
                 "        printf(\"] %d\\n\", n); }\n")
    return f"""#include <stdio.h>
{tables}int main(void)
{{
    char text[8];
    int n = -1, m = snprintf(text, sizeof text, "%d %n%s", 12, &n, "more than fits");
    printf("%s %d %d %d\\n", text, n, m, snprintf(NULL, 0, "%*d|%-*d|%.*f", 5, 7, -5, 7, -1, 0.5));
{body}    return 0;
}}
"""


SCANNED = (
    ("%d %i %x|%n", ("12 0x1f ff|x", "-1 017 0XaB|", "+7 -0 zz", "2147483647 9 1", "", "   ", "x", "1 2 3 |", "- 1 2")),
    ("%3d%2d%d", ("1234567", "12 3 4", "-12345", "1 23456")),
    ("%*d %d", ("1 2", "1", "1 x")),
    ("%hhd %hd %ld", ("300 70000 5", "-1 -1 -1")),
    ("a%db%%c %d", ("a1b%c 2", "a1b% c", "a1x", "b")),
    ("%u%o%X", ("10 10 10", "1,2,3")),
)
"""Formats for three integers at most, and texts for them."""
SCANNED_TEXTS = (
    ("%s %s", ("one two", " one\ttwo ", "one", "")), ("%3s%s", ("abcdef", "ab cd")), ("%*s%s", ("one two", "one")),
    ("%[a-c]%[^x]", ("abcdex", "xyz", "aax")), ("%5[]x-]%s", ("]x-]x]x", "ax")), ("%[^,],%[^\n]", ("a b,c d\n", ",x", "a,")))


def scanning(reals: Iterable[str]) -> str:
    """A program that reads numbers and texts from texts, and from its input."""
    cases = [(form, text) for form, texts in SCANNED for text in texts]
    words = [(form, text) for form, texts in SCANNED_TEXTS for text in texts]
    return f"""#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *cases[][2] = {{{", ".join(f"{{{literal(form)}, {literal(text)}}}" for form, text in cases)}}};
static const char *words[][2] = {{{", ".join(f"{{{literal(form)}, {literal(text)}}}" for form, text in words)}}};
{table("reals", "char *", map(literal, reals))}
static jmp_buf place;
static void jump(int value) {{ longjmp(place, value); }}
int main(void)
{{
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {{
        int a[2] = {{-5, -5}}, b[2] = {{-5, -5}}, c[2] = {{-5, -5}}, d = -5;
        int n = sscanf(cases[i][1], cases[i][0], a, b, c, &d);
        printf("%s of %s: %d, %d %d %d %d\\n", cases[i][0], cases[i][1], n, a[0], b[0], c[0], d);
    }}
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {{
        char one[16] = "-", two[16] = "-";
        int n = sscanf(words[i][1], words[i][0], one, two);
        printf("%d [%s] [%s]\\n", n, one, two);
    }}
    for (unsigned i = 0; i < sizeof reals / sizeof *reals; i++) {{
        char *end, *other;
        unsigned long long bits; unsigned few;
        double wide = strtod(reals[i], &end); float narrow = strtof(reals[i], &other);
        memcpy(&bits, &wide, 8), memcpy(&few, &narrow, 4);
        printf("%s %llx %x %d %d", reals[i], bits, few, (int)(end - reals[i]), (int)(other - reals[i]));
        if (*end == 0 && end != reals[i])
            printf(" %d", sscanf(reals[i], "%lf%n", &wide, (int *)&few)), printf(" %a %d", wide, (int)few);
        puts("");
    }}
    int number, sum = 0; char c, word[10]; double real = -1;
    while (scanf("%d", &number) == 1)
        sum += number;
    printf("%d\\n", sum);
    printf("%d", scanf(" %c%9s", &c, word));
    printf(" %c %s\\n", c, word);
    printf("%d", scanf("%lf", &real));
    printf(" %g\\n", real);
    printf("%d", scanf("%lf", &real));
    printf(" %d %d\\n", feof(stdin) != 0, ferror(stdin) != 0);
    volatile int times = 0;
    int value = setjmp(place);
    printf("%d %d\\n", value, times);
    if (times++ < 3)
        jump(value == 0 ? 0 : value + 5);
    return times;
}}
"""


GIVEN = b"1 2\n-30\n  400 stop here -2.5e1\n"


def random_reals(count: int, seed: int) -> Iterator[str]:
    """Decimal texts of random numbers, and of the exact middle between two doubles, and next to it."""
    chance = random.Random(seed)
    for number in random_doubles(count, seed):
        yield repr(number)
        yield f"{number:.{chance.randrange(40)}e}"
    for _ in range(count // 4):
        middle = (2 * chance.getrandbits(52) + 1 + (1 << 53)) << chance.randrange(1, 200)
        yield from (str(middle), str(middle - 1), f"{middle}.{'0' * chance.randrange(30)}1")


def built(cc: str, text: str, *, arithmetic: bool = True) -> RiscvProgram:
    """With the small library, with or without the compiler's arithmetic."""
    tools = toolchain.find(cc, "rv32i", "own")
    return elf.load(c.build_elf(tools if arithmetic else toolchain.Toolchain(tools.command, "rv32i"), text, "generated.c"))


def compare(cc: str, text: str, folder: Path, given: bytes = b"", *, arithmetic: bool = True) -> None:
    """Line by line, so that a difference names its format."""
    source = folder / "generated.c"
    source.write_text(text)
    expected, status = native(source, given, folder)
    ran = interpret_in_c(built(cc, text, arithmetic=arithmetic), given)
    different = [pair for pair in zip_longest(ran.output.splitlines(), expected.splitlines()) if pair[0] != pair[1]]
    assert (different[:20], ran.status) == ([], status), len(different)


@needs_gcc
@needs_native
def test_printf_is_as_this_computers(tmp_path: Path) -> None:
    compare("gcc", printing(60), tmp_path)


@needs_gcc
@needs_native
def test_scanf_strtod_and_setjmp_are_as_this_computers(tmp_path: Path) -> None:
    compare("gcc", scanning([*READ_REALS, *random_reals(40, 7)]), tmp_path, GIVEN)


@pytest.mark.soak
@needs_native
@pytest.mark.parametrize(("cc", "arithmetic"), [
    pytest.param("gcc", True, marks=needs_gcc), pytest.param("gcc", False, marks=needs_gcc),
    pytest.param("clang", False, marks=needs_clang)])
def test_all_formats_and_many_numbers(cc: str, arithmetic: bool, tmp_path: Path) -> None:
    """Without libgcc too: real numbers are printed and read by integers alone."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    compare(cc, printing(1 << 30), tmp_path / "one", arithmetic=arithmetic)
    compare(cc, scanning([*READ_REALS, *random_reals(2000, 11)]), tmp_path / "two", GIVEN, arithmetic=arithmetic)
