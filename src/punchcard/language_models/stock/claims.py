"""What is shown of the checkpoint in a folder, for every text of its sizes, from the weights that are in it.

    columns     every token, and every position, has entries ±1, in pairs x and -x: so a norm is the identity
    heads       each head finds its column: by how much the best other column loses, and how far scores may be off
    units       every row that units write to is ±1 again
    entries     how far an entry may be from ±1, by norms and roundings
    logits      by how much the right token leads
    sizes       the weights are those of the formula, so that they depend on sizes alone

It takes for granted what no weight says: that sums are rounded as IEEE 754 has it, and how far LayerNorm is off.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import FORMATS
from punchcard.errors import WeightsError
from punchcard.files import TENSORS_LIMIT, read_limited
from punchcard.formatting import plural
from punchcard.language_models.stock.checkpoint import FORMS, MODEL, StockCheckpoint, list_sizes, open_checkpoint, weights_in
from punchcard.language_models.stock.gaps import NORMS, HeadGap
from punchcard.language_models.stock.positions import SPACING
from punchcard.language_models.stock.structure import structure_of
from punchcard.language_models.stock.units import check_bits
from punchcard.language_models.stock.weights import StockWeights
from punchcard.machines.registry import Registry
from punchcard.proof.certificate import Certificate, Claim

APART = (f"columns with the same bits for a head are {SPACING} positions apart or more, as in every text of a program and "
         "its trace")
SOLVER = "exact arithmetic on the weights, without a solver"


@checked
def prove_checkpoint(folder: str | Path, machines: Registry | None = None) -> Certificate:
    """All claims about the checkpoint in a folder, of one of these machines, or the first that fails."""
    begin = time.perf_counter()
    made = open_checkpoint(folder, machines)
    return certify(folder, begin, _shown(folder, made), _described(made), _title(made), (APART,), _promises(made))


def certify(
    folder: str | Path, begin: float, shown: Iterator[tuple[str, str, int]], about: Mapping[str, object], title: str,
    facts: tuple[str, ...], promises: tuple[str, ...], solver: str = SOLVER,
) -> Certificate:
    """The certificate of the weights in a folder: what is `shown` (name, what it says, cases), up to a claim that fails."""
    claims, failed, last = list[Claim](), None, begin
    try:
        for name, says, cases in shown:
            now = time.perf_counter()
            claims.append(Claim(name, says, cases, now - last))
            last = now
    except WeightsError as error:
        failed = str(error)
    digest = hashlib.sha256(read_limited(Path(folder) / MODEL, "checkpoint", limit=TENSORS_LIMIT)).hexdigest()
    return Certificate(about, title, digest, solver, facts, promises, tuple(claims), time.perf_counter() - begin, failed)


def _shown(folder: str | Path, made: StockCheckpoint) -> Iterator[tuple[str, str, int]]:
    weights = weights_in(folder, made.form)
    structure = structure_of(weights, made.form, made.placing)
    yield "columns", (f"each of {len(weights.embedding):,} tokens and {weights.positions:,} positions is a vector of "
                      "entries ±1, in pairs x and -x: a norm does not change it"), 1
    for number, layer in enumerate(structure.layers, start=1):
        for i, head in enumerate(layer.heads, start=1):
            yield f"layer {number}, head {i}", _about_head(head.gap, weights.dtype), 1
    cases = check_bits(structure)
    yield "units", f"hidden units leave ±1 in every row that they write to: in all {cases:,} cases of what they read", cases
    yield "entries", f"roundings and norms move an entry by {max(structure.offset):.3g} at most from ±1", 1
    yield "logits", f"the logit of the right token leads all others by {structure.margin:.3f} or more", 1
    _check_formula(made, weights)
    yield "sizes", "all weights are what the formula gives for these sizes: they do not depend on a program", 1


def _about_head(gap: HeadGap, dtype: str) -> str:
    """Where a head attends to, its lead, and the lead at which the weights of all other columns are exactly 0."""
    what = (f"the column {plural(gap.back, 'position')} back" if gap.back is not None else
            f"the latest column with the {plural(len(gap.entries), 'bit')} that it asks for")
    return (f"attends to {what}, and to no other: its score leads by {gap.lead:,.1f}, and "
            f"{gap.lead - gap.left(dtype):,.1f} is enough (a score is off by {gap.error:.3g} at most)")


def _check_formula(made: StockCheckpoint, weights: StockWeights) -> None:
    held = FORMATS[made.dtype].array
    form = FORMS[made.form]
    ours, theirs = form.tensors(made.weights), form.tensors(weights)
    for name, tensor in ours.items():
        if tensor.shape != theirs[name].shape or not np.array_equal(tensor.astype(held), theirs[name].astype(held)):
            raise WeightsError(f"{name} is not what the formula gives for these sizes")


def _described(made: StockCheckpoint) -> dict[str, object]:
    return {"stock": made.form, "machine": made.text.machine, **made.text.sizes, "dtype": made.dtype,
            "positions": made.positions}


def _title(made: StockCheckpoint) -> str:
    return f"stock {made.form} for {made.text.machine}: {list_sizes(made.text)}, {made.positions} positions, {made.dtype}"


def _promises(made: StockCheckpoint) -> tuple[str, ...]:
    norm = NORMS[made.form].scaled(made.dtype)
    if not norm.common:
        return ("rsqrt(1) is 1, and sums are rounded as IEEE 754 has it",)
    return (f"LayerNorm of ±1 entries is off by a factor of {norm.common:.3g} at most, by {norm.single:.3g} in each entry, "
            "and sums are rounded as IEEE 754 has it",)
