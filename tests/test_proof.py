"""Proofs: every claim holds for the machines as they are built, and fails, or is shown all the same, for other weights."""

from __future__ import annotations

import os
import random
import signal
import threading
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from punchcard.card.facts import Copies, Fact, Holds
from punchcard.card.layout import Layout, Region, RowBlock, holding
from punchcard.cli.display import Progress
from punchcard.errors import ProofError
from punchcard.machines.base import Machine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.precision import Precision
from tests.cases import soaked
from tests.command_line import assert_refused
from tests.perturbed import mutations
from tests.random_programs import random_image, random_program

pytest.importorskip("z3")

import z3

from punchcard.proof.cards import make_card
from punchcard.proof.concrete import step
from punchcard.proof.forms import Form
from punchcard.proof.proof import Proof
from punchcard.proof.prover import prove
from punchcard.proof.solver import Solver
from punchcard.proof.steps import equal

SMALL: dict[str, Any] = {"word_bits": 3, "memory": 3, "instructions": 4}
DESIGNS = tuple(SubleqMachine.designs)


@cache
def small(name: str) -> Machine[Any, Any]:
    """A machine of every kind and design of bits, as small as it may be without being special."""
    return VonNeumannMachine(word_bits=4, memory=11) if name == "von-neumann" else SubleqMachine(**SMALL, design=name)


@cache
def proof_of(name: str) -> Any:
    return small(name).prove()


@pytest.mark.parametrize("name", [*DESIGNS, "von-neumann"])
def test_a_machine_is_proven(name: str) -> None:
    found = proof_of(name)
    assert found.proven, found
    names = [claim.name for claim in found.claims]
    assert any(each.startswith("heads of layer 1") for each in names)
    assert any(each.startswith("step: memory in memory") for each in names)
    assert sum(each.startswith("again: ") for each in names) == len(small(name).layout.facts)
    assert names[-2:] == ["overflow", "bits"]


@pytest.mark.parametrize("seeds", [1, soaked(8)])
@pytest.mark.parametrize("name", DESIGNS)
def test_facts_hold_on_cards_of_programs(name: str, seeds: int) -> None:
    """What a proof takes for granted is true of every card of a run, and of a card made of the facts alone."""
    machine = SubleqMachine(word_bits=6, memory=5, instructions=9, design=name)
    for seed in range(seeds):
        follow(machine, random_program(random.Random(seed), 6, 5, 9), 12)
    assert machine.layout.violations(make_card(machine.layout, {})) == []


def test_the_meaning_of_an_image_is_what_the_model_does() -> None:
    for seed in range(6):
        follow(small("von-neumann"), random_image(random.Random(seed), 4, 11), 6)


def follow(machine: Machine[Any, Any], program: Any, loops: int) -> None:
    """The facts hold when a loop begins, and it does what the machine means."""
    card = machine.punch(program)
    for _ in range(loops):
        if isinstance(machine, VonNeumannMachine) and machine.layout.number_at(card, "event", 0) & 0b111:
            break  # a host would take over
        assert machine.layout.violations(card) == []
        after = machine.model(card)
        assert np.array_equal(step(machine, card), after.numpy())
        card = after


@pytest.mark.parametrize(("name", "count"), [("two-layer", 3), ("paper", 1), ("one-layer", 1)])
def test_one_changed_weight(name: str, count: int) -> None:
    """A claim fails, on a card that has all facts; or everything is shown, and then the model does the same on cards."""
    machine, seen = small(name), set()
    for about, weights in mutations(machine.weights, count, seed=7):
        found = prove(machine, weights=weights, seconds=60)
        seen.add(_judge(machine, weights, found, about))
    assert "refuted" in seen


def _judge(machine: Machine[Any, Any], weights: Any, found: Any, about: str) -> str:
    """How a proof for other weights ended; that it ended rightly is checked by running cards."""
    if not found.proven:
        example = found.counterexample
        if example is None:
            assert found.failed.startswith("bits: "), about
            return "rounded"
        assert machine.layout.violations(example.card) == [], about
        after = weights.module(torch.from_numpy(example.card).to(weights.module.dtype)).double().numpy()
        differs = bool(np.abs(after - step(machine, example.card)).max() > 1e-9)
        assert differs == bool(example.differences), about
        return "refuted" if differs else "margin"
    for seed in range(6):
        program = random_program(random.Random(seed), SMALL["word_bits"], SMALL["memory"], SMALL["instructions"])
        card = machine.punch(program)
        for _ in range(20):
            after = machine.model(card)
            assert torch.equal(weights.module(card), after), about
            card = after
    return "equivalent"


@pytest.mark.soak
@pytest.mark.parametrize("name", [*DESIGNS, "von-neumann"])
def test_sixty_changed_weights(name: str) -> None:
    machine, counts = small(name), dict[str, int]()
    for about, weights in mutations(machine.weights, 60, seed=1):
        found = prove(machine, weights=weights, seconds=600)
        if name == "von-neumann":
            ending = "equivalent" if found.proven else "refuted"
            assert found.proven or found.counterexample is None or not machine.layout.violations(found.counterexample.card)
        else:
            ending = _judge(machine, weights, found, about)
        counts[ending] = counts.get(ending, 0) + 1
    print(name, counts)  # noqa: T201
    assert sum(counts.values()) == 60
    assert counts["refuted"] >= 30


@pytest.mark.soak
@pytest.mark.parametrize("options", [
    *({"design": design, "word_bits": bits, "memory": half - 3, "instructions": half} for design, bits, half in (
        ("two-layer", 16, 512), ("paper", 16, 32), ("paper", 16, 512), ("one-layer", 8, 8), ("one-layer", 16, 128))),
    {"word_bits": 16, "memory": 1024}, {"word_bits": 16, "memory": 1000}, {"dialect": "sic1"},
    {"dialect": "subtracts", "word_bits": 32, "memory": 4096}])
def test_large_machines_are_proven(options: dict[str, Any]) -> None:
    assert (SubleqMachine if "design" in options else VonNeumannMachine)(**options).prove().proven


def test_a_machine_that_does_not_say_what_it_means() -> None:
    """Then it is shown that its bits stay bits, its facts hold again, and nothing changes but what may."""

    class Silent(SubleqMachine):
        def meaning(self, card: Any) -> None:
            Machine.meaning(self, card)

    found = Silent(**SMALL, design="two-layer").prove()
    assert [claim.about for claim in found.claims if claim.name == "step: memory in memory"] == [
        "is bits, and where the step says what, that"]
    assert found.proven


def test_a_number_format_that_rounds_is_refused() -> None:
    """The step is right over the integers, and float16 has too few bits: said by the last claim, without a card."""
    machine = SubleqMachine(word_bits=6, memory=3, instructions=4, design="two-layer")
    found = prove(machine, weights=type(machine.weights)(machine.weights.width, "float16", machine.weights.layers))
    assert found.failed == "bits: sums need 12 bits, float16 has 11"
    assert found.counterexample is None


def test_a_temperature_that_is_too_low_is_refuted() -> None:
    found = SubleqMachine(**SMALL, design="two-layer", precision=Precision("float64", temperature=24.0)).prove()
    assert not found.proven
    assert found.counterexample is not None
    assert "finds one column" in str(found)


def test_the_claim_that_is_being_shown_stays_within_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, for rich
    monkeypatch.setenv("COLUMNS", "20")
    with Progress() as line:
        line.show("a claim with a name of many words")
    shown = capsys.readouterr().err
    assert "a claim with a name…" in shown
    assert "of many" not in shown


def test_what_prove_refuses_before_it_begins(tmp_path: Path) -> None:
    """A certificate that cannot be kept, or is written over what is read; options of a machine that is not built by them."""
    program, path = tmp_path / "add.subleq", tmp_path / "proof.json"
    program.write_text(Path("examples/multiply.subleq").read_text())
    path.write_text("{}")
    for options, why in (
        ([str(program), "-o", str(program)], "would be written over"),
        (["--verify", str(path), "-o", str(path)], "would be written over"),
        (["-o", str(tmp_path)], "Is a directory"),
        (["--verify", str(path), "--bits", "9"], "do not give FILE, --machine or options of a machine"),
        (["--weights", str(path), str(program)], "do not give FILE, --machine or options of a machine"),
        (["--weights", str(path), "-o", str(path)], "would be written over"),
    ):
        assert_refused(why, "prove", *options)


def test_facts_are_checked_on_cards() -> None:
    layout = Layout(
        [RowBlock("name", 3, holds=holding("bits", "cells", "head")), RowBlock("copy", 3, holds=holding("bits", "head"))],
        [Region("head", 1), Region("cells", 4)],
        [Holds("name", "cells", range(1, 5)),
         Fact("head", lambda column: column.names(column["name"], "cells") | column["name"].equals(7), "it points"),
         Copies("copy", "head", "name", "name"),
         Fact("cells", lambda column: column["name"].equals(column.number), "each knows itself")])
    card = make_card(layout, {("head", 0): {"name": 3}})
    assert layout.violations(card) == []
    assert layout.number_at(card, "copy", 0) == 3
    layout.put_number_at(card, "name", 0, 6)
    assert layout.violations(card) == ["head: violated: it points",
                                       "head: violated: copy in head is name of the column that name names"]
    layout.put_number_at(card, "name", 3, 1)
    assert "cells[2]: violated: name in cells holds its numbers" in layout.violations(card)


def test_a_copy_of_nothing() -> None:
    """Found with random machines: a pointer to a column without such rows was a fault to the prover, not to a card."""
    layout = Layout(
        [RowBlock("word", 1, holds=holding("bits", "cells")), RowBlock("copy", 1, holds=holding("bits", "head")),
         RowBlock("pointer", 2, holds=holding("bits", "head"))],
        [Region("head", 1), Region("cells", 3)], [Copies("copy", "head", "word", "pointer")])
    card = make_card(layout, {})
    assert layout.violations(card) == []
    layout.put_number_at(card, "pointer", 0, 0)
    assert layout.violations(card) == ["head: violated: copy in head is word of the column that pointer names"]


def test_without_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ProofError, match="needs the solver z3"):
        small("two-layer").prove()


def test_an_interrupt_ends_the_work_and_not_a_question() -> None:
    """z3 takes the signal for itself, and says that it does not know."""
    x, y = z3.BitVecs("x y", 48)
    stop = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    stop.start()
    with pytest.raises(KeyboardInterrupt):
        Solver().possible(z3.UGT(x, 1), z3.UGT(y, 1), z3.ZeroExt(48, x) * z3.ZeroExt(48, y) == (1 << 89) - 1)
    stop.join()


def test_a_sum_whose_relu_has_a_finer_unit_than_the_sum() -> None:
    """4 relu(some quarters - 1000 b) is an integer, though the form itself needs a longer word than the sum."""
    loop = Proof(small("two-layer")).obligation.loop
    names = [z3.FreshBool("bit") for _ in range(8)]
    bits = [loop.bits.form(name) for name in names]
    form = sum((bit * Fraction(1, 4) for bit in bits[1:]), start=bits[0] * Fraction(-1000))
    found = loop.relus._word(Form(Fraction(0)), [(Fraction(4), form)])
    for closed in (0, 1):
        for count in range(8):
            setting = [names[0] == bool(closed), *(name == (i < count) for i, name in enumerate(names[1:]))]
            value = Form(Fraction(0 if closed else count))
            assert loop.solver.possible(*setting)
            assert not loop.solver.possible(*setting, z3.Not(equal(found - value, loop.bits)))


@pytest.mark.parametrize(("design", "temperature", "precision"), [
    ("two-layer", -1.0, "float64"), soaked("paper", 0.0, "float32"), soaked("one-layer", -3.0, "float64")])
def test_keys_that_lead_by_any_number_under_a_temperature_that_is_not_positive(
        design: str, temperature: float, precision: str) -> None:
    """Then no lead is enough: with a temperature of -1 the best column gets nothing."""
    machine = SubleqMachine(word_bits=4, memory=4, instructions=4, design=design, precision=precision)
    card = machine.punch(random_program(random.Random(1), 4, 4, 4))
    right = machine.model(card)
    for name, parameter in machine.model.named_parameters():
        if name.endswith("key"):
            parameter.data *= 2.0**80
        if name.endswith("temperature"):
            parameter.data[:] = temperature
    assert not torch.equal(machine.model(card), right)
    found = machine.prove()
    assert found.failed is not None
    assert found.failed.endswith("finds one column, or shares two, and no other comes near")


def test_biases_of_another_shape_are_refused() -> None:
    """Torch would add them column by column."""
    machine = SubleqMachine(word_bits=4, memory=4, instructions=4, design="two-layer")
    layer: Any = machine.model.layers[1]
    layer.b1 = torch.nn.Parameter(layer.b1.data.T.clone(), requires_grad=False)
    with pytest.raises(ProofError, match=r"layers\.1\.b1 has the shape \(1, \d+\), not \(\d+, 1\)"):
        machine.prove()
