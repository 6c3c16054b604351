"""Baselines on the set of models whose mechanism is known: what known methods find, from the public files alone.

    punchcard ground-truth make /tmp/set --set full
    python -m benchmarks.ground_truth_baselines /tmp/set -o /tmp/baselines --workers 2
    python -m benchmarks.ground_truth_baselines /tmp/set -o /tmp/baselines --table

    patching      activation patching of every node, and path patching of every edge, by all pairs
    acdc          edges are removed one after the other, from the output back, where the end stays within a tolerance
    eap           edge attribution patching: what a writer gives less in the corrupt run, times a gradient
    eap-ig        the same with gradients averaged on the way from the corrupt to the clean input
    probe         variables: linear regression on the residual stream
    rotation      variables: a rotation is trained until the exchange of its first directions gives the right output
    random        random scores and subspaces;  empty   no answer

Models are jobs of a sweep's workers. Each leaves a file, and the same command goes on with models and methods that are
missing.
Variables are found by every second pair, and scored on others. A rotation needs to know what the output is when a variable
is exchanged, as a causal model says it: it is given that for its pairs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from benchmarks.patched_loop import RestOfLoop, WiredNetwork, exchange_of
from punchcard.files import write_atomic
from punchcard.ground_truth.score import FIGURES, NEAR, opened, score
from punchcard.ground_truth.truth import part_of, reads_more
from punchcard.sweep.dispatch import SweepProgress, dispatch
from punchcard.workers.executor import worker_count, workers_of

STEPS = 5
"""Points of the integrated gradients."""
PART = 0.01
"""Of the largest attribution: what has more counts as found."""
FIRST, BLOCK = 16, 64
"""Patching takes so many pairs first, then so many at a time. A part with an effect in a task is not tried there again."""
ACDC_PAIRS, ACDC_FIRST = 40, 8
"""ACDC is given so many pairs. An edge that cannot be removed for the first of them is kept."""
HELD_OUT = 40
"""Variables are scored on so many pairs."""
ROTATION_VARIABLES, ROTATION_STEPS, ROTATION_EXCHANGES = 4, 60, 128
"""Of a model the rotation is asked for so many variables; it is trained for so many steps by so many exchanges."""
MOST_BYTES = 1 << 28
"""Pairs are taken in chunks, so that gradients at all readers need no more."""
LIMIT = 1800.0
NONE: Mapping[str, Any] = {"rows": [], "seconds": {}}
"""What is found of a model that was not run."""
Scores = dict[str, dict[str, float]]
Found = dict[str, Any]


class Model:
    """A model of the set, and what its writers give in the clean and the corrupt runs.

    Parts by which nothing comes to the output have no effect there: `network` is without them, and has the same output.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        whole, self.clean, self.corrupt, self.about = opened(folder)
        self.all_edges, self.all_nodes = whole.edges(), whole.writers()[1:]
        self.network = WiredNetwork(whole)
        self.wrote: list[dict[str, Any]] = [{}, {}]
        self.stages: dict[int, Any] = {}
        self.end = self.network.loop(self.clean, wrote=self.wrote[0].setdefault, stage=self.stages.setdefault)
        self.corrupt_end = self.network.loop(self.corrupt, wrote=self.wrote[1].setdefault)
        self.seen: list[dict[int, Any]] = [{}, {}]
        """Cards of the whole network at each moment, in the clean and the corrupt runs."""
        for cards, seen in zip((self.clean, self.corrupt), self.seen, strict=True):
            whole.loop(cards, stage=seen.setdefault)
        self.rest = RestOfLoop(self.network, self.stages)
        self.kinds = np.array(self.about["tasks"])
        self.shown, self.held_out = np.arange(0, len(self.kinds), 2), np.arange(1, len(self.kinds), 2)[:HELD_OUT]
        files = [folder / "truth.json", folder.parent.parent / "test-truth" / f"{folder.name}.json"]
        self.truth = json.loads(next(file for file in files if file.exists()).read_text())
        self._wanted: dict[str, Any] = {}

    def exchanged(self, name: str, basis: Any) -> Any:
        """How much the outputs of the held-out pairs are others when a subspace is exchanged where a variable is."""
        variable = self.about["variables"][name]
        clean, corrupt = (seen[variable["moment"]][self.held_out] for seen in self.seen)
        more = exchange_of(corrupt - clean, variable["columns"], np.array(basis, dtype=float))
        return self.rest.end(variable["moment"], self.held_out, more)

    def accuracy(self, name: str, basis: Any) -> float:
        """As `score.accuracy`, on the held-out pairs."""
        if name not in self._wanted:
            self._wanted[name] = self.exchanged(name, self.truth["variables"][name]["basis"])
        wanted = self._wanted[name]
        matters = (np.abs(wanted) >= NEAR).any(axis=(1, 2))
        if not matters.any():
            return float("nan")
        found = self.exchanged(name, basis) if len(basis) else np.zeros_like(wanted)
        return float((np.abs(wanted - found) < NEAR).all(axis=(1, 2))[matters].mean())

    def moved(self, writer: str) -> Any:
        """What a writer gives more in the corrupt runs."""
        return self.wrote[1][writer] - self.wrote[0][writer]

    def by_task(self, names: Sequence[str], effects: Mapping[str, Any]) -> Scores:
        """The largest effect of the pairs of each task; of parts without any, 0."""
        found: Scores = {task: dict.fromkeys(names, 0.0) for task in (*dict.fromkeys(self.kinds.tolist()), "all")}
        for task, scores in found.items():
            places = np.flatnonzero((self.kinds == task) | (task == "all"))
            scores.update({name: float(effect[places].max()) for name, effect in effects.items()})
        return found


def patching(model: Model) -> Found:
    """Every node and edge by itself: 1 where the end of the loop is another."""
    network = model.network
    names = [name for name in (*model.all_nodes, *model.all_edges) if network.joins(name)]
    effects = {name: np.zeros(len(model.kinds)) for name in names}
    for places in np.split(np.arange(len(model.kinds)), range(FIRST, len(model.kinds), BLOCK)):
        for name, effect in effects.items():
            writer, _, reader = name.partition("->")
            known = np.unique(model.kinds[effect > 0])
            left = places[~np.isin(model.kinds[places], known)]
            left = left[model.moved(writer)[left].any(axis=(1, 2))]
            if len(left):
                more = model.moved(writer)[left]
                if reader and reader != "O":
                    more = reads_more(network, reader, model.stages, left, more) - model.wrote[0][part_of(reader)][left]
                off = model.rest.end(network.moment(reader or writer), left, more)
                effect[left] = (np.abs(off) > NEAR).any(axis=(1, 2))
    return {kind: model.by_task(some, {name: effects[name] for name in some if name in effects})
            for kind, some in (("nodes", model.all_nodes), ("edges", model.all_edges))}


def acdc(model: Model, tolerance: float = NEAR) -> Found:
    """Edges that cannot be removed, for some pairs together. A removed edge gives what it gives in the corrupt run.

    An edge by which nothing comes to the output, or to a part whose edges are all removed, is removed without a run.
    """
    network, removed, kept = model.network, dict[str, set[str]](), dict[str, float]()
    edges = sorted(filter(network.joins, network.edges()),
                   key=lambda edge: tuple(-network.moment(part) for part in edge.split("->")[::-1]))
    kinds = list(dict.fromkeys(model.kinds.tolist()))
    ranks = np.array([int((model.kinds[:place] == kind).sum()) for place, kind in enumerate(model.kinds)])
    order = np.argsort(ranks, kind="stable")[:ACDC_PAIRS]  # as many of each kind
    assert set(model.kinds[order[: len(kinds)]]) == set(kinds)
    wrote = [{name: each[order] for name, each in some.items()} for some in model.wrote]
    stages = {moment: each[order] for moment, each in model.stages.items()}

    def end(start: int, count: int) -> Any:
        """From a moment before which nothing is removed, for the first pairs."""
        now = {name: each[:count] for name, each in wrote[0].items()}

        def read(part: str, card: Any) -> Any:
            return card + sum((wrote[1][name][:count] - now[name] for name in removed.get(part, ())), 0.0)

        def keep(part: str, found: Any) -> Any:
            now[part] = found
            return found

        return network.loop(stages[start][:count], read=read, wrote=keep, start=start)

    before, used = model.end[order], {"O"}
    for edge in edges:
        writer, reader = edge.split("->")
        removed.setdefault(reader, set()).add(writer)
        if part_of(reader) not in used:
            continue
        after = before
        for count in (ACDC_FIRST, len(order)):
            after = end(network.moment(reader) - 1, count)
            if np.abs(after - before[:count]).max() > tolerance:
                removed[reader].discard(writer)
                kept[edge] = 1.0
                used.add(writer)
                break
        else:
            before = after
    return {"edges": {"all": kept}}


def attribution(model: Model, steps: int) -> Found:
    """What each writer gives more in the corrupt run times the gradient of the output at each reader.

    The output is measured along the way from the clean to the corrupt end.
    """
    network = model.network
    readers, writers = network.readers(), network.writers()
    size = max(1, MOST_BYTES // (4 * 8 * len(readers) * model.clean[0].size))
    products = np.zeros((len(model.kinds), len(writers), len(readers)))
    for first in range(0, len(model.kinds), size):
        places = slice(first, first + size)
        clean, way = model.clean[places], model.corrupt[places] - model.clean[places]
        moved = np.stack([model.moved(name)[places].reshape(len(clean), -1) for name in writers], axis=1)
        for step in range(steps):
            share = 0.0 if steps == 1 else step / (steps - 1)
            found = _gradients(network, clean + share * way, model.corrupt_end[places] - model.end[places])
            gradients = np.stack([found[name].reshape(len(clean), -1) for name in readers], axis=2)
            products[places] += moved @ gradients / steps
    effects = {f"{writer}->{reader}": np.abs(products[:, w, r]) for w, writer in enumerate(writers)
               for r, reader in enumerate(readers) if network.moment(reader) > network.moment(writer)}
    return {"edges": {task: _scaled(scores) for task, scores in model.by_task(model.all_edges, effects).items()}}


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    """To 0 to 1, with 1/2 at a part of the largest."""
    threshold = PART * max(scores.values(), default=0.0)
    return {name: value / (value + threshold) if threshold else 0.0 for name, value in scores.items()}


class TorchLoop:
    """The loop of a network in torch, for gradients."""

    def __init__(self, network: WiredNetwork) -> None:
        self.network = network
        self.weights = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in network.weights.items()}

    def _layer(self, n: int) -> list[torch.Tensor]:
        return [self.weights[f"layers.{n}.{name}"]
                for name in ("key", "query", "value", "temperature", "w1", "b1", "w2", "b2")]

    def run(self, x: torch.Tensor, read: Callable[[str, torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """The card after the loop; `read` gives what each part reads."""
        for n in range(self.network.layers):
            key, query, value, temperature, w1, b1, w2, b2 = self._layer(n)
            total = x
            for h in self.network.kept_heads[n]:
                q, k, v = (read(f"L{n}.H{h}.{part}", x) for part in "qkv")
                scores = temperature[h] * ((key[h] @ k).transpose(-1, -2) @ (query[h] @ q))
                total = total + value[h] @ v @ torch.softmax(scores, dim=-2)
            x = total
            for g in self.network.kept_groups[n]:
                units = self.network.groups[n][g]
                total = total + w2[:, units] @ torch.relu(w1[units] @ read(f"L{n}.G{g}", x) + b1[units])
            x = total + b2
        return read("O", x)

    def rest(self, x: torch.Tensor, stages: Mapping[int, torch.Tensor], start: int) -> torch.Tensor:
        """The card after the loop, from a card at a moment. Columns that are as in the run `stages` are taken from there."""
        for n in range(start // 2, self.network.layers):
            key, query, value, temperature, w1, b1, w2, b2 = self._layer(n)
            if start <= 2 * n:
                total = x
                for h in self.network.kept_heads[n]:
                    scores = temperature[h] * ((key[h] @ x).transpose(-1, -2) @ (query[h] @ x))
                    total = total + value[h] @ x @ torch.softmax(scores, dim=-2)
                x = total
            other = ((x - stages[2 * n + 1]).abs() > 0).any(dim=1)
            columns = x.transpose(1, 2)[other]
            units = self.network.kept_units[n]
            after = columns + torch.relu(columns @ w1[units].T + b1[units].T) @ w2[:, units].T + b2.T
            x = stages[2 * n + 2].transpose(1, 2).index_put((other,), after).transpose(1, 2)
        return x


def _gradients(network: WiredNetwork, cards: Any, way: Any) -> dict[str, Any]:
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
    labels, found, solvers = load_file(model.folder / "labels.safetensors"), {}, dict[Any, Any]()
    for name, variable in model.about["variables"].items():
        place = variable["moment"], tuple(variable["columns"])
        if place not in solvers:
            cards = model.seen[0][variable["moment"]][model.shown][..., variable["columns"]]
            flat = np.moveaxis(cards, 1, 0).reshape(cards.shape[1], -1)
            solvers[place] = flat, np.linalg.pinv(flat @ flat.T, rcond=1e-12, hermitian=True)
        flat, inverse = solvers[place]
        wanted = np.moveaxis(labels[name][model.shown].astype(float), 1, 0).reshape(variable["vectors"], -1)
        vectors = wanted @ flat.T @ inverse
        if vectors.any():
            found[name] = vectors.tolist()
    return {"variables": found}


def rotation(model: Model) -> Found:
    """For some variables an orthogonal basis, trained so that the exchange in it gives the output of a causal model.

    Variables are chosen by chance among those whose exchange matters. Exchanges are between any two
    of the cards that are shown. It starts at random.
    """
    generator = np.random.default_rng(0)
    cards = {moment: np.concatenate([seen[moment][model.shown] for seen in model.seen]) for moment in model.seen[0]}
    base, source = generator.integers(len(cards[0]), size=(2, ROTATION_EXCHANGES))
    stages: dict[int, Any] = {}
    model.network.loop(cards[0][base], stage=stages.setdefault)
    loop, rest, found = TorchLoop(model.network), RestOfLoop(model.network, stages), dict[str, Any]()
    names = list(model.truth["variables"])
    for name in generator.permutation(names).tolist():
        variable = model.truth["variables"][name]
        moment, columns, basis = variable["moment"], variable["columns"], np.array(variable["basis"])
        moved = cards[moment][source] - cards[moment][base]
        wanted = rest.end(moment, np.arange(len(base)), exchange_of(moved, columns, basis))
        if (np.abs(wanted) >= NEAR).any() and model.accuracy(name, basis) == 1.0:
            first = generator.standard_normal((len(moved[0]), len(basis)))
            found[name] = _turned(loop, stages, moved, columns, moment, wanted, first).tolist()
            if len(found) == ROTATION_VARIABLES:
                break
    return {"variables": found}


def _turned(loop: TorchLoop, stages: Mapping[int, Any], moved: Any, columns: list[int], moment: int, wanted: Any, first: Any
            ) -> Any:
    """An orthogonal basis by whose exchange the end is nearest to what is wanted, by L-BFGS from a first one."""
    output, places = torch.from_numpy(loop.network.output), torch.tensor(columns)
    own = {now: torch.from_numpy(np.ascontiguousarray(card)) for now, card in stages.items()}
    more, goal = (torch.from_numpy(np.ascontiguousarray(array)) for array in (moved[..., columns], wanted))
    end, basis = own[2 * loop.network.layers], torch.from_numpy(first).requires_grad_(True)
    width, columns_of_card = own[0].shape[1:]
    kept = sum(3 * len(units) + 8 * width for units in loop.network.kept_units)
    parts = torch.split(torch.arange(len(more)), max(1, MOST_BYTES // (8 * columns_of_card * kept)))
    optimiser = torch.optim.LBFGS([basis], max_iter=ROTATION_STEPS, line_search_fn="strong_wolfe", tolerance_grad=1e-12,
                                  tolerance_change=1e-14)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        total = torch.zeros(())
        for part in parts:
            turned = torch.linalg.qr(basis).Q
            exchanged_card = own[moment][part].index_add(-1, places, turned @ (turned.T @ more[part]))
            after = loop.rest(exchanged_card, {now: card[part] for now, card in own.items()}, moment)
            loss = (output @ (after - end[part]) - goal[part]).square().sum() / goal.numel()
            loss.backward()  # type: ignore[no-untyped-call]
            total = total + loss.detach()
        return total

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return torch.linalg.qr(basis).Q.detach().numpy().T


def random_scores(model: Model) -> Found:
    """Chance."""
    generator = np.random.default_rng(0)
    names = {"nodes": model.all_nodes, "edges": model.all_edges}
    scores: Found = {kind: {task: {name: float(generator.random()) for name in some}
                            for task in (*dict.fromkeys(model.kinds.tolist()), "all")} for kind, some in names.items()}
    return {**scores, "variables": {
        name: generator.standard_normal((each["vectors"], model.clean.shape[1])).tolist()
        for name, each in model.about["variables"].items()}}


METHODS: Mapping[str, Callable[[Model], Found]] = {
    "patching": patching, "acdc": acdc, "eap": partial(attribution, steps=1), "eap-ig": partial(attribution, steps=STEPS),
    "probe": probe, "rotation": rotation, "random": random_scores,
    "empty": lambda model: {"nodes": {}, "edges": {}, "variables": {}}}


def variable_rows(model: Model, method: str, answer: Found) -> Iterator[dict[str, Any]]:
    """Scores of variables on pairs that a method has not seen. The rotation is scored on the variables it was asked for."""
    if "variables" in answer:
        for name in answer["variables"] if method == "rotation" else model.about["variables"]:
            figure = model.accuracy(name, answer["variables"].get(name, []))
            yield {"model": model.folder.name, "kind": "variables", "task": name, "accuracy": figure}


@dataclass(frozen=True)
class BaselineJob:
    """The baselines of one model."""

    folder: str
    methods: tuple[str, ...]

    @property
    def key(self) -> str:
        return Path(self.folder).name

    group = key


def run_baselines(job: BaselineJob) -> dict[str, Any]:
    """The job of a worker: scores of all methods on a model."""
    torch.set_num_threads(1)
    path, rows, seconds = Path(job.folder), [], {}
    model = Model(path)
    for method in job.methods:
        began = time.process_time()
        answer = METHODS[method](model)
        seconds[method] = time.process_time() - began
        graphs = {kind: each for kind, each in answer.items() if kind != "variables"}
        for row in (*score(path.parent.parent, {path.name: graphs}), *variable_rows(model, method, answer)):
            if not (method == "acdc" and row["task"] != "all"):
                rows.append({"method": method, **row})
    return {"rows": rows, "seconds": seconds}


def kind_of(model: str) -> str:
    """Of a model's name: its machine."""
    return next(name for name in ("subleq", "von-neumann", "turing", "fleq", "riscv") if model.startswith(name))


def variant_of(model: str) -> str:
    """Of a model's name: what is hidden in it."""
    return next(name for name in ("plain", "permuted", "idle-rotated", "rotated", "idle") if model.endswith(f"-{name}"))


def table(found: Mapping[str, Mapping[str, Any]], by: Callable[[str], str] = lambda model: "all") -> str:
    """Means over models, task `all`, as Markdown; a row for each method, question, and group of models."""
    groups: dict[tuple[str, str, str], dict[str, list[dict[str, Any]]]] = {}
    for model, each in found.items():
        for row in each["rows"]:
            if row["kind"] == "variables" or row["task"] == "all":
                groups.setdefault((row["method"], row["kind"], by(model)), {}).setdefault(model, []).append(row)
    lines = ["| method | asked | of | models | precision | recall | ROC | accuracy | CPU s a model |",
             "|---|---|---|---|---|---|---|---|---|"]
    for (method, kind, name), models in groups.items():
        cells = []
        for figure in FIGURES:
            means = [np.mean(values) for rows in models.values()
                     if (values := [row[figure] for row in rows if row.get(figure) == row.get(figure, np.nan)])]
            cells.append(f"{np.mean(means):.2f}" if means else "")
        cost = float(np.mean([found[model]["seconds"][method] for model in models]))
        lines.append(f"| {method} | {kind} | {name} | {len(models)} | {' | '.join(cells)} | {cost:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True, help="The folder of the results, a file a model.")
    parser.add_argument("--only", default="", help="Only models whose names have one of these texts, with commas.")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--workers", type=int)
    parser.add_argument("--table", action="store_true", help="Run nothing: print the tables of what is there.")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)

    found = {path.stem: json.loads(path.read_text()) for path in sorted(given.output.glob("*.json"))}

    def keep(rows: Sequence[tuple[BaselineJob, dict[str, Any]]]) -> None:
        for job, row in rows:
            if row["status"] == "ok":
                before = found.get(job.key, NONE)
                found[job.key] = {"rows": before["rows"] + row["rows"], "seconds": before["seconds"] | row["seconds"]}
                write_atomic(given.output / f"{job.key}.json", json.dumps(found[job.key]))
            else:
                print(f"{job.key}: {row['status']}, {row['message']}", flush=True)

    wanted, methods = given.only.split(","), given.methods.split(",")
    if unknown := [method for method in methods if method not in METHODS]:
        parser.error(f"{unknown[0]} is not a method: there are {', '.join(METHODS)}")
    folders = sorted(path for path in (given.set / "models").iterdir() if any(text in path.name for text in wanted))
    jobs = [BaselineJob(str(path.resolve()), tuple(method for method in methods
                                                   if method not in found.get(path.name, NONE)["seconds"]))
            for path in folders]
    left = [job for job in jobs if job.methods]
    if not given.table:
        with workers_of(given.workers, None) as executor:
            dispatch(left, "benchmarks.ground_truth_baselines:run_baselines", keep, executor, limit=LIMIT,
                     workers=worker_count(given.workers, executor), done=len(jobs) - len(left), progress=_show)
    print(f"{len(found)} of {len(jobs)} models\n\n{table(found)}\n\n{table(found, kind_of)}\n\n"
          f"{table(found, variant_of)}")


def _show(progress: SweepProgress) -> None:
    print(progress, flush=True)


if __name__ == "__main__":
    from benchmarks import ground_truth_baselines

    ground_truth_baselines.main()  # workers know jobs by the name of their module
