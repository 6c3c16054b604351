"""Baselines on the set of models whose mechanism is known: what known methods find, from the public files alone.

    punchcard ground-truth make /tmp/set
    python benchmarks/ground_truth_baselines.py /tmp/set

    patching      activation patching of every node, and path patching of every edge
    acdc          edges are removed one after the other, from the output back, where the end stays within a tolerance
    eap           edge attribution patching: what a writer gives less in the corrupt run, times a gradient
    eap-ig        the same with gradients averaged on the way from the corrupt to the clean input
    probe         variables: linear regression on the residual stream
    rotation      variables: a rotation is trained until the exchange of its first directions gives the right output
    random        random scores and subspaces;  empty   no answer

Nodes and edges are found by all pairs. Variables are found by every second pair, and scored on the others. A rotation needs
to know what the output is when a variable is exchanged, as a causal model says it: it is given that for its pairs.

    --share 3 --part 0     every third model, in the order of machines and then of the digests of names
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from punchcard.ground_truth.score import NEAR, ScoredNetwork, accuracy, exchanged, opened, score, summary

STEPS = 5
"""Points of the integrated gradients."""
PART = 0.01
"""Of the largest attribution: what has more counts as found."""
MOST_EDGES = 1400
"""A model with more edges is left out by patching and ACDC, which make a loop for each."""
MOST_BYTES = 1 << 31
"""A model for which gradients at all readers need more is left out by attribution."""
ROTATION_WIDTH, ROTATION_STEPS, ROTATION_EXCHANGES = 200, 60, 128
"""A model with more rows is left out by the rotation, which is trained for so many steps by so many exchanges."""
Scores = dict[str, dict[str, float]]
Found = dict[str, Any]


class Model:
    """A model of the set, and what its writers give in the clean and the corrupt runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.network, self.clean, self.corrupt, self.about = opened(folder)
        self.wrote: list[dict[str, Any]] = [{}, {}]
        self.stages: dict[int, Any] = {}
        self.end = self.network.loop(self.clean, wrote=self.wrote[0].setdefault, stage=self.stages.setdefault)
        self.corrupt_end = self.network.loop(self.corrupt, wrote=self.wrote[1].setdefault)
        kinds = self.about["tasks"]
        self.tasks = {kind: np.array([i for i, each in enumerate(kinds) if each == kind]) for kind in dict.fromkeys(kinds)}
        self.tasks["all"] = np.arange(len(kinds))
        self.shown, self.held_out = np.arange(0, len(kinds), 2), np.arange(1, len(kinds), 2)
        files = [folder / "truth.json", folder.parent.parent / "test-truth" / f"{folder.name}.json"]
        self.truth = json.loads(next(file for file in files if file.exists()).read_text())

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
    if len(network.edges()) > MOST_EDGES:
        return {}

    def differs(end: Any) -> Any:
        return (np.abs(end - model.end) > NEAR).any(axis=(1, 2)).astype(float)

    def patched(part: str, writer: str, hook: str) -> Any:
        moved = model.moved(writer)
        if not moved.any():
            return np.zeros(len(moved))
        start = network.moment(part) - 1  # nothing is other before
        return differs(network.loop(model.stages[start], **{hook: partial(_add, part, moved)}, start=start))

    nodes = {name: patched(name, name, "wrote") for name in network.writers() if name != "I"}
    edges = {edge: patched(edge.partition("->")[2], edge.partition("->")[0], "read") for edge in network.edges()}
    return {"nodes": model.by_task(nodes), "edges": model.by_task(edges)}


def acdc(model: Model, tolerance: float = NEAR) -> Found:
    """Edges that cannot be removed, for all pairs together. A removed edge gives what it gives in the corrupt run."""
    network, removed, kept = model.network, dict[str, set[str]](), dict[str, float]()
    edges = sorted(network.edges(), key=lambda edge: tuple(-network.moment(part) for part in edge.split("->")[::-1]))
    if len(edges) > MOST_EDGES:
        return {}

    def end(start: int) -> Any:
        """From a moment before which nothing is removed."""
        now = dict(model.wrote[0])

        def read(part: str, card: Any) -> Any:
            return card + sum((model.wrote[1][name] - now[name] for name in removed.get(part, ())), 0.0)

        def wrote(part: str, found: Any) -> Any:
            now[part] = found
            return found

        return network.loop(model.stages[start], read=read, wrote=wrote, start=start)

    before = model.end
    for edge in edges:
        writer, reader = edge.split("->")
        removed.setdefault(reader, set()).add(writer)
        after = end(network.moment(reader) - 1)
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
    if 2 * model.clean.nbytes * len(model.network.readers()) > MOST_BYTES:
        return {}
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


class TorchLoop:
    """The loop of a network in torch, for gradients."""

    def __init__(self, network: ScoredNetwork) -> None:
        self.network = network
        self.weights = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in network.weights.items()}

    def run(self, x: torch.Tensor, read: Callable[[str, torch.Tensor], torch.Tensor], start: int = 0) -> torch.Tensor:
        """The card after the loop, from the card at a moment; `read` gives what each part reads."""
        for n in range(start // 2, self.network.layers):
            key, query, value, temperature, w1, b1, w2, b2 = (
                self.weights[f"layers.{n}.{name}"]
                for name in ("key", "query", "value", "temperature", "w1", "b1", "w2", "b2"))
            total = x
            for h in range(len(key) if start <= 2 * n else 0):
                q, k, v = (read(f"L{n}.H{h}.{part}", x) for part in "qkv")
                scores = temperature[h] * ((key[h] @ k).transpose(-1, -2) @ (query[h] @ q))
                total = total + value[h] @ v @ torch.softmax(scores, dim=-2)
            x = total
            for g, units in enumerate(self.network.groups[n]):
                total = total + w2[:, units] @ torch.relu(w1[units] @ read(f"L{n}.G{g}", x) + b1[units])
            x = total + b2
        return read("O", x)


def _gradients(network: ScoredNetwork, cards: Any, way: Any) -> dict[str, Any]:
    """The gradient of <end, way> at what each reader reads."""
    added: dict[str, torch.Tensor] = {}

    def read(name: str, card: torch.Tensor) -> torch.Tensor:
        added[name] = torch.zeros_like(card, requires_grad=True)
        return card + added[name]

    end = TorchLoop(network).run(torch.from_numpy(cards.copy()), read)
    (end * torch.from_numpy(way)).sum().backward()  # type: ignore[no-untyped-call]
    return {name: np.zeros_like(cards) if each.grad is None else each.grad.numpy() for name, each in added.items()}


def probe(model: Model) -> Found:
    """For each variable the vectors by which its labels are a linear function of the residual stream."""
    labels, found = load_file(model.folder / "labels.safetensors"), {}
    for name, variable in model.about["variables"].items():
        cards = model.stages[variable["moment"]][model.shown][..., variable["columns"]]
        flat = np.moveaxis(cards, 1, 0).reshape(cards.shape[1], -1)
        wanted = np.moveaxis(labels[name][model.shown].astype(float), 1, 0).reshape(variable["vectors"], -1)
        vectors = np.linalg.lstsq(flat.T, wanted.T, rcond=1e-9)[0].T
        if vectors.any():
            found[name] = vectors.tolist()
    return {"variables": found}


def rotation(model: Model) -> Found:
    """For each variable an orthogonal basis, trained so that the exchange in it gives the output of a causal model.

    Exchanges are between any two of the cards that are shown. It starts at random.
    """
    if model.clean.shape[1] > ROTATION_WIDTH:
        return {}
    generator = np.random.default_rng(0)
    cards = np.concatenate([model.clean[model.shown], model.corrupt[model.shown]])
    base, source = cards[generator.integers(len(cards), size=(2, ROTATION_EXCHANGES))]
    stages: list[dict[int, Any]] = [{}, {}]
    before = model.network.loop(base, stage=stages[0].setdefault)
    model.network.loop(source, stage=stages[1].setdefault)
    loop, found = TorchLoop(model.network), {}
    for name, variable in model.truth["variables"].items():
        moment, columns, basis = variable["moment"], variable["columns"], np.array(variable["basis"])
        wanted = exchanged(model.network, base, source, moment, columns, basis)
        if (np.abs(wanted - before) >= NEAR).any():
            moved = stages[1][moment] - stages[0][moment]
            first = generator.standard_normal((cards.shape[1], len(basis)))
            found[name] = _turned(loop, stages[0][moment], moved, columns, moment, wanted, first).tolist()
    return {"variables": found}


def _turned(loop: TorchLoop, start: Any, moved: Any, columns: list[int], moment: int, wanted: Any, first: Any) -> Any:
    """An orthogonal basis by whose exchange the end is nearest to what is wanted, by L-BFGS from a first one."""
    output, places = torch.from_numpy(loop.network.output), torch.tensor(columns)
    card, more, goal = (torch.from_numpy(np.ascontiguousarray(array)) for array in (start, moved[..., columns], wanted))
    basis = torch.from_numpy(first).requires_grad_(True)
    optimiser = torch.optim.LBFGS([basis], max_iter=ROTATION_STEPS, line_search_fn="strong_wolfe", tolerance_grad=1e-12,
                                  tolerance_change=1e-14)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        turned = torch.linalg.qr(basis).Q
        exchanged_card = card.index_add(-1, places, turned @ (turned.T @ more))
        loss = (output @ loop.run(exchanged_card, lambda part, seen: seen, moment) - goal).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return torch.linalg.qr(basis).Q.detach().numpy().T


def random_scores(model: Model) -> Found:
    """Chance."""
    generator = np.random.default_rng(0)
    names = {"nodes": model.network.writers()[1:], "edges": model.network.edges()}
    scores: Found = {kind: {task: {name: float(generator.random()) for name in some} for task in model.tasks}
                     for kind, some in names.items()}
    return {**scores, "variables": {
        name: generator.standard_normal((each["vectors"], model.clean.shape[1])).tolist()
        for name, each in model.about["variables"].items()}}


METHODS: Mapping[str, Callable[[Model], Found]] = {
    "patching": patching, "acdc": acdc, "eap": partial(attribution, steps=1), "eap-ig": partial(attribution, steps=STEPS),
    "probe": probe, "rotation": rotation, "random": random_scores,
    "empty": lambda model: {"nodes": {}, "edges": {}, "variables": {}}}


def variable_rows(model: Model, answer: Found) -> Iterator[dict[str, Any]]:
    """Scores of variables on the pairs that a method has not seen."""
    if "variables" in answer:
        clean, corrupt = model.clean[model.held_out], model.corrupt[model.held_out]
        for name, variable in model.truth["variables"].items():
            basis = np.array(answer["variables"].get(name, np.zeros((0, clean.shape[1]))))
            figure = accuracy(model.network, clean, corrupt, variable, basis)
            yield {"model": model.folder.name, "kind": "variables", "task": name, "accuracy": figure}


def chosen_models(folder: Path, only: str, share: int, part: int) -> list[Path]:
    """The folders of one part of so many, dealt out by machine and the digests of their names."""
    def key(path: Path) -> tuple[str, str]:
        return path.name.partition("-")[0], hashlib.sha256(path.name.encode()).hexdigest()

    return sorted(sorted((path for path in (folder / "models").iterdir() if only in path.name), key=key)[part::share])


def rows_of(folder: Path, models: list[Path], methods: list[str]) -> Iterator[dict[str, Any]]:
    """Scores of all methods on some models."""
    for path in models:
        model = Model(path)
        for method in methods:
            began = time.process_time()
            answer = METHODS[method](model)
            seconds = time.process_time() - began
            graphs = {kind: each for kind, each in answer.items() if kind != "variables"}
            for row in (*score(folder, {path.name: graphs}), *variable_rows(model, answer)):
                if not (method == "acdc" and row["task"] != "all"):
                    yield {"method": method, "seconds": seconds, **row}
            print(f"{path.name} {method} {seconds:.1f} CPU s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("-o", "--output", type=Path, help="Write all rows, as JSON.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    chosen = given.methods.split(",")
    every = list(rows_of(given.set, chosen_models(given.set, given.only, given.share, given.part), chosen))
    if given.output:
        given.output.write_text(json.dumps(every))
    for name in chosen:
        some = [row for row in every if row["method"] == name]
        print(f"\n{name}\n\n{summary(some)}")
