"""From a model's description to its folder: weights, cards, what is public, and the truth.

    models/NAME/model.safetensors     the weights, by the names of the equation
    models/NAME/bridge.safetensors    the same for TransformerLens, with config.json
    models/NAME/cards.safetensors     clean and corrupt cards, of whole numbers times `scale`; `output`, the
                                      projection on the rows that count
    models/NAME/labels.safetensors    what each variable holds in the clean runs, (pairs, vectors, columns)
    models/NAME/model.json            sizes, groups of hidden units, the kind of each pair; nothing of the truth
    models/NAME/truth.json            the truth; of the test split it is in test-truth/NAME.json
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from punchcard import __version__
from punchcard.card.formats import AnyArray
from punchcard.errors import DisguiseError
from punchcard.export import transformer_lens
from punchcard.export.circuit_builder import circuit as circuit_of
from punchcard.export.disguise import Disguised, Order
from punchcard.files import write_whole
from punchcard.ground_truth.models import ModelSpec
from punchcard.ground_truth.pairs import CardPair, PairSource
from punchcard.ground_truth.score import ScoredNetwork
from punchcard.ground_truth.truth import OFF, Truth, TruthMaker, variables_of
from punchcard.machines.base import AnyMachine
from punchcard.machines.registry import installed
from punchcard.transformer.build import compile_layers
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

TEST_TRUTH = "test-truth"
SCALES = ((1.0, np.int8), (0.125, np.int16))
"""In which cards are kept as whole numbers where that is exact."""


def built(spec: ModelSpec) -> tuple[AnyMachine, Any]:
    """The machine of a model, and its program if it has one of its own."""
    kind = installed().kind(spec.kind)
    options = dict(spec.options)
    if not spec.text:
        return kind.machine_class()(**options), None
    program = kind.languages[0].assemble(spec.text, spec.kind)
    return kind.machine_class().for_program(program, **options), program


def make_model(spec: ModelSpec) -> dict[str, Any]:
    """Write the folder of a model: the job of a worker. What the manifest says of it."""
    machine, program = built(spec)
    hidden = Disguised(machine, spec.disguise)
    groups = _groups(machine, hidden)
    pairs = PairSource(machine, spec.seed, program, spec.cells).pairs(spec.pairs)
    own = machine.layout.width
    plain = _network([dict(_arrays(layer)) for layer in hidden.copied.layers], groups)
    truth = TruthMaker(plain, own, pairs, _idle(machine, hidden, groups)).truth()
    generator = np.random.default_rng(spec.seed + 1)
    renamed, shown = _renamed(hidden, groups, generator)
    folder = Path(spec.folder) / "models" / spec.name
    folder.mkdir(parents=True, exist_ok=True)
    cards = _cards(pairs, hidden.readin)
    weights = hidden.weights
    network = _network([dict(_arrays(layer)) for layer in weights.layers], shown)
    _check(spec, hidden, network, cards, pairs)
    scale, kept = _compact(cards)
    variables = _variables(machine, hidden)
    files = {
        "model.safetensors": _tensors({name: np.ascontiguousarray(array) for name, array in weights.state()}),
        "cards.safetensors": _tensors({**kept, "output": hidden.readin @ hidden.readout}),
        "labels.safetensors": _tensors(_labels(network, cards, variables)),
        "model.json": _public(spec, machine, weights, shown, scale, pairs, variables),
        "config.json": json.dumps(transformer_lens.config(weights, machine.layout.columns), indent=1).encode(),
        "bridge.safetensors": _bridge(weights, machine.layout.columns)}
    for name, data in files.items():
        write_whole(folder / name, data, durable=False)
    said = _said(spec, truth, renamed, variables)
    place = Path(spec.folder) / TEST_TRUTH / f"{spec.name}.json" if spec.is_test else folder / "truth.json"
    write_whole(place, said, durable=False)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    about = {"split": "test" if spec.is_test else "train", "variant": spec.variant, "machine": spec.kind,
             "options": dict(spec.options), "pairs": len(pairs), "sha256": digests,
             "truth_sha256": hashlib.sha256(said).hexdigest()}
    edges, nodes = truth.edges["all"], truth.nodes["all"]
    return {"about": about, "edges": sum(edges.values()), "edges_of": len(edges), "nodes": sum(nodes.values()),
            "nodes_of": len(nodes)}


def _arrays(layer: LayerArrays) -> list[tuple[str, AnyArray]]:
    return [(name, getattr(layer, name)) for name in NAMES]


def _network(layers: Sequence[Mapping[str, AnyArray]], groups: Sequence[Sequence[Sequence[int]]]) -> ScoredNetwork:
    arrays = {f"layers.{n}.{name}": array for n, layer in enumerate(layers) for name, array in layer.items()}
    return ScoredNetwork(arrays, groups)


def _groups(machine: AnyMachine, hidden: Disguised) -> list[list[list[int]]]:
    """For each layer its hidden units by the formulas that they serve; then the same of the copies."""
    found = []
    for part, copied in zip(compile_layers(machine.formulas(), machine.layout.width), hidden.copied.units, strict=True):
        groups: dict[tuple[bool, tuple[int, ...]], list[int]] = {}
        for unit, served in enumerate(part.serves):
            groups.setdefault((False, tuple(served)), []).append(unit)
        for place, unit in enumerate(copied.tolist(), start=len(part.serves)):
            groups.setdefault((True, tuple(part.serves[unit])), []).append(place)
        found.append(list(groups.values()))
    return found


def _idle(machine: AnyMachine, hidden: Disguised, groups: Sequence[Sequence[Sequence[int]]]) -> frozenset[str]:
    """The names of the copies, in the machine's basis."""
    found = set()
    for n, layer in enumerate(machine.weights.layers):
        found |= {f"L{n}.H{layer.heads + i}" for i in range(len(hidden.copied.heads[n]))}
        found |= {f"L{n}.G{g}" for g, units in enumerate(groups[n]) if min(units) >= layer.hidden}
    return frozenset(found)


def _renamed(hidden: Disguised, groups: Sequence[Sequence[Sequence[int]]], generator: np.random.Generator
             ) -> tuple[dict[str, str], list[list[list[int]]]]:
    """The names that parts have in the disguised model, and the groups of its hidden units."""
    names, shown = {"I": "I", "O": "O"}, []
    for n, order in enumerate(hidden.orders):
        at = _places(order)
        names |= {f"L{n}.H{old}": f"L{n}.H{new}" for old, new in enumerate(at.heads.tolist())}
        shuffled = np.arange(len(groups[n])) if hidden.disguise.is_none else generator.permutation(len(groups[n]))
        names |= {f"L{n}.G{old}": f"L{n}.G{new}" for new, old in enumerate(shuffled.tolist())}
        shown.append([sorted(int(at.units[unit]) for unit in groups[n][old]) for old in shuffled.tolist()])
    return names, shown


def _places(order: Order) -> Order:
    """Where each head and unit is now."""
    return Order(np.argsort(order.heads), np.argsort(order.units))


def _name(part: str, names: Mapping[str, str]) -> str:
    """A node, an edge or a reader by the names of the disguised model."""
    if "->" in part:
        return "->".join(_name(each, names) for each in part.split("->"))
    if part[-2:] in (".q", ".k", ".v"):
        return names[part[:-2]] + part[-2:]
    return names[part]


def _cards(pairs: Sequence[CardPair], readin: AnyArray) -> dict[str, AnyArray]:
    return {name: readin @ np.stack([getattr(pair, name) for pair in pairs])
            for name in ("clean", "corrupt")}


def _check(spec: ModelSpec, hidden: Disguised, network: ScoredNetwork, cards: Mapping[str, AnyArray],
           pairs: Sequence[CardPair]) -> None:
    """Refuse a model whose loop is not the machine's."""
    for name, end in (("clean", "clean_end"), ("corrupt", "corrupt_end")):
        found = hidden.readout @ network.loop(cards[name])
        off = float(np.abs(found - np.stack([getattr(pair, end) for pair in pairs])).max())
        if not off < OFF:
            raise DisguiseError(f"{spec.name}: a card after a loop is off by {off:g}")


def _compact(cards: Mapping[str, AnyArray]) -> tuple[float, dict[str, AnyArray]]:
    """Cards as whole numbers of a scale, where they are that; else as they are."""
    for scale, kind in SCALES:
        whole = {name: array / scale for name, array in cards.items()}
        most = np.iinfo(kind).max
        if all((array == np.round(array)).all() and np.abs(array).max() <= most for array in whole.values()):
            return scale, {name: array.astype(kind) for name, array in whole.items()}
    return 1.0, dict(cards)


def _tensors(arrays: Mapping[str, AnyArray]) -> bytes:
    from safetensors.numpy import save

    found: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    return found


def _bridge(weights: Weights, columns: int) -> bytes:
    from safetensors.torch import save

    found: bytes = save(transformer_lens.state(weights, columns))
    return found


def _public(spec: ModelSpec, machine: AnyMachine, weights: Weights, groups: Sequence[Any], scale: float,
            pairs: Sequence[CardPair], variables: Mapping[str, Any]) -> bytes:
    return json.dumps({
        "name": spec.name, "punchcard": __version__, "layers": len(weights.layers), "width": weights.width,
        "columns": machine.layout.columns, "heads": [layer.heads for layer in weights.layers],
        "hidden": [layer.hidden for layer in weights.layers], "groups": groups, "scale": scale,
        "tasks": [pair.kind for pair in pairs],
        "variables": {name: {"moment": each["moment"], "columns": each["columns"], "vectors": len(each["basis"])}
                      for name, each in variables.items()}}).encode()


def _variables(machine: AnyMachine, hidden: Disguised) -> dict[str, dict[str, Any]]:
    layout = machine.layout
    places = {region.name: layout.region(region.name) for region in layout.regions}
    return variables_of(circuit_of(machine), {name: (place.start, place.stop) for name, place in places.items()},
                        hidden.readin)


def _labels(network: ScoredNetwork, cards: Mapping[str, AnyArray], variables: Mapping[str, Mapping[str, Any]]
            ) -> dict[str, AnyArray]:
    """What variables hold in the clean runs: (pairs, rows, columns) of each."""
    seen: dict[int, AnyArray] = {}
    network.loop(cards["clean"], stage=lambda moment, card: seen.setdefault(moment, card))
    return {name: (np.array(each["basis"]) @ seen[each["moment"]][..., each["columns"]]).astype(np.float32)
            for name, each in variables.items()}


def _said(spec: ModelSpec, truth: Truth, names: Mapping[str, str], variables: Mapping[str, Any]) -> bytes:
    return json.dumps({
        "model": spec.name,
        "nodes": _named(truth.nodes, names), "edges": _named({"weights": truth.weights, **truth.edges}, names),
        "variables": variables}).encode()


def _named(tasks: Mapping[str, Mapping[str, bool]], names: Mapping[str, str]) -> dict[str, dict[str, bool]]:
    return {task: {_name(part, names): label for part, label in labels.items()} for task, labels in tasks.items()}
