"""Proofs of the privileged RISC-V machine: traps, interrupts, control registers; and that other weights are refuted."""

from __future__ import annotations

import random
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from punchcard.card.facts import Fact
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.numbers import ELSE
from tests.cases import soaked
from tests.command_line import invoke
from tests.riscv_states import card_in_any_state, departing_changes, departures, scratchpad

pytest.importorskip("z3")

from punchcard.proof.certificate import load_certificate
from punchcard.proof.concrete import step
from punchcard.proof.proof import Proof
from tests.refutation import is_refuted

MEMORY = 64
A, B, T, C = range(4)
"""The layers."""


@cache
def privileged(multiply: bool = False) -> RiscvMachine:
    return RiscvMachine(memory=MEMORY, privileged=True, multiply=multiply)


def test_a_trap_and_the_rows_that_follow_from_others_are_proven() -> None:
    proof = Proof(privileged())
    for part in (("execute", "ecall"), ("fetch",)):
        proof.show(*part)
    names = {claim.name for claim in proof.claims.proven}
    changed = ("next", "mcause", "mstatus", "mtime", "port")
    assert {f"execute: ecall: step: {rows} in scratchpad" for rows in changed} <= names
    assert {f"fetch: again: {fact.about}" for fact in privileged().layout.facts_of(Fact)} <= names


@pytest.mark.parametrize(("case", "lemmas"), [
    soaked("remu", ["long division", "products by bits"]),
    soaked("mulhsu", ["products by bits", "products by halves", "signs of products"]),
    soaked("anything else, like div", ["long division", "products by bits"])])
def test_products_and_quotients_with_traps_are_proven(case: str, lemmas: list[str]) -> None:
    """The layers of the machine that boots Linux."""
    proof = Proof(privileged(multiply=True))
    proof.show("execute", case)
    names = [claim.name for claim in proof.claims.proven]
    changed = ("value", "goal", "next", "mcause", "mtval")
    assert {f"execute: {case}: step: {rows} in scratchpad" for rows in changed} <= {*names}
    assert sorted(name.removeprefix("lemma: ") for name in names if name.startswith("lemma: ")) == lemmas
    assert f"execute: {case}: entries after layer 27" in names


@pytest.mark.parametrize("count", [2, soaked(200)])
def test_the_meaning_of_a_privileged_loop_is_what_the_model_does(count: int) -> None:
    """From a card with any state: interrupts, both modes, and answers of the port."""
    subject, rng = privileged(), random.Random(7)
    names = ("sc.w", ELSE, *(one.name for one in subject.sizes.decoder.instructions))
    for number in range(count):
        card = card_in_any_state(subject, rng, names[number % len(names)])
        assert subject.layout.violations(card) == []
        after = subject.model(torch.from_numpy(card)).numpy()
        assert np.array_equal(step(subject, card, after), after)
        assert departures(subject, card, after) == []


# Changed weights

CHANGES = {
    "the trap": (T, "mcause", "ecall"),
    "the mask of a control register": (B, "new", "csrrc"),
    "the stored word": (C, "memory", "sw"),
    "the address": (A, "reference", "lw"),
    "the control register": (A, "contents", "csrrs"),
    "permission": (A, "flag", "csrrw"),
    "the course": (B, "course", "amoadd.w"),
    "a trap's own cause": (B, "cause", "ebreak"),
    "a trap's detail": (B, "detail", "lh"),
    "the timer as it will be": (B, "due", "sw"),
    "what is written": (B, "writes", "csrrw"),
    "a compared word": (T, "mtimecmp", "sw"),
    "the compared timer": (T, "due", "sw"),
    "the place of a result": (T, "goal", "sc.w"),
    "the handler": (T, "next", "ecall"),
    "the way back": (T, "mstatus", "mret"),
    "the address of a trap": (T, "mepc", "ebreak"),
    "the port": (T, "port", "amoadd.w"),
    "the reservation": (T, "reservation", "lr.w"),
    "time": (T, "mtime", "add"),
    "the timer": (C, "mip", "add"),
    "an interrupt": (C, "awake", "wfi"),
    "the fetched word": (C, "word", "jal"),
    "waiting": (C, "event", "add"),
}
"""What is changed: the layer, rows that it makes, and the instruction in which."""
IN_TEST = ("the trap", "the stored word")


@pytest.mark.parametrize(("about", "count"), [
    *((about, 1) for about in IN_TEST), *(soaked(about, 3) for about in CHANGES)])
def test_changed_weights_that_depart_from_the_interpreter_are_refuted(about: str, count: int) -> None:
    """Whatever the model does then, if it is not what the interpreter does, the part of the proof with that card fails."""
    number, rows, case = CHANGES[about]
    found = departing_changes(privileged(), random.Random(about), number, rows, case, cards=32)  # few make a timer depart
    changes = list(islice(found, count))
    assert changes
    for change in changes:
        proof = Proof(privileged(), change.weights)
        parts = [("fetch", None)] if number == C else [("execute", case), ("execute", None)]
        told = f"{change.about}: {case} departs ({change.departs[0]}), and was shown"
        assert any(is_refuted(proof, *part) for part in parts), told


def test_a_word_like_a_load_and_a_store_has_one_cause() -> None:
    """Found by a proof: a word with the opcode of amo and a function that none has was a load, and a store as well.

    Where its address is misaligned, the rows of the cause were no bits, and it trapped with 7 in place of 2.
    """
    subject, rng = privileged(), random.Random(1)
    card = card_in_any_state(subject, rng, "amoadd.w")
    known = {"word": 0xA160EEAB, "first.register": 1, "first.own": 0, "port.ready": 1, "mode": 1, "mstatus.mie": 0,
             "event.wait": 0}
    code = subject.sizes.decoder.kind(known["word"])
    known |= {"kind": sum(bit << place for place, bit in enumerate(code)), "counter": 0, "astray": 0,
              "following.low": 4, "following.carry": 0}
    for rows, number in known.items():
        subject.layout.put_number_at(card, rows, scratchpad(subject), number)
    subject.layout.put_number_at(card, "memory", subject.layout.region("registers").start + 1, 2)
    assert departures(subject, card, subject.model(torch.from_numpy(card)).numpy()) == []


@pytest.mark.soak
def test_a_privileged_certificate_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command, and with the weights in a file; of two cases, for all of them take minutes."""
    right = Proof.__init__

    def some(self: Proof, *given: object, **named: object) -> None:
        right(self, *given, **named, only=("ecall", "csrrw"))  # type: ignore[arg-type]

    monkeypatch.setattr(Proof, "__init__", some)
    certificate, weights = str(tmp_path / "proof.json"), str(tmp_path / "machine.safetensors")
    sizes = ["--machine", "riscv", "--memory", str(MEMORY), "--privileged"]
    for arguments in ([*sizes, "-o", certificate], ["--verify", certificate]):
        found = invoke("prove", *arguments, status=0)
    assert "confirmed" in found.output
    assert load_certificate(certificate)["machine"]["privileged"] is True
    privileged().save(weights)
    found = invoke("prove", "--verify", certificate, "--weights", weights, status=0)
    other = RiscvMachine(memory=MEMORY, privileged=True)
    with torch.no_grad():
        other.model.layers[T].get_parameter("w2")[other.layout.rows("mcause")] *= -1
    other.save(weights)
    found = invoke("prove", "--verify", certificate, "--weights", weights, status=1)
    assert "violated: execute: ecall: step: mcause in scratchpad" in found.output
    assert "is not confirmed: weights: the file and this proof differ" in found.output


@pytest.mark.soak
@pytest.mark.parametrize(("memory", "base", "multiply"), [(64, 0, False), (64, 0, True), (1 << 22, 0x80000000, True)])
def test_every_instruction_with_traps_is_proven(memory: int, base: int, multiply: bool) -> None:
    """The last one is the machine that `punchcard boot` builds for 16 MiB."""
    subject = RiscvMachine(memory=memory, base=base, privileged=True, multiply=multiply)
    found = subject.prove()
    assert found.proven, found
    names = {claim.name.split(": ")[1] for claim in found.claims if claim.name.count(": ") > 1}
    assert {one.name for one in subject.sizes.decoder.instructions} | {ELSE} <= names
