"""Checkpoints and machines that somebody forged, and sealed again, or whose bits were turned.

A forged run is one that the machine could be in, or it is refused; a turned bit is always refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import punchcard
from punchcard.errors import PunchcardError, StorageError
from punchcard.machines import storage
from punchcard.machines.base import Machine
from punchcard.machines.checkpoint import KEY, load
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as assemble_image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.precision import Precision
from tests.cases import load_subleq, soaked
from tests.forgeries import accepted_flips, forge

FLEQ = ".data\nx scalar 1\nt scalar -3\none scalar 1\n.code\nloop: x = add(x, one)\nt = add(t, one); if t <= 0 goto loop"
COPY = "(-1) a; a (-1); (-1) a; a (-1); zero zero (-1)\n. a:0 zero:0"
SUBLEQ = ".data\na 3\nb 5\n.code\nsubleq a, b, 1\nhalt"


def begun(kind: str, path: Path) -> Path:
    """A run of a small machine that has made two steps."""
    how: dict[str, Any] = {"max_steps": 2, "checkpoint": path, "engine": "dense"}
    if kind == "fleq":
        punchcard.run(punchcard.assemble(FLEQ, "fleq"), **how)
    elif kind == "subleq":
        punchcard.run(punchcard.assemble(SUBLEQ), word_bits=4, design="one-layer", **how)
    else:
        punchcard.run(assemble_image(COPY), VonNeumannMachine(word_bits=5, memory=24), input=b"ab", **how)
    return path


@pytest.mark.parametrize("kind", ["fleq", "subleq", "von-neumann"])
@pytest.mark.parametrize("entry", [-1.0, 1.0, 0.0, float("nan"), 1e30])
@pytest.mark.parametrize("check", ["lockstep", False])
def test_a_card_full_of_one_number(tmp_path: Path, kind: str, entry: float, check: Any) -> None:
    """Refused, or a run that ends by the rules: never an IndexError."""
    path = begun(kind, tmp_path / "run")
    card = load(path).mark.card
    forge(path, KEY, {}, {"card": torch.full_like(card, entry)})
    with contextlib.suppress(PunchcardError):
        assert not punchcard.resume(path, max_steps=20, check=check).agrees


def test_a_counter_outside_the_program_is_refused(tmp_path: Path) -> None:
    path = begun("fleq", tmp_path / "run")
    forge(path, KEY, {}, {"card": torch.full_like(load(path).mark.card, -1.0)})
    with pytest.raises(StorageError, match=r"cannot continue: the card: jumps to instruction -\d+, the program has"):
        load(path)


@pytest.mark.parametrize(("audit", "message"), [
    ({"max_step_error": "x"}, "max_step_error of an audit is 'x': it must be a finite number, 0 or more"),
    ({"max_step_error": True}, "max_step_error of an audit is True"),
    ({"bound": float("nan")}, "bound of an audit is nan"),
    ({"bound": -1.0}, r"bound of an audit is -1\.0"),
    ({"worst": 5}, "worst of an audit is 5: it must be text"),
    ({"why": None}, "why of an audit is None"),
    ({"more": 5}, "an audit with .*more: it has max_step_error, bound, worst, why"),
])
def test_forged_audits(tmp_path: Path, audit: dict[str, Any], message: str) -> None:
    path = begun("fleq", tmp_path / "run")
    forge(path, KEY, {"found": {**storage.read(path, KEY, "checkpoint")[0]["found"], **audit}})
    with pytest.raises(StorageError, match=message):
        punchcard.resume(path)


@pytest.mark.parametrize(("program", "message"), [
    ("[" * 100_000, "the program is not an object with words, source and labels"),
    ("7", "the program is not an object with words, source and labels"),
    ('{"words": [1.5], "source": "", "labels": {}}', "words=.*1.5.*: it must be a list, each item an integer"),
    ('{"words": "abc", "source": "", "labels": {}}', "words=.*'a'.*: it must be a list, each item an integer"),
    ('{"words": [], "source": "", "labels": {}}', "the image is empty"),
    ('{"words": [1], "source": "", "labels": {"a": "b"}}', "labels=.*'b'.*: it must be a mapping of names"),
    ('{"words": [1], "source": "", "labels": {"a": -1}}', "label 'a' is at -1"),
])
def test_forged_images(tmp_path: Path, program: str, message: str) -> None:
    path = begun("von-neumann", tmp_path / "run")
    forge(path, KEY, {"program": program})
    with pytest.raises(StorageError, match=message):
        load(path)


def test_a_label_beyond_the_memory(tmp_path: Path) -> None:
    """Nothing is there: it has no value."""
    image = punchcard.Image((0, 0, -1), labels={"all": 0, "end": 8})
    report = punchcard.run(image, VonNeumannMachine(word_bits=4, memory=8), engine="dense")
    assert report.result.memory == {"all": 0}
    with pytest.raises(PunchcardError, match="label 'end' is at 8, beyond the image's words"):
        image.with_values({"end": 5})


@pytest.mark.parametrize(("name", "tensor"), [
    ("read", torch.zeros(2, dtype=torch.float32)), ("written", torch.zeros(1, 2, dtype=torch.uint8)),
    ("read", torch.zeros(2, dtype=torch.int64))])
def test_forged_traffic(tmp_path: Path, name: str, tensor: torch.Tensor) -> None:
    path = begun("von-neumann", tmp_path / "run")
    forge(path, KEY, {}, {name: tensor})
    with pytest.raises(StorageError, match=f"what was {name} is .* it must be a row of bytes"):
        load(path)


@pytest.mark.parametrize("field", ["temperature", "gate"])
@pytest.mark.parametrize("value", [10**400, True, "x", float("nan"), [1]])
def test_forged_precision(field: str, value: Any) -> None:
    with pytest.raises(PunchcardError, match=f"{field} "):
        Precision(**{field: value})


# Other files


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.checkpoint"
    punchcard.run(load_subleq("multiply.subleq"), design="two-layer", max_steps=5, checkpoint=path, engine="dense")
    return path


@pytest.mark.parametrize(("change", "message"), [
    ({"format": 9}, "is a checkpoint of another format than 4"),
    ({"loops": ...}, "describes a run that cannot continue: it has no 'loops'"),
    ({"loops": -1}, "describes a run that cannot continue: loops=-1: it must be an integer, 0 or more"),
    ({"loops": "many"}, "loops='many'"),
    ({"loops": True}, "loops=True: it must be an integer, 0 or more"),
    ({"loops": 1 << 62}, "it must be an integer, 0 or more, and less than 2"),
    ({"more": 1}, "cannot continue: it has a field 'more'"),
    ({"engine": "abacus"}, "cannot continue: unknown engine 'abacus'"),
    ({"engine": ["dense"]}, r"engine=\['dense'\]: it must be text"),
    ({"ended": "yes"}, "ended='yes': it must be true or false"),
    ({"waiting": 1}, "waiting=1: it must be true or false"),
    ({"waiting": True}, "a subleq machine reads and writes nothing"),
    ({"input_ended": 0}, "input_ended=0: it must be true or false"),
    ({"plan": []}, r"plan=\[\]: it must be an object"),
    ({"plan": {"engine": []}}, "cannot continue"),
    ({"plan": {"check": []}}, "cannot continue: check="),
    ({"machine": {"machine": "abacus"}}, "unknown machine 'abacus': there are subleq"),
    ({"machine": []}, "describes a run that cannot continue"),
    ({"weights": "00"}, "was made with other weights than"),
    ({"program": "{}"}, "cannot continue: line 1, column 1: unexpected character"),
    ({"program": 7}, "cannot continue"),
    ({"plan": {"max_steps": -4}}, "cannot continue: max_steps=-4"),
    ({"plan": {"max_steps": 4, "every": 0}}, "cannot continue: every=0"),
    ({"plan": {"colour": 4}}, "cannot continue"),
    ({"found": 7}, "cannot continue: found=7"),
])
def test_descriptions_that_do_not_fit(saved: Path, change: dict[str, Any], message: str) -> None:
    forge(saved, KEY, change)
    with pytest.raises(StorageError, match=message):
        punchcard.resume(saved)


def test_a_program_that_does_not_fit(saved: Path) -> None:
    forge(saved, KEY, {"program": punchcard.disassemble(load_subleq("primes.subleq"))})
    with pytest.raises(StorageError, match="cannot continue: the program has 17 instructions, the machine has room for 5"):
        punchcard.resume(saved)


def test_cards_that_do_not_fit(saved: Path) -> None:
    whole, card = saved.read_bytes(), load_file(saved)["card"]
    for tensors, message in (
        (dict.fromkeys(("card", "read", "written"), ...), "its tensors are none, not the card"),
        ({"more": card.clone()}, "its tensors are card, more, read, written"),
        ({"card": card[:-1].clone()}, "the card is"),
        ({"card": card.to(torch.float32)}, "of float32, the machine's is"),
    ):
        saved.write_bytes(whole)
        forge(saved, KEY, {}, tensors)
        with pytest.raises(StorageError, match=message):
            load(saved)


def test_a_file_that_is_cut_is_refused(saved: Path) -> None:
    """Anywhere; that no turned bit is accepted is tested with the forged files."""
    whole = saved.read_bytes()
    for length in range(0, len(whole), 97):
        saved.write_bytes(whole[:length])
        with pytest.raises(StorageError):
            load(saved)


@pytest.mark.parametrize(("name", "message"), [
    ("none", "no such file"), (".", "is a folder, not a checkpoint"), ("x" * 300, r"cannot read .*: File name too long"),
    ("/dev/zero", r"zero' is a pipe or a device, not a checkpoint"), ("junk", "is not a safetensors file"),
    ("machine", "is not a checkpoint"),
])
def test_files_that_are_no_checkpoints(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "junk").write_text("junk")
    punchcard.SubleqMachine(word_bits=4, memory=1, instructions=1).save(tmp_path / "machine")
    with pytest.raises(StorageError, match=message):
        punchcard.resume(tmp_path / name)


# Turned bits


MACHINES: dict[str, Callable[[], Machine[Any, Any]]] = {
    "subleq": lambda: SubleqMachine(word_bits=2, memory=1, instructions=1, design="one-layer"),
    "fleq": lambda: FleqMachine(functions=["add"], size=1, memory=1, instructions=1),
    "von-neumann": lambda: VonNeumannMachine(word_bits=3, memory=3),
}


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("what", ["checkpoint", "machine"])
@pytest.mark.parametrize("count", [23, soaked(2_000)])
def test_no_turned_bit_is_accepted(tmp_path: Path, kind: str, what: str, count: int) -> None:
    path = tmp_path / "file"
    if what == "machine":
        MACHINES[kind]().save(path)
        assert accepted_flips(path, punchcard.Machine.load, count) == []
    else:
        assert accepted_flips(begun(kind, path), load, count) == []


def test_the_sign_of_a_zero_is_a_bit_too(tmp_path: Path) -> None:
    """Two zeros are equal, and not the same: a machine's tensors are compared bit by bit."""
    path = tmp_path / "machine"
    MACHINES["subleq"]().save(path)
    weights = storage.read(path, storage.KEY, "machine")[1]["layers.0.w1"]
    forge(path, storage.KEY, {}, {"layers.0.w1": np.where(weights == 0, -0.0, weights)})
    with pytest.raises(StorageError, match="is not what the machine's formulas give"):
        punchcard.Machine.load(path)
