"""The way in: a machine becomes a certificate, and a certificate is checked again."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punchcard.arguments import checked
from punchcard.errors import ArgumentError, ProofError, StorageError
from punchcard.machines import storage
from punchcard.machines.base import Machine
from punchcard.machines.registry import Registry
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from punchcard.proof.certificate import Certificate, Verification

INSTALL = "pip install 'punchcard[proof]'"


def require_solver() -> None:
    """Refuse where z3 is not installed."""
    if importlib.util.find_spec("z3") is None:
        raise ProofError(f"a proof needs the solver z3, which is not installed: {INSTALL}")


@checked
def prove(
    machine: Machine[Any, Any], *, weights: Weights | str | Path | None = None, seconds: float | None = None,
    progress: Callable[[str, int], None] | None = None, executor: Executor | None = None,
) -> Certificate:
    """Prove that one loop of these weights is one step of the machine, for every card that has the layout's facts.

        certificate = punchcard.prove(machine)
        certificate.proven

    weights    weights to prove in place of the machine's own: as a value, or a file that `machine.save` wrote
    seconds    timeout of one solver query, default: none. The proof stops at the first timeout
    progress   called at the start of each claim with its name and the number of queries so far
    executor   an executor of `concurrent.futures` whose workers show the parts of the proof. Machines of real numbers are
               proven here in any case

    Returns a `Certificate`. A false claim comes with a counterexample: a card on which the model was run. Raises
    `ProofError` if z3 is not installed (`pip install 'punchcard[proof]'`). See docs/proof.md.
    """
    require_solver()
    if seconds is not None and not 0 < seconds < math.inf:
        raise ProofError(f"seconds={seconds}: it must be a positive number, or None for no timeout")
    import z3

    from punchcard.proof.certificate import Certificate
    from punchcard.proof.proof import Proof
    from punchcard.proof.solver import Failed, Undecided

    begin = time.perf_counter()
    failed, example = None, None
    if isinstance(weights, str | Path):
        weights = storage.load_weights(weights, machine)
    proof = Proof(machine, weights, seconds=seconds, progress=progress)
    try:
        proof.run(executor)
    except Failed as failure:
        failed = failure.claim
        with suppress(Undecided):  # the claim has failed all the same
            example = proof.counterexample(failure)
    except z3.Z3Exception as error:
        raise ProofError(f"{machine.title()}: facts or meaning have words of lengths that do not fit: {error}") from None
    except Undecided as undecided:
        raise ProofError(f"{machine.title()}: the solver did not decide within the time it was given ({undecided}); "
                         f"{len(proof.claims.proven)} claims were proven: give it more, or take smaller sizes") from None
    return Certificate(
        machine.describe(), machine.title(), proof.weights.digest().hex(), f"z3 {z3.get_version_string()}",
        tuple(fact.about for fact in machine.layout.facts), tuple(proof.promises), tuple(proof.claims.proven),
        time.perf_counter() - begin, failed, example)


@checked
def verify(
    machine: Machine[Any, Any], certificate: Certificate | str | Path, *, weights: Weights | str | Path | None = None,
    seconds: float | None = None, progress: Callable[[str, int], None] | None = None, executor: Executor | None = None,
) -> Verification:
    """Check a certificate against the weights that run: the digest, every claim proven again, every field compared.

        machine.save("machine.safetensors")
        machine.prove().save("proof.json")
        ...
        punchcard.verify(machine, "proof.json", weights="machine.safetensors").confirmed

    certificate   a file that `Certificate.save` wrote, or a `Certificate`
    weights       as for `prove`, which has the other options too

    Returns a `Verification`: what disagrees, if anything, and the certificate as it came out now. Raises `ProofError` for
    a file that is not a certificate, or has a field that is unknown or missing.
    """
    require_solver()
    from punchcard.proof.certificate import Certificate, compare, load_certificate

    if not isinstance(certificate, Certificate | str | Path):
        raise ArgumentError(f"verify: certificate={certificate!r}: it must be a certificate, or the path of one")
    kept = certificate.describe() if isinstance(certificate, Certificate) else load_certificate(certificate)
    return compare(kept, prove(machine, weights=weights, seconds=seconds, progress=progress, executor=executor))


def rebuilt(description: object, registry: Registry, source: str) -> Machine[Any, Any]:
    """The machine that a certificate or a file of weights is about, built anew from its description."""
    try:
        if not isinstance(description, dict):
            raise ProofError(f"{source!r} does not name its machine")
        kind = registry.kind(str(description.get("machine")))
        return storage.rebuild(description, kind.name, kind.machine_class(), source)
    except StorageError as error:
        raise ProofError(str(error)) from None
