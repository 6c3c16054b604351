"""One safetensors file holds a machine; a file that does not fit is refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from punchcard.errors import StorageError
from punchcard.machines import storage
from punchcard.machines.fleq.blocks.block import Elementwise
from punchcard.machines.fleq.functions import Function, same_shape
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.precision import Precision
from tests.cases import DESIGNS, load_subleq


def loaded_again(machine: Any, path: Path, **options: Any) -> Any:
    """A machine, saved and loaded: the same in all that it says, and in its weights."""
    machine.save(path)
    other = type(machine).load(path, **options)
    assert other.describe() == machine.describe()
    for name, tensor in machine.model.state_dict().items():
        assert torch.equal(tensor, other.model.state_dict()[name])
    assert [p.name for p in path.parent.iterdir()] == [path.name], "nothing else is left behind"
    return other


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("precision", ["float64", "float32", Precision(torch.float64, temperature=30.0)])
def test_round_trip(tmp_path: Path, design: str, precision: str | Precision) -> None:
    machine = SubleqMachine(word_bits=12, memory=6, instructions=5, design=design, precision=precision)
    other = loaded_again(machine, tmp_path / "m.safetensors")
    assert other.run(load_subleq("multiply.subleq")).memory["product"] == 63


@pytest.mark.parametrize(("dialect", "precision"), [("standard", "float64"), ("adds", "float32"), ("sic1", None)])
def test_round_trip_of_a_machine_for_images(tmp_path: Path, dialect: str, precision: str | None) -> None:
    machine = VonNeumannMachine(word_bits=8, memory=256, dialect=dialect, precision=precision)
    assert loaded_again(machine, tmp_path / "m.safetensors").dialect == machine.dialect
    with pytest.raises(StorageError, match="holds a 'von-neumann' machine, not 'subleq'"):
        SubleqMachine.load(tmp_path / "m.safetensors")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "m.safetensors"
    SubleqMachine(word_bits=4, memory=2, instructions=2, design="two-layer").save(path)
    return path


def rewrite(path: Path, change: dict[str, Any], tensors: dict[str, torch.Tensor | None]) -> None:
    """Change the description or the tensors of a saved machine, and seal it again."""
    description, content = storage.read(path, storage.KEY, "machine")
    del description["seal"]
    description.update(change)
    for key, tensor in tensors.items():
        if tensor is None:
            del content[key]
        else:
            content[key] = tensor
    storage.write(path, content, storage.KEY, description)


@pytest.mark.parametrize(("change", "message"), [
    ({"machine": "fleq"}, "holds a 'fleq' machine, not 'subleq'"),
    ({"format": 99}, "is a saved machine of another format than 3"),
    ({"design": "three-layer"}, "describes a machine that cannot be built: unknown design 'three-layer'"),
    ({"sizes": {"word_bits": 5, "memory": 2, "instructions": 2}}, "has another layout"),
    ({"sizes": {"word_bits": 4, "memory": 2}}, "has another layout"),
    ({"sizes": {"words": 4}}, "cannot be built"),
    ({"sizes": None}, "cannot be built"),
    ({"precision": {"dtype": "float8"}}, "cannot be built"),
    ({"layout": {}}, "has another layout"),
    ({"more": 1}, "in other words than this version does"),
])
def test_descriptions_that_do_not_fit(saved: Path, change: dict[str, Any], message: str) -> None:
    rewrite(saved, change, {})
    with pytest.raises(StorageError, match=message):
        SubleqMachine.load(saved)


@pytest.mark.parametrize(("tensors", "message"), [
    ({"layers.0.w1": None}, "lacks the tensor 'layers.0.w1'"),
    ({"layers.9.w1": torch.zeros(1)}, "has the tensor 'layers.9.w1', which the machine does not"),
    ({"layers.0.w1": torch.zeros(2, 2)}, r"tensor 'layers.0.w1' is \(2, 2\) of float32, the machine's is"),
    ({"layers.0.temperature": torch.full((2,), 0.5, dtype=torch.float64)}, "is not what the machine's formulas give"),
    ({"layers.0.temperature": torch.full((2,), torch.nan, dtype=torch.float64)}, "holds an entry that is not finite"),
])
def test_tensors_that_do_not_fit(saved: Path, tensors: dict[str, torch.Tensor | None], message: str) -> None:
    rewrite(saved, {}, tensors)
    with pytest.raises(StorageError, match=message):
        SubleqMachine.load(saved)


def test_files_that_are_no_machines(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        SubleqMachine.load(tmp_path / "none")
    (tmp_path / "junk").write_bytes(b"not a machine")
    with pytest.raises(StorageError, match="is not a safetensors file"):
        SubleqMachine.load(tmp_path / "junk")
    save_file({"x": torch.zeros(1)}, tmp_path / "plain")
    with pytest.raises(StorageError, match="is not a saved machine"):
        SubleqMachine.load(tmp_path / "plain")
    with pytest.raises(StorageError, match="Is a directory"):
        SubleqMachine(word_bits=4, memory=1, instructions=1).save(tmp_path)
    with pytest.raises(StorageError, match="cannot write"):
        SubleqMachine(word_bits=4, memory=1, instructions=1).save(tmp_path / "nowhere" / "m")


@pytest.mark.parametrize("design", ["compact", "three-layer", "paper"])
def test_fleq_round_trip(tmp_path: Path, design: str) -> None:
    """A FLEQ machine, with a block of one's own, which is code and so is given again."""
    twice = Elementwise(Function("twice", 1, same_shape, lambda a: 2 * a), lambda a, b, one: 2 * a)
    machine = FleqMachine(functions=["add", "mul", "incr_pointer", twice], size=2, memory=4, instructions=3, heads=2,
                          range=8.0, design=design, precision="float32")
    path = tmp_path / "m.safetensors"
    loaded_again(machine, path, blocks=[twice])
    with pytest.raises(StorageError, match="cannot be built: unknown function 'twice'"):
        FleqMachine.load(path)
    with pytest.raises(StorageError, match="holds a 'fleq' machine, not 'subleq'"):
        SubleqMachine.load(path)
