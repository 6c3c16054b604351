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

from punchcard.card.formats import AnyArray
from punchcard.errors import PunchcardError
from punchcard.export.agreement import Agreement
from punchcard.export.circuit_builder import circuit as circuit_of
from punchcard.export.counterfactual import CounterfactualPair, PairMaker
from punchcard.export.disguise import Disguise, Disguised
from punchcard.export.evaluator import Evaluator
from punchcard.export.ground_truth_page import page
from punchcard.files import write_whole
from punchcard.machines.base import Machine

MODEL, CIRCUIT, CARDS, PAIRS, KEY, README = (
    "model.safetensors", "circuit.json", "cards.safetensors", "pairs.json", "key.safetensors", "README.md")
DEFAULT_PAIRS, DEFAULT_LOOPS = 6, 32


def write(machine: Machine[Any, Any], program: object, folder: Path, *, rotation: str = "none", idle_rows: int = 0,
          idle_heads: int = 0, noise: float = 0.0, seed: int = 0, pairs: int = DEFAULT_PAIRS, loops: int = DEFAULT_LOOPS
          ) -> None:
    """The files of the folder. Every run in it was compared with the interpreter, the disguised model's as well."""
    if program is None:
        raise PunchcardError("an export to ground-truth has cards of a program: name the program's file")
    if pairs < 1 or loops < 1:
        raise PunchcardError(f"pairs={pairs}, loops={loops}: both must be 1 or more")
    disguise = Disguise(rotation, idle_rows, idle_heads, float(noise), seed)  # type: ignore[arg-type]
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
        write_whole(folder / KEY, to_bytes(_key(hidden)))
    write_whole(folder / README, page(machine, made, disguise, checked, MODEL))


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


def _key(hidden: Disguised) -> dict[str, AnyArray]:
    found: dict[str, AnyArray] = {"rotation": hidden.rotation}
    for number, order in enumerate(hidden.orders):
        found[f"layers.{number}.heads"] = np.array(order.heads, dtype=np.int64)
        found[f"layers.{number}.units"] = np.array(order.units, dtype=np.int64)
    return found


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
