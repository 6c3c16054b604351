"""The export to ground-truth: a model whose mechanism is known, with the truth beside it and data to find it by.

    model.safetensors    the weights, and the matrices by which a card goes in and comes out
    circuit.json         every row block, head, formula and hidden unit: what it computes, and its weights
    cards.safetensors    cards of a program, and of the same program with one cell changed
    pairs.json           what must and must not change after every loop, and what patching each node does
    key.safetensors      of a disguised model: the rotation, and where heads and hidden units went
    README.md            how to run and score it, without Punchcard
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as to_bytes

from punchcard import __version__
from punchcard.budget import attending, require
from punchcard.card.formats import AnyArray
from punchcard.errors import PunchcardError
from punchcard.export.circuit_builder import circuit as circuit_of
from punchcard.export.counterfactual import CounterfactualPair, PairMaker
from punchcard.export.disguise import Agreement, Disguise, Disguised
from punchcard.export.evaluator import Evaluator
from punchcard.export.folder import EQUATION
from punchcard.files import write_whole
from punchcard.folders import MARK, README
from punchcard.formatting import plural
from punchcard.machines.base import Machine

MODEL, CIRCUIT, CARDS, PAIRS, KEY = (
    "model.safetensors", "circuit.json", "cards.safetensors", "pairs.json", "key.safetensors")
DEFAULT_PAIRS, DEFAULT_LOOPS = 6, 32
HOW = '''```python
import json

import torch
from safetensors.torch import load_file

W, cards = load_file("model.safetensors"), load_file("cards.safetensors")
truth, pairs = json.load(open("circuit.json")), json.load(open("pairs.json"))["pairs"]
layers = truth["about"]["layers"]

''' + EQUATION + '''
ends = []
for i, pair in enumerate(pairs):
    X = cards["counterfactual"][i]
    for _ in range(pair["loops"]):
        X = loop(X)
    ends.append(W["readout"] @ X)
    print(pair["cell"], pair["values"], (ends[i] - cards["counterfactual_end"][i]).abs().max())
```'''

ROTATIONS = {
    "permuted": "The rows are in another order and have other signs.",
    "exact": "The residual stream is rotated by an orthogonal matrix of multiples of 1/8, so that no sum is rounded.",
    "random": "The residual stream is rotated by a random orthogonal matrix, in float64.",
}


def write(machine: Machine[Any, Any], program: object, folder: Path, *, rotation: str = "none", idle_rows: int = 0,
          idle_heads: int = 0, copies: float = 0.0, noise: float = 0.0, seed: int = 0, pairs: int = DEFAULT_PAIRS,
          loops: int = DEFAULT_LOOPS) -> None:
    """The files of the folder. Every run in it was compared with the interpreter, the disguised model's as well."""
    if program is None:
        raise PunchcardError("an export to ground-truth has cards of a program: name the program's file")
    if pairs < 1 or loops < 1:
        raise PunchcardError(f"pairs={pairs}, loops={loops}: both must be 1 or more")
    columns = machine.layout.columns
    require(attending(columns, np.dtype(machine.weights.format.array).itemsize, cards=2),
            f"attention over {columns} columns, as the equation has it, for pairs of cards")
    disguise = Disguise(rotation, idle_rows, idle_heads, float(noise), seed, float(copies))  # type: ignore[arg-type]
    circuit = circuit_of(machine)
    maker = PairMaker(machine, program, Evaluator(circuit), loops)
    made = maker.pairs(pairs, seed)
    hidden = Disguised(machine, disguise)
    checked = hidden.check([program, *(pair.other for pair in made)], loops)
    circuit.save(folder / CIRCUIT)
    write_whole(folder / MODEL, to_bytes(_model(machine, hidden)))
    write_whole(folder / CARDS, to_bytes(_cards(made, hidden)))
    write_whole(folder / PAIRS, json.dumps(_plain(machine, made, maker, disguise, checked), ensure_ascii=False, indent=1))
    if disguise.is_none:
        (folder / KEY).unlink(missing_ok=True)  # of an export before
    else:
        orders = {f"layers.{number}.{part}": order.astype(np.int64) for number, both in enumerate(hidden.orders)
                  for part, order in both._asdict().items()}
        write_whole(folder / KEY, to_bytes({"rotation": hidden.rotation, **orders}))
    write_whole(folder / README, page(machine, made, disguise, checked))


def _model(machine: Machine[Any, Any], hidden: Disguised) -> dict[str, AnyArray]:
    """The weights by the names of the equation. A model that is not disguised keeps its number format."""
    weights = machine.weights if hidden.disguise.is_none and machine.precision.name != "bfloat16" else hidden.weights
    kind = weights.format.array
    return {**{name: np.ascontiguousarray(array) for name, array in weights.state()},
            "readin": hidden.readin.astype(kind), "readout": hidden.readout.astype(kind)}


def _cards(pairs: Sequence[CounterfactualPair], hidden: Disguised) -> dict[str, AnyArray]:
    """Pairs by cards; the first are as the model takes them, the last as the machine's own basis has them."""
    base, other, base_end, other_end = (np.stack([pair.cards[i] for pair in pairs]) for i in range(4))
    kind = base.dtype if hidden.disguise.is_none else np.dtype(np.float64)
    return {"base": (hidden.readin @ base).astype(kind), "counterfactual": (hidden.readin @ other).astype(kind),
            "base_end": base_end.astype(kind), "counterfactual_end": other_end.astype(kind)}


def _plain(machine: Machine[Any, Any], pairs: Sequence[CounterfactualPair], maker: PairMaker, disguise: Disguise,
           checked: Agreement) -> dict[str, Any]:
    return {
        "disguise": asdict(disguise), "loops_checked": checked.loops, "drift": checked.drift,
        "columns": [machine.column_name(column, maker.program) for column in range(machine.layout.columns)],
        "seen": maker.seen,
        "pairs": [{
            "cell": pair.cell, "values": list(pair.values), "loops": pair.loops, "matters": pair.matters,
            "changed_rows": pair.changed, "rows_never_reached": pair.unreached,
            "after": [asdict(each) for each in pair.after],
            "patching": {"loop": pair.patching_loop, "nodes": [asdict(each) for each in pair.patching]},
        } for pair in pairs]}


def page(machine: Machine[Any, Any], pairs: Sequence[CounterfactualPair], disguise: Disguise, checked: Agreement) -> str:
    """The page of the folder: what is in it, how to run it, how to score what one finds."""
    layout, layers = machine.layout, machine.weights.layers
    rows = "\n".join(
        f"| `{pair.cell}` | {pair.values[0]} | {pair.values[1]} | {pair.loops} | "
        f"{', '.join(sorted(set(pair.after[-1].must_change) - {pair.cell})) or 'nothing else'} |" for pair in pairs)
    answer = ("" if disguise.is_none else
              "| `key.safetensors` | the answer: the rotation, and the old number of every head and hidden unit |\n")
    return f"""# A model whose mechanism is known

{machine.title()}.

A looped transformer whose weights are set by formula. It has {plural(len(layers), "layer")},
{layout.width} rows (its residual stream) and {layout.columns} columns (its positions).
Its input is a card that holds a program and data. One loop of the model executes one instruction.
`circuit.json` says what every part of it computes. Each weight of the machine that is not 0 belongs to one part.

| file | what it is |
|---|---|
| `{MODEL}` | the weights of every layer; `readin` and `readout`, by which a card goes in and comes out |
| `circuit.json` | nodes, edges and causal variables, in the machine's own basis |
| `cards.safetensors` | `base`, `counterfactual` as the model takes them; `base_end`, `counterfactual_end` after `readout` |
| `pairs.json` | for each pair what must and must not change after every loop, and what patching does |
{answer}## Run it

It needs torch and safetensors. The last numbers printed are 0, or as small as the drift below.

{HOW}

## The pairs

The same program with one cell changed. The last column is what differs after the last loop, beside the cell.

| cell | value | changed to | loops | what differs at the end |
|---|---|---|---|---|
{rows}

`must_change` has both values of what differs; `must_not_change` names the rest. The interpreter, the circuit and the model
agree on both after every loop. `rows_never_reached` are row blocks that no loop can change by this: the circuit has no path.
`patching` is about the loop in which the change first comes to another place: for each head and formula, whether its
output differs between the two runs (`carries`), and what is other than in the base run when the loop ends, if this output
alone is taken from the other run (`changes`).

## Variables

A variable of `circuit.json` is a block of rows in a region of columns at a moment. Moment 0 is where a loop begins, 2 k + 1
is after the attention of layer k, and 2 k + 2 after its feed-forward, with k counted from 0. `unsigned`: entries are -1 or
1, the lowest bit first, so the number is the sum of 2^i over rows i that are 1. Two's complement for negative numbers.
`seen` in `pairs.json` says what the rows in the middle of a loop were seen to hold.

## The disguise

{_disguise(disguise, checked)}

{MARK} {__version__}.
"""


def _disguise(disguise: Disguise, checked: Agreement) -> str:
    compared = (f"All runs of the pairs, up to {plural(checked.loops, 'loop')}, were compared with the interpreter after "
                "every loop.")
    if disguise.is_none:
        return f"There is none: a row of the residual stream is a row of the machine. {compared}"
    parts = []
    if disguise.rotation != "none":
        parts.append(ROTATIONS[disguise.rotation])
    if disguise.idle_rows:
        parts.append(f"{plural(disguise.idle_rows, 'row')} and, in each layer with heads, "
                     f"{plural(disguise.idle_heads, 'head')} do nothing.")
    if disguise.copies:
        parts.append(f"About {100 * disguise.copies:.0f} % of the rows that layers write have idle copies, and so have the "
                     "heads and hidden units that write them.")
    if disguise.noise:
        parts.append(f"To each weight w a normal number of standard deviation {disguise.noise:g} max(1, |w|) is added.")
    parts += [f"Heads and hidden units are in another order (seed {disguise.seed}).", compared,
              f"The largest difference from the machine's own card was {checked.drift:.1e}."]
    return "\n".join(parts)
