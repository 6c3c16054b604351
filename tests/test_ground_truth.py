"""Models with their truth beside them: disguises that change nothing, counterfactual pairs, and the exported folder."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import punchcard
from punchcard.errors import ArgumentError, CircuitError, DisguiseError, ProgramError, PunchcardError
from punchcard.export.circuit import count_covered, load_circuit
from punchcard.export.counterfactual import PairMaker
from punchcard.export.disguise import Disguise, Disguised, disguised, rotation
from punchcard.export.evaluator import Evaluator
from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke
from tests.opened import built as built_once

PROGRAM = EXAMPLES / "multiply.subleq"


def built(design: str = "two-layer", file: str = "multiply.subleq") -> tuple[Any, Any]:
    return built_once(file, design=design)


# Rotations


@pytest.mark.parametrize("width", [3, 4, 65, 113])
def test_rotations_are_orthogonal(width: int) -> None:
    generator = np.random.default_rng(0)
    for kind in ("none", "permuted", "exact"):
        found = rotation(kind, width, generator)
        assert np.array_equal(found @ found.T, np.eye(width)), "without any rounding"
        assert np.array_equal(8 * found, np.round(8 * found))
    found = rotation("random", width, generator)
    assert np.allclose(found @ found.T, np.eye(width), rtol=0, atol=1e-13)
    assert np.abs(found).min() > 0


def test_an_exact_rotation_mixes_rows() -> None:
    found = rotation("exact", 65, np.random.default_rng(0))
    assert np.count_nonzero(found, axis=1).min() >= 4
    assert np.median(np.count_nonzero(found, axis=1)) > 10


# Disguises


@pytest.mark.parametrize("design", ["paper", "two-layer", "one-layer"])
@pytest.mark.parametrize("disguise", [Disguise("permuted"), Disguise("exact"), Disguise("none", 9, 2),
                                      Disguise("exact", 9, 2, seed=3)], ids=repr)
def test_what_is_hidden_exactly_is_the_same_to_the_last_bit(design: str, disguise: Disguise) -> None:
    """After every loop the card is the machine's own, number by number; the oracle is the undisguised model."""
    program, machine = built(design)
    hidden = Disguised(machine, disguise)
    card, own = hidden.enter(machine.punch(program)), machine.punch(program)
    for _ in range(8):
        card, own = hidden.model(card), machine.model(own)
        assert torch.equal(hidden.leave(card), own)
    if disguise.rotation == "exact":
        assert not torch.equal(card[: machine.layout.width], own)
    if disguise.idle_rows:
        idle = card.T @ torch.from_numpy(hidden.rotation)
        assert idle[:, machine.layout.width :].any(), "idle rows hold something"
        assert idle[:, machine.layout.width :].abs().max() < 10, "and stay within bounds"


def test_a_whole_run_is_compared_with_the_interpreter() -> None:
    program, machine = built()
    for disguise, most in ((Disguise("exact", 8, 1), 0.0), (Disguise("random", 8, 1), 1e-8)):
        behaviour = Disguised(machine, disguise).check([program], 100)
        assert behaviour.loops == len(behaviour.drifts) == 28
        assert behaviour.drift <= most
    assert behaviour.drift > 0, "a random rotation rounds"


def test_real_numbers_can_be_permuted() -> None:
    program, machine = built("compact", "newton.fleq")
    assert Disguised(machine, Disguise("permuted", 4, 1)).check([program], 6).drift == 0
    with pytest.raises(DisguiseError, match=r"rotation='random': after loop 1 .* the interpreter has"):
        disguised(machine, program, Disguise("random"), loops=4)


def test_noise_that_breaks_the_behaviour_is_refused() -> None:
    program, machine = built()
    small = disguised(machine, program, Disguise(noise=1e-14), loops=40)
    assert not np.array_equal(small.weights.layers[0].w1, machine.weights.layers[0].w1)
    with pytest.raises(DisguiseError, match=r"noise=0.01: after loop \d+ .*: use less noise, such as 0.001, or fewer loops"):
        disguised(machine, program, Disguise(noise=0.01))


@pytest.mark.parametrize(("given", "match"), [
    ({"idle_heads": 2}, "idle_heads=2 have no rows to write to"), ({"idle_rows": -1}, "idle_rows=-1: it must be 0 to"),
    ({"noise": -1.0}, "noise=-1.0: it must be 0 or more"), ({"seed": -1}, "seed=-1")])
def test_disguises_that_are_none(given: dict[str, Any], match: str) -> None:
    with pytest.raises(DisguiseError, match=match):
        Disguise(**given)
    with pytest.raises(ArgumentError, match="rotation='spun'"):
        Disguise("spun")  # type: ignore[arg-type]


def test_a_card_in_another_format_does_not_leave() -> None:
    """A product in float32 would round what the model has computed in float64."""
    program, machine = built()
    hidden = Disguised(machine, Disguise("exact"))
    card = machine.punch(program)
    entered = hidden.enter(card.float())
    assert entered.dtype == torch.float64
    assert torch.equal(hidden.leave(entered), card.double())
    with pytest.raises(DisguiseError, match="the card is in float32: a disguised model has cards in float64"):
        hidden.leave(entered.float())


def test_the_key_undoes_a_disguise() -> None:
    """With the rotation and the orders the circuit explains the disguised weights again."""
    _, machine = built()
    hidden = Disguised(machine, Disguise("exact", 6, 2, seed=5))
    turn, width = hidden.rotation, machine.layout.width
    for layer, own, order in zip(hidden.weights.layers, machine.weights.layers, hidden.orders, strict=True):
        heads, units = np.argsort(order.heads), np.argsort(order.units)
        assert np.array_equal((layer.key @ turn)[heads][: own.heads, :, :width], own.key)
        assert np.array_equal((turn.T @ layer.value @ turn)[heads][: own.heads, :width, :width], own.value)
        assert np.array_equal((layer.w1 @ turn)[units][: own.hidden, :width], own.w1)
        assert np.array_equal((turn.T @ layer.w2)[:width, units][:, : own.hidden], own.w2)


# Counterfactual pairs


def observer(design: str = "two-layer", loops: int = 32) -> PairMaker:
    program, machine = built(design)
    return PairMaker(machine, program, Evaluator(machine.circuit()), loops)


def test_pairs_say_what_must_and_must_not_change() -> None:
    """Against the program itself, by hand: product = a * b, and zero is only compared with itself."""
    by_cell = {pair.cell: pair for pair in observer().pairs(6, 0)}
    assert by_cell.keys() == {"a", "b", "product", "minus_a", "one", "zero"}
    pair = by_cell["a"]
    end = pair.after[-1]
    assert end.must_change["product"] == [63, pair.values[1] * 9]
    assert end.must_change["minus_a"] == [-7, -pair.values[1]]
    assert set(end.must_not_change) == {"b", "one", "zero", "program counter"}
    assert [each.must_change.keys() for each in pair.after[:2]] == [{"a"}, {"a", "minus_a"}]
    assert set(pair.unreached) == {"command.a", "command.b", "command.c", "position", "inside"}
    assert pair.patching_loop == 2, "the first loop reads the reset vector"
    changes = {each.node: each.changes for each in pair.patching}
    assert changes["layer 1, head 1"] == ["memory in minus_a"], "it reads mem[a]"
    assert changes["layer 1, head 2"] == [], "it reads mem[b], which is the same in both runs"
    assert not by_cell["zero"].matters


def test_chosen_cells() -> None:
    [pair] = observer(loops=3).pairs(1, 0, {"b": 4})
    assert (pair.cell, pair.values, pair.loops) == ("b", (9, 4), 3)
    with pytest.raises(ProgramError, match="bb"):
        observer().pairs(1, 0, {"bb": 4})


def test_a_wrong_circuit_makes_no_pairs() -> None:
    """A circuit with one weight changed gives other cards than the model, and is refused."""
    watching = observer()
    weights = watching.evaluator.layers[0].value
    weights[0][np.nonzero(weights[0])] *= -1
    with pytest.raises(CircuitError, match="the circuit gives another card than the model"):
        watching.pairs(1, 0)


def test_real_numbers_have_pairs() -> None:
    program, machine = built("compact", "newton.fleq")
    pairs = PairMaker(machine, program, Evaluator(machine.circuit()), 2).pairs(1, 0)
    assert pairs[0].after[-1].must_change.keys() >= {"A"}


# The folder


@pytest.mark.parametrize("flags", [(), ("--rotation", "exact", "--idle-rows", "4", "--idle-heads", "1", "--seed", "2")],
                         ids=["plain", "disguised"])
def test_the_folder_runs_without_punchcard(flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its own page says: the code there is run, and gives the ends that the folder states."""
    ran = invoke("export", PROGRAM, "--design", "two-layer", "--to", "ground-truth", "-o", tmp_path, "--pairs", 2,
                 "--loops", 12, *flags)
    assert ran.exit_code == 0, ran.output
    page = (tmp_path / "README.md").read_text()
    names = set(re.findall(r"`([a-z]+\.(?:json|safetensors))` \|", page))
    assert names == {path.name for path in tmp_path.iterdir()} - {"README.md"}
    assert ("key.safetensors" in names) == bool(flags)
    code = page.partition("```python\n")[2].partition("```")[0]
    assert "punchcard" not in code
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "README.md", "exec"), found)
    program, machine = built()
    for pair, end, stated in zip(found["pairs"], found["ends"], found["cards"]["counterfactual_end"], strict=True):
        assert torch.equal(end, stated)
        state = machine.read(end)
        expected = punchcard.run(program.with_values({pair["cell"]: pair["values"][1]}), machine, check=False,
                                 max_steps=pair["loops"] - machine.design.warm_up).result.state
        assert machine.own(program, state).memory == expected.memory
    if flags:
        key = load_file(tmp_path / "key.safetensors")["rotation"]
        assert np.array_equal(key[:, : machine.layout.width], load_file(tmp_path / "model.safetensors")["readin"])
    else:
        covered = count_covered(load_circuit(tmp_path / "circuit.json"), machine.weights)
        assert covered == machine.weights.parameter_count()[1]


@pytest.mark.parametrize(("flags", "match"), [
    (("--machine", "subleq"), "an export to ground-truth has cards of a program"),
    ((str(PROGRAM), "--idle-heads", "3"), "idle_heads=3 have no rows"),
    ((str(PROGRAM), "--noise", "0.5"), "use less noise"),
    ((str(PROGRAM), "--noise", "nan"), "noise=nan: it must be a number"),
])
def test_refusals(flags: tuple[str, ...], match: str, tmp_path: Path) -> None:
    assert_refused(match, "export", *flags, "--to", "ground-truth", "-o", tmp_path, "--pairs", 1, "--loops", 4)


def test_an_option_of_another_target(tmp_path: Path) -> None:
    _, machine = built()
    with pytest.raises(PunchcardError, match=r"noise=1\.0 is not an option of an export to safetensors"):
        punchcard.export.write("safetensors", machine, tmp_path, noise=1.0)


def test_a_program_without_names(tmp_path: Path) -> None:
    program, machine = built_once("turing/increment.tm")
    assert count_covered(machine.circuit(), machine.weights) == machine.weights.parameter_count()[1]
    assert Disguised(machine, Disguise("exact", 3, 1)).check([program], 20).drift == 0
    with pytest.raises(ProgramError, match="a TuringProgram has no values by name that could be changed"):
        punchcard.export.write("ground-truth", machine, tmp_path, program)
    with pytest.raises(ProgramError, match="as_layer: a TuringProgram has no values by name that could be changed"):
        machine.as_layer(program, inputs=["tape"], outputs=["tape"])


# Slow machines


@pytest.mark.soak
@pytest.mark.parametrize(("file", "options"), [
    ("von_neumann/factorial.asq", {"memory": 512}), ("riscv/fibonacci.s", {"memory": 256}),
    ("riscv/fibonacci.s", {"memory": 256, "design": "two-layer"}), ("newton.fleq", {}), ("newton.fleq", {"design": "paper"}),
    ("multiply.subleq", {"design": "paper"}), ("multiply.subleq", {"design": "one-layer"})])
def test_every_machine_has_a_folder(file: str, options: dict[str, Any], tmp_path: Path) -> None:
    program, machine = built_once(file, **options)
    rotated = "exact" if machine.needed_bits else "permuted"
    punchcard.export.write("ground-truth", machine, tmp_path, program, rotation=rotated, idle_rows=4, idle_heads=1,
                           pairs=2, loops=8)
    told = json.loads((tmp_path / "pairs.json").read_text())
    assert told["drift"] < 1e-30
    assert len(told["pairs"]) == 2
