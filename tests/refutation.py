"""Whether a part of a proof fails, for tests of weights that were changed. It needs z3."""

from __future__ import annotations

from punchcard.proof.proof import Proof
from punchcard.proof.solver import Failed


def is_refuted(proof: Proof, stage: str, case: str | None) -> bool:
    """Whether a claim of a stage without its cases, or of one case, does not hold."""
    try:
        proof.show(stage, case)
    except Failed:
        return True
    return False
