"""The M extension: its weights by themselves for many operands, whole runs, and which programs get such a machine."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import punchcard
from punchcard.machines.riscv.designs import three_layer
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.isa import BY_NAME, INSTRUCTIONS, MASK, WORD_BITS, encode
from punchcard.machines.riscv.languages import c, elf
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine, multiplies
from punchcard.machines.riscv.oracle import RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.transformer.build import compile_layer, to_weights
from punchcard.transformer.expression import Array
from tests.cases import soaked
from tests.riscv_cases import CORNERS, program_of, random_words
from tests.riscv_reference import OPERATIONS
from tests.riscv_runs import needs_gcc

NAMES = [one.name for one in INSTRUCTIONS if one.extension == "M"]
EXTREME = (0, 1, 2, 3, 0x7FFF, 0x10000, 0x55555555, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFF8000, MASK - 1, MASK)
AGAIN = """
_start: li t0, -7
        li t1, 3
        mul t2, t0, t1
        divu t3, t0, t1
        mul t4, t3, t3
        divu zero, t4, t0
        li a0, 0
        li a7, 93
        ecall
"""


@cache
def machine(memory: int = 64) -> RiscvMachine:
    return RiscvMachine(memory=memory, multiply=True)


def values(cases: list[tuple[str, int, int]]) -> list[int]:
    """What the feed-forwards of all layers but the last make of operands, as the heads bring them: a column for each case.

    In between, bits must be bits, and numbers integers within their limits: the suppositions of `exactness`.
    """
    made = machine()
    layout, weights = made.layout, made.weights
    card: Array = np.zeros((layout.width, len(cases)))

    def put(name: str, numbers: list[int]) -> None:
        place = layout.rows(name)
        bits = np.array(numbers, dtype=np.uint64)[None] >> np.arange(place.stop - place.start, dtype=np.uint64)[:, None] & 1
        card[place] = 2.0 * bits.astype(np.float64) - 1

    words = [encode(name, rd=5, rs1=6, rs2=7) for name, _, _ in cases]
    kinds = [sum(bit << i for i, bit in enumerate(made.sizes.decoder.kind(word))) for word in words]
    for block in layout.blocks:
        if block.holds.get("scratchpad") == "bits":
            put(block.name, [0] * len(cases))
    put("word", words)
    put("kind", kinds)
    put("x", [x for _, x, _ in cases])
    put("y", [y for _, _, y in cases])
    card[layout.rows("inside")] = 1.0
    for layer in weights.layers[:-1]:
        hidden = np.maximum(csr_array(layer.w1) @ card + layer.b1, 0)  # most weights are 0
        card = card + csr_array(layer.w2) @ hidden + layer.b2
        for block in layout.blocks:
            inside = card[layout.rows(block.name)]
            assert np.array_equal(inside, np.round(inside)), block.name
            assert np.abs(inside).max() <= (block.limit or 1), block.name
    bits = card[layout.rows("value")] > 0
    return [int(sum(1 << i for i in range(WORD_BITS) if column[i])) for column in bits.T]


def expected(cases: list[tuple[str, int, int]]) -> list[int]:
    return [OPERATIONS[name](x, y) & MASK for name, x, y in cases]


def test_corners_and_random_operands() -> None:
    numbers = random.Random(13)
    pairs = list(product(EXTREME, repeat=2))
    pairs += [(numbers.getrandbits(32), numbers.getrandbits(32 - 4 * (i % 8))) for i in range(30)]
    cases = [(name, x, y) for name in NAMES for x, y in pairs]
    assert values(cases) == expected(cases)


@pytest.mark.soak
def test_more_operands() -> None:
    numbers = random.Random(14)
    for name in NAMES:
        cases = [(name, x, y) for x, y in product(CORNERS, repeat=2)]
        cases += [(name, numbers.getrandbits(numbers.randrange(1, 33)), numbers.getrandbits(numbers.randrange(1, 33)))
                  for _ in range(2000)]
        assert values(cases) == expected(cases)


def test_a_wrong_weight_is_noticed() -> None:
    made = machine()
    layer = made.weights.layers[5]
    before = layer.w2.copy()
    layer.w2.setflags(write=True)
    try:
        layer.w2[...] *= np.where(np.arange(layer.w2.shape[1]) == 3, 2.0, 1.0)
        with pytest.raises(AssertionError):
            test_corners_and_random_operands()
    finally:
        layer.w2[...] = before
        made.weights.freeze()


@pytest.mark.parametrize("engine", ["scratchpad", soaked("lowered")])
def test_a_run_beside_the_interpreter(engine: str) -> None:
    report = punchcard.run(assemble(AGAIN), machine(), check="lockstep", engine=engine)
    assert report.ok, report.why
    assert report.result.engine == engine
    assert (report.result.steps, report.result.loops) == (8, 9)


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    """One instruction a loop, so a run can be stopped at any of them."""
    kept = tmp_path / "run.checkpoint"
    report = punchcard.run(assemble(AGAIN), machine(), check="lockstep", engine="scratchpad", max_steps=3, checkpoint=kept)
    assert report.result.steps == 3
    assert report.result.state.registers[7] == -21 & MASK
    report = punchcard.resume(kept, machine(), max_steps=5, engine="scratchpad")
    assert report.agrees
    assert report.result.steps == 5


def test_a_machine_without_it() -> None:
    """The same weights as where the extension is not known of, and the instruction is refused."""
    design, sizes = three_layer.RiscvThreeLayer(), RiscvSizes(100, 0x1000)
    made = RiscvMachine(memory=100, base=0x1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(three_layer, "extension_blocks", lambda sizes: [])
        patch.setattr(three_layer, "extended", lambda sizes, layout, layers: layers)
        layout = design.layout(sizes)
        layers = [compile_layer(part, layout.width) for part in design.layers(sizes, layout, made.precision)]
    assert to_weights(layers, layout.width, made.precision).digest() == made.weights.digest()
    assert made.precision.name == "float32"
    result = made.run(program_of([encode("mul", rd=1, rs1=2, rs2=2)], 0x1000), engine="scratchpad", max_steps=2)
    assert (result.reason, result.steps) == ("fault", 0)
    assert str(result.fault).startswith("illegal instruction 0x022100b3")


def test_which_programs_need_it() -> None:
    plain, with_it = assemble("_start: add a0, a0, a0\n"), assemble("_start: remu a0, a0, a0\n")
    assert [multiplies(program) for program in (plain, with_it)] == [False, True]
    assert [RiscvMachine.sizes_for(program)["multiply"] for program in (plain, with_it)] == [False, True]
    written = elf.load(elf.write(with_it))
    assert (written.multiply, multiplies(written)) == (None, True)
    says_no = RiscvProgram(with_it.segments, 0, multiply=False)  # as a file's attributes do, whatever its data look like
    assert not multiplies(says_no)
    for program in (plain, with_it, says_no):
        assert machine().restore(machine().store(program)).multiply == program.multiply
    off = Segment(101, with_it.segments[0].data)  # where no instruction can be
    assert not multiplies(RiscvProgram((*plain.segments, off), 0))


def test_size_and_title() -> None:
    made = machine()
    facts = made.summary()
    assert (facts["layers"], facts["multiply"], facts["dtype"]) == (27, True, "float64")
    assert facts["heads"] == [2, 1, *[0] * 24, 1]
    assert "products and quotients" in made.title()
    assert all(BY_NAME[name].extension == "M" for name in NAMES)


@needs_gcc
@pytest.mark.parametrize("march", ["rv32i", "rv32im"])
def test_compiled_c_says_what_it_needs(march: str) -> None:
    program = c.assemble("int main(void) { return 0; }\n", "x.c", march=march)
    assert program.multiply is (march == "rv32im")


@needs_gcc
@pytest.mark.soak
def test_compiled_c(tmp_path: Path) -> None:
    """Products and quotients of 32 and 64 bits as gcc makes them."""
    text = """
    #include <stdio.h>
    #include <stdint.h>
    int main(void) {
        uint32_t s = 12345; int64_t total = 0;
        for (int i = 1; i < 60; i++) {
            s = s * 1664525u + 1013904223u;
            int32_t v = (int32_t)s;
            total += (int64_t)v * i; total ^= (uint64_t)s * s;
            total += v / (i - 30 ? i - 30 : 1) + v % i + s / i + s % (i + 7);
        }
        printf("%ld %lu\\n", (long)(total >> 32), (unsigned long)(uint32_t)total);
        return 0;
    }
    """
    program = c.assemble(text, "x.c", march="rv32im", libc="own")
    report = punchcard.run(program, check="end", engine="lowered")
    plain = RiscvInterpreter(program, len(report.result.state.memory))
    plain.run()
    assert report.ok, report.why
    assert report.result.output == plain.output != b""


@pytest.mark.soak
def test_random_programs_on_the_lowered_engine() -> None:
    made = machine()
    for seed in range(40):
        program = program_of(random_words(seed, 64))
        report = punchcard.run(program, made, check="lockstep", engine="lowered", max_steps=2000)
        assert report.agrees, (seed, report.why)
