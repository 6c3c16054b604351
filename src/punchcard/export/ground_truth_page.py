"""The page of a ground-truth folder: what is in it, how to run it, how to score what one finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from punchcard import __version__
from punchcard.export.agreement import Agreement
from punchcard.export.counterfactual import CounterfactualPair
from punchcard.export.disguise import Disguise
from punchcard.formatting import plural
from punchcard.machines.base import Machine

HOW = '''```python
import json

import torch
from safetensors.torch import load_file

W, cards = load_file("model.safetensors"), load_file("cards.safetensors")
truth, pairs = json.load(open("circuit.json")), json.load(open("pairs.json"))["pairs"]

def loop(X):
    for n in range(truth["about"]["layers"]):
        K, Q, V, t, W1, b1, W2, b2 = (W[f"layers.{n}.{p}"] for p in "key query value temperature w1 b1 w2 b2".split())
        A = X
        for h in range(len(K)):
            A = A + V[h] @ X @ torch.softmax(t[h] * ((K[h] @ X).T @ (Q[h] @ X)), dim=0)
        X = A + W2 @ torch.relu(W1 @ A + b1) + b2
    return X

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


def page(machine: Machine[Any, Any], pairs: Sequence[CounterfactualPair], disguise: Disguise, checked: Agreement,
         model: str) -> str:
    """The page, as text."""
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
| `{model}` | the weights of every layer; `readin` and `readout`, by which a card goes in and comes out |
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

Written by Punchcard {__version__}.
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
    if disguise.noise:
        parts.append(f"To each weight w a normal number of standard deviation {disguise.noise:g} max(1, |w|) is added.")
    parts += [f"Heads and hidden units are in another order (seed {disguise.seed}).", compared,
              f"The largest difference from the machine's own card was {checked.drift:.1e}."]
    return "\n".join(parts)
