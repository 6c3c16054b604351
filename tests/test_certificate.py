"""Certificates: kept, and verified against the very weights that somebody runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch

import punchcard
from punchcard.errors import ArgumentError, ProofError, StorageError
from punchcard.machines.base import Machine
from tests.cases import file_with, soaked
from tests.command_line import invoke as command
from tests.fuzzing import samples

pytest.importorskip("z3")

from punchcard.proof.certificate import (
    CLAIM_FIELDS,
    EXAMPLE_FIELDS,
    FIELDS,
    Certificate,
    compare,
    load_certificate,
)
from punchcard.proof.proof import Proof
from punchcard.proof.solver import Undecided

AnyMachine = Machine[Any, Any]


def small() -> punchcard.SubleqMachine:
    return punchcard.SubleqMachine(word_bits=2, memory=2, instructions=2, design="two-layer")


def rescaled(machine: AnyMachine) -> AnyMachine:
    """The same function from other weights: a hidden unit is twice as large, and counts half."""
    w1, b1, w2 = (machine.model.layers[0].get_parameter(name) for name in ("w1", "b1", "w2"))
    with torch.no_grad():
        w1[0] *= 2
        b1[0] *= 2
        w2[:, 0] /= 2
    return machine


def broken(machine: AnyMachine) -> AnyMachine:
    """A weight of 0 where there should be another."""
    with torch.no_grad():
        machine.model.layers[0].get_parameter("w2")[:, 0] = 0
    return machine


@cache
def certificate() -> Certificate:
    return small().prove()


@cache
def refutation() -> Certificate:
    found = broken(small()).prove()
    assert found.counterexample is not None
    return found


def differ(name: str) -> str:
    return f"{name}: the file and this proof differ"


invoke = partial(command, "prove")


# The command


def test_a_certificate_is_kept_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    options = ["--machine", "subleq", "--design", "two-layer", "--bits", "2", "--memory", "2", "--instructions", "2"]
    made = invoke(*options, "-o", str(path), status=0)
    assert "19 claims proven" in made.output
    kept = load_certificate(path)
    assert kept["proven"] is True
    assert len(kept["weights"]) == 64
    assert kept["solver"].startswith("z3 ")
    again = invoke("--verify", str(path), status=0)
    assert again.output.endswith("is confirmed\n")


def test_weights_of_a_file_are_proven_and_verified(tmp_path: Path) -> None:
    """Weights that no formulas give: their own certificate is confirmed, that of the formulas is not."""
    own, proof, formulas = (str(tmp_path / name) for name in ("machine.safetensors", "proof.json", "formulas.json"))
    rescaled(small()).save(own)
    certificate().save(formulas)
    with pytest.raises(StorageError, match="is not what the machine's formulas give"):
        punchcard.Machine.load(own)
    invoke("--weights", own, "-o", proof, status=0)
    assert load_certificate(proof)["weights"] != load_certificate(formulas)["weights"]
    again = invoke("--verify", proof, "--weights", own)
    assert (again.exit_code, again.output.splitlines()[-1]) == (0, f"{proof!r} is confirmed")
    wrong = invoke("--verify", formulas, "--weights", own, "--json", status=1)
    assert json.loads(wrong.output)["disagreements"] == [differ("weights")]


def test_wrong_weights_are_refuted(tmp_path: Path) -> None:
    own, proof = str(tmp_path / "machine.safetensors"), str(tmp_path / "proof.json")
    broken(small()).save(own)
    certificate().save(proof)
    found = invoke("--verify", proof, "--weights", own, status=1)
    assert f"is not confirmed: {differ('weights')}; {differ('failed')}; the claim " in found.output


@pytest.mark.parametrize(("change", "why"), [
    (lambda machine, path: machine.save(path), "holds the weights of another machine"),
    (lambda machine, path: path.write_bytes(b"x"), "is not a safetensors file"),
    (lambda machine, path: None, "no such file"),
])
def test_files_that_are_not_the_weights(tmp_path: Path, change: Callable[..., None], why: str) -> None:
    own, proof = tmp_path / "machine.safetensors", tmp_path / "proof.json"
    certificate().save(proof)
    change(punchcard.SubleqMachine(word_bits=3, memory=2, instructions=2, design="two-layer"), own)
    found = invoke("--verify", str(proof), "--weights", str(own), status=2)
    assert why in found.output


# The calls


@pytest.mark.parametrize("kind", ["turing", *map(soaked, ("subleq", "von-neumann", "fleq", "riscv"))])
def test_every_kind_of_machine_verifies_the_weights_that_it_runs(kind: str, tmp_path: Path) -> None:
    """One of the user's own too. Real numbers are proven to be moved by the design's own weights, and by no others."""
    sizes = {"states": 2, "symbols": 2, "squares": 6} if kind == "turing" else samples.SIZES[kind]
    machine = samples.registry().kind(kind).machine_class()(**sizes)
    machine = machine if kind == "fleq" else rescaled(machine)
    path = tmp_path / "machine.safetensors"
    machine.save(path)
    found = punchcard.prove(machine, weights=path)
    assert found.proven, found
    verification = machine.verify(found)
    assert verification.confirmed, verification
    assert (str(verification), verification.notes) == ("confirmed", ())


def test_a_certificate_of_other_weights_is_not_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    certificate().save(path)
    machine = rescaled(small())
    assert machine.verify(path).disagreements == (differ("weights"),)
    assert punchcard.verify(machine, path, weights=small().weights).confirmed


def test_a_certificate_of_a_failure_is_verified_too(tmp_path: Path) -> None:
    """The solver may find another counterexample to the same claim."""
    refutation().save(tmp_path / "proof.json")
    verification = broken(small()).verify(tmp_path / "proof.json")
    assert verification.confirmed
    assert not verification.certificate.proven
    assert {*verification.notes} <= {"the file has another counterexample"}


@pytest.mark.parametrize("wrong", [None, 5, {}])
def test_what_verify_takes(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="certificate="):
        small().verify(wrong)


# What is compared

KEPT = FIELDS, CLAIM_FIELDS, EXAMPLE_FIELDS


def plain() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(certificate().describe()))
    return found


def test_the_fields_are_those_that_are_written() -> None:
    found = refutation().describe()
    assert (tuple(found), tuple(found["claims"][0]), tuple(found["counter_example"])) == KEPT


def test_every_claim_is_compared() -> None:
    claims = plain()["claims"]
    for changed, said in (
        ({"claims": claims[1:]}, "the claim 'heads of layer 1' is not in the file"),
        ({"claims": [*claims, {**claims[0], "name": "more"}]}, "the claim 'more' is not proven"),
        ({"claims": [*claims, claims[0]]}, "the claims are in another order, or some of them twice"),
        ({"proven": False}, "the file says that it is not proven"), ({"proven": 1}, "the file says that it is proven"),
        ({"failed": "heads of layer 1"}, differ("failed")), ({"counter_example": {"claim": "x"}}, differ("counter_example")),
        ({"counter_example": {"claim": None}}, differ("counter_example")),
        ({"title": ""}, differ("title")), ({"facts": []}, differ("facts")), ({"promises": ["that"]}, differ("promises")),
        ({"machine": {**plain()["machine"], "more": 1}}, differ("machine")),
    ):
        assert compare({**plain(), **changed}, certificate()).disagreements == (said,)


def test_what_a_proof_cost_is_a_note() -> None:
    """Another solver and another number of queries are reported. Times say nothing."""
    kept = plain()
    kept["solver"], kept["seconds"], kept["claims"][0]["seconds"] = "z3 4.0", 1e6, 1e6
    kept["claims"][0]["questions"] += 1
    found = compare(kept, certificate())
    assert found.confirmed
    assert [note.split(",")[0] for note in found.notes] == [
        "the file names the solver 'z3 4.0'",
        f"the file counts {sum(claim.questions for claim in certificate().claims) + 1} queries"]
    assert str(found).startswith("confirmed (the file names the solver 'z3 4.0', this is 'z3 ")


@pytest.mark.parametrize(("path", "name"), [((), "seconds"), (("claims", 0), "about"), (("counter_example",), "layers")])
def test_unknown_and_missing_fields_are_refused(tmp_path: Path, path: tuple[Any, ...], name: str) -> None:
    for more, why in (
        (True, "has the field 'more', which this version does not know"), (False, f"lacks the field {name!r}"),
    ):
        kept = plain()
        kept["counter_example"] = dict.fromkeys(EXAMPLE_FIELDS)
        part: Any = kept
        for step in path:
            part = part[step]
        if more:
            part["more"] = 1
        else:
            del part[name]
        (tmp_path / "proof.json").write_text(json.dumps(kept))
        with pytest.raises(ProofError, match=why):
            load_certificate(tmp_path / "proof.json")


@pytest.mark.parametrize(("text", "why"), [
    ("{", "it is not JSON"), ("[]", "its format is not 'punchcard proof'"),
    ('{"format": "punchcard proof", "format": "punchcard proof"}', "has the field 'format' twice"),
    ('{"format": "punchcard proof", "version": 9}', "a certificate of version 9"),
    ('{"format": "punchcard proof", "version": true}', "a certificate of version True"),
    ('{"format": "punchcard proof", "version": 1}', "lacks the field 'machine'"),
    ({"claims": {}}, "its claims are not a list of objects"), ({"counter_example": []}, "neither an object nor null"),
    ({"seconds": "1"}, 'seconds is "1": it must be a number, 0 or more'), ({"seconds": float("nan")}, "seconds is NaN"),
    ({"machine": None}, "does not name its machine"), ({"machine": {"machine": "subleq"}}, "cannot be built"),
])
def test_what_is_not_a_certificate(tmp_path: Path, text: str | dict[str, Any], why: str) -> None:
    path = file_with(tmp_path / "proof.json", text if isinstance(text, str) else json.dumps({**plain(), **text}))
    result = invoke("--verify", str(path), status=2)
    assert why in result.output


def test_a_counterexample_that_the_solver_does_not_find_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim has failed all the same, and the certificate says so."""
    def no_time(*_: object) -> None:
        raise Undecided("timeout")

    monkeypatch.setattr(Proof, "counterexample", no_time)
    found = broken(small()).prove()
    assert found.failed
    assert found.counterexample is None
    assert "violated" in str(found)
