"""The function blocks in every design: accuracy, error bounds, and what they leave alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch

from punchcard.errors import ProgramError
from punchcard.machines.fleq.blocks.block import Block, Elementwise, FittedFunction
from punchcard.machines.fleq.blocks.catalogue import built_in
from punchcard.machines.fleq.blocks.fit import fit
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum
from punchcard.machines.fleq.functions import BUILT_IN, INVERSE, Function, Shape, same_shape, scalar_only
from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.transformer.expression import relu
from tests.cases import soaked
from tests.fleq_cases import (
    DESIGNS,
    MANY,
    POINTER_FUNCTIONS,
    audited_run,
    check_result,
    contents,
    draw_operand,
    one_call,
    operand_shapes,
    results,
    with_junk,
)
from tests.thin_model import ThinModel

ALL = (*BUILT_IN, *POINTER_FUNCTIONS)
MAXIMUM = Function("maximum", 2, same_shape, np.maximum)
ABSOLUTE = Function("absolute", 1, same_shape, np.abs)
ROWS = [2, soaked(4), 8, soaked(16)]
EXP = Function("exp", 1, scalar_only, np.exp, domain=(-3.0, 3.0))


@cache
def machine_with(
    *functions: str | Block, d: int, design: str = "compact", limit: float = 1.0, heads: int = 1,
    precision: str = "float64", anchors: bool = False,
) -> FleqMachine:
    return FleqMachine(functions=functions, size=d, memory=3 * d + 8, instructions=2, design=design, range=limit,
                       heads=heads, precision=precision, anchors=anchors)


@cache
def machine_of_all(d: int, design: str) -> FleqMachine:
    return FleqMachine(functions=ALL, size=d, memory=3 * d + 6, instructions=3, range=16.0, heads=2, design=design)


def as_held(values: Array, precision: str) -> Array:
    """The operand as the card holds it."""
    return values.astype(precision).astype(np.float64)


def square_operands(function: Function, d: int, seed: str, size: float = 1.0) -> list[tuple[Array, ...]]:
    """Operands of full size d, entries uniform in [-size, size] or in the function's domain."""
    rng = np.random.default_rng(list(seed.encode()))
    shapes = {"hadamard": Shape(d, 1), "inverse": Shape(1, 1), "sqrt": Shape(1, 1), "exp": Shape(1, 1)}
    shape = shapes.get(function.name, Shape(d, d))
    return [tuple(draw_operand(function, shape, rng, size) for _ in range(function.arity)) for _ in range(12)]


def errors(
    machine: FleqMachine, function: Function, operands: Sequence[tuple[Array, ...]]
) -> list[tuple[float, tuple[Array, ...]]]:
    """The largest error of a result's entry, for each case; with the operands as the card holds them."""
    held = [tuple(as_held(x, machine.precision.name) for x in case) for case in operands]
    found = results(machine, [one_call(function, *case, limit=machine.range) for case in held])
    return [(float(np.max(np.abs(c - function.reference(*case)))), case) for c, case in zip(found, held, strict=True)]


@pytest.mark.parametrize("d", ROWS)
@pytest.mark.parametrize(("name", "heads", "precision", "size", "limit"), [
    *((name, heads, precision, 1.0, limit) for name in ("mul", "hadamard")
      for heads, precision, limit in ((1, "float64", 1e-10), (2, "float64", 1e-12), (2, "float32", 1e-5))),
    *((name, 1, "float64", 0.5, 0.0) for name in ("add", "sub", "transpose")),
    ("sigmoid", 1, "float64", 1.0, 1e-14)])
def test_accuracy(d: int, name: str, heads: int, precision: str, size: float, limit: float) -> None:
    """The largest error for entries up to `size`; nothing is lost of sums and of transposes where d is a power of two.

    That of a product is over d max|A| max|B|: it may itself exceed the range of 1.
    """
    seed = f"{name} {d} {heads} {precision}"
    machine = machine_with(name, d=d, heads=heads, precision=precision)
    found = errors(machine, BUILT_IN[name], square_operands(BUILT_IN[name], d, seed, size))
    largest = max(error for error, _ in found)
    if name in ("mul", "hadamard"):
        largest /= d * math.prod(max(float(np.abs(case[i]).max()) for _, case in found) for i in (0, 1))
    assert largest <= limit, f"seed {seed}: {largest:g}"


@pytest.mark.parametrize("d", ROWS)
def test_percentage(d: int) -> None:
    """Within one unit in the last place."""
    function, machine = BUILT_IN["percentage"], machine_with("percentage", d=d)
    cases = square_operands(function, d, f"percentage {d}")
    for (a,), found in zip(cases, results(machine, [one_call(function, *x, limit=1.0) for x in cases]), strict=True):
        assert np.all(np.abs(found - a * 0.01) <= np.spacing(np.abs(a * 0.01)))


@pytest.mark.parametrize("design", MANY)
@pytest.mark.parametrize("name", ["inverse", "sqrt"])
def test_fitted_functions(design: str, name: str) -> None:
    """64 sigmoids, over the whole domain and at both its ends."""
    function, seed = BUILT_IN[name], f"{name} {design}"
    assert function.domain is not None
    machine = machine_with(name, d=1, design=design, limit=16.0)
    ends = [(np.array([[end]]),) for end in function.domain]
    worst = max(error for error, _ in errors(machine, function, [*square_operands(function, 1, seed), *ends]))
    assert worst <= 1e-10, f"seed {seed}: {worst:g}"


# What a block leaves alone


def pointer_program(name: str, field: str) -> FleqProgram:
    """A pointer function on an instruction of all five pointers."""
    target = {"p": "2", "c": "b"}.get(field, "c")
    changed = f"{name}(1.{field})" if name == "incr_pointer" else f"reset_pointer(1.{field}, {target})"
    return assemble(f".range 16\n.data\na scalar 1\nb scalar 1\nc scalar\n.code\n{changed}\n"
                    "c = add(a, b); if a <= 0 goto 0\nhalt")


def junk_cases(machine: FleqMachine, rng: np.random.Generator) -> list[tuple[str, FleqProgram]]:
    d = machine.sizes.size
    cases: list[tuple[str, FleqProgram]] = []
    for name, function in BUILT_IN.items():
        for _ in range(2):
            operands = [draw_operand(function, shape, rng) for shape in operand_shapes(function, rng, d)]
            cases.append((name, one_call(function, *operands, limit=16.0, around=1)))
    for name in POINTER_FUNCTIONS:
        cases += [(f"{name} of {field}", pointer_program(name, field)) for field in ("a", "b", "c", "flag", "p")]
    return cases


@pytest.mark.parametrize(("d", "design"), [
    (1, "compact"), (2, "compact"), (1, "paper"), soaked(2, "paper"), *(soaked(d, "three-layer") for d in (1, 2)),
    *(soaked(d, design) for d in (3, 4) for design in DESIGNS)])
def test_a_function_changes_its_result_and_nothing_else(design: str, d: int) -> None:
    """Numbers of size 1,000 in every neighbouring and every spare column reach nothing, and stay bit-identical."""
    machine = machine_of_all(d, design)
    layout, seed = machine.layout, f"{design} {d}"
    rng = np.random.default_rng(list(seed.encode()))
    cases = junk_cases(machine, rng)
    before = torch.stack([with_junk(machine, program, rng) for _, program in cases])
    after = ThinModel(machine.model)(before)
    for (name, program), old, new in zip(cases, before, after, strict=True):
        about = f"seed {seed}: {name}"
        assert layout.violations(new) == [], about
        check_declared_changes(machine, old, new, about)
        if name in BUILT_IN:
            check_result(machine, BUILT_IN[name], program, old, new, about)
        else:
            assert torch.equal(*(contents(machine, card, "memory") for card in (old, new))), about
            field = machine.sizes.field_rows(name.rsplit(" ", 1)[1])
            changed = contents(machine, new, "instructions") != contents(machine, old, "instructions")
            assert changed[field, 1].any(), about
            changed[field, 1] = False
            assert not changed.any(), about


@pytest.mark.parametrize(("d", "design", "every"), [
    (2, "compact", 2), (1, "paper", 8), soaked(2, "compact", 1), soaked(2, "paper", 4), soaked(2, "three-layer", 1)])
def test_a_thin_model_is_the_model(d: int, design: str, every: int) -> None:
    """Where values only move, bit for bit; elsewhere within the bounds of the functions."""
    machine = machine_of_all(d, design)
    cases = junk_cases(machine, np.random.default_rng(0))[::every]
    cards = torch.stack([machine.punch(program) for _, program in cases])
    thin, whole = ThinModel(machine.model)(cards), machine.model(cards)
    difference = contents(machine, thin, "memory") - contents(machine, whole, "memory")
    assert float(difference.abs().max()) <= max(machine.bound(name) for name in ALL)
    for row, region in (("program_counter", "scratchpad"), ("data", "instructions"), ("incoming", "instructions")):
        assert torch.equal(machine.layout.get(thin, row, region), machine.layout.get(whole, row, region))


def check_declared_changes(machine: FleqMachine, old: torch.Tensor, new: torch.Tensor, about: str) -> None:
    """Only the regions that a row block names in `changes` differ."""
    for block in machine.layout.blocks:
        for region in machine.layout.regions:
            if region.name not in block.changes:
                pair = [machine.layout.get(card, block.name, region.name) for card in (old, new)]
                assert torch.equal(*pair), f"{about}: {block.name} in {region.name}"


# Bounds


def full_range_operands(function: Function, d: int, limit: float, rng: np.random.Generator) -> tuple[Array, ...]:
    """Entries over the whole range; those of products are scaled so that the result just reaches it."""
    shape = {"mul": Shape(d, d), "hadamard": Shape(d, 1), "sigmoid": Shape(d, d)}.get(function.name, Shape(1, 1))
    operands = tuple(draw_operand(function, shape, rng, limit) for _ in range(function.arity))
    if function.name in ("mul", "hadamard"):
        scale = min(1.0, (limit / np.abs(function.reference(*operands)).max()) ** 0.5)
        return tuple(scale * x for x in operands)
    return operands


BOUNDED = [(1, "mul"), (2, "mul"), (3, "mul"), (1, "hadamard"), (3, "hadamard"), (1, "sigmoid"), (1, "inverse"), (1, "sqrt")]


@pytest.mark.parametrize("count", [50, soaked(200)])
@pytest.mark.parametrize(("heads", "name", "precision"), [
    *((*each, "float64") for each in BOUNDED), (1, "mul", "float32"), (1, "sigmoid", "float32"), (1, "inverse", "float32"),
    *(soaked(*each, "float32") for each in BOUNDED if each not in ((1, "mul"), (1, "sigmoid"), (1, "inverse"))),
    ("anchors", "mul", "float64")])
def test_bounds_hold_and_are_tight(name: str, heads: int | str, precision: str, count: int) -> None:
    """Of so many results none is beyond the bound, and the worst is no less than a thousandth of it."""
    seed = f"{name} {heads} {precision}"
    rng = np.random.default_rng(list(seed.encode()))
    function, d, limit = BUILT_IN[name], 3, 16.0
    product = {"heads": heads} if isinstance(heads, int) else {"anchors": True}
    machine = machine_with(name, d=d, limit=limit, precision=precision, **product)
    worst = max(error for error, _ in errors(machine, function,
                                             [full_range_operands(function, d, limit, rng) for _ in range(count)]))
    bound = machine.bound(name)
    assert bound / 1000 <= worst <= bound, f"seed {seed}: worst error {worst:g}, bound {bound:g}"


@pytest.mark.parametrize("name", ["add", "sub", "percentage", "transpose"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("d", [3, 4])
def test_bounds_of_the_other_functions_hold(name: str, precision: str, d: int) -> None:
    """Zero where the arithmetic is that of the reference; float32 rounds a sum that the reference does not."""
    seed = f"{name} {precision} {d}"
    machine = machine_with(name, d=d, limit=16.0, precision=precision)
    function = BUILT_IN[name]
    worst = max(error for error, _ in errors(machine, function, square_operands(function, d, seed, 8.0)))
    assert worst <= machine.bound(name), f"seed {seed}: worst error {worst:g}, bound {machine.bound(name):g}"


CHAIN = """
.range 16
.data
A matrix 2x2 1.25 -0.5 ; 0.3 2
B matrix 2x2
x scalar 0.7
v vector 2 0.1 0.2
.code
B = mul(A, A)
A = transpose(B)
B = sigmoid(A)
A = sub(A, B)
v = hadamard(A[0], B[1])
v = percentage(v)
x = inverse(x)
x = sqrt(x)
A[0] = add(v, A[1])
"""


@pytest.mark.parametrize(("design", "precision", "heads"), [
    (pytest.param if heads == 3 and (design == "compact" or precision == "float64") else soaked)(
        design, precision, heads)
    for design in DESIGNS for precision in ("float64", "float32") for heads in (1, 3)])
def test_a_run_of_all_functions_stays_within_the_bounds(design: str, precision: str, heads: int) -> None:
    program = assemble(CHAIN)
    machine = FleqMachine(functions=program.used_functions(), size=2, memory=program.columns, instructions=10,
                          precision=precision, heads=heads, design=design)
    report = audited_run(machine, program)
    assert report.ok, f"{report.worst}: {report.max_step_error}"
    assert report.max_step_error is not None
    assert report.bound is not None
    assert report.max_step_error <= report.bound


# Variants, and blocks of one's own


@pytest.mark.parametrize("design", DESIGNS)
def test_blocks_of_ones_own(design: str) -> None:
    """max(a, b) = b + relu(a - b) and |x| = relu(x) + relu(-x), beside built-in functions."""
    own = [Elementwise(MAXIMUM, lambda a, b, one: b + relu(a - b), error=2.0),
           Elementwise(ABSOLUTE, lambda a, b, one: relu(a) + relu(-a))]
    program = assemble("""
        .data
        x matrix 2x3 1 -5 2.5 ; 0 3 -1
        y matrix 2x3 3 -7 2.5 ; -1 4 0.5
        z matrix 2x3
        .code
        z = maximum(x, y)
        x = absolute(x)
        z = add(z, x)
    """, functions={"maximum": MAXIMUM, "absolute": ABSOLUTE})
    machine = FleqMachine(functions=["add", *own], size=3, memory=9, instructions=4, design=design)
    report = audited_run(machine, program)
    assert report.ok
    assert report.result.memory["x"].tolist() == [[1, 5, 2.5], [0, 3, 1]]
    assert report.result.memory["z"].tolist() == [[4, 0, 5], [0, 7, 1.5]]


@pytest.mark.parametrize(("slope", "agrees"), [(0.0, True), (7.0, False)])
def test_an_operand_just_beyond_its_domain_is_compared(slope: float, agrees: bool) -> None:
    """Where the function is not even a number: with what it is at the end of its domain."""
    function = Function("rest", 1, same_shape, lambda a: np.sqrt(1 - a), domain=(0.5, 1.0))
    block = Elementwise(function, lambda a, b, one: slope * a, error=4.0)
    program = assemble(".data\nx scalar 1.0000000000000002\ny scalar\n.code\ny = rest(x)", functions={"rest": function})
    with np.errstate(invalid="ignore"):
        assert np.isnan(function.reference(program.values["x"])).all()
    report = audited_run(FleqMachine(functions=[block], size=1, memory=2, instructions=2), program)
    assert report.ok == agrees
    assert agrees or "rest, is off by 4.4e-01" in report.why


@cache
def fitted_exp() -> SigmoidSum:
    return fit(np.exp, -3.0, 3.0, 32)


@pytest.mark.parametrize("design", MANY)
def test_a_fitted_function_of_ones_own(design: str) -> None:
    """exp as 32 sigmoids, beside the 64 of another fitted function and a product."""
    machine = FleqMachine(functions=[FittedFunction(EXP, fitted_exp()), "inverse", "mul"], size=2, memory=4,
                          instructions=4, design=design, range=32.0, heads=2)
    program = assemble(".range 32\n.data\nx scalar 1.25\ny scalar\nz scalar\n.code\ny = exp(x)\nz = inverse(y)\n"
                       "y = mul(y, z)", functions={"exp": EXP})
    report = audited_run(machine, program)
    assert report.ok, f"{report.worst}: {report.max_step_error}"
    assert abs(report.result.memory["y"].item() - 1) < 1e-9
    seed = f"exp {design}"
    worst = max(error for error, _ in errors(machine, EXP, square_operands(EXP, 1, seed)))
    assert worst <= min(machine.bound("exp"), 1e-8), f"seed {seed}: {worst:g}"


@pytest.mark.parametrize("terms", [16, 64])
def test_a_head_for_each_term(terms: int) -> None:
    """The m-head lemma: the same sum, with m heads in place of m columns."""
    sigmoids = fit(np.reciprocal, 0.1, 10.0, terms)
    by_heads, by_columns = (
        FleqMachine(functions=[FittedFunction(INVERSE, sigmoids, head_each=each), "add"], size=2, memory=3,
                    instructions=2, design="paper")
        for each in (True, False))
    assert by_heads.sizes.scratchpad == 6
    assert by_columns.sizes.scratchpad == max(6, terms)
    assert max(shape.heads for shape in by_heads.model.shapes) == terms + 1
    seed = f"heads {terms}"
    cases = square_operands(INVERSE, 1, seed)
    for machine in (by_heads, by_columns):
        worst = max(error for error, _ in errors(machine, INVERSE, cases))
        assert worst <= machine.bound("inverse"), f"seed {seed}: {worst:g}"


@pytest.mark.parametrize("design", DESIGNS)
def test_anchors(design: str) -> None:
    """The paper's own product: beside other functions, with its larger error."""
    program = assemble(".data\nA matrix 2x2 1 2 ; 3 -1\nB matrix 2x2 0.5 1 ; -1 2\n.code\nA = mul(A, B)\nB = add(A, B)")
    machine = FleqMachine(functions=["mul", "add", "sigmoid"], size=2, memory=4, instructions=3, design=design,
                          anchors=True)
    report = audited_run(machine, program)
    assert report.ok
    assert report.max_step_error is not None
    assert report.bound is not None
    assert 0 < report.max_step_error <= report.bound
    assert machine.bound("mul") > 100 * built_in("mul", 1).bound(machine.scale)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_root_holds_from_0_on(precision: str) -> None:
    """From 0 itself through 23 decades, within the bound that is stated."""
    root, machine = BUILT_IN["sqrt"], machine_with("sqrt", d=1, limit=16.0, precision=precision)
    operands = [(np.array([[x]]),) for x in (0.0, *np.geomspace(1e-22, 16.0, 60))]
    assert root.domain == (0.0, 16.0)
    assert max(error for error, _ in errors(machine, root, operands)) <= machine.bound("sqrt")
    assert machine.bound("sqrt") < {"float64": 5e-12, "float32": 4e-5}[precision]


@pytest.mark.parametrize("x", [-1e-3, -1e-300])
def test_a_root_of_less_than_0_is_refused(x: float) -> None:
    """However near 0 it is: there the slope of the root is infinite."""
    program = assemble(f".data\nx scalar {x!r}\ny scalar\n.code\ny = sqrt(x)\nhalt")
    with pytest.raises(ProgramError, match=rf"sqrt of {x:g}: its block is built for 0 to 16"):
        FleqMachine.for_program(program).run(program, engine="dense")
