"""Can idle parts be told from real ones by reading weights? The area under the ROC curve of simple figures of a part.

    punchcard ground-truth make /tmp/set
    python benchmarks/ground_truth_idle.py /tmp/set

Parts are the heads and groups of hidden units of all models with idle parts. Figures are compared inside a layer.

    own        norms, ranks, spectra and shares of zeros of the part's own matrices; what it reads of what it writes
    twins      how many parts of the layer have the same figures
    readers    how much of what it writes is read by some part of the model, itself included
    cards      how much of what it writes lies where the cards have numbers
    output     how much of what it writes is in the projection `output`, which says what counts

1/2 means that the figure tells nothing, 1 that it tells all. `classifier` is a logistic regression on the figures of `own`
and `twins`, trained on the other models.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from punchcard.ground_truth.score import area, opened

STEPS, RATE = 300, 0.3
"""Of the logistic regression."""


def matrix_figures(name: str, matrix: Any) -> dict[str, float]:
    """Figures of one matrix."""
    values = np.linalg.svd(matrix, compute_uv=False)
    total = float(np.linalg.norm(matrix))
    shares = values**2 / max(total**2, 1e-300)
    return {f"{name} norm": total, f"{name} rank": float((values > 1e-9 * values.max(initial=1e-300)).sum()),
            f"{name} largest": float(values.max(initial=0.0)), f"{name} sum of values": float(values.sum()),
            f"{name} spread": float(-(shares * np.log(shares + 1e-300)).sum()),
            f"{name} zeros": float((matrix == 0).mean()), f"{name} entry": float(np.abs(matrix).max(initial=0.0))}


def parts_of(folder: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, float]]]:
    """Of each part its name, its matrices (read, written) and the figures of its own weights."""
    network, *_ = opened(folder)
    for n in range(network.layers):
        for h in network.heads(n):
            key, query, value = (network[n, name][h] for name in ("key", "query", "value"))
            own = {**matrix_figures("K", key), **matrix_figures("Q", query), **matrix_figures("V", value),
                   "KV": float(np.linalg.norm(key @ value)), "QV": float(np.linalg.norm(query @ value)),
                   "VV": float(np.linalg.norm(value @ value)), "trace": float(np.trace(value)),
                   "temperature": float(network[n, "temperature"][h].squeeze())}
            yield f"L{n}.H{h}", {"reads": np.vstack([key, query, value]), "writes": value}, own
        for g, units in enumerate(network.groups[n]):
            first, bias, second = network[n, "w1"][units], network[n, "b1"][units], network[n, "w2"][:, units]
            own = {**matrix_figures("W1", first), **matrix_figures("W2", second), "units": float(len(units)),
                   "bias": float(np.linalg.norm(bias)), "W1W2": float(np.linalg.norm(first @ second)),
                   "overlap": float(np.abs((first * second.T).sum(axis=1)).sum())}
            yield f"L{n}.G{g}", {"reads": first, "writes": second}, own


def figures_of(folder: Path) -> list[dict[str, Any]]:
    """Of each part of a model with idle parts: what it is, whether it is idle, and its figures."""
    truths = folder / "truth.json", folder.parent.parent / "test-truth" / f"{folder.name}.json"
    names = json.loads(next(file for file in truths if file.exists()).read_text())["names"]
    parts, cards = list(parts_of(folder)), load_file(folder / "cards.safetensors")
    reads = np.vstack([matrices["reads"] for _, matrices, _ in parts])
    shown = np.moveaxis(cards["clean"].astype(float), 1, 0).reshape(cards["clean"].shape[1], -1)
    basis, values, _ = np.linalg.svd(shown, full_matrices=False)
    basis = basis[:, values > 1e-9 * values.max()]
    found: list[dict[str, Any]] = []
    for name, matrices, own in parts:
        writes = matrices["writes"]
        size, kind = np.linalg.norm(writes), (name.split(".")[0], name.split(".")[1][0])
        found.append({"model": folder.name, "kind": kind, "idle": not names[name], "own": own,
                      "readers": {"read": float(np.linalg.norm(reads @ writes) / size)},
                      "cards": {"in cards": float(np.linalg.norm(basis.T @ writes) / size)},
                      "output": {"in output": float(np.linalg.norm(cards["output"] @ writes) / size)}})
    for part in found:
        same = [other for other in found if other["kind"] == part["kind"] and all(
            abs(other["own"][name] - value) < 1e-6 * max(1.0, abs(value)) for name, value in part["own"].items()
            if name.split()[-1] in ("norm", "rank", "units"))]
        part["twins"] = {"twins": float(len(same))}
    return found


def ranked(parts: list[dict[str, Any]], room: str, figure: str) -> float:
    """The area under the curve by a figure, in the direction that tells more; parts of one layer and model are compared."""
    wins, pairs = 0.0, 0
    layers: dict[Any, list[dict[str, Any]]] = {}
    for part in parts:
        if figure in part[room]:
            layers.setdefault((part["model"], part["kind"]), []).append(part)
    for some in layers.values():
        good, bad = (np.round([part[room][figure] for part in some if part["idle"] == idle], 9) for idle in (True, False))
        if len(good) and len(bad):
            wins += area(good, bad) * len(good) * len(bad)
            pairs += len(good) * len(bad)
    found = wins / pairs if pairs else float("nan")
    return max(found, 1 - found)


def classified(parts: list[dict[str, Any]], kind: str) -> float:
    """A logistic regression on all figures of a part's own weights and its twins, for each model trained on the others."""
    some = [part for part in parts if part["kind"][1] == kind]
    names = sorted(some[0]["own"])
    rows = np.array([[*(part["own"][name] for name in names), part["twins"]["twins"]] for part in some])
    rows = np.sign(rows) * np.log1p(np.abs(rows))
    idle, models = np.array([part["idle"] for part in some]), np.array([part["model"] for part in some])
    for model in set(models.tolist()):  # a layer has its own scale
        for layer in {part["kind"] for part in some}:
            here = (models == model) & np.array([part["kind"] == layer for part in some])
            rows[here] -= rows[here].mean(axis=0) if here.any() else 0.0
    rows /= rows.std(axis=0) + 1e-9
    scores = np.zeros(len(some))
    for model in set(models.tolist()):
        train, weights, bias = models != model, np.zeros(rows.shape[1]), 0.0
        for _ in range(STEPS):
            off = 1 / (1 + np.exp(-(rows[train] @ weights + bias))) - idle[train]
            weights -= RATE * (rows[train].T @ off / train.sum() + 1e-3 * weights)
            bias -= RATE * off.mean()
        scores[~train] = rows[~train] @ weights
    return area(np.round(scores[idle], 6), np.round(scores[~idle], 6))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set", type=Path)
    given = parser.parse_args()
    parts = [part for folder in sorted((given.set / "models").glob("*-idle*")) for part in figures_of(folder)]
    for kind, title in (("H", "heads"), ("G", "groups of hidden units")):
        some = [part for part in parts if part["kind"][1] == kind]
        print(f"{title}: {sum(part['idle'] for part in some)} idle of {len(some)}")
        for room in ("own", "twins", "readers", "cards", "output"):
            best = sorted(((ranked(some, room, figure), figure) for figure in some[0][room]), reverse=True)[:3]
            print(f"  {room:8} " + ", ".join(f"{figure} {value:.3f}" for value, figure in best))
        print(f"  classifier {classified(parts, kind):.3f}")
