"""The FLEQ machine against the interpreter, after every loop, in every design; its sizes, and what it refuses."""

from __future__ import annotations

import random
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import torch

from punchcard.api import build
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, NoCopyWatch
from punchcard.errors import PrecisionError, ProgramError, PunchcardError, SizeError
from punchcard.machines.fleq.blocks.block import MatrixProduct
from punchcard.machines.fleq.functions import BUILT_IN, MUL, POINTERS, Function
from punchcard.machines.fleq.isa import FleqProgram, Halt, pointers
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import soaked
from tests.fleq_cases import DESIGNS, POINTER_FUNCTIONS, RANGE, audited_run, check_random_programs, compare, contents

SIMPLE = ("add", "sub", "mul", "transpose", "sigmoid", *POINTER_FUNCTIONS)
# (design, d, functions, instructions to check): over 1,200 in all
RANDOM_MACHINES = [
    ("compact", 1, (*SIMPLE, "hadamard", "percentage"), 200),
    ("compact", 2, (*SIMPLE, "hadamard", "percentage"), 150),
    ("compact", 3, ("add", "mul", "sigmoid", *POINTER_FUNCTIONS), 112),
    ("compact", 2, ("add", "sub", "transpose", *POINTER_FUNCTIONS), 200),
    ("compact", 4, ("sub", "add", "hadamard", "transpose"), 125),
    ("compact", 2, ("add", "sigmoid", "inverse", "sqrt"), 37),
    ("three-layer", 2, (*SIMPLE, "hadamard", "percentage"), 50),
    ("three-layer", 1, ("add", "sub", *POINTER_FUNCTIONS), 100),
    ("paper", 2, ("add", "mul", "transpose"), 62),
    ("paper", 2, ("add", "sigmoid", "percentage"), 62),
    ("paper", 3, ("add", "hadamard", "sub"), 62),
    ("paper", 1, ("add", *POINTER_FUNCTIONS), 62),
    ("paper", 2, ("add", "inverse", "sigmoid"), 25),
]
STEPS = 1_200
SOAK_STEPS = 200_000
ENGINE = "dense"
"""A few loops, on a machine of their own: an engine that compiles would take longer."""


@cache
def small_machine(design: str, d: int, functions: tuple[str, ...] = SIMPLE) -> FleqMachine:
    return FleqMachine(functions=(*functions, "percentage", "inverse"), size=d, memory=8, instructions=5, design=design)


@pytest.mark.parametrize("soak", [False, soaked(True)])
@pytest.mark.parametrize(("design", "d", "functions", "wanted"), RANDOM_MACHINES)
def test_random_programs(design: str, d: int, functions: tuple[str, ...], wanted: int, soak: bool) -> None:
    """Each result within its bound, all other memory as it was, program counter and pointers equal, after every loop."""
    machine = FleqMachine(functions=functions, size=d, memory=12 + 2 * d, instructions=10, range=RANGE, heads=2,
                          design=design)
    wanted, sizes = (wanted * SOAK_STEPS // STEPS, {"batch": 64, "max_steps": 200}) if soak else (wanted, {"batch": 16})
    rng = random.Random(f"{'soak ' * soak}{design} {d} {' '.join(functions)}")
    assert check_random_programs(machine, rng, wanted, **sizes) >= wanted


# Sizes


def test_designs_are_registered() -> None:
    assert sorted(FleqMachine.designs) == sorted(DESIGNS)
    assert sum(wanted for *_, wanted in RANDOM_MACHINES) >= STEPS


@pytest.mark.parametrize(("design", "d", "functions", "heads", "wanted"), [
    *(("compact", d, SIMPLE, 1, [1, 1, 1, 1]) for d in (1, 2, 4)),
    *(("compact", 2, SIMPLE, heads, [1, 1, heads, 1]) for heads in (2, 3)),
    *(("three-layer", 2, ("add", "mul"), heads, [1, heads + 2, 1]) for heads in (1, 2, 3)),
    *(("three-layer", 2, ("mul", "reset_pointer"), heads, [1, heads + 3, 1]) for heads in (1, 2, 3))])
def test_heads_of_the_layers(design: str, d: int, functions: tuple[str, ...], heads: int, wanted: list[int]) -> None:
    """The layer of the soft products has more; in three layers also one for each instruction that may come, and the flag."""
    machine = FleqMachine(functions=functions, size=d, heads=heads, memory=4, instructions=4, design=design)
    assert [shape.heads for shape in machine.model.shapes] == wanted


@pytest.mark.parametrize(("functions", "depth"), [
    (("add",), 3), (("mul",), 2), (("percentage", "mul"), 2), (("transpose",), 4), (SIMPLE, 4), (("add", "sigmoid"), 3),
    (("hadamard", "sub"), 3), (("hadamard",), 2), (("incr_pointer",), 3), (("inverse", "sqrt"), 3),
])
def test_paper_sizes(functions: tuple[str, ...], depth: int) -> None:
    """9 + max l_i layers, 13 with a transpose; in the block layers no more heads than those of all blocks together."""
    machine = FleqMachine(functions=functions, size=2, memory=8, instructions=4, design="paper")
    shapes, lemmas = machine.model.shapes, [block.lemma for block in machine.design.blocks]
    assert max(lemma.depth for lemma in lemmas) == depth
    assert len(shapes) == 9 + depth
    for layer in range(depth):
        assert shapes[3 + layer].heads <= sum(lemma.heads for lemma in lemmas if lemma.depth > layer)


def test_paper_sizes_with_anchors() -> None:
    machine = FleqMachine(functions=["mul"], size=2, design="paper", anchors=True)
    assert len(machine.model.shapes) == 11


# One case at a time


def agree(design: str, *sources: str, tolerance: float = 1e-6) -> tuple[FleqMachine, list[FleqProgram]]:
    """Compare programs loop by loop on a machine of the first one's size."""
    programs = [assemble(source) for source in sources]
    machine = build(programs[0], design=design)
    compare(machine, programs, tolerance)
    return machine, programs


@pytest.mark.parametrize("design", DESIGNS)
def test_a_flag_that_was_just_written_counts(design: str) -> None:
    text = ".data\nt scalar {}\nd scalar {}\n.code\nt = add(t, d); if t <= 0 goto 2\nhalt\nhalt"
    agree(design, *(text.format(*values) for values in ((-2, 1), (-1, 1), (0, 1), (5, -9))))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("call", ["M = mul(S, M)", "M = transpose(M)", "M = sigmoid(M)", "M = sub(M, S)"])
def test_a_flag_in_a_result_of_two_columns(design: str, call: str) -> None:
    """The flag is the first entry of either column of what was just written; S turns signs about."""
    text = (f".data\nM matrix 2x2 1 -2 ; 3 -1\nS matrix 2x2 -1 0 ; 0 -1\n.code\n{call}\n"
            f"M = sub(M, M); if M[{{0}}] <= 0 goto 3\nhalt\n{call}; if M[{{0}}] <= 0 goto 5\nhalt\nhalt")
    if "sigmoid" in call:
        text = f".data\nM matrix 2x2 9 9 ; 9 -9\nz scalar\n.code\n{call}; if z <= 0 goto 2\nhalt\nhalt"
    agree(design, *(text.format(column) for column in (0, 1)))


@pytest.mark.parametrize("design", DESIGNS)
def test_changing_the_next_instruction(design: str) -> None:
    agree(design, """
        .data
        x scalar 1
        y scalar 2
        r scalar
        q scalar
        minus scalar -1
        .code
               reset_pointer(next.a, y)
        next:  r = add(x, x)
               incr_pointer(other.c)
        other: r = add(y, y)
               reset_pointer(last.b, y)
        last:  x = add(x, x); if r <= 0 goto next
               incr_pointer(jump.p)
        jump:  goto jump
               reset_pointer(flag.flag, minus)
        flag:  if x <= 0 goto end
               halt
        end:   halt
    """)


@pytest.mark.parametrize("design", DESIGNS)
def test_changing_its_own_target(design: str) -> None:
    """The instruction was fetched before it acts: this time it goes to the old target, next time to the new."""
    machine, (program,) = agree(design, ".data\nx scalar\n.code\nself: reset_pointer(self.p, 1); goto self\nhalt")
    result = machine.run(program, engine=ENGINE)
    assert (result.steps, result.state.program_counter) == (2, 1)
    agree(design, ".data\nx scalar -1\n.code\nself: incr_pointer(self.p); if x <= 0 goto self\nhalt\nhalt")


@pytest.mark.parametrize("design", DESIGNS)
def test_every_field_is_changed(design: str) -> None:
    """All five pointers, counted on and set, and read back from the card."""
    lines = [f"{name}_pointer(10.{field}{', ' * (name == 'reset')}{value * (name == 'reset')})"
             for field, value in (("a", "z"), ("b", "y"), ("c", "y"), ("flag", "x"), ("p", "11"))
             for name in ("reset", "incr")]
    machine, (program,) = agree(design, ".data\nx scalar 1\ny scalar 2\nz scalar 3\nw scalar 4\n.code\n"
                                + "\n".join(lines) + "\nx = add(x, x); if w <= 0 goto 0\nhalt\nhalt", tolerance=0.0)
    card = machine.run(program, engine=ENGINE).card
    assert machine.design.pointers(machine.design.instruction(card, 10)) == {"a": 3, "b": 2, "c": 2, "flag": 1, "p": 12}
    for number, instruction in enumerate(program.instructions[:10]):
        found = machine.design.pointers(machine.design.instruction(card, number))
        assert tuple(found) == POINTERS
        assert {name: found[name] for name in pointers(instruction)} == pointers(instruction)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("branch", "counter"), [("goto 2", 2), ("if minus <= 0 goto 2", 2), ("if x <= 0 goto 2", 1),
                                                 ("if zero <= 0 goto 2", 2), ("goto 0", 0)])
def test_a_branch_alone_writes_nothing(design: str, branch: str, counter: int) -> None:
    program = assemble(".data\nx matrix 2x2 1.5 2.5 ; 0.1 -3\nminus scalar -1\nzero scalar\n"
                       f".code\n{branch}\nhalt\nhalt")
    machine = small_machine(design, 2)
    card = machine.punch(program)
    after = machine.model(card)
    for region in ("memory", "instructions"):
        assert torch.equal(*(contents(machine, each, region) for each in (card, after)))
    assert machine.read(after).program_counter == counter


@pytest.mark.parametrize(("precision", "design"), [
    *(("float64", design) for design in DESIGNS), ("float32", "compact"),
    *(soaked("float32", design) for design in DESIGNS if design != "compact")])
def test_a_halt_holds(design: str, precision: str) -> None:
    """Loops on a halt leave the card bit-identical: a card that one loop leaves as it is stays so for ever."""
    program = assemble(".data\nA matrix 2x2 1 0.3 ; -2 0.7\n.code\nA = mul(A, A)\nA = sub(A, A)\nA = sigmoid(A)\nhalt\n"
                       "A = sub(A, A)")
    machine = build(program, design=design, precision=precision)
    result = machine.run(program, engine=ENGINE)
    assert (result.halted, result.steps) == (True, 3)
    card = machine.model(result.card)  # the compact design adds its last result up in the loop after
    assert np.array_equal(machine.read(card).memory, result.state.memory)
    held = card
    for _ in range(20):
        held = machine.model(held)
        assert torch.equal(held, card)
    assert machine.layout.violations(held) == []


@pytest.mark.parametrize("design", DESIGNS)
def test_steps_are_the_interpreters(design: str) -> None:
    program = assemble(".data\nn scalar -1\none scalar 1\n.code\nloop: n = add(n, one); if n <= 0 goto loop\nhalt")
    machine = build(program, design=design)
    for limit in (2, 3, 100):
        result = machine.run(program, max_steps=limit, engine=ENGINE)
        assert (result.steps, result.halted) == (2, True)
    result = machine.run(program, max_steps=1, engine=ENGINE)
    assert (result.steps, result.halted, result.state.program_counter) == (1, False, 0)
    empty = FleqProgram((Halt(),), program.variables, program.values, program.functions)
    assert machine.run(empty, engine=ENGINE).steps == 0


# What is refused


def test_machines_that_are_refused() -> None:
    for options, message in (
        ({"functions": ["add", "add"]}, "function 'add' is plugged in twice"),
        ({"functions": []}, "needs at least one function"),
        ({"functions": ["ad"]}, r"unknown function 'ad' \(did you mean 'add'\?\)"),
        ({"functions": ["mul"], "heads": 4}, "heads=4: it must be an integer, at least 1, at most 3"),
        ({"functions": ["mul"], "range": 0.0}, "range=0.0: it must be a positive number"),
        ({"functions": ["mul"], "range": 1e20}, r"range=1e\+20: .* float64 keeps flags exact up to 1.4"),
        ({"functions": ["mul"], "range": 1e-9}, "range=1e-09: it must be 9.53674e-07 or more"),
        ({"functions": "mul"}, "functions='mul': it must be a list, each item a text or a Block"),
        ({"functions": [None]}, r"functions=\[None\]: it must be a list, each item a text or a Block"),
        ({"functions": ["mul"], "memory": 1 << 21}, "the most is 1048576"),
        ({"functions": ["mul"], "design": "compct"}, r"unknown design 'compct' \(did you mean 'compact'\?\)"),
    ):
        with pytest.raises(PunchcardError, match=message):
            FleqMachine(**options)
    with pytest.raises(PrecisionError, match="float16 has 11 significand bits: real numbers need float32 or float64"):
        FleqMachine(functions=["add"], precision="float16")
    with pytest.raises(SizeError, match="size=0: it must be an integer, at least 1"):
        FleqMachine(functions=["add"], size=0)


@pytest.mark.parametrize(("source", "message"), [
    (".data\nx scalar 1\n.code\nx = sub(x, x)", "the program calls 'sub', which the machine does not have: it has add"),
    (".data\nx vector 3\n.code\nx = add(x, x)",
     "the program's largest operand has 3 rows or columns, the machine's size is 2: build it with size=3 or more"),
    (".data\nx scalar\n.code\ngoto 1\ngoto 2\ngoto 3\nhalt",
     "the program has 4 instructions, the machine has room for 3: build it with instructions=4 or more"),
    (".data\nx matrix 1x5\n.code\nhalt", "the program has 5 memory columns, the machine has room for 4: "
                                         "build it with memory=5 or more"),
    (".data\nx matrix 1x4\n.code\nincr_pointer(1.p)\ngoto 0", "the program has 5 memory columns"),
    (".range 17\n.data\nx scalar\n.code\nhalt", "the program declares the range 17, the machine is built for 16"),
])
def test_programs_that_do_not_fit(source: str, message: str) -> None:
    machine = FleqMachine(functions=["add"], size=2, memory=4, instructions=3)
    with pytest.raises(ProgramError, match=message):
        machine.punch(assemble(source))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("code", "message"), [
    ("loop: one = add(one, one); goto loop", r"instruction 0: 'one' became 32, beyond the declared range ±16"),
    ("half = percentage(much); if half <= 0 goto 0",
     "instruction 0: the flag 'half' is 0.16: a flag must be an integer"),
    ("half = inverse(half)", "instruction 0: inverse of 0: its block is built for 0.1 to 10"),
    ("reset_pointer(2.p, 3)\nincr_pointer(2.p)\nif half <= 0 goto 0",
     "instruction 2: jumps to instruction 4, the program has 4"),
    ("reset_pointer(2.a, last)\nincr_pointer(2.a)\nlast = add(one, one)",
     "instruction 2: pointer a is 4, outside the program's 4 memory columns"),
    ("reset_pointer(2.c, last)\nincr_pointer(2.c)\nlast = add(one, one)", "instruction 2: pointer c is 4"),
    ("reset_pointer(2.flag, last)\nincr_pointer(2.flag)\nif last <= 0 goto 0", "instruction 2: pointer flag is 4"),
])
def test_runs_that_are_refused(design: str, code: str, message: str) -> None:
    program = assemble(f".data\none scalar 1\nhalf scalar\nmuch scalar 16\nlast scalar\n.code\n{code}")
    with pytest.raises(ProgramError, match=message.replace(": ", r"( \(loop\))? in loop \d+: ", 1)):
        audited_run(small_machine(design, 1, ("add", *POINTER_FUNCTIONS)), program, max_steps=20)


@pytest.mark.parametrize("design", DESIGNS)
def test_only_an_operand_s_own_rows_count(design: str) -> None:
    """A pointer that now names a taller variable: the product still takes as many rows as the instruction says."""
    program = assemble(".data\nx scalar 2\nv vector 2 1 1\nr scalar\nw vector 2 3 4\n.code\n"
                       "reset_pointer(2.a, v)\nreset_pointer(2.b, w)\nr = mul(x, x)\nreset_pointer(5.a, v)\n"
                       "reset_pointer(5.b, w)\nx = hadamard(x, x)")
    report = audited_run(build(program, design=design, heads=2), program)
    assert report.agrees
    assert report.result.memory["r"][0, 0] == pytest.approx(3, abs=1e-9)
    assert report.result.memory["x"][0, 0] == pytest.approx(3, abs=1e-9)


def test_a_block_has_heads_of_its_own() -> None:
    """Two products with different heads, and a machine with yet another: each within its own bound."""
    other = Function("product", 2, MUL.shape, MUL.reference)
    text = ".data\na matrix 2x2 1 2 ; 3 4\nb matrix 2x2\nc matrix 2x2\n.code\nb = mul(a, a)\nc = product(a, a)"
    program = assemble(text.replace(".data", ".range 32\n.data"), functions={"product": other})
    blocks = [MatrixProduct(MUL, 1), MatrixProduct(other, 3)]
    machine = build(program, heads=2, blocks=blocks)
    assert audited_run(machine, program).agrees
    assert machine.bound("mul") > 100 * machine.bound("product")


def test_products_that_share_a_transport_share_its_reach() -> None:
    """Their constants are one: with another reach, one of the two would be beyond its bound."""
    other = Function("product", 2, MUL.shape, MUL.reference)
    with pytest.raises(SizeError, match="products 'mul' and 'product' have the same heads and another reach"):
        FleqMachine(functions=[MatrixProduct(MUL, 1), MatrixProduct(other, 1, reach=1e-3)], size=2)
    assert FleqMachine(functions=[MatrixProduct(MUL, 1, 2.0), MatrixProduct(other, 1, 2.0)], size=2).blocks


def test_the_machine_s_range_is_the_limit() -> None:
    """A program that declares ±16 may go beyond on a machine built for more; small overshoots by rounding are allowed."""
    program = assemble(".data\nx scalar 12\ny scalar\n.code\ny = add(x, x)")
    with pytest.raises(ProgramError, match="'y' became 24, beyond the declared range ±16"):
        build(program).run(program, engine=ENGINE)
    assert audited_run(build(program, range=64.0), program).ok
    for text, options in (
        (".range 0.1\n.data\nx scalar 0.1\n.code\nx = transpose(x)", {"precision": "float32"}),
        (".data\nx scalar 0.01\n.code\nx = sqrt(x)", {"precision": "float32"}),
        (".data\nx scalar 16\none scalar 1\n.code\nx = mul(x, one)", {"anchors": True}),
    ):
        program = assemble(text)
        assert audited_run(build(program, **options), program).ok, text


@pytest.mark.parametrize("engine", ["dense", soaked("auto")])
def test_a_domain_has_the_slack_of_its_own_function(engine: str) -> None:
    """The product of this machine is off by up to 4; that is no licence for operands of inverse."""
    program = assemble(".range 1000\n.data\nx scalar -3\n.code\nx = inverse(x)")
    machine = FleqMachine(functions=["mul", "inverse"], size=8, memory=2, instructions=2, range=1000, precision="float32")
    assert machine.bound("mul") > 3 > 1e-3 > machine.bound("inverse")
    with pytest.raises(ProgramError, match="inverse of -3: its block is built for"):
        machine.run(program, engine=engine)
    edge = program.with_values({"x": 0.1 - machine.bound("inverse")})
    assert machine.run(edge, engine=engine).memory["x"][0, 0] == pytest.approx(10, abs=0.01)


def test_a_run_that_nobody_watches_says_what_was_not_seen() -> None:
    """A short run is made again under the guard; a long one has a note, where it calls a function with a domain."""
    program, plain = (assemble(f".range 64\n.data\nx scalar 0\ny scalar\n.code\nloop: y = {name}(x); goto loop")
                      for name in ("inverse", "transpose"))
    machine = FleqMachine.for_program(program, functions=["transpose", "inverse"])
    with pytest.raises(ProgramError, match="inverse of 0: its block is built for"):
        machine.run(program, engine="lowered", max_steps=256)
    assert machine.run(program, engine="lowered", max_steps=257).notes == (
        "operands of inverse were not checked against its domain [0.1, 10], outside which its results mean nothing: run "
        "with --check",)
    assert not machine.run(plain, engine="lowered", max_steps=257).notes


def test_a_guard_needs_no_copies_of_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    program, copies = assemble(".data\nx scalar 1\n.code\nloop: x = add(x, x); if x <= 0 goto loop\nhalt"), list[object]()
    machine = FleqMachine.for_program(program)
    watched = Controls(watch=NoCopyWatch(lambda loop, card: None))
    expected = machine.run(program, engine="lowered", controls=watched, guarded=False)
    copy = PackedCard.copy

    def counted(card: PackedCard, into: PackedCard | None = None) -> PackedCard:
        copies.append(card)
        return copy(card, into)

    monkeypatch.setattr(PackedCard, "copy", counted)
    machine.run(program, engine="lowered", controls=watched, guarded=False)
    unguarded = len(copies)
    assert machine.run(program, engine="lowered", controls=watched).memory == expected.memory
    assert len(copies) == 2 * unguarded


@pytest.mark.parametrize(("design", "every"), [("compact", 4), *(soaked(design, 1) for design in DESIGNS)])
def test_every_pair_of_functions_at_size_1(design: str, every: int) -> None:
    """Scalars: no function is disturbed by the columns of another."""
    for pair in list(combinations(BUILT_IN, 2))[::every]:
        lines = [f"{x} = {f}({'a, a' if BUILT_IN[f].arity == 2 else 'a'})" for x, f in zip("bc", pair, strict=True)]
        program = assemble(".data\na scalar 2\nb scalar\nc scalar\n.code\n" + "\n".join(lines))
        report = audited_run(build(program, design=design, heads=2), program)
        assert report.ok, f"{pair}: {report.why}"


@pytest.mark.parametrize("design", DESIGNS)
def test_a_flag_with_an_error_leaves_exact_bits(design: str) -> None:
    """An integer but for an error of the last steps: the program counter and all registers are as exact as ever."""
    machine = FleqMachine(functions=("add",), size=1, memory=4, instructions=12, design=design)
    text = ".range 16\n.data\nx scalar 0\nf scalar -0.04\no scalar 0.99\n.code\nx = add(x, x); if f <= 0 goto 1\n"
    text += "x = add(x, x); if o <= 0 goto 0\n" * 6 + "x = add(x, x); if f <= 0 goto 0\nhalt\n"
    card = machine.punch(assemble(text))
    for _ in range(24):
        card = machine.model(card)
        assert machine.layout.violations(card) == []
