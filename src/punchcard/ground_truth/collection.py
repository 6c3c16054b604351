"""The whole set in a folder: every model by a worker, then the manifest, the page and the scoring program.

    manifest.json     versions; of every model its machine, split and digests
    models/NAME/      a model: see `model_builder.py`
    test-truth/       the truth about the models of the test split
    score.py          scores an answer, without Punchcard
    README.md         what this is
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from punchcard import __version__
from punchcard.errors import PunchcardError, StorageError
from punchcard.files import read_json, write_atomic
from punchcard.folders import alone_in, naming
from punchcard.formatting import plural
from punchcard.ground_truth import score
from punchcard.ground_truth.contents import SCORE
from punchcard.ground_truth.model_builder import MADE, TEST_TRUTH, is_made, record_of
from punchcard.ground_truth.models import ModelSpec, specs
from punchcard.sweep.dispatch import SweepProgress, dispatch
from punchcard.workers.executor import worker_count, workers_of

SETS = ("small", "full")
MANIFEST, PAGE, BEGUN = "manifest.json", "README.md", "set.json"
WHAT = "part of a set"
LIMIT = 3600.0
MAKE = "punchcard.ground_truth.model_builder:make_model"


def make_set(
    which: str, folder: str | Path, *, seed: int = 0, pairs: int | None = None, executor: Executor | None = None,
    workers: int | None = None, ray: str | bool | None = None, only: str = "", resume: bool = False,
    progress: Callable[[SweepProgress], None] | None = None,
) -> dict[str, Any]:
    """Write the set "small" or "full" to a folder. The same seed gives the same files to the last bit, in one go or in many.

    pairs    clean and corrupt pairs of a model, default: 40 or 200; half of that for RISC-V
    only     only models whose names have this text
    resume   continue with a set that was stopped: models whose files are as noted are not made again
    workers, ray, executor   as for a sweep

    Returns the manifest.
    """
    if which not in SETS:
        raise PunchcardError(f"set {which!r}: there are {', '.join(SETS)}")
    place = Path(folder).resolve()
    jobs = [replace(spec, folder=str(place), base_seed=seed) for spec in specs(which, pairs) if only in spec.name]
    if not jobs:
        raise PunchcardError(f"no model of the set {which!r} has {only!r} in its name")
    asked = {"format": 1, "set": which, "seed": seed, "punchcard": __version__, "numpy": np.__version__}
    whole = os.path.exists(place / MANIFEST)
    if whole:
        _check_same(place, asked, jobs, resume)
    else:
        _begin(place, {**asked, "jobs": [[job.name, job.pairs] for job in jobs]}, resume)
    with alone_in(place):
        made = {job.name: about for job, about in zip(jobs, _records(place, jobs, whole), strict=True)
                if is_made(job, about)}
        return _complete(place, asked, jobs, made, workers_of(workers, ray, executor), workers, progress)


def _complete(
    place: Path, asked: Mapping[str, Any], jobs: Sequence[ModelSpec], made: dict[str, dict[str, Any]],
    executor: AbstractContextManager[Executor], workers: int | None, progress: Callable[[SweepProgress], None] | None,
) -> dict[str, Any]:
    """Make the models that are missing, and then the files about all of them."""
    def keep(rows: Sequence[tuple[ModelSpec, dict[str, Any]]]) -> None:
        for spec, row in rows:
            if row["status"] != "ok":
                raise PunchcardError(f"{spec.name}: {row['message']}")
            made[spec.name] = row["about"]

    left = [job for job in jobs if job.name not in made]
    if left:
        (place / MADE).mkdir(exist_ok=True)
        with executor as chosen:
            count = worker_count(workers, chosen)
            dispatch(left, MAKE, keep, chosen, workers=count, limit=LIMIT, done=len(jobs) - len(left), progress=progress)
    manifest = {**asked, "models": {job.name: made[job.name] for job in jobs}}
    write_atomic(place / SCORE, Path(score.__file__).read_bytes())
    write_atomic(place / PAGE, page(manifest))
    write_atomic(place / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    shutil.rmtree(place / MADE, ignore_errors=True)
    return manifest


def _check_same(place: Path, asked: Mapping[str, Any], jobs: Sequence[ModelSpec], resume: bool) -> None:
    """Refuse a folder with a set that is whole, unless it is the one that is asked for, and is to be completed."""
    if not resume:
        raise PunchcardError(f"{str(place)!r} has a set already: continue with --resume, which mends it, or choose another "
                             "folder")
    manifest = read_json(place / MANIFEST, WHAT)
    if any(manifest.get(name) != value for name, value in asked.items()) or not isinstance(
            models := manifest.get("models"), dict) or list(models) != [job.name for job in jobs]:
        raise PunchcardError(f"{str(place)!r} has another set, which is complete: choose another folder")


def _records(place: Path, jobs: Sequence[ModelSpec], whole: bool) -> list[Any]:
    """What is noted of each model: in the manifest of a set that is whole, or by the worker that made it; None: nothing."""
    if whole:
        models = read_json(place / MANIFEST, WHAT)["models"]
        return [models[job.name] for job in jobs]
    found = list[Any]()
    for job in jobs:
        found.append(None)
        with suppress(StorageError):  # a record that cannot be read: the model is made again
            found[-1] = read_json(record_of(place, job.name), WHAT)
    return found


def _begin(place: Path, asked: Mapping[str, Any], resume: bool) -> None:
    """Begin a set, or continue with one."""
    begun = place / MADE / BEGUN
    if os.path.exists(begun):
        if not resume:
            raise PunchcardError(f"{str(place)!r} has an incomplete set: continue with --resume, or choose another folder")
        if read_json(begun, WHAT) != asked:
            raise PunchcardError(f"{str(place)!r} has a part of another set (other options, or another version): choose "
                                 "another folder")
        return
    with naming(place):
        if place.is_dir() and any(path.name not in (MADE, TEST_TRUTH) for path in place.iterdir()):
            raise PunchcardError(f"{str(place)!r} has files already, and they are not of a set: choose another folder")
        (place / TEST_TRUTH).mkdir(parents=True, exist_ok=True)
        (place / MADE).mkdir(exist_ok=True)
    write_atomic(begun, json.dumps(asked))


def page(manifest: Mapping[str, Any]) -> str:
    """The page of a set."""
    models = manifest["models"]
    kinds: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for about in models.values():
        kinds.setdefault((about["machine"], about["variant"]), []).append(about)
    lines = "\n".join(f"| {machine} | {variant} | {len(some)} | {sum(each['split'] == 'test' for each in some)} | "
                      f"{_range(some, 'nodes')} | {_range(some, 'edges')} |" for (machine, variant), some in kinds.items())
    return f"""# Ground truth: {plural(len(models), "model")} whose mechanism is known

Each model is a small transformer that executes one instruction of a computer in one pass. Its weights are set by formula,
so it is known which of its parts matter for what. A method of interpretability is given `models/NAME` without `truth.json`,
and says which nodes and edges matter, or where a variable is; `score.py` says how well.

| machine | variant | models | of them test | nodes that matter (of the others) | edges that matter (of the others) |
|---|---|---|---|---|---|
{lines}

`plain`: a row is a row of the machine. `permuted`: rows in another order with other signs. `rotated`: the residual stream is
rotated by an orthogonal matrix of multiples of 1/8. `idle`: all rows that layers write have idle copies, with copies of the
heads and hidden units that write them, which read idle rows too. Weights and cards are the same when both are exchanged, so
`output` alone tells which are real.

| file of a model | what it is |
|---|---|
| `model.safetensors` | K, Q, V, temperature, W1, b1, W2, b2 of each layer, for cards of rows by columns |
| `bridge.safetensors`, `config.json` | the same for `TransformerBridge.boot_native` of TransformerLens |
| `cards.safetensors` | `clean` and `corrupt`: pairs of inputs, to be multiplied by `scale`; `output`: a projection (below) |
| `labels.safetensors` | what each variable holds in the clean runs: (pairs, vectors, columns) |
| `model.json` | sizes; variables by moment and columns; groups of hidden units; `tasks`: what differs in each pair |
| `truth.json` | the truth. That of the test split is in `test-truth` |

Nodes are heads, `L0.H1`, and groups of hidden units, `L0.G3`. An edge goes from a node, or the input `I`, to what another
reads: `L1.H0.q`, `.k`, `.v`, a group, or the output `O`. A node or edge matters in a task if for some pair of that kind the
output is another when this part alone is taken from the corrupt run. The output is the card after the loop, projected by
`output` on what is read of it: idle rows do not count. `weights` are the edges of the whole
machine: the writer writes a row that the reader reads.

    python score.py . --answers answers.json

`score.py` says what an answer looks like. Made by Punchcard {manifest["punchcard"]} with the seed {manifest["seed"]}.
"""


def _range(some: Sequence[Mapping[str, Any]], name: str) -> str:
    """Of the models whose truth is not kept apart."""
    shares = [each[name] / each[f"{name}_of"] for each in some if name in each]
    if not shares:
        return ""
    low, high = min(shares), max(shares)
    return f"{100 * low:.0f} %" if low == high else f"{100 * low:.0f} to {100 * high:.0f} %"
