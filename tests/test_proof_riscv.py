"""Proofs of the RISC-V machine, instruction by instruction, in both designs; and that other weights are refuted."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from punchcard.card.facts import Fact
from punchcard.errors import ProofError
from punchcard.machines.meaning import Stage
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.numbers import ELSE
from punchcard.transformer.weights import NAMES, Weights
from punchcard.words.word import constant
from tests.cases import soaked
from tests.command_line import invoke
from tests.perturbed import mutations
from tests.riscv_cases import cards_of_cases, endless

pytest.importorskip("z3")

from punchcard.proof.concrete import step
from punchcard.proof.proof import Proof
from punchcard.proof.solver import Failed
from tests.refutation import is_refuted

MEMORY = 64
DESIGNS = ("three-layer", "two-layer")


@cache
def machine(design: str = "three-layer", memory: int = MEMORY, base: int = 0, multiply: bool = False) -> RiscvMachine:
    return RiscvMachine(design=design, memory=memory, base=base, multiply=multiply)


@pytest.mark.parametrize(("design", "parts", "lemmas"), [
    ("three-layer", ["execute: lui", "execute: sub"], []), ("two-layer", ["choose: srai", "complete: srai"], []),
    soaked("three-layer", ["execute: remu"], ["long division", "products by bits"]),
    soaked("three-layer", ["execute: mulhsu"], ["products by bits", "products by halves", "signs of products"])])
def test_instructions_are_proven(design: str, parts: list[str], lemmas: list[str]) -> None:
    """A lemma is a claim of the certificate wherever it is used, also by a word that is rendered late."""
    proof = Proof(machine(design, multiply=bool(lemmas)))
    for part in parts:
        proof.show(*part.split(": "))
    names = [claim.name for claim in proof.claims.proven]
    assert f"{parts[-1]}: step: value in scratchpad" in names
    assert sorted(name.removeprefix("lemma: ") for name in names if name.startswith("lemma: ")) == lemmas
    if lemmas:
        assert f"{parts[-1]}: entries after layer 26" in names


def turned(subject: RiscvMachine, number: int, row: int, unit: int) -> Weights:
    """The weights with another sign of one in W2 of a layer."""
    layers = list(subject.weights.layers)
    w2 = layers[number].w2.copy()
    w2[row, unit] *= -1
    layers[number] = replace(layers[number], w2=w2)
    return Weights(subject.weights.width, subject.weights.dtype, layers)


@pytest.mark.soak
@pytest.mark.parametrize(("number", "rows", "read"), [
    (3, "quotient", "divisor"), (4, "rest", "divisor"), (25, "value", "quotient")])
def test_a_changed_weight_of_a_divisionis_refuted(number: int, rows: str, read: str) -> None:
    """A weight of the digits, of the rest, or of the sign."""
    subject = machine(multiply=True)
    layer, span = subject.weights.layers[number], subject.layout.rows(rows)
    used = layer.w1[:, subject.layout.rows(read)].any(axis=1)
    row, unit = np.argwhere(layer.w2[span] * used)[0]
    assert is_refuted(Proof(subject, turned(subject, number, span.start + row, unit)), "execute", "rem")


def test_the_next_instruction_is_fetched_and_decoded() -> None:
    """And parts are shown in any order: the first stage after another one has its own claims."""
    proof = Proof(machine())
    proof.show("fetch")
    again = [claim.name for claim in proof.claims.proven if claim.name.startswith("fetch: again: ")]
    assert len(again) == len(machine().layout.facts)
    proof.show("execute")
    assert "execute: cases" in [claim.name for claim in proof.claims.proven]


@pytest.mark.parametrize(("design", "multiply"), [
    ("three-layer", False), soaked("three-layer", True), ("two-layer", False)])
def test_facts_hold_on_cards_of_programs(design: str, multiply: bool) -> None:
    subject = machine(design, multiply=multiply)
    card = subject.punch(endless(random.Random(3), MEMORY, MEMORY // 2))
    for _ in range(6):
        assert subject.layout.violations(card) == []
        card = subject.model(card)
    spoilt = subject.punch(endless(random.Random(3), MEMORY, MEMORY // 2))
    subject.layout.put_numbers(spoilt, "scratchpad", {"word": [isa.encode("lui", rd=3, immediate=1 << 12)]})
    assert any("kind is the kind of the instruction" in line for line in subject.layout.violations(spoilt))


@pytest.mark.parametrize("design", DESIGNS)
def test_the_meaning_is_what_the_model_does(design: str) -> None:
    """The step in words, on cards that one can see, without the solver."""
    subject = machine(design)
    card = subject.punch(endless(random.Random(5), MEMORY, MEMORY // 2))
    for _ in range(4):
        after = subject.model(card)
        assert np.array_equal(step(subject, card, after), after.double().numpy())
        card = after


@pytest.mark.parametrize("design", DESIGNS)
def test_a_word_that_is_not_an_instruction_leaves_nothing_behind(design: str) -> None:
    """Found by a proof: a word could count as misaligned twice, and a flag of the two-layer design stayed on the card.

    The word is a store with a funct3 that no store has, to 1 + 2; as a branch, x < y, it would go to pc + 2.
    """
    subject, x, y = machine(design), 1, 2
    word = isa.STORE | 6 << 12 | x << 15 | y << 20 | 2 << 7
    assert isa.find(word) is None
    card = subject.punch(endless(random.Random(1), MEMORY, MEMORY // 2))
    kind = sum(bit << i for i, bit in enumerate(subject.sizes.decoder.kind(word)))
    known = {"word": [word], "kind": [kind], "immediate": [2]}
    pointers = {} if design == "two-layer" else {"first": [x], "second": [y]}
    subject.layout.put_numbers(card, "scratchpad", {**known, **pointers})
    subject.layout.put_numbers(card, "registers", {"memory": [0, 1, 2]}, rest=0)
    assert subject.layout.violations(card) == []
    after = subject.model(card)
    assert subject.layout.violations(after) == []
    assert subject.layout.number_at(after, "event.fault", 0) == 1


def test_one_changed_weight() -> None:
    """Weights of the address of the result: where lui needs one that was turned, the proof of lui fails."""
    rows = machine().layout.rows("goal")
    used = np.argwhere(machine().weights.layers[1].w2[rows])
    assert True in [is_refuted(Proof(machine(), turned(machine(), 1, rows.start + row, unit)), "execute", "lui")
                    for row, unit in used[:: len(used) // 3][:3]]


def test_cards_for_a_stage_in_the_middle_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight of the fetched word is turned: a loop that departs is found, and without one, a card before layer C."""
    subject = machine()
    span = subject.layout.rows("word")
    row, unit = np.argwhere(subject.weights.layers[-1].w2[span])[40]
    proof = Proof(subject, turned(subject, -1, span.start + row, unit))
    with pytest.raises(Failed, match="fetch: word in scratchpad") as failed:
        proof.show("fetch")
    found = proof.counterexample(failed.value)
    assert found is not None
    assert found.layers is None
    assert subject.layout.violations(found.card) == []
    assert "one loop gives\n  word in scratchpad should be" in str(found)
    after = proof.weights.module(torch.from_numpy(found.card).to(torch.float32)).double().numpy()
    assert np.array_equal(after, found.after)
    assert not np.array_equal(step(subject, found.card, after), after)

    monkeypatch.setattr("punchcard.proof.counterexample.FROM_THE_START", 0)
    found = proof.counterexample(failed.value)
    assert found is not None
    assert found.layers == (2, 3)
    assert proof.obligation.begin.violations(found.card) == []
    assert "on a card in the middle of a loop, before layer 3, with" in str(found)
    assert "layer 3 gives\n  word in scratchpad should be" in str(found)
    assert found.describe()["layers"] == [2, 3]
    assert found.broken


def test_rows_that_may_hold_any_bits_and_hold_none() -> None:
    """What a loop leaves in `second` is not claimed, but that it is bits."""
    subject = machine()
    layers, row = list(subject.weights.layers), subject.layout.rows("second").start
    w2 = layers[-1].w2.copy()
    w2[row] *= 2
    layers[-1] = replace(layers[-1], w2=w2)
    proof = Proof(subject, Weights(subject.weights.width, subject.weights.dtype, layers))
    with pytest.raises(Failed, match=r"fetch: .*second in scratchpad") as failed:
        proof.show("fetch")
    assert "second in scratchpad should be bits, and is [" in str(proof.counterexample(failed.value))


@pytest.mark.soak
def test_the_command_shows_a_card_in_the_middle_of_a_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Here the weights are right and the meaning is not: it says that the program counter is 0 after every loop."""
    right = RiscvMachine.stages

    def wrong(self: RiscvMachine) -> list[Stage]:
        first, last = right(self)

        def meaning(card: Any) -> None:
            last.meaning(card)
            card.expect("counter", "scratchpad", constant(0, 32))

        return [first, replace(last, meaning=meaning)]

    monkeypatch.setattr(RiscvMachine, "stages", wrong)
    monkeypatch.setattr(Proof, "run", lambda self, *_: self.show("fetch"))
    path = tmp_path / "proof.json"
    found = invoke("prove", "--machine", "riscv", "--memory", "64", "-o", path, status=1)
    assert "violated: fetch: step: counter in scratchpad is what the step says" in found.output
    assert "on a card in the middle of a loop, before layer 3, with" in found.output
    assert "layer 3 gives\n  counter in scratchpad should be 0, and is " in found.output
    kept = json.loads(path.read_text())["counter_example"]
    assert kept["layers"] == [2, 3]
    assert np.array(kept["card"]).shape == (machine().layout.width, machine().layout.columns)


def test_cases_that_are_not_all() -> None:
    class Less(RiscvMachine):
        def stages(self) -> Any:
            first, *others = super().stages()
            return [replace(first, cases=tuple(case for case in first.cases if case.name != "xori")), *others]

    with pytest.raises(Failed, match="execute: the cases are all"):
        Proof(Less(memory=MEMORY)).show("execute")


def test_stages_that_do_not_fit() -> None:
    first, last = machine().stages()

    def proven(*stages: Stage) -> None:
        class Other(RiscvMachine):
            def stages(self) -> Any:
                return [replace(stage, begin=self.layout) if i == 0 else stage for i, stage in enumerate(stages)]

        Proof(Other(memory=MEMORY))

    with pytest.raises(ProofError, match="does not begin where 'execute' ends"):
        proven(first, replace(last, layers=(1, 3)))
    with pytest.raises(ProofError, match="not the whole loop"):
        proven(first)
    within = Fact("scratchpad", lambda column: column["counter"].equals(0), "counter is 0",
                  unless=lambda column: column["event.fault"].equals(1))
    middle = type(first.end)(first.end.blocks, first.end.regions, [within])
    with pytest.raises(ProofError, match="'counter is 0' has `unless` in the middle of a loop"):
        proven(replace(first, end=middle), replace(last, begin=middle))
    with pytest.raises(ProofError, match="no stage 'execute' with a case 'mul'"):
        Proof(machine()).show("execute", "mul")


@pytest.mark.parametrize(("design", "stage", "rows"), [
    ("three-layer", "execute", "goal"), soaked("two-layer", "complete", "pending")])
def test_a_meaning_that_is_wrong_of_rows_left_open_before(design: str, stage: str, rows: str) -> None:
    """Where a result goes: rows that a stage first leaves open, and of which it then says what they hold."""
    class Wrong(RiscvMachine):
        def stages(self) -> Any:
            def spoil(right: Stage) -> Stage:
                def meaning(card: Any) -> None:
                    right.meaning(card)
                    if card.case is not None:
                        card.expect(rows, "scratchpad", constant(5, self.layout.place(rows).size))

                return replace(right, meaning=meaning) if right.name == stage else right

            return [spoil(each) for each in super().stages()]

    with pytest.raises(Failed, match=f"{stage}: lui: step: {rows} in scratchpad is what the step says"):
        Proof(Wrong(memory=MEMORY, design=design)).show(stage, "lui")


def test_a_stage_has_the_sums_of_its_own_layers() -> None:
    """With 2^16 words the layers before it would need 26 bits of what it begins with; float32, which has 24, is enough."""
    Proof(machine("three-layer", 1 << 16)).check_sums()


# Everything, for longer runs


@pytest.mark.soak
@pytest.mark.parametrize(("design", "memory", "base"), [
    ("three-layer", 64, 0), ("three-layer", 100, 0x80000100), ("three-layer", 1 << 16, 0), ("two-layer", 64, 0),
    ("two-layer", 1 << 16, 0), ("three-layer with products", 64, 0)])
def test_every_instruction_is_proven(design: str, memory: int, base: int) -> None:
    subject = machine(design.split()[0], memory, base, multiply=design.endswith("products"))
    found = subject.prove()
    assert found.proven, found
    names = {claim.name.split(": ")[1] for claim in found.claims if claim.name.count(": ") > 1}
    assert {one.name for one in subject.sizes.decoder.instructions} | {ELSE} <= names


@pytest.mark.soak
@pytest.mark.parametrize("design", DESIGNS)
def test_sixty_changed_weights(design: str) -> None:
    """Each is refuted, or everything is shown: then the model does the same on cards."""
    counts = Counter[str]()
    judge = Judge(machine(design))
    for about, weights in mutations(machine(design).weights, 60, seed=1):
        fate = judge.fate(weights)
        counts[fate] += 1
        print(f"{time.process_time():7.0f} s  {about}: {fate}", flush=True)  # noqa: T201
    print(design, dict(counts))  # noqa: T201
    assert counts["wrong"] >= 30
    assert sum(counts.values()) == 60


class Judge:
    """What becomes of other weights.

    wrong    cards depart from what the machine means, and the prover refutes the case of such a card
    found    no card that was tried departs, and the prover finds one that does
    missed   the prover refutes a claim, and its cards still give what they should: a margin or a limit
    same     everything is shown
    """

    def __init__(self, subject: RiscvMachine) -> None:
        self.subject = subject
        self.cases, cards = cards_of_cases(subject, 3, seed=1)
        self.before = [cards]
        for layer in subject.model.layers:
            self.before.append(torch.cat([layer(some) for some in torch.split(self.before[-1], 24)]))

    def fate(self, weights: Weights) -> str:
        number = next(i for i, (old, new) in enumerate(zip(self.subject.weights.layers, weights.layers, strict=True))
                      if any(not np.array_equal(getattr(old, name), getattr(new, name)) for name in NAMES))
        proof = Proof(self.subject, weights)
        stage, = (stage for stage in proof.stages if number in range(*stage.layers))
        case = self._departing(weights, number)
        if case is not None:
            names = [case] if any(each.name == case for each in stage.cases) else []
            assert any(is_refuted(proof, stage.name, name) for name in (*names, None)), f"{case} departs, and was shown"
            return "wrong"
        # A stage with the same weights was shown before.
        try:
            for name in (None, *(each.name for each in stage.cases)):
                proof.show(stage.name, name)
            proof.check_sums()
        except Failed as failed:
            example = proof.counterexample(failed)
            return "found" if example is not None and (example.differences or example.broken) else "missed"
        return "same"

    def _departing(self, weights: Weights, number: int) -> str | None:
        """A case in which a card of other weights is not what the machine means."""
        after: Any = weights.module.layers[number]
        for first in range(0, len(self.cases), 24):
            cards = after(self.before[number][first : first + 24])
            wrong = (cards != self.before[number + 1][first : first + 24]).flatten(1).any(dim=1)
            for place in wrong.nonzero().flatten().tolist():
                card = cards[place]
                for layer in weights.module.layers[number + 1 :]:
                    card = layer(card)
                if not torch.equal(card, self.before[-1][first + place]):
                    meant = step(self.subject, self.before[0][first + place], card)
                    if not np.array_equal(meant, card.double().numpy()):
                        return str(self.cases[first + place])
        return None
