"""Models that compute the same and hide how: a rotated residual stream, idle rows and heads, noise on the weights.

With an orthogonal R, rows x become x' = R x, and the same equation holds for them with other weights:

    K' = K R^T    Q' = Q R^T    V' = R V R^T    W1' = W1 R^T    b1' = b1    W2' = R W2    b2' = R b2

Scores, hidden units and all that the model computes stay as they were: only the basis of the rows is another. A card goes
in by `readin`: R after its idle rows are added, which begin as 0, or those of copies as the rows that they copy. It
comes out by `readout`: the machine's rows of R^T. R is

    permuted rows in another order and with other signs. No number is rounded, for any card.
    random   any rotation, each as likely. Its entries are rounded, so the rows come back but for rounding.
    exact    a product of rounds that each mix rows in groups of four by a Hadamard matrix over 2. All entries are multiples
             of 1/8, so R^T R is the identity exactly, and exact sums of a machine stay exact.

Idle rows and heads read the machine's rows, and nothing of the machine reads them. An idle head matches as a head of its
layer does, and takes other rows to idle rows. Then the layer sets each idle row to clip(idle row) + relu(row - row), with
rows of the machine at random. So idle rows hold small integers where the machine's rows do, and stay within bounds in any
number of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import AnyArray, name_of
from punchcard.errors import DisguiseError, PunchcardError, SizeError
from punchcard.export.copies import padded, with_copies
from punchcard.export.disguise_options import DISGUISE, Rotation
from punchcard.export.lockstep import interpreter_cards
from punchcard.machines.base import Machine
from punchcard.machines.interpreter import Interpreter
from punchcard.transformer.build import assign, compile_layer
from punchcard.transformer.expression import Array, Expression, Rows, relu, stack
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.transformer.model import LoopedTransformer

DTYPE = "float64"
ROUNDS = 3
"""After three rounds up to 64 rows are mixed, and entries are multiples of 2^-3."""
MIXING = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2


@checked
@dataclass(frozen=True)
class Disguise:
    """What hides a model's basis.

    rotation     "none", "permuted", "exact" or "random": see above
    idle_rows    rows that the machine does not use, beside its own
    idle_heads   heads in each layer that has heads, which write idle rows only
    copies       the share of the rows that layers write which have idle copies, with copies of the heads and hidden units
                 that write them. By rank and norm these are as real ones are: see `copies.py`
    noise        the standard deviation of what is added to each weight w, times the larger of 1 and |w|
    seed         of everything random here
    """

    rotation: Rotation = "none"
    idle_rows: int = 0
    idle_heads: int = 0
    noise: float = 0.0
    seed: int = 0
    copies: float = 0.0

    def __post_init__(self) -> None:
        for option in DISGUISE:
            try:
                option.check(getattr(self, option.name))
            except SizeError as error:
                raise DisguiseError(str(error)) from None
        if self.idle_heads and not self.idle_rows:
            raise DisguiseError(f"idle_heads={self.idle_heads} have no rows to write to: ask for idle_rows as well")

    @property
    def is_none(self) -> bool:
        """Whether nothing is hidden."""
        return self.rotation == "none" and not self.idle_rows and not self.noise and not self.copies


@dataclass(frozen=True)
class Agreement:
    """A run that agreed with the interpreter after every loop.

    loops    made with each program, until it halted, came to a port, or had made as many as were wanted
    drifts   after each loop the largest difference from the machine's own card: 0 where both are the same numbers
    """

    loops: int
    drifts: tuple[float, ...]

    @property
    def drift(self) -> float:
        """The largest difference of all."""
        return max(self.drifts, default=0.0)


class Order(NamedTuple):
    """Where the heads and hidden units of a layer went: place i holds the one that had the number `heads[i]`.

    Idle ones have the last numbers.
    """

    heads: AnyArray
    units: AnyArray


class Disguised:
    """A disguised model, in float64, and the key to it."""

    def __init__(self, machine: Machine[Any, Any], disguise: Disguise) -> None:
        self.machine, self.disguise = machine, disguise
        generator = np.random.default_rng(disguise.seed)
        self.copied = with_copies(machine.weights.layers, disguise.copies, generator)
        width = machine.layout.width + len(self.copied.shadowed) + disguise.idle_rows
        self.rotation = rotation(disguise.rotation, width, generator)
        self.entry: Array = np.eye(width, machine.layout.width)
        """By which a card gets its idle rows, in the machine's own basis: those of copies begin as their rows do."""
        self.entry[machine.layout.width + np.arange(len(self.copied.shadowed)), self.copied.shadowed] = 1.0
        self.readin: Array = np.ascontiguousarray(self.rotation @ self.entry)
        self.readout: Array = np.ascontiguousarray(self.rotation[:, : machine.layout.width].T)
        self.orders: list[Order] = []
        self.plain: list[LayerArrays] = []
        """The layers with their idle parts, in the machine's own basis and order: its own parts come first."""
        layers = [self._layer(layer, width, generator) for layer in self.copied.layers]
        self.weights = Weights(width, DTYPE, layers)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value}" for name, value in asdict(self.disguise).items())
        return f"<Disguised {self.machine.kind.name} machine: {shown}>"

    def _layer(self, layer: LayerArrays, width: int, generator: np.random.Generator) -> LayerArrays:
        plain, turn = widened(layer, width, self.disguise.idle_heads, generator), self.rotation
        self.plain.append(plain)
        ordered = np.arange if self.disguise.is_none else generator.permutation
        heads, units = (ordered(count) for count in (plain.heads, plain.hidden))
        self.orders.append(Order(heads, units))
        turned = LayerArrays(
            key=(plain.key @ turn.T)[heads], query=(plain.query @ turn.T)[heads],
            value=(turn @ plain.value @ turn.T)[heads], temperature=plain.temperature[heads],
            w1=(plain.w1 @ turn.T)[units], b1=plain.b1[units], w2=(turn @ plain.w2)[:, units], b2=turn @ plain.b2)
        if not self.disguise.noise:
            return turned
        return LayerArrays(*(noisy(getattr(turned, name), self.disguise.noise, generator) for name in NAMES))

    @property
    def model(self) -> LoopedTransformer:
        """The disguised model, the same equation."""
        return self.weights.module

    def enter(self, card: Tensor) -> Tensor:
        """A card of the machine as the disguised model takes it."""
        return _tensor(self.readin, card) @ card.to(self.model.dtype)

    def leave(self, card: Tensor) -> Tensor:
        """The machine's card from the disguised model's, which is in float64."""
        if (found := name_of(card.dtype)) != DTYPE:
            raise DisguiseError(f"the card is in {found}: a disguised model has cards in {DTYPE}")
        return _tensor(self.readout, card) @ card

    def check(self, programs: Sequence[Any], loops: int) -> Agreement:
        """Run programs beside the interpreter, and compare every loop; a disguise that breaks one is refused."""
        import torch

        from punchcard.engines.dense import threads

        machine, made, drifts = self.machine, 0, [0.0] * loops
        with torch.no_grad(), threads(1):  # cards are small: more threads wait for each other
            for program in programs:
                own = machine.punch(program)
                card, own = self.enter(own), own.to(machine.model.dtype)
                for number, (oracle,) in interpreter_cards(machine, [program], loops):
                    card, own = self.model(card), machine.model(own)
                    back = self.leave(card)
                    drifts[number - 1] = max(drifts[number - 1], float((back - own).abs().max()))
                    if wrong := _wrong(machine, program, back, oracle):
                        raise DisguiseError(
                            f"{_describe(self.disguise)}: after loop {number} {wrong}: {_advice(self.disguise)}")
                    made = max(made, number)
        return Agreement(made, tuple(drifts[:made]))


@checked
def disguised(machine: Machine[Any, Any], program: object, disguise: Disguise, *, loops: int = 100) -> Disguised:
    """A disguised model of a machine that still runs a program as the interpreter does, for so many loops or to its halt."""
    machine.check_type(program)
    found = Disguised(machine, disguise)
    found.check([program], loops)
    return found


def _tensor(matrix: Array, card: Tensor) -> Tensor:
    """A matrix where the card is; on the CPU without a copy."""
    import torch

    return torch.from_numpy(matrix).to(card.device)


def noisy(array: Array, size: float, generator: np.random.Generator) -> Array:
    found: Array = array + size * np.maximum(1.0, np.abs(array)) * generator.standard_normal(array.shape)
    return found


def _describe(disguise: Disguise) -> str:
    changed: dict[str, Callable[[Any], str]] = {
        "rotation": repr, "idle_rows": str, "idle_heads": str, "noise": "{:g}".format,
        "copies": "{:g}".format}
    return ", ".join(f"{name}={show(getattr(disguise, name))}" for name, show in changed.items()
                     if getattr(disguise, name) not in (0, "none")) or "no disguise"


def _advice(disguise: Disguise) -> str:
    if disguise.noise:
        return f"use less noise, such as {disguise.noise / 10:g}, or fewer loops"
    return "use another rotation, or fewer loops"


def _wrong(machine: Machine[Any, Any], program: object, card: Tensor, oracle: Interpreter[Any]) -> str:
    """What is wrong with a card, or nothing."""
    try:
        if machine.near(program, machine.read(card), oracle.state):
            return ""
    except PunchcardError as error:
        return str(error)
    found, expected = machine.readout(program, card), machine.own(program, oracle.state)
    wanted = machine.values(program, expected)
    worst = max(wanted, key=lambda name: _distance(found.values[name], wanted[name]), default="")
    if worst and _distance(found.values[worst], wanted[worst]):
        return f"{worst} is {found.values[worst]}, the interpreter has {wanted[worst]}"
    counter = getattr(expected, "program_counter", None)
    return f"the program counter is {found.program_counter}, or something beside the program; the interpreter has {counter}"


def _distance(found: object, expected: object) -> float:
    """How far two values are from each other; for values that are not numbers: 1 if they differ."""
    try:
        return float(np.max(np.abs(np.array(found, dtype=np.float64) - np.array(expected, dtype=np.float64))))
    except (TypeError, ValueError):
        return float(found != expected)


def rotation(kind: Rotation, width: int, generator: np.random.Generator) -> Array:
    """An orthogonal matrix of this kind."""
    if kind == "none":
        return np.eye(width)
    if kind == "permuted":
        return _shuffled(np.eye(width), generator)
    return _exact(width, generator) if kind == "exact" else _random(width, generator)


def _shuffled(matrix: Array, generator: np.random.Generator) -> Array:
    order, signs = generator.permutation(len(matrix)), generator.choice([-1.0, 1.0], len(matrix))
    found: Array = signs[:, None] * matrix[order] + 0.0
    return found


def _random(width: int, generator: np.random.Generator) -> Array:
    """From a Gaussian matrix by QR; the signs make every rotation as likely as any other."""
    orthogonal, upper = np.linalg.qr(generator.standard_normal((width, width)))
    found: Array = orthogonal * np.sign(np.diag(upper))
    return found


def _exact(width: int, generator: np.random.Generator) -> Array:
    found = np.eye(width)
    for _ in range(ROUNDS):
        found = _shuffled(found, generator)
        for start in range(0, width - 3, 4):  # the last rows, less than four, wait for another round
            found[start : start + 4] = MIXING @ found[start : start + 4]
    return found


def widened(layer: LayerArrays, width: int, heads: int, generator: np.random.Generator) -> LayerArrays:
    """A layer in float64 for `width` rows, of which the last are idle, with so many idle heads if it has heads at all."""
    own = layer.w2.shape[0]
    idle = width - own
    found = padded(layer, idle)
    if idle:
        found = _with_idle_formulas(found, own, generator)
    if idle and heads and layer.heads:
        found = _with_idle_heads(found, own, heads, generator)
    return found


def _with_idle_formulas(layer: LayerArrays, own: int, generator: np.random.Generator) -> LayerArrays:
    width = layer.w2.shape[0]
    numbers = np.arange(own, width)
    idle = Rows("idle", numbers, width)
    other = Rows("idle", generator.permutation(numbers), width)
    one, two = (_some_rows(own, width, len(numbers), generator) for _ in range(2))
    more = compile_layer(assign(idle, relu(other + 1) - relu(other - 1) - 1 + relu(one - two)), width)
    return replace(layer, w1=np.vstack([layer.w1, more.w1]), b1=np.vstack([layer.b1, more.b1[:, None]]),
                   w2=np.hstack([layer.w2, more.w2]), b2=layer.b2 + more.b2[:, None])


def _some_rows(own: int, width: int, count: int, generator: np.random.Generator) -> Expression:
    """Rows of the machine at random."""
    return stack(*(Rows("some", np.array([row]), width) for row in generator.integers(0, own, count)))


def _with_idle_heads(layer: LayerArrays, own: int, heads: int, generator: np.random.Generator) -> LayerArrays:
    width = layer.w2.shape[0]
    like = generator.integers(0, layer.heads, heads)
    value: Array = np.zeros((heads, width, width))
    for head in range(heads):
        taken, signs = generator.integers(0, own, width - own), generator.choice([-1.0, 1.0], width - own)
        value[head, np.arange(own, width), taken] = signs
    return replace(layer, key=np.concatenate([layer.key, layer.key[like]]),
                   query=np.concatenate([layer.query, layer.query[like]]), value=np.concatenate([layer.value, value]),
                   temperature=np.concatenate([layer.temperature, layer.temperature[like]]))
