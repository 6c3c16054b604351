"""From a model's description to its folder: the job of a worker that makes the set.

    models/NAME/     what `contents.py` says, and the same weights for TransformerLens: bridge.safetensors, config.json
    test-truth/      the truth about a model of the test split
    made/            the last thing that a worker writes: this model is whole. Gone when the set is
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from punchcard.errors import PunchcardError
from punchcard.export import transformer_lens
from punchcard.export.disguise import Disguised
from punchcard.files import write_whole
from punchcard.ground_truth.contents import TRUTH, ModelContents
from punchcard.ground_truth.models import ModelSpec
from punchcard.ground_truth.pairs import PairSource
from punchcard.lazy import import_name
from punchcard.machines.base import AnyMachine
from punchcard.machines.registry import installed
from punchcard.transformer.weights import Weights

TEST_TRUTH, MADE = "test-truth", "made"
"""Folders of a set: the truth about the test split; while the set is made, notes of the models that are."""


def built(spec: ModelSpec) -> tuple[AnyMachine, Any]:
    """The machine of a model, and its program if it has one of its own."""
    kind = installed(*([import_name(spec.machine)] if spec.machine else [])).kind(spec.kind)
    options = dict(spec.options)
    if not spec.text:
        return kind.machine_class()(**options), None
    program = kind.languages[0].assemble(spec.text, spec.kind)
    return kind.machine_class().for_program(program, **options), program


def make_model(spec: ModelSpec) -> dict[str, Any]:
    """Write the folder of a model: the job of a worker. What the manifest says of it."""
    machine, program = built(spec)
    pairs = PairSource(machine, spec.seed, program).pairs(spec.pairs)
    if len(pairs) < spec.pairs:
        raise PunchcardError(f"{spec.name}: {len(pairs)} pairs were found, {spec.pairs} are wanted")
    found = ModelContents(spec.name, machine, Disguised(machine, spec.disguise), pairs, spec.seed)
    weights, columns = found.hidden.weights, machine.layout.columns
    files = {**found.files(), "config.json": json.dumps(transformer_lens.config(weights, columns), indent=1).encode(),
             "bridge.safetensors": _bridge(weights, columns)}
    truth = files.pop(TRUTH)
    folder = Path(spec.folder) / "models" / spec.name
    shutil.rmtree(folder, ignore_errors=True)  # what a worker that was ended has left
    folder.mkdir(parents=True)
    for name, data in files.items():
        write_whole(folder / name, data, durable=False)
    write_whole(Path(spec.folder) / TEST_TRUTH / f"{spec.name}.json" if spec.is_test else folder / TRUTH, truth,
                durable=False)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    about = {"split": "test" if spec.is_test else "train", "variant": spec.variant, "machine": spec.kind,
             "options": dict(spec.options), "pairs": len(pairs), "sha256": digests,
             "truth_sha256": hashlib.sha256(truth).hexdigest()}
    hidden = ("nodes", "edges") if spec.is_test else ()  # how many matter is a part of the truth
    row = {**about, **{name: count for name, count in found.counts().items() if name not in hidden}}
    write_whole(record_of(Path(spec.folder), spec.name), json.dumps(row), durable=False)
    return {"about": row}


def record_of(place: Path, name: str) -> Path:
    """Where it is noted that a model of a set is made, and what the manifest says of it."""
    return place / MADE / f"{name}.json"


def _bridge(weights: Weights, columns: int) -> bytes:
    from safetensors.torch import save

    found: bytes = save(transformer_lens.state(weights, columns))
    return found
