"""The score of an answer about models of the ground-truth set. It needs numpy and safetensors, and no Punchcard.

    python score.py SET --answers answers.json

An answer is a JSON object, by the names of models; for the folder of one model it may be that model's. It has some of

    "nodes": {"data": {"L0.H1": 0.9, ...}}              how surely a node matters, by task. A task that is not
                                                        named is not scored; a node that is not named has 0
    "edges": {"data": {"L0.H1->L1.G3": 0.9, ...}}       the same for edges
    "variables": {"v0": [[...], ...]}                   vectors of the model's width that span a variable's subspace: at
                                                        most as many as `model.json` says

Truth is 0 or 1. Precision and recall are those of scores of 1/2 or more; ROC is the area under the curve, by all scores.
Variables have the accuracy of interchange interventions: of the pairs in which the card after the loop is another when the
true subspace is taken from the other run, how often the answer's subspace gives the same card. An empty object, {}, means
for an answer that finds nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

NEAR = 1e-3
"""How near two entries of a card are that mean the same. One other bit changes an entry by 1/4 or more."""
THRESHOLD = 0.5
FIGURES = ("precision", "recall", "roc", "accuracy")
DAMAGE = (OSError, ValueError, TypeError, AttributeError, LookupError, SafetensorError)
"""What a model raises whose files are not as they should be."""
Array = Any
Hook = Callable[[str, Array], Array]


class DamagedModel(SystemExit):
    """A model's files are not as they should be."""


class ScoredNetwork:
    """The equation for a batch of cards (cards, rows, columns), with what each part reads and writes.

    A reader is "L0.H1.q", "L0.H1.k", "L0.H1.v" or a group of hidden units, "L0.G3"; a writer is "I" (the input), "L0.H1",
    or "L0.G3". The output, "O", reads all writers; `output` is the projection on what counts of it.
    """

    def __init__(self, weights: Mapping[str, Array], groups: Sequence[Sequence[Sequence[int]]], output: Array = None
                 ) -> None:
        self.weights, self.groups, self.layers, self.output = weights, groups, len(groups), output

    def __getitem__(self, place: tuple[int, str]) -> Array:
        return self.weights[f"layers.{place[0]}.{place[1]}"]

    def heads(self, layer: int) -> Sequence[int]:
        """The heads of a layer, by number."""
        return range(len(self[layer, "key"]))

    def groups_of(self, layer: int) -> Sequence[int]:
        """The groups of its hidden units, by number."""
        return range(len(self.groups[layer]))

    def writers(self) -> list[str]:
        """All writers but the constants, in the order of the loop."""
        return ["I"] + [f"L{n}.{kind}{i}" for n in range(self.layers)
                        for kind, some in (("H", self.heads(n)), ("G", self.groups_of(n))) for i in some]

    def edges(self) -> list[str]:
        """Every pair of a writer and a reader that comes later."""
        return [f"{writer}->{reader}" for writer in self.writers() for reader in self.readers()
                if self.moment(reader) > self.moment(writer)]

    def readers(self) -> list[str]:
        """All readers in the order of the loop."""
        found = []
        for n in range(self.layers):
            found += [f"L{n}.H{i}.{part}" for i in self.heads(n) for part in "qkv"]
            found += [f"L{n}.G{i}" for i in self.groups_of(n)]
        return [*found, "O"]

    def moment(self, name: str) -> int:
        """The half layer in which a part acts: 0 is before the loop."""
        if name in ("I", "O"):
            return 0 if name == "I" else 2 * self.layers + 1
        return 2 * int(name[1 : name.index(".")]) + (1 if ".H" in name else 2)

    def loop(self, cards: Array, read: Hook | None = None, wrote: Hook | None = None,
             stage: Callable[[int, Array], Array] | None = None, start: int = 0) -> Array:
        """One loop. `read`, `wrote` and `stage` see, and may change, what a part reads or writes, or a card at a moment.

        With `start`, the cards are those at this moment, and the loop continues from there.
        """
        take = read or (lambda name, found: found)
        give = wrote or (lambda name, found: found)
        at = stage or (lambda moment, found: found)
        with np.errstate(over="ignore", invalid="ignore"):
            x = cards if start else at(0, give("I", cards))
            for n in range(start // 2, self.layers):
                if start <= 2 * n:
                    moved = sum((give(f"L{n}.H{h}", self.head(n, h, x, take)) for h in self.heads(n)), 0.0)
                    x = at(2 * n + 1, x + moved)
                added = sum((give(f"L{n}.G{g}", self.group(n, g, take(f"L{n}.G{g}", x))) for g in self.groups_of(n)), 0.0)
                x = at(2 * n + 2, x + added + self[n, "b2"])
        end = take("O", x)
        return end if self.output is None else self.output @ end

    def head(self, n: int, h: int, x: Array, take: Hook) -> Array:
        """What a head adds to the cards x."""
        q, k, v = (take(f"L{n}.H{h}.{part}", x) for part in "qkv")
        return self[n, "value"][h] @ v @ self.attention(n, h, q, k)

    def attention(self, n: int, h: int, q: Array, k: Array) -> Array:
        """How much each column (the last axis) takes of each other: the softmax of a head's scores."""
        scores = self[n, "temperature"][h] * (np.swapaxes(self[n, "key"][h] @ k, -1, -2) @ (self[n, "query"][h] @ q))
        powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
        return powers / powers.sum(axis=-2, keepdims=True)

    def group(self, n: int, g: int, x: Array) -> Array:
        """What a group of hidden units adds to the cards x."""
        units = self.groups[n][g]
        hidden = np.maximum(self[n, "w1"][units] @ x + self[n, "b1"][units], 0)
        return self[n, "w2"][:, units] @ hidden


def opened(folder: Path) -> tuple[ScoredNetwork, Array, Array, dict[str, Any]]:
    """A model of the set: the network, clean and corrupt cards, and what is public about it."""
    about = json.loads((folder / "model.json").read_text())
    weights = {name: array.astype(np.float64) for name, array in load_file(folder / "model.safetensors").items()}
    cards = load_file(folder / "cards.safetensors")
    clean, corrupt = (cards[name].astype(np.float64) * about["scale"] for name in ("clean", "corrupt"))
    return ScoredNetwork(weights, about["groups"], cards["output"]), clean, corrupt, about


# Scores


def rates(truth: Mapping[str, bool], scores: Mapping[str, float]) -> dict[str, float]:
    """Precision, recall and the area under the ROC curve. An answer that finds nothing has the precision 1 and recall 0."""
    names = sorted(truth)
    if not all(isinstance(label, bool) for label in truth.values()):
        raise ValueError("a label of the truth is neither true nor false")
    real = np.array([truth[name] for name in names], dtype=bool)
    given = np.array([float(scores.get(name, 0.0)) for name in names])
    found = given >= THRESHOLD
    hits = int((found & real).sum())
    return {"precision": hits / max(1, int(found.sum())) if found.any() else 1.0, "recall": hits / max(1, int(real.sum())),
            "roc": area(given[real], given[~real]), "true": int(real.sum()), "of": len(names)}


def area(good: Array, bad: Array) -> float:
    """How often a true one has a larger score than a false one; half of those that are equal."""
    if not len(good) or not len(bad):
        return float("nan")
    order = np.sort(bad)
    below, upto = np.searchsorted(order, good, side="left"), np.searchsorted(order, good, side="right")
    return float((below + upto).sum() / 2 / (len(good) * len(bad)))


def exchanged(network: ScoredNetwork, clean: Array, corrupt: Array, moment: int, columns: Sequence[int],
              basis: Array) -> Array:
    """The cards after a loop of the clean runs in which a subspace in some columns is that of the corrupt runs."""
    seen: dict[int, Array] = {}
    network.loop(corrupt, stage=lambda now, card: seen.setdefault(now, card))
    project = basis.T @ np.linalg.pinv(basis.T)

    def stage(now: int, card: Array) -> Array:
        if now != moment:
            return card
        card = card.copy()
        card[..., columns] += project @ (seen[moment] - card)[..., columns]
        return card

    return network.loop(clean, stage=stage)


def accuracy(network: ScoredNetwork, clean: Array, corrupt: Array, variable: Mapping[str, Any], basis: Array) -> float:
    """Of the pairs in which the exchange of the true subspace changes the end: how often the answer's gives the same end."""
    wanted, found = (exchanged(network, clean, corrupt, variable["moment"], variable["columns"], np.array(each, dtype=float))
                     for each in (variable["basis"], basis))
    same = (np.abs(wanted - found) < NEAR).all(axis=(-1, -2))
    matters = (np.abs(wanted - network.loop(clean)) >= NEAR).any(axis=(-1, -2))
    return float(same[matters].mean()) if matters.any() else float("nan")


def score_model(folder: Path, truth: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The rows of a model: what was scored, the task or variable, and the figures."""
    check_answer(folder.name, truth, answer)
    for kind in ("nodes", "edges"):
        for task, labels in truth[kind].items():
            if kind in answer and (task in answer[kind] or not answer[kind]):
                yield {"kind": kind, "task": task, **rates(labels, answer[kind].get(task, {}))}
    if "variables" in answer:
        network, clean, corrupt, _ = opened(folder)
        width = clean.shape[1]
        for name, variable in truth["variables"].items():
            if name in answer["variables"] or not answer["variables"]:
                basis = np.array(answer["variables"].get(name, []), dtype=float).reshape(-1, width)
                yield {"kind": "variables", "task": name, "accuracy": accuracy(network, clean, corrupt, variable, basis)}


def check_answer(model: str, truth: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Refuse what is not an answer about a model: names that it does not have, and what are not numbers."""
    named(model, answer, ("nodes", "edges", "variables"))
    for kind in ("nodes", "edges"):
        for task, scores in named(f"{model}, {kind}", answer.get(kind, {}), truth[kind]).items():
            where = f"{model}, {kind}, {task}"
            for name, value in named(where, scores, truth[kind][task]).items():
                if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
                    raise SystemExit(f"{where}, {name}: {json.dumps(value)[:60]} is not a score, which is a finite number")
    for name, vectors in named(f"{model}, variables", answer.get("variables", {}), truth["variables"]).items():
        most, width = np.shape(truth["variables"][name]["basis"])
        try:
            basis = np.array(vectors)
        except ValueError:  # of several lengths
            basis = np.zeros(1)
        if basis.dtype.kind not in "iuf" or (basis.shape[1:] != (width,) and vectors != []):
            raise SystemExit(f"{model}, variables, {name}: vectors of {width} numbers are wanted")
        if len(basis) > most:
            raise SystemExit(f"{model}, variables, {name}: {len(basis)} vectors, the variable has {most}")
        if not np.isfinite(basis).all():
            raise SystemExit(f"{model}, variables, {name}: a vector has an entry that is not a finite number")


def named(where: str, given: Any, known: Iterable[str]) -> dict[str, Any]:
    """An object all of whose names are known; else it is refused."""
    if not isinstance(given, dict):
        raise SystemExit(f"{where}: {json.dumps(given)[:60]} is not an object")
    for name in sorted(given.keys() - set(known)):
        raise SystemExit(f"{where}: there is no {name!r}; there are {', '.join(sorted(known)[:12])}")
    return given


def parsed(text: str | bytes) -> Any:
    """Answers from their file. A name that is there twice is refused: one of the two would be lost."""
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise ValueError(f"{name!r} is there twice")
            found[name] = value
        return found

    return json.loads(text, object_pairs_hook=once)


def score(place: Path, answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All rows of an answer about the models of a set; the truth of a model is in its folder, or in `test-truth`."""
    rows = []
    for folder, answer in match_answers(place, answers).items():
        truths = folder / "truth.json", folder.resolve().parent.parent / "test-truth" / f"{folder.resolve().name}.json"
        files = [file for file in truths if file.is_file()]
        if not files:
            raise SystemExit(f"there is no truth about a model {folder.name!r} in {place}")
        with _undamaged(folder):
            truth = json.loads(files[0].read_text())
            rows += [{"model": truth["model"], **row} for row in score_model(folder, truth, answer)]
    return rows


@contextmanager
def _undamaged(folder: Path) -> Iterator[None]:
    """What goes wrong with an answer that was checked is the model's."""
    try:
        yield
    except DAMAGE as error:
        raise DamagedModel(f"the model in {str(folder)!r} is damaged: {type(error).__name__}: {error}") from None


def match_answers(place: Path, answers: Mapping[str, Any]) -> dict[Path, Any]:
    """The folders of models with the answers about them: of a set, or of one model."""
    public = place / "model.json"
    if not public.exists():
        models = {path.name: path for path in sorted((place / "models").glob("*"))}
        if not answers:
            raise SystemExit("there is no answer: answers are an object with an object for each model, such as "
                             f'{{"{next(iter(models), "NAME")}": {{}}}}')
        for name in answers:
            if name not in models:
                raise SystemExit(f"there is no model {name!r} in {place}")
        return {models[name]: answer for name, answer in answers.items()}
    with _undamaged(place):
        return {place: answers.get(json.loads(public.read_text())["name"], answers)}


def means(rows: Sequence[Mapping[str, Any]], *, by_model: bool = False) -> list[dict[str, Any]]:
    """Mean figures of each kind and task, over models or of each model; a figure that there is none of is missing."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        task = "all" if row["kind"] == "variables" else row["task"]
        groups.setdefault((row["model"] if by_model else "", row["kind"], task), []).append(row)
    found = []
    for (model, kind, task), some in groups.items():
        each: dict[str, Any] = {"model": model, "kind": kind, "task": task, "models": len({row["model"] for row in some})}
        for figure in FIGURES:
            values = [row[figure] for row in some if figure in row and row[figure] == row[figure]]
            if values:
                each[figure] = sum(values) / len(values)
        found.append(each)
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Means over models, as a table in Markdown."""
    lines = ["| what | task | models | precision | recall | ROC | accuracy |", "|---|---|---|---|---|---|---|"]
    for each in means(rows):
        cells = [f"{each[figure]:.2f}" if figure in each else "" for figure in FIGURES]
        lines.append(f"| {each['kind']} | {each['task']} | {each['models']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("set", type=Path)
    parser.add_argument("--answers", type=Path, required=True)
    given = parser.parse_args()
    try:
        answers = parsed(given.answers.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise SystemExit(f"{given.answers}: {error}") from None
    if not isinstance(answers, dict):
        raise SystemExit(f"{given.answers}: answers are an object with an object for each model")
    print(summary(score(given.set, answers)))  # noqa: T201


if __name__ == "__main__":
    main()
