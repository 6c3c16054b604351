"""Gradients through programs: how exact, how long, how much memory. The figures of docs/gradients.md.

    python benchmarks/gradients.py functions     derivatives of the FLEQ functions, beside the bounds of their values
    python benchmarks/gradients.py inverse       the gradient of Newton's inverse, by number format and heads
    python benchmarks/gradients.py time          a loop, forward and back; with torch.compile
    python benchmarks/gradients.py memory        peak memory of reverse mode over 100 and 1,000 loops
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import punchcard
from punchcard.export.layer import ProgramLayer
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.functions import Function, fitted_domain, known_function
from punchcard.machines.fleq.machine import FleqMachine

ROOT = Path(__file__).parent.parent
SAMPLES = 200
RANGE = 16.0
MATRIX = torch.tensor([[4.0, 1.0], [2.0, 3.0]], dtype=torch.float64)
BATCH = 8

EXACT: dict[str, tuple[int, Callable[..., Tensor]]] = {
    "add": (2, lambda a, b: a + b), "sub": (2, lambda a, b: a - b), "transpose": (1, lambda a: a.mT),
    "percentage": (1, lambda a: a / 100), "sigmoid": (1, torch.sigmoid), "mul": (2, lambda a, b: a.mT @ b),
    "hadamard": (2, lambda a, b: a * b), "inverse": (1, lambda a: 1 / a), "sqrt": (1, torch.sqrt),
    "entrywise": (2, lambda a, b: a * b), "relu": (1, torch.relu), "abs": (1, torch.abs), "tanh": (1, torch.tanh),
    "maximum": (2, torch.maximum), "minimum": (2, torch.minimum), "positive": (1, lambda a: (a > 0) + 0 * a),
    "exp_m4_2": (1, torch.exp), "log_0d1_16": (1, torch.log), "sqrt_0d1_16": (1, torch.sqrt), "sin_m3_3": (1, torch.sin),
}
"""Functions: operands, and the exact function."""


def declared(name: str) -> Function:
    function = known_function(name)
    assert function is not None, name
    return function


def one_call(name: str, heads: int, precision: str) -> tuple[ProgramLayer, float]:
    """A program of one instruction, as a layer, and the bound of its error."""
    operands = EXACT[name][0]
    rows, columns = {"hadamard": (2, 1), "inverse": (1, 1), "sqrt": (1, 1)}.get(name, (2, 2))
    p = Builder()
    places = [p.matrix(letter, np.ones((rows, columns))) for letter in "ab"[:operands]]
    p.call(declared(name), *places, into="c")
    program = p.program(RANGE)
    machine = FleqMachine.for_program(program, heads=heads, precision=precision)
    layer = machine.as_layer(program, list("ab"[:operands]), ["c"], engine="dense", checkpoint=False)
    assert isinstance(layer, ProgramLayer)
    return layer, machine.bound(name)


def functions() -> None:
    """The largest errors of values and of derivatives, of random operands whose results stay within the range."""
    print("| function | heads | format | bound of a value | largest error of a value | largest error of a derivative |")
    print("|---|---|---|---|---|---|")
    cases = [*((name, 1, "float64") for name in EXACT), ("mul", 2, "float64"), ("mul", 3, "float64"),
             ("hadamard", 3, "float64"), ("sigmoid", 1, "float32"), ("mul", 3, "float32")]
    for name, heads, precision in cases:
        layer, bound = one_call(name, heads, precision)
        generator = np.random.default_rng(1)
        low, high = declared(name).domain or (fitted_domain(name) or ("", -2.8, 2.8))[1:]
        given = [torch.tensor(generator.uniform(low, high, (SAMPLES, *layer.shape("a"))), dtype=getattr(torch, precision))
                 for _ in range(EXACT[name][0])]
        exact = EXACT[name][1]
        wide = [tensor.double() for tensor in given]
        value = (layer.unrolled(2, *given)[0].double() - exact(*wide)).abs().max()

        def called(*tensors: Tensor, layer: ProgramLayer = layer) -> Tensor:
            return layer.unrolled(2, *tensors)[0]

        which = tuple(range(len(given)))
        mine, theirs = (torch.vmap(torch.func.jacfwd(f, argnums=which))(*tensors)
                        for f, tensors in ((called, given), (exact, wide)))
        worst = max(float((a.double() - b).abs().max()) for a, b in zip(mine, theirs, strict=True))
        print(f"| `{name}` | {heads} | {precision} | {bound:.1e} | {float(value):.1e} | {worst:.1e} |")


def newton(heads: int, precision: str, **options: bool) -> ProgramLayer:
    program = punchcard.load(ROOT / "examples" / "newton.fleq")
    layer = punchcard.build(program, heads=heads, precision=precision).as_layer(program, ["A"], ["X"], **options)
    assert isinstance(layer, ProgramLayer)
    return layer


def inverse() -> None:
    """d(A^-1) = -A^-1 E A^-1, all of it, against the closed form."""
    inverted = torch.linalg.inv(MATRIX)
    expected = -torch.einsum("ik,lj->ijkl", inverted, inverted)
    print("| format | heads | error of the inverse | error of its derivative |\n|---|---|---|---|")
    for precision, heads in (("float64", 1), ("float64", 2), ("float64", 3), ("float32", 1), ("float32", 3)):
        layer, given = newton(heads, precision, checkpoint=False), MATRIX.to(getattr(torch, precision))
        value = (layer(given).double() - inverted).abs().max()
        slope = (torch.func.jacrev(layer)(given).double() - expected).abs().max()
        print(f"| {precision} | {heads} | {float(value):.1e} | {float(slope):.1e} |")


def seconds(call: Callable[[], object], repeat: int = 3) -> float:
    """CPU seconds, the least of some."""
    found = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def timing() -> None:
    """CPU time for Newton's inverse, 63 loops of a card of 209 rows and 32 columns."""
    torch.set_num_threads(1)
    print("| what | CPU seconds |\n|---|---|")
    layer = newton(3, "float64")
    layer(MATRIX)
    print(f"| forward, fastest engine | {seconds(lambda: layer(MATRIX)):.3f} |")
    for checkpoint in (False, True):
        layer.checkpoint = checkpoint
        given = MATRIX.clone().requires_grad_()

        def back(given: Tensor = given) -> None:
            torch.autograd.grad(layer(given).sum(), given)

        print(f"| forward and reverse, checkpoint={checkpoint} | {seconds(back):.2f} |")
    print(f"| forward mode, `torch.func.jvp` | {seconds(lambda: torch.func.jvp(layer, (MATRIX,), (MATRIX,))):.2f} |")
    for name, loop in (("eager", layer.loops.loop), ("torch.compile", torch.compile(layer.loops.loop))):
        card = layer.card.clone().requires_grad_()

        def forward(loop: Callable[[Tensor], Tensor] = loop, card: Tensor = card) -> None:
            with torch.no_grad():
                loop(card)

        def once(loop: Callable[[Tensor], Tensor] = loop, card: Tensor = card) -> None:
            torch.autograd.grad(loop(card).sum(), card)

        started = time.perf_counter()
        forward()
        once()
        print(f"| first two calls of one loop, {name}, wall | {time.perf_counter() - started:.1f} |")
        print(f"| one loop forward, {name} | {seconds(forward, 20):.4f} |")
        print(f"| one loop forward and reverse, {name} | {seconds(once, 20):.4f} |", flush=True)


def growing() -> ProgramLayer:
    """x = x + x y in a loop: a small machine, for many loops."""
    program = punchcard.assemble(".data\nx scalar 0.5\ny scalar 0.001\ns scalar\none scalar 1\nn scalar 0\n.code\n"
                                      "loop: s = mul(x, y)\nx = add(x, s)\nif n <= 0 goto loop\nhalt", "fleq")
    layer = FleqMachine.for_program(program).as_layer(program, ["y"], ["x"])
    assert isinstance(layer, ProgramLayer)
    return layer


def measure(loops: int, checkpoint: bool) -> None:
    """The peak of a process of its own, in MB: beyond what two loops need, beyond what there was before, and all of it."""
    torch.set_num_threads(1)
    layer = growing()
    given = torch.full((BATCH,), 0.001, dtype=torch.float64, requires_grad=True)
    torch.autograd.grad(given.sum(), given)  # what torch itself needs for any gradient
    peaks = [peak()]
    for count in (2, loops):
        torch.autograd.grad(layer.unrolled(count, given, checkpoint=checkpoint)[0].sum(), given)
        peaks.append(peak())
    print(f"{peaks[2] - peaks[1]:.1f} {peaks[2] - peaks[0]:.0f} {peaks[2]:.0f}")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory() -> None:
    print("| loops | checkpoint | beyond two loops, MB | beyond the process before, MB | all, MB |\n|---|---|---|---|---|")
    for checkpoint, loops in ((True, 100), (True, 1000), (False, 100)):
        ran = subprocess.run([sys.executable, __file__, "measure", str(loops), str(int(checkpoint))], check=True,
                             capture_output=True, text=True)
        print("| {} | {} | {} | {} | {} |".format(loops, checkpoint, *ran.stdout.split()), flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", loops, checkpoint]:
            measure(int(loops), bool(int(checkpoint)))
        case [("functions" | "inverse" | "time" | "memory") as name]:
            {"functions": functions, "inverse": inverse, "time": timing, "memory": memory}[name]()
        case _:
            print(__doc__)
