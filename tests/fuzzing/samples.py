"""What inputs are made from: a few texts in every language, small machines, and the command line with all of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np

import punchcard
from punchcard.learning.model import Model, Scaling
from punchcard.learning.programs.network import Network
from punchcard.machines.registry import Registry
from punchcard.machines.riscv.languages import elf, intel_hex
from punchcard.machines.riscv.languages.assembly import assembler as riscv
from tests.cases import EXAMPLES, turing_example

TINY_FLEQ = """.range 8
.data
a scalar -2   # counts up
b vector 2 1 -0.5
m matrix 2x2 1 2 ; 3 4
u vector 2 random(7)
one scalar 1
.code
loop: b = add(b, b[0])
      incr_pointer(loop.b)
      m = mul(m, m)
      a = add(a, one); if a <= 0 goto loop
      halt
"""
FROM_FILES = """.data
w matrix 2x2 file(values.npy)
v vector 3 file(values.csv)
.code
w = add(w, w)
halt
"""
MACROS = """# macros of one's own, the library's, expressions and strings
loop: @inc counter; @out counter
      @twice counter counter (loop+3*2-1)
      Z Z (-1)
@def twice a b c
      a b ?+1
      a b c
@end
. Z:0 counter:-3 text: "hi\\n" 'A' 0x1f
@pool
"""
HALVED = """.data
x 6
list 1 2 -3
.code
loop: subleq x, list+1, loop
      subleq list, x
      halt
"""
RISCV = """.equ COUNT, 4 * 2 - 5
.text
_start: la a0, text     # remarks ; of // all kinds
1:      lbu a1, 0(a0)
        addi a0, a0, COUNT & 1
        bnez a1, 1b
        jal ra, leave /* by a call */
        .align 2
leave:  li a7, 93
        lui a2, %hi(words + 4)
        lw a2, %lo(words + 4)(a2)
        sw a2, words, t0
        ecall
.data
words:  .word 1, text - words, 0x80000000
text:   .asciz "hi\\n"
        .half 3
.bss
room:   .space 16
"""
PYTHON = """TABLE = [3, 1 << 4, -2]

def power(base: int, exponent: int = 3) -> int:
    return base if exponent <= 1 else base * power(base, exponent - 1)

def main():
    text = input("? ")
    for i, n in enumerate(TABLE):
        print(f"{i}: {n % 7}", len(text), sep=", ")
    while TABLE[0] > 0 and not TABLE[-1] == 5:
        TABLE[0] -= 1
        print(power(TABLE[0]), [x * x for x in range(3)], TABLE[0] ^ 5 | 2, "ab"[1])
"""
WRITTEN = {
    ".fleq": (TINY_FLEQ, FROM_FILES), ".asq": (MACROS, "a b (-1)\n. a:1 b:2\n"), ".subleq": (HALVED,),
    ".bf": (",[.,]", "+[>++[-]<-]."), ".py": (PYTHON,),
    ".s": (RISCV,), ".c": ("int main(void) { return 3; }\n",), ".dec": ("3 4 6 7 7 7 3 0 0\n", "9 -1 3 0 0 -1 72\n"),
}
SMALL_PROGRAMS = {
    "riscv": "li a0, 3\nloop: addi a0, a0, -1\nbnez a0, loop\nsw a0, 60(zero)\nli a7, 93\necall\n",
    "subleq": HALVED,
    "fleq": ".range 8\n.data\na scalar -2\none scalar 1\n.code\nloop: a = add(a, one); if a <= 0 goto loop\nhalt\n",
    "von-neumann": "a (-1) 3\n(-1) a 0\n. a:65\n",
    "turing": "tape [1]01\ngo 1 -> 0 R go\ngo 0 -> 1 R go\n",
}
"""Programs that fit the small machine of a kind, and run for some steps."""
FOLDERS = (EXAMPLES, EXAMPLES / "von_neumann", EXAMPLES / "turing", EXAMPLES / "python")
IMAGES = (".dec", ".sq", ".slq")


@cache
def registry() -> Registry:
    """All kinds of machines, the example's among them."""
    return punchcard.kinds().including(turing_example().TuringMachine)


@cache
def command_line() -> click.Group:
    """The commands for them."""
    return punchcard.command_line(turing_example().TuringMachine)


@cache
def extensions() -> tuple[str, ...]:
    """Of every language that there is."""
    return tuple(e for kind in registry() for language in kind.languages for e in language.extensions)


@cache
def texts() -> Mapping[str, tuple[bytes, ...]]:
    """Programs by extension: the examples, and short ones with what those lack."""
    found: dict[str, list[bytes]] = {extension: [] for extension in extensions()}
    for folder in FOLDERS:
        for path in sorted(folder.iterdir()):
            if path.suffix in found:
                found[path.suffix].append(path.read_bytes())
    for extension, written in WRITTEN.items():
        found[extension] += map(str.encode, written)
    for kind, text in SMALL_PROGRAMS.items():
        found[registry().kind(kind).languages[0].extensions[0]].append(text.encode())
    halved = punchcard.assemble(HALVED)
    as_json = registry().kind_of(halved).assembled(halved)
    found[".json"].append(as_json.encode() if isinstance(as_json, str) else as_json)
    found[".bin"].append(b"".join(word.to_bytes(4, "little") for word in small_program("riscv").words(6)))
    for source in found[".s"]:
        program = riscv.assemble(source.decode(), "")
        found[".elf"].append(elf.write(program))
        found[".hex"].append(intel_hex.write(program).encode())
    found[".ihex"] = found[".hex"]
    for extension in IMAGES:
        found[extension] = found[".dec"]
    return {extension: tuple(written) for extension, written in found.items()}


SIZES: Mapping[str, Mapping[str, Any]] = {
    "subleq": {"word_bits": 8, "memory": 8, "instructions": 8, "design": "two-layer"},
    "fleq": {"functions": ("add",), "size": 1, "memory": 6, "instructions": 4, "range": 8, "heads": 1,
             "precision": "float32"},
    "von-neumann": {"word_bits": 8, "memory": 32},
    "riscv": {"memory": 64},
    "turing": {"states": 4, "symbols": 3, "squares": 8},
}


@cache
def machine(kind: str) -> Any:
    """A small machine of a kind: what runs, is saved and is kept in checkpoints."""
    return registry().kind(kind).machine_class()(**SIZES[kind])


@cache
def small_program(kind: str) -> Any:
    """The small program of a kind, assembled."""
    language = registry().kind(kind).languages[0]
    return language.assemble(SMALL_PROGRAMS[kind], "")


def write_model(path: Path, hidden: tuple[int, ...] = (), *, scaled: bool = False) -> None:
    """A model for the table of the shared folder, of weights that nobody has learned."""
    network = Network(1, hidden)
    scaling = Scaling(np.array([0.25]), np.array([2.0])) if scaled else None
    weights = {name: np.full(shape, 0.5) for name, shape in network.shapes().items()}
    Model(network, weights, ("x",), ("y",), scaling, scaling).save(path)


def shared_folder(folder: Path) -> Path:
    """A folder with a file of each sort, beside which inputs are written."""
    for extension, written in texts().items():
        for number, text in enumerate(written):
            (folder / f"sample{number}{extension}").write_bytes(text)
    np.save(folder / "values.npy", np.array([[1.0, 2.0], [3.0, -4.0]]))
    (folder / "values.csv").write_text("1,2,-3\n")
    (folder / "table.csv").write_text("x,y\n-0.5,-0.4\n0.5,0.6\n")
    return folder
