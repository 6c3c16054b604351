"""The export to ground-truth: a model whose mechanism is known, with the truth beside it and data to find it by.

    model.json, cards.safetensors, labels.safetensors, truth.json, score.py     as in the set: see `contents.py`
    model.safetensors    the weights, and the matrices by which a card goes in and comes out
    circuit.json         every row block, head, formula and hidden unit: what it computes, and its weights
    runs.safetensors     cards of the program, and of the same with one thing changed, before and after a run
    pairs.json           what each pair of cards changes; what must and must not change after every loop of each run
    key.safetensors      of a disguised model: the rotation, and where heads and hidden units went
    README.md            how to run and score it, without Punchcard
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from punchcard import __version__
from punchcard.budget import attending, require
from punchcard.card.formats import AnyArray
from punchcard.errors import PunchcardError
from punchcard.export.circuit_builder import circuit as circuit_of
from punchcard.export.disguise import Agreement, Disguise, Disguised
from punchcard.export.evaluator import Evaluator
from punchcard.export.folder import EQUATION
from punchcard.files import write_atomic
from punchcard.folders import MARK, README
from punchcard.formatting import plural
from punchcard.ground_truth.contents import CARDS, LABELS, MODEL, PUBLIC, SCORE, TRUTH, ModelContents, to_bytes
from punchcard.ground_truth.counterfactual import CounterfactualRun, RunMaker
from punchcard.ground_truth.pairs import CLEAN_PROGRAMS, CardPair, PairSource
from punchcard.machines.base import AnyMachine

CIRCUIT, RUNS, PAIRS, KEY = "circuit.json", "runs.safetensors", "pairs.json", "key.safetensors"
DEFAULT_PAIRS, DEFAULT_RUNS, DEFAULT_LOOPS = 40, 6, 32
PAIR_LOOPS = 64
"""How far into a run cards of pairs are taken, at most: all are in memory at once."""
HOW = '''```python
import json

import torch
from safetensors.torch import load_file

W, cards = load_file("model.safetensors"), load_file("runs.safetensors")
truth, runs = json.load(open("circuit.json")), json.load(open("pairs.json"))["runs"]
layers = truth["about"]["layers"]

''' + EQUATION + '''
ends = []
for i, run in enumerate(runs):
    X = cards["counterfactual"][i]
    for _ in range(run["loops"]):
        X = loop(X)
    ends.append(W["readout"] @ X)
    print(run["change"], (ends[i] - cards["counterfactual_end"][i]).abs().max())
```'''

ROTATIONS = {
    "permuted": "The rows are in another order and have other signs.",
    "exact": "The residual stream is rotated by an orthogonal matrix of multiples of 1/8, so that no sum is rounded.",
    "random": "The residual stream is rotated by a random orthogonal matrix, in float64.",
}


def write(machine: AnyMachine, program: object, folder: Path, *, rotation: str = "none", idle_rows: int = 0,
          idle_heads: int = 0, copies: float = 0.0, noise: float = 0.0, seed: int = 0, pairs: int = DEFAULT_PAIRS,
          runs: int = DEFAULT_RUNS, loops: int = DEFAULT_LOOPS) -> list[str]:
    """The files of the folder. Every run in it was compared with the interpreter, the disguised model's as well.

    Returns remarks: that there are fewer pairs or runs than were asked for.
    """
    if program is None:
        raise PunchcardError("an export to ground-truth has cards of a program: name the program's file")
    if pairs < 1 or runs < 1 or loops < 1:
        raise PunchcardError(f"pairs={pairs}, runs={runs}, loops={loops}: each must be 1 or more")
    layout, held = machine.layout, min(loops, PAIR_LOOPS)
    require(attending(layout.columns, np.dtype(machine.weights.format.array).itemsize, cards=2)
            + 8 * layout.width * layout.columns * (4 * pairs + 4 * runs + (CLEAN_PROGRAMS + 1) * held),
            f"attention over {layout.columns} columns, as the equation has it, and {pairs} pairs of cards",
            instead="ask for fewer --pairs or --loops")
    disguise = Disguise(rotation, idle_rows, idle_heads, float(noise), seed, float(copies))  # type: ignore[arg-type]
    circuit = circuit_of(machine)
    maker = RunMaker(machine, program, Evaluator(circuit), loops)
    made = maker.runs(runs, seed)
    hidden = Disguised(machine, disguise)
    checked = hidden.check([program, *(run.other for run in made)], loops)
    source = PairSource(machine, seed, program, held)
    found = source.pairs(pairs)
    contents = ModelContents(folder.name, machine, hidden, found, seed)
    for name, data in {**contents.files(), MODEL: to_bytes(_model(machine, hidden)), RUNS: to_bytes(_cards(made, hidden)),
                       PAIRS: _plain(machine, found, made, maker, disguise, checked).encode(),
                       README: page(machine, found, made, disguise, checked).encode()}.items():
        write_atomic(folder / name, data)
    circuit.save(folder / CIRCUIT)
    if not disguise.is_none:
        orders = {f"layers.{number}.{part}": order.astype(np.int64) for number, both in enumerate(hidden.orders)
                  for part, order in both._asdict().items()}
        write_atomic(folder / KEY, to_bytes({"rotation": hidden.rotation, **orders}))
    return _remarks(pairs, found, runs, made, held, source.kinds)


def _remarks(pairs: int, found: Sequence[CardPair], runs: int, made: Sequence[CounterfactualRun], loops: int,
             kinds: Sequence[str]) -> list[str]:
    """What there is less of than was asked for, and kinds that there are none of."""
    remarks = []
    if len(found) < pairs:
        remarks.append(f"{len(found)} of {pairs} pairs: no more were found that differ from each other and run on, in "
                       f"{plural(loops, 'loop')} of this program")
    if len(made) < runs:
        remarks.append(f"{len(made)} of {runs} runs: no more changes of this program were found that matter and run on")
    missing = [kind for kind in kinds if kind not in {pair.kind for pair in found}]
    if missing and len(found) >= len(kinds):
        remarks.append(f"no pairs by {', '.join(missing)}: this program has none that run on")
    return remarks


def _model(machine: AnyMachine, hidden: Disguised) -> dict[str, AnyArray]:
    """The weights by the names of the equation. A model that is not disguised keeps its number format."""
    weights = machine.weights if hidden.disguise.is_none and machine.precision.name != "bfloat16" else hidden.weights
    kind = weights.format.array
    return {**{name: np.ascontiguousarray(array) for name, array in weights.state()},
            "readin": hidden.readin.astype(kind), "readout": hidden.readout.astype(kind)}


def _cards(runs: Sequence[CounterfactualRun], hidden: Disguised) -> dict[str, AnyArray]:
    """Runs by cards; the first are as the model takes them, the last as the machine's own basis has them."""
    base, other, base_end, other_end = (np.stack([run.cards[i] for run in runs]) for i in range(4))
    kind = base.dtype if hidden.disguise.is_none else np.dtype(np.float64)
    return {"base": (hidden.readin @ base).astype(kind), "counterfactual": (hidden.readin @ other).astype(kind),
            "base_end": base_end.astype(kind), "counterfactual_end": other_end.astype(kind)}


def _plain(machine: AnyMachine, pairs: Sequence[CardPair], runs: Sequence[CounterfactualRun], maker: RunMaker,
           disguise: Disguise, checked: Agreement) -> str:
    return json.dumps({
        "disguise": asdict(disguise), "loops_checked": checked.loops, "drift": checked.drift,
        "columns": [machine.column_name(column, maker.program) for column in range(machine.layout.columns)],
        "seen": maker.seen, "pairs": [{"kind": pair.kind, "change": pair.about} for pair in pairs],
        "runs": [{
            "kind": run.kind, "change": run.about, "loops": run.loops, "changed_rows": run.changed,
            "rows_never_reached": run.unreached, "after": [asdict(each) for each in run.after],
        } for run in runs]}, ensure_ascii=False, indent=1)


def page(machine: AnyMachine, pairs: Sequence[CardPair], runs: Sequence[CounterfactualRun], disguise: Disguise,
         checked: Agreement) -> str:
    """The page of the folder: what is in it, how to run it, how to score what one finds."""
    layout, layers = machine.layout, machine.weights.layers
    rows = "\n".join(
        f"| {run.kind} | {run.about.replace('|', '/')} | {run.loops} | "
        f"{', '.join(sorted(run.after[-1].must_change)) or 'nothing'} |" for run in runs)
    kinds = [pair.kind for pair in pairs]
    counts = ", ".join(f"{kinds.count(kind)} by {kind}" for kind in dict.fromkeys(kinds))
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
| `{PUBLIC}` | sizes, groups of hidden units, variables by moment and columns, the kind of each pair; nothing of the truth |
| `{CARDS}` | `clean`, `corrupt`: cards between two loops, to be multiplied by `scale` of `{PUBLIC}`; `output`: what counts |
| `{LABELS}` | what each variable holds in the clean cards: (pairs, vectors, columns) |
| `{TRUTH}` | which nodes and edges matter, by kind of pair; where variables are; `names`: each node in `circuit.json` |
| `{CIRCUIT}` | nodes, edges and causal variables, in the machine's own basis |
| `{RUNS}` | `base`, `counterfactual` as the model takes them; `base_end`, `counterfactual_end` after `readout` |
| `{PAIRS}` | what each pair changes; for each run what must and must not change after every loop |
| `{SCORE}` | scores an answer, without Punchcard |
{answer}## Run it

It needs torch and safetensors. The last numbers printed are 0, or as small as the drift below.

{HOW}

## The pairs

{plural(len(pairs), "pair")} of cards: {counts}. Clean cards are of the program with several first values. The corrupt one is
from a run in which one thing is other: a value that the instruction uses (`data`), an address in it (`pointer`), the
instruction or the target of its branch (`instruction`), or the number of loops (`position`).

A node (a head, `L0.H1`, or a group of hidden units, `L0.G3`) or an edge matters by a kind of pair if, for some pair of this
kind, the card after the loop is another when this part alone is taken from the corrupt run. So labels are over many values.
`weights` are the edges of the whole machine: the writer writes a row that the reader reads.

    python {SCORE} . --answers answers.json

`{SCORE}` says what an answer looks like.

## The runs

Whole runs of the program with one thing changed. The last column is what differs after the last loop.

| kind | change | loops | what differs at the end |
|---|---|---|---|
{rows}

`must_change` has both values of what differs; `must_not_change` names the rest. The interpreter, the circuit and the model
agree on both after every loop. `rows_never_reached` are row blocks that no loop can change by this: the circuit has no path.

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
    compared = (f"All runs, up to {plural(checked.loops, 'loop')}, were compared with the interpreter after "
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
        parts.append(f"To each weight w a normal number of standard deviation {disguise.noise:g} max(1, |w|) is added. The "
                     "truth is that of the model without noise.")
    parts += [f"Heads and hidden units are in another order (seed {disguise.seed}).", compared,
              f"The largest difference from the machine's own card was {checked.drift:.1e}."]
    return "\n".join(parts)
