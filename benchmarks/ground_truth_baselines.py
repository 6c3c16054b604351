"""Baselines on the set of models whose mechanism is known: what known methods find, from the public files alone.

    punchcard ground-truth make /tmp/set
    python benchmarks/ground_truth_baselines.py /tmp/set

    patching      activation patching of every node, and path patching of every edge
    acdc          edges are removed one after the other, from the output back, where the end stays within a tolerance
    eap           edge attribution patching: what a writer gives less in the corrupt run, times a gradient
    eap-ig        the same with gradients averaged on the way from the corrupt to the clean input
    probe         variables: linear regression on the residual stream
    random        random scores;  empty   no answer
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from punchcard.ground_truth.score import NEAR, ScoredNetwork, opened, score, summary

STEPS = 5
"""Points of the integrated gradients."""
PART = 0.01
"""Of the largest attribution: what has more counts as found."""
ACDC_EDGES = 1300
"""A model with more edges is left out by ACDC, which makes a loop for each."""
Scores = dict[str, dict[str, float]]
Found = dict[str, Any]


class Model:
    """A model of the set, and what its writers give in the clean and the corrupt runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.network, self.clean, self.corrupt, self.about = opened(folder)
        self.wrote: list[dict[str, Any]] = [{}, {}]
        self.end = self.network.loop(self.clean, wrote=self.wrote[0].setdefault)
        self.corrupt_end = self.network.loop(self.corrupt, wrote=self.wrote[1].setdefault)
        kinds = self.about["tasks"]
        self.tasks = {kind: np.array([i for i, each in enumerate(kinds) if each == kind]) for kind in dict.fromkeys(kinds)}
        self.tasks["all"] = np.arange(len(kinds))

    def moved(self, writer: str) -> Any:
        """What a writer gives more in the corrupt runs."""
        return self.wrote[1][writer] - self.wrote[0][writer]

    def by_task(self, effects: Mapping[str, Any]) -> Scores:
        """The largest effect of the pairs of each task."""
        return {task: {name: float(effect[places].max()) for name, effect in effects.items()}
                for task, places in self.tasks.items()}


def _add(name: str, moved: Any, part: str, card: Any) -> Any:
    return card + moved if part == name else card


def patching(model: Model) -> Found:
    """Every node and edge by itself: 1 where the end of the loop is another."""
    network = model.network

    def differs(end: Any) -> Any:
        return (np.abs(end - model.end) > NEAR).any(axis=(1, 2)).astype(float)

    nodes = {name: differs(network.loop(model.clean, wrote=partial(_add, name, model.moved(name))))
             for name in network.writers() if name != "I"}
    edges = {}
    for edge in network.edges():
        writer, reader = edge.split("->")
        edges[edge] = differs(network.loop(model.clean, read=partial(_add, reader, model.moved(writer))))
    return {"nodes": model.by_task(nodes), "edges": model.by_task(edges)}


def acdc(model: Model, tolerance: float = NEAR) -> Found:
    """Edges that cannot be removed, for all pairs together. A removed edge gives what it gives in the corrupt run."""
    network, removed, kept = model.network, dict[str, set[str]](), dict[str, float]()
    edges = sorted(network.edges(), key=lambda edge: tuple(-network.moment(part) for part in edge.split("->")[::-1]))
    if len(edges) > ACDC_EDGES:
        return {}

    def end() -> Any:
        now: dict[str, Any] = {}

        def read(part: str, card: Any) -> Any:
            return card + sum((model.wrote[1][name] - now[name] for name in removed.get(part, ())), 0.0)

        return network.loop(model.clean, read=read, wrote=now.setdefault)

    before = end()
    for edge in edges:
        writer, reader = edge.split("->")
        removed.setdefault(reader, set()).add(writer)
        after = end()
        if np.abs(after - before).max() > tolerance:
            removed[reader].discard(writer)
            kept[edge] = 1.0
        else:
            before = after
    return {"edges": {"all": kept}}


def attribution(model: Model, steps: int) -> Found:
    """What each writer gives more in the corrupt run times the gradient of the output at each reader.

    The output is measured along the way from the clean to the corrupt end.
    """
    way = model.corrupt_end - model.end
    gradients: dict[str, Any] = {}
    for step in range(steps):
        share = 0.0 if steps == 1 else step / (steps - 1)
        for name, found in _gradients(model.network, model.clean + share * (model.corrupt - model.clean), way).items():
            gradients[name] = gradients.get(name, 0.0) + found / steps
    effects = {}
    for edge in model.network.edges():
        writer, reader = edge.split("->")
        effects[edge] = np.abs((model.moved(writer) * gradients[reader]).sum(axis=(1, 2)))
    return {"edges": {task: _scaled(scores) for task, scores in model.by_task(effects).items()}}


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    """To 0 to 1, with 1/2 at a part of the largest."""
    threshold = PART * max(scores.values(), default=0.0)
    return {name: value / (value + threshold) if threshold else 0.0 for name, value in scores.items()}


def _gradients(network: ScoredNetwork, cards: Any, way: Any) -> dict[str, Any]:
    """By torch, for the same equation: the gradient of <end, way> at what each reader reads."""
    weights = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in network.weights.items()}
    added: dict[str, torch.Tensor] = {}
    x = torch.from_numpy(cards.copy())

    def read(name: str, card: torch.Tensor) -> torch.Tensor:
        added[name] = torch.zeros_like(card, requires_grad=True)
        return card + added[name]

    for n in range(network.layers):
        key, query, value, temperature, w1, b1, w2, b2 = (
            weights[f"layers.{n}.{name}"] for name in ("key", "query", "value", "temperature", "w1", "b1", "w2", "b2"))
        total = x
        for h in range(len(key)):
            q, k, v = (read(f"L{n}.H{h}.{part}", x) for part in "qkv")
            scores = temperature[h] * ((key[h] @ k).transpose(-1, -2) @ (query[h] @ q))
            total = total + value[h] @ v @ torch.softmax(scores, dim=-2)
        x = total
        for g, units in enumerate(network.groups[n]):
            total = total + w2[:, units] @ torch.relu(w1[units] @ read(f"L{n}.G{g}", x) + b1[units])
        x = total + b2
    (read("O", x) * torch.from_numpy(way)).sum().backward()  # type: ignore[no-untyped-call]
    return {name: np.zeros_like(cards) if each.grad is None else each.grad.numpy() for name, each in added.items()}


def probe(model: Model) -> Found:
    """For each variable the vectors by which its labels are a linear function of the residual stream."""
    stages: dict[int, Any] = {}
    model.network.loop(model.clean, stage=stages.setdefault)
    labels, found = load_file(model.folder / "labels.safetensors"), {}
    for name, variable in model.about["variables"].items():
        cards = stages[variable["moment"]][..., variable["columns"]]
        flat = np.moveaxis(cards, 1, 0).reshape(cards.shape[1], -1)
        wanted = np.moveaxis(labels[name].astype(float), 1, 0).reshape(variable["vectors"], -1)
        vectors = np.linalg.lstsq(flat.T, wanted.T, rcond=1e-9)[0].T
        if vectors.any():
            found[name] = vectors.tolist()
    return {"variables": found}


def random_scores(model: Model) -> Found:
    """Chance."""
    generator = np.random.default_rng(0)
    names = {"nodes": model.network.writers()[1:], "edges": model.network.edges()}
    return {kind: {task: {name: float(generator.random()) for name in some} for task in model.tasks}
            for kind, some in names.items()}


METHODS: Mapping[str, Callable[[Model], Found]] = {
    "patching": patching, "acdc": acdc, "eap": partial(attribution, steps=1), "eap-ig": partial(attribution, steps=STEPS),
    "probe": probe, "random": random_scores, "empty": lambda model: {"nodes": {}, "edges": {}}}


def rows_of(folder: Path, only: str, methods: list[str]) -> Iterator[dict[str, Any]]:
    """Scores of all methods on all models."""
    for path in sorted((folder / "models").iterdir()):
        if only not in path.name:
            continue
        model = Model(path)
        for method in methods:
            began = time.process_time()
            answer = METHODS[method](model)
            seconds = time.process_time() - began
            for row in score(folder, {path.name: answer}):
                if not (method == "acdc" and row["task"] != "all"):
                    yield {"method": method, "seconds": seconds, **row}
        print(path.name, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("-o", "--output", type=Path, help="Write all rows, as JSON.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    chosen = given.methods.split(",")
    every = list(rows_of(given.set, given.only, chosen))
    if given.output:
        given.output.write_text(json.dumps(every))
    for name in chosen:
        some = [row for row in every if row["method"] == name]
        print(f"\n{name}\n\n{summary(some)}")
