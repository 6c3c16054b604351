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
from punchcard.export.disguise import Disguise, Disguised, disguised, rotation
from punchcard.export.evaluator import Evaluator
from punchcard.ground_truth.counterfactual import RunMaker
from punchcard.ground_truth.score import opened, score
from punchcard.machines.variation import ChangedProgram
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
    ({"idle_heads": 2}, "idle_heads=2 have no rows to write to"), ({"idle_rows": -1}, "idle_rows=-1: it must be an integer"),
    ({"noise": -1.0}, "noise=-1.0: it must be a number, at least 0"), ({"seed": -1}, "seed=-1"),
    ({"noise": float("inf")}, "noise=inf"), ({"copies": 1.5}, "copies=1.5: it must be a number, at least 0, at most 1")])
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


# Counterfactual runs


def run_maker(design: str = "two-layer", loops: int = 32) -> RunMaker:
    program, machine = built(design)
    return RunMaker(machine, program, Evaluator(machine.circuit()), loops)


def with_value(maker: RunMaker, name: str, value: int) -> ChangedProgram:
    return ChangedProgram(maker.program.with_values({name: value}), "data", f"{name}={value}")  # type: ignore[attr-defined]


def test_runs_say_what_must_and_must_not_change() -> None:
    """Against the program itself, by hand: product = a * b."""
    maker = run_maker()
    run = maker.run(with_value(maker, "a", 5))
    end = run.after[-1]
    assert end.must_change["product"] == [63, 45]
    assert end.must_change["minus_a"] == [-7, -5]
    assert set(end.must_not_change) == {"b", "one", "zero", "program counter"}
    assert [each.must_change.keys() for each in run.after[:2]] == [{"a"}, {"a", "minus_a"}]
    assert set(run.unreached) == {"command.a", "command.b", "command.c", "position", "inside"}


def test_runs_change_data_pointers_and_instructions() -> None:
    found = run_maker(loops=8).runs(9, 0)
    assert [run.kind for run in found] == 3 * ["data", "pointer", "instruction"]
    assert len({run.cards[1].tobytes() for run in found}) == 9
    for run in found:
        assert run.after[-1].must_change, "and each matters"
        assert ("memory" in run.changed) == (run.kind == "data")


def test_a_wrong_circuit_makes_no_runs() -> None:
    """A circuit with one weight changed gives other cards than the model, and is refused."""
    maker = run_maker()
    weights = maker.evaluator.layers[0].value
    weights[0][np.nonzero(weights[0])] *= -1
    with pytest.raises(CircuitError, match="the circuit gives another card than the model"):
        maker.runs(1, 0)


def test_real_numbers_have_runs() -> None:
    program, machine = built("compact", "newton.fleq")
    [run] = RunMaker(machine, program, Evaluator(machine.circuit()), 2).runs(1, 0)
    assert run.kind == "data"
    assert run.after[-1].must_change


# The folder


@pytest.mark.parametrize("flags", [(), ("--rotation", "exact", "--idle-rows", "4", "--idle-heads", "1", "--seed", "2")],
                         ids=["plain", "disguised"])
def test_the_folder_runs_without_punchcard(flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its own page says: the code there is run, and gives the ends that the folder states."""
    ran = invoke("export", PROGRAM, "--design", "two-layer", "--to", "ground-truth", "-o", tmp_path, "--pairs", 8,
                 "--runs", 3, "--loops", 12, *flags, status=0)
    assert ran.stderr == ""
    page = (tmp_path / "README.md").read_text()
    names = set(re.findall(r"`([a-z]+\.(?:json|safetensors|py))` \|", page))
    assert names == {path.name for path in tmp_path.iterdir()} - {"README.md"}
    assert ("key.safetensors" in names) == bool(flags)
    code = page.partition("```python\n")[2].partition("```")[0]
    assert "punchcard" not in code
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "README.md", "exec"), found)
    _, machine = built()
    for run, end, stated in zip(found["runs"], found["ends"], found["cards"]["counterfactual_end"], strict=True):
        assert torch.equal(end, stated)
        values = machine.values(built()[0], machine.own(built()[0], machine.read(end)))
        assert all(values[name] == both[1] for name, both in run["after"][-1]["must_change"].items() if name in values)
    told = json.loads((tmp_path / "pairs.json").read_text())
    assert [each["kind"] for each in told["pairs"]] == 2 * ["data", "pointer", "instruction", "position"]
    if flags:
        key = load_file(tmp_path / "key.safetensors")["rotation"]
        assert np.array_equal(key[:, : machine.layout.width], load_file(tmp_path / "model.safetensors")["readin"])
    else:
        covered = count_covered(load_circuit(tmp_path / "circuit.json"), machine.weights)
        assert covered == machine.weights.parameter_count()[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a small machine, with many pairs."""
    place = tmp_path_factory.mktemp("export") / "multiply"
    program, machine = built_once("multiply.subleq", design="two-layer", word_bits=6)
    small = program.with_values({"a": 6, "b": 4})
    punchcard.export.write("ground-truth", machine, place, small, pairs=120, runs=3, loops=20)
    return place


def test_labels_are_over_many_values(folder: Path) -> None:
    """Each part of the machine that the task needs is found by some pair: of even values as well as of odd ones."""
    truth = json.loads((folder / "truth.json").read_text())
    assert json.loads((folder / "model.json").read_text())["tasks"].count("data") == 30
    circuit = load_circuit(folder / "circuit.json")
    used = {circuit.node(name).formula: truth["nodes"]["data"][node]
            for node, names in truth["names"].items() if node.startswith("L0.H") for name in names}
    assert used == {
        "query position + pointer.a, key position, value -memory, into difference": True,
        "query position + pointer.b, key position, value memory, into difference": True}
    subtraction = [node for node, names in truth["names"].items() if node.startswith("L0.G")
                   and any("difference" in circuit.node(name).about["sets"][0] for name in names)]
    assert subtraction
    assert all(truth["nodes"]["data"][node] for node in subtraction), "the subtraction carries data"
    addressing = [edge for edge, label in truth["edges"]["pointer"].items() if label and edge.endswith((".q", ".k"))]
    assert "I->L0.H0.q" in addressing, "pointers show who addresses"
    assert not any(label for edge, label in truth["edges"]["data"].items() if edge.endswith("L0.H0.q")), "and data do not"


def test_the_right_answer_about_a_folder_scores_1(folder: Path) -> None:
    truth = json.loads((folder / "truth.json").read_text())
    answer = {part: {task: {name: float(label) for name, label in labels.items()} for task, labels in truth[part].items()}
              for part in ("nodes", "edges")}
    for row in score(folder, answer):
        assert (row["model"], row["precision"], row["recall"]) == ("multiply", 1.0, 1.0)
    network, clean, corrupt, about = opened(folder)
    assert len({(one.tobytes(), two.tobytes()) for one, two in zip(clean, corrupt, strict=True)}) == 120
    assert network.layers == about["layers"] == 2


def test_fewer_pairs_than_asked_for_are_told(tmp_path: Path) -> None:
    (tmp_path / "short.subleq").write_text(".data\na 1\n.code\nsubleq a, a\nhalt\n")
    ran = invoke("export", tmp_path / "short.subleq", "--design", "two-layer", "--bits", "2", "--to", "ground-truth", "-o",
                 tmp_path / "out", "--pairs", "60", "--runs", "30", status=0)
    count = len(json.loads((tmp_path / "out" / "pairs.json").read_text())["pairs"])
    assert 0 < count < 60
    assert f"punchcard: {count} of 60 pairs: no more were found" in ran.stderr
    assert "of 30 runs" in ran.stderr
    program = punchcard.load(tmp_path / "short.subleq")
    machine = punchcard.build(program, design="two-layer", word_bits=2)
    with pytest.warns(UserWarning, match="of 30 runs: no more changes of this program were found"):
        punchcard.export.write("ground-truth", machine, tmp_path / "again", program, pairs=1, runs=30, loops=4)


@pytest.mark.parametrize(("flags", "match"), [
    (("--machine", "subleq"), "an export to ground-truth has cards of a program"),
    ((str(PROGRAM), "--idle-heads", "3"), "idle_heads=3 have no rows"),
    ((str(PROGRAM), "--noise", "0.5"), "use less noise"),
    ((str(PROGRAM), "--noise", "nan"), "noise=nan: it must be a number"),
])
def test_refusals(flags: tuple[str, ...], match: str, tmp_path: Path) -> None:
    assert_refused(match, "export", *flags, "--to", "ground-truth", "-o", tmp_path, "--pairs", 1, "--runs", 1, "--loops", 4)


def test_an_option_of_another_target(tmp_path: Path) -> None:
    _, machine = built()
    with pytest.raises(PunchcardError, match=r"noise=1\.0 is not an option of an export to safetensors"):
        punchcard.export.write("safetensors", machine, tmp_path, noise=1.0)


def test_a_program_without_names(tmp_path: Path) -> None:
    """A Turing machine of the examples: its kind says how its programs are changed."""
    program, machine = built_once("turing/increment.tm")
    assert count_covered(machine.circuit(), machine.weights) == machine.weights.parameter_count()[1]
    assert Disguised(machine, Disguise("exact", 3, 1)).check([program], 20).drift == 0
    punchcard.export.write("ground-truth", machine, tmp_path, program, pairs=4, runs=3, loops=6)
    told = json.loads((tmp_path / "pairs.json").read_text())
    assert [each["kind"] for each in told["pairs"]] == ["data", "pointer", "instruction", "position"]
    assert [each["kind"] for each in told["runs"]] == ["data", "pointer", "instruction"]
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
                           pairs=4, runs=3, loops=8)
    told = json.loads((tmp_path / "pairs.json").read_text())
    assert told["drift"] < 1e-30
    assert [each["kind"] for each in told["pairs"]] == ["data", "pointer", "instruction", "position"]
    assert [each["kind"] for each in told["runs"]] == ["data", "pointer", "instruction"]
