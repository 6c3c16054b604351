"""Programs as layers: values and gradients against torch.autograd on the same computation in plain torch."""

from __future__ import annotations

import copy
import re
import runpy
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import punchcard
from punchcard.errors import ArgumentError, PrecisionError, ProgramError, PunchcardError
from punchcard.export.layer import ProgramLayer
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as assemble_image
from punchcard.python.program import program as python_program

ROOT = Path(__file__).parent.parent
TIGHT = 1e-11
COUNTS = "scratchpad"
"""What counts the loops here: it need not be compiled."""

TINY = punchcard.assemble("""
# x grows by its product with y, as often as n says; s is a sum
.data
x    scalar 0.5
y    scalar 0.25
s    scalar
n    scalar -1
one  scalar 1
.code
loop:   s = mul(x, y)
        x = add(x, s)
        n = add(n, one); if n <= 0 goto loop
        halt
""", "fleq")
VECTORS = punchcard.assemble("""
.data
A    matrix 2x2
v    vector 2
w    vector 2
.code
        w = mul(A, v)
        A = transpose(A)
        halt
""", "fleq")


def plain(x: Tensor, y: Tensor) -> Tensor:
    """What TINY computes."""
    for _ in range(2):
        x = x + x * y
    return x


def real(*values: Any) -> list[Tensor]:
    return [torch.tensor(value, dtype=torch.float64) for value in values]


def apart(mine: Any, theirs: Any) -> float:
    """The largest difference of tensors, or of tuples of them."""
    if isinstance(mine, Tensor):
        return float((mine - theirs).abs().max())
    return max(apart(one, other) for one, other in zip(mine, theirs, strict=True))


def layer_of(program: punchcard.FleqProgram, machine: FleqMachine, inputs: Sequence[str], outputs: Sequence[str],
             **options: Any) -> ProgramLayer:
    layer = machine.as_layer(program, inputs, outputs, **{"engine": COUNTS, **options})
    assert isinstance(layer, ProgramLayer)
    return layer


@pytest.fixture(scope="module")
def machine(shared_code: None) -> FleqMachine:
    return FleqMachine.for_program(TINY, heads=3)


@pytest.fixture(scope="module")
def tiny(machine: FleqMachine) -> ProgramLayer:
    return layer_of(TINY, machine, ["x", "y"], ["x"])


@pytest.fixture(scope="module")
def vectors(shared_code: None) -> ProgramLayer:
    return layer_of(VECTORS, FleqMachine.for_program(VECTORS, heads=3), ["A", "v"], ["w", "A"], checkpoint=False)


# Values and gradients


def test_values_with_and_without_gradients(tiny: ProgramLayer) -> None:
    """By an engine and by the dense equation."""
    given = real([[0.5, -1.0]], 0.25)
    expected = plain(*given)
    fast = tiny(*given)
    assert not fast.requires_grad
    dense = tiny(given[0].requires_grad_(), given[1])
    assert dense.requires_grad
    for found in (fast, dense):
        assert found.shape == (1, 2)
        assert (found - expected).abs().max() < TIGHT


def test_the_gradient_is_that_of_the_equation(machine: FleqMachine) -> None:
    """A weight that is changed changes the dense values, so the layer runs the machine's own weights."""
    own = machine.in_format("float64")
    layer = layer_of(TINY, own, ["x"], ["x"], checkpoint=False)
    (x,) = real(0.5)
    before = layer(x.requires_grad_()).detach()
    card = layer.card
    for _ in range(7):
        card = own.model(card)
    place = own.real_variables(TINY)["x"]
    by_hand = sum(card[rows, place.columns] for rows in place.rows)
    assert float(before) == float(by_hand)
    weight = own.model.layers[2].get_parameter("value")
    weight.mul_(1.001)
    loops = layer.unrolled(7, x)[0].detach()
    assert abs(loops - before) > 1e-5


@pytest.mark.parametrize(("checkpoint", "device"), [
    (True, "cpu"), (False, "cpu"), *[(True, "cuda")] * torch.cuda.is_available()])
def test_gradients(machine: FleqMachine, checkpoint: bool, device: str) -> None:
    layer = layer_of(TINY, machine, ["x", "y"], ["x"], checkpoint=checkpoint).to(device)
    given = [tensor.to(device).requires_grad_() for tensor in real([0.5, -1.0, 0.0], 0.25)]
    assert layer(*given).device.type == device
    assert apart(*(torch.autograd.grad(f(*given).square().sum(), given) for f in (layer, plain))) < TIGHT


def test_zeros_have_their_derivatives(vectors: ProgramLayer) -> None:
    """relu(x) - relu(-x) is x also at 0: with torch's own relu'(0) = 0 these would vanish."""
    a, v = real([[0.0, 2.0], [0.0, 0.0]], [0.0, 1.0])
    assert apart(*(torch.func.jacrev(f, argnums=(0, 1))(a, v) for f in (vectors, lambda a, v: (a.T @ v, a.T)))) < TIGHT
    card = vectors.card.clone().requires_grad_()
    with_relu, loops = card, vectors.loops
    for _ in range(3):
        with_relu = vectors.machine.model(with_relu)
    assert torch.equal(with_relu, loops(card, 3, checkpoint=False)), "the same values, bit by bit"
    column = vectors.places["A"].columns.start
    rows = [place.start for place in vectors.places["A"].rows]
    gradient = torch.autograd.grad(with_relu[rows, column + 1].sum(), card)[0]
    assert gradient[rows[0] + 1, column] == 0, "by torch's own relu, of a transpose where it should be 1"


def second(function: Callable[..., Tensor]) -> Tensor:
    """A gradient of a gradient, by autograd."""
    x, y = real(0.5, 0.25)
    y.requires_grad_()
    (first,) = torch.autograd.grad(function(x, y), y, create_graph=True)
    return torch.autograd.grad(first.square(), y)[0]


def test_transforms_of_torch_func(tiny: ProgramLayer) -> None:
    given = real(0.5, 0.25)
    moved = real(1.0, -2.0)
    batch = real([0.5, 0.1, 0.0])[0]
    cases: dict[str, Callable[[Any], Any]] = {
        "jvp": lambda f: torch.func.jvp(f, tuple(given), tuple(moved))[1],
        "vjp": lambda f: torch.func.vjp(f, *given)[1](moved[0])[1],
        "jacrev": lambda f: torch.func.jacrev(f, argnums=1)(batch, given[1]),
        "jacfwd": lambda f: torch.func.jacfwd(f, argnums=0)(*given),
        "vmap": lambda f: torch.vmap(f, in_dims=(0, None))(batch, given[1]),
        "vmap of grad": lambda f: torch.vmap(torch.func.grad(f, argnums=1), in_dims=(0, None))(batch, given[1]),
        "hessian": lambda f: torch.func.jacfwd(torch.func.grad(f, argnums=1))(*given),
        "autograd, twice": second,
    }
    for name, case in cases.items():
        assert (case(tiny) - case(plain)).abs().max() < TIGHT, name


# Batches and loops


def test_items_halt_at_loops_of_their_own(machine: FleqMachine) -> None:
    layer = layer_of(TINY, machine, ["x", "n"], ["x", "s"], engine="auto")
    x, n = real([0.5, 0.5, -1.0], [0.0, -2.0, -1.0])
    x.requires_grad_()
    found, last = layer(x, n)
    expected = torch.stack([x[0] * 1.25, x[1] * 1.25**3, x[2] * 1.25**2])
    assert (found - expected).abs().max() < TIGHT
    assert torch.autograd.grad(found.sum(), x)[0].tolist() == pytest.approx([1.25, 1.25**3, 1.25**2], abs=TIGHT)
    assert last.shape == (3,)
    assert (layer(x.detach(), n)[0] - expected).abs().max() < TIGHT


def test_leading_dimensions(vectors: ProgramLayer) -> None:
    torch.manual_seed(0)
    a, v = torch.randn(3, 1, 2, 2, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64)
    w, turned = vectors(a, v)
    assert (w.shape, turned.shape) == ((3, 2, 2), (3, 2, 2, 2))
    assert (w - (a.mT @ v[..., None])[..., 0]).abs().max() < TIGHT
    assert torch.equal(turned, a.mT.expand(3, 2, 2, 2))
    assert vectors(a[:0], v)[0].shape == (0, 2, 2)


def test_memory_grows_with_the_square_root(machine: FleqMachine) -> None:
    """Numbers kept for the gradient, counted at the outermost level: the cards between segments."""
    layer = layer_of(TINY, machine, ["x"], ["x"])

    def kept(loops: int, *, checkpoint: bool) -> int:
        sizes: list[int] = []

        def pack(tensor: Tensor) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            layer.unrolled(loops, torch.tensor(0.5, dtype=torch.float64, requires_grad=True), checkpoint=checkpoint)
        return sum(sizes)

    few, many = (kept(loops, checkpoint=True) for loops in (9, 81))
    assert many < 3.2 * few
    assert kept(9, checkpoint=False) > 10 * few


# Number formats, devices, modules


def test_float32_is_another_machine(machine: FleqMachine) -> None:
    layer = layer_of(TINY, machine, ["x"], ["x"]).to(torch.float32)
    assert layer.machine.precision.name == "float32"
    x = torch.tensor(0.5, requires_grad=True)
    found = layer(x)
    assert found.dtype == torch.float32
    assert abs(found.item() - 0.5 * 1.25**2) < 1e-5
    assert abs(torch.autograd.grad(found, x)[0].item() - 1.25**2) < 1e-4
    assert layer.double().card.dtype == torch.float64
    assert machine.precision.name == "float64"
    with pytest.raises(ArgumentError, match=r"x holds float32, the layer float64: use layer.to\(torch.float32\)"):
        layer(x)
    with pytest.raises(PrecisionError, match="real numbers need float32 or float64"):
        layer.half()


def test_inside_a_network(tiny: ProgramLayer, machine: FleqMachine) -> None:
    torch.manual_seed(1)
    layer = layer_of(TINY, machine, ["x"], ["x"], checkpoint=False)
    linear = nn.Linear(2, 3)
    network = nn.Sequential(linear, layer, nn.Tanh()).double()
    assert len(list(network.parameters())) == 2, "no optimiser sees the machine's weights"
    points = torch.randn(1, 2, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(network(points).sum(), linear.bias)
    inside = linear(points)
    slope = 1.25**2 * (1 - torch.tanh(1.25**2 * inside).square())
    assert (gradient - slope[0]).abs().max() < TIGHT
    other = copy.deepcopy(network)
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(points), network(points))
    assert "x -> x, on <FleqMachine" in repr(network)


@pytest.mark.soak
def test_inside_a_compiled_network(tiny: ProgramLayer) -> None:
    network = torch.compile(lambda x, y: torch.tanh(tiny(2 * x, y)), backend="eager")
    given = real(0.25, 0.25)
    assert abs(network(*given) - torch.tanh(plain(2 * given[0], given[1]))) < TIGHT


# Machines of bits


def test_gradients_through_bits_vanish(shared_code: None) -> None:
    program = punchcard.load(ROOT / "examples" / "multiply.subleq")
    layer = punchcard.build(program, design="two-layer").as_layer(program, inputs=["a", "b"], outputs=["product"],
                                                                   engine=COUNTS)
    given, expected = ([3, -5], 4), [12, -20]
    whole = layer(*map(torch.tensor, given))
    assert (whole.dtype, whole.tolist()) == (torch.int64, expected)
    a, b = (tensor.requires_grad_() for tensor in real(*given))
    found = layer(a, b)
    assert found.tolist() == expected
    assert torch.autograd.grad(found.sum(), a)[0].tolist() == [0.0, 0.0]
    assert torch.func.jvp(lambda x: layer(x, b), (a.detach(),), (torch.ones_like(a),))[1].tolist() == [0.0, 0.0]
    with pytest.raises(ArgumentError, match=r"a holds 2.5: a subleq machine computes with integers"):
        layer(*real(2.5, 1.0))


def test_an_image_has_the_names_of_its_labels(shared_code: None) -> None:
    program = assemble_image("a b; Z Z (-1)\n. a:3 b:5 Z:0")
    layer = punchcard.build(program, memory=256).as_layer(program, inputs=["a"], outputs=["b"], engine=COUNTS)
    assert layer(torch.tensor([1, 2])).tolist() == [4, 3]
    with pytest.raises(ProgramError, match="unknown label 'c'"):
        punchcard.build(program, memory=256).as_layer(program, inputs=["c"], outputs=["b"])


# Functions of arrays


def turn(A: Any, v: Any) -> Any:
    w = A @ v
    return w * w, A.T


def test_functions_of_arrays_are_layers(shared_code: None) -> None:
    function = python_program(turn, heads=3, engine=COUNTS)
    a, v = real([[0.5, 0.0, 1.0], [2.0, -1.0, 0.25]], [1.0, 0.0, -0.5])
    layer = function.as_layer(a, v, checkpoint=False)
    squares, turned = layer(a.expand(2, 2, 3), v)
    assert (squares - (a @ v).square().expand(2, 2)).abs().max() < TIGHT
    assert (turned - a.T.expand(2, 3, 2)).abs().max() < TIGHT
    jacobians = (torch.func.jacrev(f, argnums=(0, 1))(a, v) for f in (layer, lambda a, v: ((a @ v).square(), a.T)))
    assert apart(*jacobians) < TIGHT
    with pytest.raises(ArgumentError, match=r"v has the shape \(2,\): it must be \(3,\)"):
        layer(a, v[:2])
    with pytest.raises(ArgumentError, match="the layer takes 2 tensors, for A, v, and is given 1"):
        layer(a)


# What is refused


@pytest.mark.parametrize(("inputs", "outputs", "message"), [
    (["z"], ["x"], "unknown variable 'z'"),
    (["x"], ["xx"], r"unknown output 'xx' \(did you mean 'x'\?\); the program has x, y, s, n, one"),
    ([], ["x"], r"as_layer: inputs=\[\]: give one name or more"),
    (["x"], ["x", "s", "x"], "as_layer: outputs has 'x' twice"),
    ("x", ["x"], "inputs='x': it must be"),
])
def test_names_that_are_refused(machine: FleqMachine, inputs: Any, outputs: Any, message: str) -> None:
    with pytest.raises(PunchcardError, match=message):
        machine.as_layer(TINY, inputs, outputs)


def test_tensors_that_are_refused(tiny: ProgramLayer, vectors: ProgramLayer, machine: FleqMachine) -> None:
    x, y = real(0.5, 0.25)
    a, v = real([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0])
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: tiny(x), "the layer takes 2 tensors, for x, y, and is given 1"),
        (lambda: tiny(x, 0.25), "y: a tensor is wanted, not a float"),
        (lambda: vectors(a, v[:1]), r"v has the shape \(1,\): it must be \(2,\), after any leading"),
        (lambda: vectors(a.expand(2, 2, 2), v.expand(3, 2)), r"dimensions do not fit each other: A \(2,\), v \(3,\)"),
        (lambda: tiny(x + 20, y), "variable 'x' holds a value that is not within ±16"),
        (lambda: tiny(torch.stack([x, x + 15.4]), y), "item 1 of the batch"),
        (lambda: layer_of(TINY, machine, ["n"], ["x"], max_steps=20)(*real(-9.0)),
         "the program has not halted after 20 instructions; give as_layer a larger max_steps="),
        (lambda: tiny.machine.as_layer(punchcard.assemble(".code\nhalt"), ["x"], ["x"]), "it must be a FleqProgram"),
    ]
    for call, message in cases:
        with pytest.raises(PunchcardError, match=message):
            call()


# The examples


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "gradients" / f"{name}.py"))


def test_derivatives_of_an_inverse_an_eigenvalue_and_a_descent(shared_code: None) -> None:
    script = example("derivatives")
    assert script["compare"]("../newton.fleq", ["A"], ["X"], script["inverse"], engine=COUNTS) < 1e-9
    assert script["compare"]("eigenvalue.fleq", ["A"], ["value"], script["eigenvalue"], engine=COUNTS) < 1e-9
    three = partial(script["sgd"], steps=3)  # all ten in `make soak`
    assert script["compare"]("sgd.fleq", ["X", "rate"], ["w"], three, engine=COUNTS, t=-2) < 1e-9


def test_the_gradient_of_a_penalty(shared_code: None) -> None:
    assert example("penalty")["learn"](1)[1] < 1e-9


def test_a_network_with_a_program_in_its_middle(shared_code: None) -> None:
    script = example("middle_layer")
    layer = punchcard.build(script["program"], heads=3).as_layer(
        script["program"], ["x"], ["h"], engine=COUNTS, checkpoint=False)
    ours, plain = script["learn"](layer, 2), script["learn"](script["PlainCell"](), 2)
    assert ours == pytest.approx(plain, abs=1e-9)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["derivatives", "penalty", "step_size", "middle_layer"])
def test_the_scripts_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "gradients" / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert out
    assert all(float(figure) < 1e-9 for figure in re.findall(r"\d\.\de[-+]\d+", out))


@pytest.mark.soak
def test_a_step_size_and_a_penalty_are_learned() -> None:
    losses, rate = example("step_size")["learn"]()
    assert losses[-1] < 0.1 * losses[0]
    assert rate > 0.5
    losses, difference = example("penalty")["learn"]()
    assert losses[-1] < 0.5 * losses[0]
    assert difference < 1e-9
