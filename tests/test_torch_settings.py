"""Torch's settings: a loop, a gradient, weights and a proof are the same whatever torch is set to, and the setting stays."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import punchcard
from punchcard.card.layout import as_tensor
from punchcard.engines import ENGINES, prepare, prepare_batch
from punchcard.errors import PunchcardError
from punchcard.export.layer import ProgramLayer
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.subleq.isa import Program
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.transformer import torch_settings
from punchcard.transformer.guarded_model import GuardedTransformer
from punchcard.transformer.model import LayerShape
from tests.test_layer import TINY

pytestmark = pytest.mark.usefixtures("shared_code")
LOOPS = 6
ALL_BACKENDS: Any = torch.backends
PROGRAM = punchcard.load("examples/multiply.subleq").with_values({"a": 6, "b": 3})


def precisions() -> list[str]:
    """The precision of float32 products, by device."""
    return [backend.fp32_precision for backend in torch_settings.backends()]


def is_flushing() -> bool:
    return sys.float_info.min / 2 == 0.0


@contextmanager
def flushed() -> Iterator[None]:
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush small numbers")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def reset_products() -> None:
    """Torch as it starts."""
    torch.set_float32_matmul_precision("highest")
    if hasattr(torch.backends.mkldnn, "matmul"):
        for place in (ALL_BACKENDS, *torch_settings.backends()):
            place.fp32_precision = "none"


@contextmanager
def narrow_products() -> Iterator[None]:
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        reset_products()


@contextmanager
def default(put: Callable[[Any], object], value: object, before: object) -> Iterator[None]:
    put(value)
    try:
        yield
    finally:
        put(before)


SETTINGS: dict[str, Callable[[], Any]] = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "narrow products": narrow_products,
    "flushed": flushed,
    "half by default": lambda: default(torch.set_default_dtype, torch.float16, torch.get_default_dtype()),
    "meta by default": lambda: default(torch.set_default_device, "meta", None),
}


@contextmanager
def all_settings() -> Iterator[None]:
    with ExitStack() as stack:
        for setting in SETTINGS.values():
            stack.enter_context(setting())
        yield


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return SETTINGS[request.param]


def subleq() -> tuple[SubleqMachine, Program]:
    return SubleqMachine(word_bits=8, memory=8, instructions=16, design="two-layer", precision="float32"), PROGRAM


@cache
def expected() -> tuple[Tensor, bytes]:
    machine, program = subleq()
    card = machine.punch(program)
    for _ in range(LOOPS):
        card = machine.model(card)
    return card, machine.weights.digest()


@pytest.mark.parametrize("engine", ENGINES)
def test_engines(setting: Callable[[], Any], engine: str) -> None:
    """Built, punched and run within a setting."""
    wanted, digest = expected()
    with setting():
        machine, program = subleq()
        assert machine.weights.digest() == digest
        card = machine.punch(program)
        ran = prepare(engine, machine.model, machine.layout, card).run(LOOPS)
        batch = prepare_batch(engine, machine.model, machine.layout, [card, card]).run(LOOPS)
    for each in (ran, *batch):
        assert torch.equal(as_tensor(each.card), wanted), each.notes


def test_the_model(setting: Callable[[], Any]) -> None:
    wanted, _ = expected()
    with setting():
        machine, program = subleq()
        card = machine.punch(program)
        for _ in range(LOOPS - 1):
            card = machine.model(card)
        stages = machine.model.stages(card)
        card = machine.model(card)
    assert torch.equal(card, wanted)
    assert torch.equal(stages[-1], wanted)
    assert card.dtype == torch.float32


@cache
def real_machine() -> FleqMachine:
    return FleqMachine.for_program(TINY, precision="float32")


@cache
def real_cards() -> list[Tensor]:
    return [as_tensor(real_machine().run(TINY, engine=engine).card) for engine in ("dense", "scratchpad")]


def test_real_numbers(setting: Callable[[], Any]) -> None:
    """The product of two numbers in float32, of which autocast would leave nothing."""
    with setting():
        found = [as_tensor(real_machine().run(TINY, engine=engine).card) for engine in ("dense", "scratchpad")]
    assert all(map(torch.equal, found, real_cards()))


@cache
def float32_layer(checkpoint: bool = True) -> ProgramLayer:
    machine = FleqMachine.for_program(TINY, precision="float32")
    return machine.as_layer(TINY, ["x", "y"], ["x"], engine="scratchpad", checkpoint=checkpoint)


def gradients(layer: ProgramLayer, setting: Callable[[], Any] = nullcontext) -> tuple[Tensor, ...]:
    """The value with a gradient, and without; the gradient, and the forward derivative."""
    x, y = (torch.tensor(value, dtype=torch.float32, device="cpu") for value in (0.5, 0.25))
    x.requires_grad_()
    with setting():
        value = layer(x, y)
        (first,) = torch.autograd.grad(value, x, create_graph=True)
        pushed = torch.func.jvp(layer, (x.detach(), y), (torch.ones_like(x), torch.ones_like(y)))[1]
        return value.detach(), layer(x.detach(), y), first.detach(), pushed


@cache
def plain_gradients(checkpoint: bool) -> tuple[Tensor, ...]:
    return gradients(float32_layer(checkpoint))


@pytest.mark.parametrize(("name", "checkpoint"), [*((name, True) for name in SETTINGS), ("autocast", False),
                                                  ("narrow products", False)])
def test_layers(name: str, checkpoint: bool) -> None:
    found = gradients(float32_layer(checkpoint), SETTINGS[name])
    assert [tensor.dtype for tensor in found] == [torch.float32] * 4
    assert all(map(torch.equal, found, plain_gradients(checkpoint)))


def test_layers_are_built_within_settings() -> None:
    wanted = gradients(float32_layer())
    with all_settings():
        layer = float32_layer.__wrapped__()
    assert all(map(torch.equal, gradients(layer), wanted))


def test_backward_within_autocast() -> None:
    """The gradient of loops that were made outside: made again, or refused."""
    x, y = torch.tensor(0.5, requires_grad=True), torch.tensor(0.25)
    (wanted,) = torch.autograd.grad(float32_layer()(x, y), x)
    made, kept = float32_layer()(x, y), float32_layer(checkpoint=False)(x, y)
    for setting in (SETTINGS["autocast"], SETTINGS["narrow products"]):
        with setting():
            assert torch.equal(torch.autograd.grad(made, x, retain_graph=True)[0], wanted)
            with pytest.raises(PunchcardError, match=r"the gradient is asked for under autocast or with narrower float32 "
                                                     r"products.* checkpoint=True"):
                torch.autograd.grad(kept, x, retain_graph=True)
    assert torch.equal(torch.autograd.grad(kept, x)[0], wanted)


def test_a_setting_stays() -> None:
    """Within a loop torch has the settings of the equation; afterwards, those that it had."""
    seen: list[tuple[bool, list[str], bool]] = []

    def look(*_: object) -> None:
        seen.append((torch.is_autocast_enabled("cpu"), precisions(), is_flushing()))

    machine, program = subleq()
    card, hook = machine.punch(program), machine.model.layers[0].register_forward_hook(look)
    plain = precisions()
    with SETTINGS["autocast"](), narrow_products(), flushed():
        narrow = precisions()
        machine.model(card)
        prepare("dense", machine.model, machine.layout, card).run(1)
        assert (torch.is_autocast_enabled("cpu"), precisions(), is_flushing()) == (True, narrow, True)
        with pytest.raises(RuntimeError):
            machine.model(card[1:])
        assert (torch.is_autocast_enabled("cpu"), precisions(), is_flushing()) == (True, narrow, True)
    hook.remove()
    assert set(narrow).isdisjoint(torch_settings.FULL)
    assert seen == [(False, ["ieee"] * len(narrow), False)] * 2
    assert precisions() == plain


@pytest.fixture
def plain_products() -> Iterator[None]:
    """Torch as it starts, before the test and after it."""
    if not hasattr(torch.backends.mkldnn, "matmul"):
        pytest.skip("torch before 2.9 has one setting for all devices, and one way to ask")

    reset_products()
    yield
    reset_products()


def a_loop(look: Callable[..., None] = lambda *_: None) -> None:
    machine, program = subleq()
    with_hook = GuardedTransformer(machine.model.width, machine.model.shapes, machine.model.dtype)
    with_hook.layers[0].register_forward_hook(look)
    with_hook(machine.punch(program))


@pytest.mark.usefixtures("plain_products")
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_an_inherited_precision_stays_inherited(precision: str) -> None:
    """What is set for all backends can still be changed for all of them after a loop; a backend's own setting stays."""
    ALL_BACKENDS.fp32_precision = precision
    a_loop()
    assert precision in precisions()
    ALL_BACKENDS.fp32_precision = "ieee"
    assert set(precisions()) <= set(torch_settings.FULL)

    ALL_BACKENDS.mkldnn.matmul.fp32_precision = "bf16"
    a_loop()
    ALL_BACKENDS.fp32_precision = "tf32"
    assert precisions() == ["tf32", "bf16"]


def said_by_torch() -> list[object]:
    """The precision by each of torch's ways to ask; a way that is refused says so."""
    def refused_or(way: Callable[[], object]) -> object:
        try:
            return way()
        except RuntimeError:
            return "refused"

    return [*precisions(), refused_or(torch.get_float32_matmul_precision),
            refused_or(lambda: torch.backends.cuda.matmul.allow_tf32)]


def allow_tf32() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True


@pytest.mark.usefixtures("plain_products")
@pytest.mark.parametrize("ways", [
    [lambda: torch.set_float32_matmul_precision("high")],
    [lambda: torch.set_float32_matmul_precision("medium")],
    [allow_tf32],
    [lambda: torch.set_float32_matmul_precision("medium"), allow_tf32],
    [lambda: setattr(ALL_BACKENDS, "fp32_precision", "tf32")],
], ids=["high", "medium", "allow_tf32", "medium and allow_tf32", "all backends"])
def test_all_ways_to_ask_for_the_precision(ways: list[Callable[[], None]]) -> None:
    """Within a loop each of them says full precision, and afterwards what it said before."""
    seen: list[list[object]] = []
    for way in ways:
        way()
    before = said_by_torch()
    a_loop(lambda *_: seen.append(said_by_torch()))
    assert seen == [[*["ieee"] * len(precisions()), "highest", False]]
    assert said_by_torch() == before


def test_threads() -> None:
    """The precision of products is the process's: it comes back when the last loop ends, and not before."""
    machine, program = subleq()
    card, inside, seen = machine.punch(program), [threading.Event(), threading.Event()], list[list[str]]()
    first_ended = threading.Event()

    def wait(number: int) -> Callable[..., None]:
        def hook(*_: object) -> None:
            inside[number].set()
            inside[1 - number].wait(10)
            if number == 1:
                first_ended.wait(10)
                seen.append(precisions())

        return hook

    def loop(number: int) -> None:
        model = GuardedTransformer(machine.model.width, machine.model.shapes, machine.model.dtype)
        model.layers[-1].register_forward_hook(wait(number))
        model(card)
        if number == 0:
            first_ended.set()

    with narrow_products():
        narrow = precisions()
        threads = [threading.Thread(target=loop, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [["ieee"] * len(narrow)]
        assert precisions() == narrow


def test_proofs() -> None:
    """Under all settings at once."""
    pytest.importorskip("z3")
    with all_settings():
        machine = SubleqMachine(word_bits=2, memory=2, instructions=2, design="two-layer", precision="float64")
        assert machine.prove().proven


def test_exports(setting: Callable[[], Any]) -> None:
    """The model that goes into folders stands alone: it leaves autocast, and refuses narrower products."""
    pytest.importorskip("transformers")
    from punchcard.export import hugging_face

    wanted, _ = expected()
    with setting():
        machine, program = subleq()
        model, cards = hugging_face.model(machine), machine.punch(program).T[None]
        if setting is narrow_products:
            with pytest.raises(RuntimeError, match=r"products of float32 in (bf16|medium), which drops bits of the weights"):
                model(cards, loops=LOOPS)
            return
        found = model(cards, loops=LOOPS).last_hidden_state
    assert torch.equal(found[0].T, wanted)


def test_the_file_of_a_transformer_lens_model(setting: Callable[[], Any]) -> None:
    pytest.importorskip("safetensors")
    from punchcard.export.transformer_lens import state

    machine, _ = subleq()
    wanted = state(machine.weights, machine.layout.columns)
    with setting():
        found = state(subleq()[0].weights, machine.layout.columns)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("setting", ["tf32", "autocast", "allow_tf32"])
def test_cuda(setting: str) -> None:
    """On a GPU, products of float32 are TF32 where that is allowed: ten bits of a weight."""
    machine = FleqMachine.for_program(TINY, precision="float32")
    card = machine.punch(TINY).cuda()
    model, layer = copy.deepcopy(machine.model).cuda(), float32_layer.__wrapped__().cuda()
    x, y = (torch.tensor(value, device="cuda") for value in (0.5, 0.25))
    x.requires_grad_()

    def results() -> list[Tensor]:
        value = layer(x, y)
        ran = prepare("scratchpad", model, machine.layout, card).run(LOOPS)
        return [model(card), as_tensor(ran.card), value.detach(), *torch.autograd.grad(value, x)]

    wanted = results()
    product = torch.randn(256, 256, device="cuda")
    full = product @ product
    context = torch.autocast("cuda", dtype=torch.bfloat16) if setting == "autocast" else narrow_products()
    with context:
        if setting == "allow_tf32":
            torch.backends.cuda.matmul.allow_tf32 = True
        assert not torch.equal(full, (product @ product).float()), "the setting has an effect on this device"
        assert all(map(torch.equal, results(), wanted))
        assert not torch.equal(full, (product @ product).float()), "and still has it"


def test_small_numbers() -> None:
    """A tail of a softmax below the smallest normal number is part of the equation, and on the card."""
    model = GuardedTransformer(3, [LayerShape(heads=1, key_size=1, hidden=0)], torch.float32)
    for name, at in {"key": (0, 0, 0), "query": (0, 0, 1), "value": (0, 2, 0), "temperature": (0,)}.items():
        model.layers[0].get_parameter(name)[at] = 1.0
    card = torch.tensor([[0.0, -95.0], [1.0, 1.0], [0.0, 0.0]])
    wanted = model(card)
    assert 0 < wanted[2].abs().max() < np.finfo(np.float32).tiny
    with flushed():
        assert (wanted[2] * 1).abs().max() == 0
        assert torch.equal(model(card).view(torch.int32), wanted.view(torch.int32))
        ran = prepare("scratchpad", model, None, card).run(1)
    assert torch.equal(as_tensor(ran.card), wanted)
