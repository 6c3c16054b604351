"""What is shown of the widened model in a folder, for every text, from the weights that are in it.

    formula      the front layers, the coordinates that tokens set and the logits of the answer are those of the formula
    base         all other layers read and write the base's coordinates alone, the front layers none of them
    norms        by how much the base's norms may be off, whatever the added coordinates hold
    columns      in front of the base all columns have the same square sum, so that numbers are read as they were written
    heads        by how much the right column leads in the whole context
    cases        the hidden units compute what they should, in every case: with the weights, in float32
    logits       the answer wins against every logit that the base can have

So every sum `a+b=` is answered rightly, and elsewhere the base's logits are what they were up to rounding.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import FORMATS
from punchcard.errors import StorageError, WeightsError
from punchcard.language_models.fusion.composition import load_base
from punchcard.language_models.stock.checkpoint import CONFIG
from punchcard.language_models.stock.claims import certify
from punchcard.language_models.widened.bounds import MARGIN, column_bound, logit_bound
from punchcard.language_models.widened.cases import Cases, all_cases
from punchcard.language_models.widened.compiler import LEAD
from punchcard.language_models.widened.limits import largest_number
from punchcard.language_models.widened.norms import LIMIT
from punchcard.language_models.widened.plan import BaseSizes, Front, planned_front
from punchcard.language_models.widened.vocabulary import sum_vocabulary
from punchcard.language_models.widened.weights import front_tensors
from punchcard.language_models.widened.widening import ABOUT, is_widened
from punchcard.proof.certificate import Certificate
from punchcard.transformer.softmax import hard_product

if TYPE_CHECKING:
    from torch import Tensor

OFF = 1e-3
"""How far a number may be from what it should be, in float32: steps allow 0.37."""
SOLVER = "exact arithmetic on the weights, without a solver; the cases in float32"
PROMISES = ("sums are rounded as IEEE 754 has it, exp is off by its last places at most",
            "positions of a text count from its first token on, one for each token, up to the length of the context")


@checked
def prove_widened(folder: str | Path) -> Certificate:
    """All claims about the widened model in a folder, or the first that fails."""
    begin = time.perf_counter()
    proof = _Proof(Path(folder))
    title = f"stock llama that adds: {proof.digits} digits, {proof.sizes.max_position_embeddings} positions, float32"
    return certify(folder, begin, proof.prove_claims(), {"stock": "widened", **proof.about}, title, (), PROMISES, SOLVER)


class _Proof:
    """The model in a folder, and what is shown of it."""

    def __init__(self, folder: Path) -> None:
        if not is_widened(folder):
            raise StorageError(f"{str(folder)!r} is not a widened model: `punchcard fuse --stock` writes one")
        self.model, self.tokenizer = load_base(folder)
        self.tensors: Mapping[str, Tensor] = self.model.state_dict()
        self.about: dict[str, Any] = getattr(self.model.config, ABOUT)
        try:
            self.digits, self.end = int(self.about["digits"]), int(self.about["end"])
            self.sizes = BaseSizes(**self.about["base"])
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(f"{str(folder / CONFIG)!r} has no valid description under {ABOUT!r}: {error!r}; write "
                               "the folder again with `punchcard fuse --stock`") from None

    def prove_claims(self) -> Iterator[tuple[str, str, int]]:
        """Each claim: its name, what it says, how many cases it has."""
        front = self._front()
        self._check_formula(front)
        yield "formula", f"{len(front.layers)} front layers and what tokens set are those of the formula, bit by bit", 1
        self._check_apart(front)
        count, d = self.sizes.num_hidden_layers, front.norm.base
        yield "base", f"{count} layers read and write the base's {d} coordinates alone, the front layers none of them", 1
        number = largest_number(front)
        if number > LIMIT:
            raise WeightsError(f"a number of an added coordinate may be {number:g}: {LIMIT:g} at most are allowed")
        yield "norms", (f"added coordinates hold {number:g} at most, times {front.norm.amplitude:g}: a norm of the base is "
                        f"off by a factor of {front.norm.change:.2g} at most"), 1
        yield "columns", self._columns(front), 1
        yield "heads", self._heads(front), front.distances.context
        for cases in all_cases(front.layout, self.digits):
            off = self._tried(front, cases)
            yield f"layer {cases.layer + 1}", (f"{cases.about}: {len(cases.columns):,} cases, numbers are off by "
                                               f"{off:.1g} at most"), len(cases.columns)
        yield "logits", self._logits(front), 1

    def _front(self) -> Front:
        base, config = self.sizes, self.model.config
        squares = self._squares()
        words = sum_vocabulary(self.tokenizer, config.vocab_size, self.end)
        last = self.tensors["lm_head.weight"][words.digits[0]]
        front = planned_front(base, self.model.model.rotary_emb, self.digits, float(squares.max()), words,
                              float(last[base.hidden_size :].max()))
        for name, size in front.sizes(base).items():
            if getattr(config, name) != size:
                raise WeightsError(f"config.json has {name} = {getattr(config, name)!r}: the formula has {size!r}")
        return front

    def _squares(self) -> Tensor:
        found: Tensor = self.tensors["model.embed_tokens.weight"][:, : self.sizes.hidden_size].double().pow(2).sum(1)
        return found

    def _check_formula(self, front: Front) -> None:
        import torch

        d = front.norm.base
        for name, wanted in front_tensors(self.tensors, front, self._squares()).items():
            found = self.tensors[name]
            shared = name in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight")
            if not torch.equal(found[..., d:] if shared else found, wanted[..., d:] if shared else wanted):
                raise WeightsError(f"{name} is not what the formula gives for these sizes")

    def _check_apart(self, front: Front) -> None:
        """Behind the front layers every weight outside of the base's part is 0."""
        base = self.sizes
        heads, keys = base.num_attention_heads * base.head_dim, base.num_key_value_heads * base.head_dim
        d, units = base.hidden_size, base.intermediate_size
        inside = {"q_proj": (heads, d), "k_proj": (keys, d), "v_proj": (keys, d), "o_proj": (d, heads),
                  "gate_proj": (units, d), "up_proj": (units, d), "down_proj": (d, units),
                  "input_layernorm": (d,), "post_attention_layernorm": (d,)}
        for name, tensor in self.tensors.items():
            parts = name.split(".")
            if parts[1] != "layers" or int(parts[2]) < len(front.layers):
                continue
            shape = inside[parts[-2]][: tensor.dim()]
            kept = tensor[tuple(slice(0, size) for size in shape)]
            if int(tensor.count_nonzero()) != int(kept.count_nonzero()):
                raise WeightsError(f"{name} has weights outside of the base's part")

    def _columns(self, front: Front) -> str:
        whole = self.tensors["model.embed_tokens.weight"].double().pow(2).sum(1)
        off = float((whole / front.norm.largest - 1).abs().max())
        if off > OFF:
            raise WeightsError(f"the square sum of a token's column is off by {off:g}: it must be the same for all")
        return (f"{len(whole):,} tokens have columns of the same square sum, {front.norm.largest:.6g}, up to a factor of "
                f"{off:.1g}")

    def _heads(self, front: Front) -> str:
        """By how much the column leads that a head looks for. A score is off by its roundings, by those of the positions'
        angles, and by numbers that are off."""
        found, eps = front.distances, FORMATS["float32"].eps
        least = min(found.lead, found.early_lead)
        largest = LEAD * found.total / least
        error = largest * ((front.shape.size + found.context + 16) * eps + 4 * OFF)
        left = LEAD - 2 * error - hard_product("float32")
        if left < 0:
            raise WeightsError(f"heads lead by {LEAD:.1f}, and scores may be off by {error:.3g}")
        return (f"the right column of {found.context:,} leads by {LEAD * found.lead / least:.1f}, and where there is none "
                f"any other leads the own by {LEAD * found.early_lead / least:.1f}; scores are off by {error:.2g} at most, "
                f"and {left:.1f} is left beyond what makes all other weights exactly 0")

    def _tried(self, front: Front, cases: Cases) -> float:
        """How far numbers are off after the units of a layer."""
        import torch

        layout, d, at = front.layout, front.norm.base, f"model.layers.{cases.layer}.mlp."
        added = slice(d, d + layout.width)
        columns = torch.from_numpy(cases.columns).float()
        gate, up = (columns @ self.tensors[f"{at}{name}_proj.weight"][:, added].T for name in ("gate", "up"))
        inner = torch.nn.functional.silu(gate) * up
        made = (inner @ self.tensors[f"{at}down_proj.weight"][added].T / front.norm.amplitude).double().numpy()
        places = np.concatenate([np.arange(layout.width)[layout.rows(name)] for name in cases.names])
        off = np.abs(made[:, places] - cases.after[:, places])
        if off.max() > OFF:
            worst = int(off.max(axis=1).argmax())
            raise WeightsError(f"layer {cases.layer + 1}, {cases.about}: case {worst} is off by {off.max():g}")
        return float(off.max())

    def _logits(self, front: Front) -> str:
        d, count = front.norm.base, len(front.layers)
        rows, logits = column_bound(self.model, count, d), logit_bound(self.model, d)
        lead = front.height * (1 - OFF) / float(np.sqrt(rows**2 + front.norm.widened_epsilon)) - 2 * logits
        if lead < MARGIN * (1 - OFF):
            raise WeightsError(f"the answer leads by {lead:g}: it must lead by {MARGIN:g}")
        return (f"no logit of the base is above {logits:.4g}, no column above {rows:.4g} in root mean square: what is said "
                f"leads by {lead:.4g} at least")
