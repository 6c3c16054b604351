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
from punchcard.files import write_atomic
from punchcard.ground_truth.contents import CARDS, LABELS, MODEL, PUBLIC, SCORE, TRUTH, ModelContents
from punchcard.ground_truth.models import ModelSpec
from punchcard.ground_truth.pairs import PairSource
from punchcard.lazy import import_name
from punchcard.machines.base import AnyMachine
from punchcard.machines.registry import installed
from punchcard.transformer.weights import Weights

TEST_TRUTH, MADE = "test-truth", "made"
"""Folders of a set: the truth about the test split; while the set is made, notes of the models that are."""
CONFIG, BRIDGE = "config.json", "bridge.safetensors"
FILES = (MODEL, CARDS, LABELS, PUBLIC, SCORE, CONFIG, BRIDGE)
"""Of a model's folder, beside the truth."""


def build_model(spec: ModelSpec) -> tuple[AnyMachine, Any]:
    """The machine of a model, and its program if it has one."""
    kind = installed(*([import_name(spec.machine)] if spec.machine else [])).kind(spec.kind)
    options = dict(spec.options)
    if not spec.text:
        return kind.machine_class()(**options), None
    program = kind.languages[0].assemble(spec.text, spec.kind)
    return kind.machine_class().for_program(program, **options), program


def make_model(spec: ModelSpec) -> dict[str, Any]:
    """Write the folder of a model: the job of a worker. What the manifest says of it."""
    machine, program = build_model(spec)
    pairs = PairSource(machine, spec.seed, program).pairs(spec.pairs)
    if len(pairs) < spec.pairs:
        raise PunchcardError(f"{spec.name}: {len(pairs)} pairs were found, {spec.pairs} are wanted")
    found = ModelContents(spec.name, machine, Disguised(machine, spec.disguise), pairs, spec.seed)
    weights, columns = found.hidden.weights, machine.layout.columns
    files = {**found.files(), CONFIG: json.dumps(transformer_lens.config(weights, columns), indent=1).encode(),
             BRIDGE: _bridge(weights, columns)}
    truth = files.pop(TRUTH)
    folder = _folder_of(spec)
    shutil.rmtree(folder, ignore_errors=True)  # what a worker that was ended has left
    folder.mkdir(parents=True)
    for name, data in files.items():
        write_atomic(folder / name, data, durable=False)
    write_atomic(_truth_of(spec), truth, durable=False)
    about = {**_described(spec), "sha256": {name: _digest(data) for name, data in files.items()},
             "truth_sha256": _digest(truth)}
    row = {**about, **{name: count for name, count in found.counts().items() if name in _counted(spec)}}
    write_atomic(record_of(Path(spec.folder), spec.name), json.dumps(row), durable=False)
    return {"about": row}


def is_made(spec: ModelSpec, about: Any) -> bool:
    """Whether a record is of this model, and the model's files are as it says."""
    wanted = _described(spec)
    if not isinstance(about, dict) or {name: about.get(name) for name in wanted} != wanted or not all(
            isinstance(about.get(name), int) for name in _counted(spec)):
        return False
    digests, folder = about.get("sha256"), _folder_of(spec)
    if not isinstance(digests, dict) or set(digests) != set(FILES):
        return False
    try:
        return _digest(_truth_of(spec).read_bytes()) == about.get("truth_sha256") and all(
            _digest((folder / name).read_bytes()) == digest for name, digest in digests.items())
    except OSError:
        return False


def _described(spec: ModelSpec) -> dict[str, Any]:
    """What the manifest says of a model before it is made."""
    return {"split": "test" if spec.is_test else "train", "variant": spec.variant, "machine": spec.kind,
            "options": dict(spec.options), "pairs": spec.pairs}


def _counted(spec: ModelSpec) -> tuple[str, ...]:
    """The counts that the manifest has; how many matter is a part of the truth."""
    return ("edges_of", "nodes_of") if spec.is_test else ("edges", "edges_of", "nodes", "nodes_of")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _folder_of(spec: ModelSpec) -> Path:
    return Path(spec.folder) / "models" / spec.name


def _truth_of(spec: ModelSpec) -> Path:
    return Path(spec.folder) / TEST_TRUTH / f"{spec.name}.json" if spec.is_test else _folder_of(spec) / TRUTH


def record_of(place: Path, name: str) -> Path:
    """Where it is noted that a model of a set is made, and what the manifest says of it."""
    return place / MADE / f"{name}.json"


def _bridge(weights: Weights, columns: int) -> bytes:
    from safetensors.torch import save

    found: bytes = save(transformer_lens.state(weights, columns))
    return found
