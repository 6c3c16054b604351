"""A looped transformer, its configuration and its processor, for Hugging Face. This file needs torch and transformers alone.

It is copied as it is into an exported folder, with `card_values.py`, so that `trust_remote_code=True` opens the folder where
Punchcard is not installed. A card has rows and columns; here it is transposed, (batch, columns, rows), as sequences are:
column j is position j, and row i is dimension i of the hidden states.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import BatchFeature, PreTrainedConfig, PreTrainedModel, ProcessorMixin
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import ModelOutput, cached_file

from .card_values import decode  # relative: transformers copies such files, and finds them beside this one

CARD = "card.safetensors"


class PunchcardConfig(PreTrainedConfig):
    """The sizes of the model, and the patterns of a card whose program has halted.

    hidden_size   rows of a card
    shapes        of every layer: heads, height of K and Q, hidden units
    halting       patterns of a card that has halted: bits of some rows of one column, counted from `rows`; 0 is either
    events        patterns at which a run ends too, since a host has something to do: input, output, a fault, the end
    machine       what the machine is, in words and figures
    """

    model_type = "punchcard"

    def __init__(
        self, hidden_size: int = 1, shapes: Sequence[Sequence[int]] = ((0, 0, 0),),
        halting: Sequence[Mapping[str, Any]] = (), events: Sequence[Mapping[str, Any]] = (),
        machine: Mapping[str, Any] | None = None, **options: Any,
    ) -> None:
        super().__init__(**options)
        self.hidden_size = hidden_size
        self.shapes = [list(shape) for shape in shapes]
        self.num_hidden_layers = len(self.shapes)
        self.num_attention_heads = max((heads for heads, _, _ in self.shapes), default=0)
        self.halting = [dict(pattern) for pattern in halting]
        self.events = [dict(pattern) for pattern in events]
        self.machine = dict(machine or {})


class PunchcardLayer(nn.Module):
    """One layer: Attn(X) = X + sum_h V_h X softmax(lambda_h (K_h X)^T (Q_h X)), then X + W2 relu(W1 X + b1) + b2."""

    def __init__(self, width: int, heads: int, key_size: int, hidden: int) -> None:
        super().__init__()

        def zeros(*size: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(*size), requires_grad=False)

        self.key, self.query = zeros(heads, key_size, width), zeros(heads, key_size, width)
        self.value, self.temperature = zeros(heads, width, width), zeros(heads)
        self.w1, self.b1 = zeros(hidden, width), zeros(hidden, 1)
        self.w2, self.b2 = zeros(width, hidden), zeros(width, 1)

    def forward(self, card: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The next card, and for each head how much column j takes from column i."""
        attended, patterns = card, []
        for head in range(len(self.key)):
            scores = (self.key[head] @ card).transpose(-1, -2) @ (self.query[head] @ card)
            patterns.append(torch.softmax(self.temperature[head] * scores, dim=-2))
            attended = attended + self.value[head] @ card @ patterns[-1]
        return attended + self.w2 @ torch.relu(self.w1 @ attended + self.b1) + self.b2, patterns


@dataclass
class PunchcardRun(ModelOutput):
    """The cards at the end of a run, how many loops each took, and whether it has halted."""

    last_hidden_state: Tensor | None = None
    loops: Tensor | None = None
    halted: Tensor | None = None


class PunchcardModel(PreTrainedModel):
    """A computer: a call is a loop, in which one instruction is executed. `run` makes loops until a program has halted."""

    config_class = PunchcardConfig
    main_input_name = "inputs_embeds"
    config: PunchcardConfig

    def __init__(self, config: PunchcardConfig) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(PunchcardLayer(config.hidden_size, *shape) for shape in config.shapes)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Weights are set by formula, and loaded; there is nothing to draw at random."""

    def forward(
        self, inputs_embeds: Tensor, loops: int = 1, output_hidden_states: bool | None = None,
        output_attentions: bool | None = None, return_dict: bool | None = None, **ignored: Any,
    ) -> BaseModelOutput | tuple[Any, ...]:
        """So many loops on cards of (batch, columns, rows), outside autocast.

        `hidden_states` are the cards before the first layer and after every layer, `attentions` one for each layer: (batch,
        heads, column that takes, column that it takes from).
        """
        if inputs_embeds.ndim != 3 or inputs_embeds.shape[-1] != self.config.hidden_size:
            raise ValueError(f"cards of shape {tuple(inputs_embeds.shape)}: they must be (batch, columns, rows), with "
                             f"{self.config.hidden_size} rows")
        wants_states = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        wants_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        if torch.is_autocast_enabled(kind := inputs_embeds.device.type):
            with torch.autocast(kind, enabled=False):
                return self.forward(inputs_embeds, loops, wants_states, wants_attentions, return_dict)
        require_full_products(inputs_embeds)
        card = inputs_embeds.transpose(-1, -2)
        states, attentions = [inputs_embeds], []
        for _ in range(loops):
            for layer in self.layers:
                card, patterns = layer(card)
                if wants_states:
                    states.append(card.transpose(-1, -2))
                if wants_attentions:
                    none = card.new_zeros(len(card), 0, card.shape[-1], card.shape[-1])
                    attentions.append(torch.stack(patterns, dim=1).transpose(-1, -2) if patterns else none)
        output = BaseModelOutput(last_hidden_state=card.transpose(-1, -2),
                                 hidden_states=tuple(states) if wants_states else None,
                                 attentions=tuple(attentions) if wants_attentions else None)
        return output if return_dict is not False else output.to_tuple()

    def halted(self, cards: Tensor) -> Tensor:
        """For each card whether its program has halted; a card that has made no loop may look as if it had."""
        return matches(cards, self.config.halting)

    @torch.no_grad()
    def run(self, inputs_embeds: Tensor, max_loops: int = 100_000) -> PunchcardRun:
        """Loops until every card has halted or shows an event, and `max_loops` at most. Such a card stays as it is."""
        cards, made = inputs_embeds, torch.zeros(len(inputs_embeds), dtype=torch.int64, device=inputs_embeds.device)
        going = made == 0  # patterns are looked for after a loop: a punched card may show one before the first
        for _ in range(max_loops):
            if not going.any():
                break
            cards = torch.where(going[:, None, None], self(cards).last_hidden_state, cards)
            made += going
            going &= ~matches(cards, [*self.config.halting, *self.config.events])
        return PunchcardRun(last_hidden_state=cards, loops=made, halted=self.halted(cards))


def require_full_products(cards: Tensor) -> None:
    """Refuse TF32 and bfloat16 for products of float32: they drop bits of the weights, and the program would go wrong."""
    kind = torch.backends.cuda if cards.is_cuda else torch.backends.mkldnn
    precision = getattr(getattr(kind, "matmul", None), "fp32_precision", None) or torch.get_float32_matmul_precision()
    if cards.dtype == torch.float32 and precision not in ("ieee", "none", "highest"):
        raise RuntimeError(f"torch computes products of float32 in {precision}, which drops bits of the weights: call "
                           "torch.set_float32_matmul_precision('highest') first, or use a machine in float64")


def matches(cards: Tensor, patterns: Sequence[Mapping[str, Any]]) -> Tensor:
    """For each card of (batch, columns, rows) whether it has one of the patterns."""
    found = torch.zeros(len(cards), dtype=torch.bool, device=cards.device)
    for pattern in patterns:
        wanted = cards.new_tensor(pattern["bits"])
        entries = cards[:, pattern["column"], pattern["rows"] : pattern["rows"] + len(wanted)]
        found |= (((entries - wanted).abs() < 0.5) | (wanted == 0)).all(-1)
    return found


class PunchcardProcessor(ProcessorMixin):
    """Programs to cards, and cards to values.

    machine   the names and places of values, as `machine.json` has them, and what punches another program

    A folder has the card of one program. `processor(values={"a": 12})` is that card with another first value, and needs
    nothing else; `processor(text=...)` punches another program for the same machine, and needs Punchcard.
    """

    def __init__(self, machine: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.machine = machine or {"values": []}
        self.card: Tensor | None = None

    def __call__(
        self, text: str | Sequence[str] | None = None, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> BatchFeature:
        """Cards as `inputs_embeds`: of programs, or of the folder's program with other first values."""
        if text is not None:
            cards = [self._punched(each) for each in ([text] if isinstance(text, str) else text)]
        elif self.card is None:
            raise ValueError(f"this processor has no {CARD}, the card of a program: give the program as `text`")
        else:
            cards = [self.card]
        changes = [values or {}] if values is None or isinstance(values, Mapping) else list(values)
        if len(changes) > 1 and len(cards) == 1:
            cards = cards * len(changes)
        if len(changes) == 1:
            changes = changes * len(cards)
        if len(changes) != len(cards):
            raise ValueError(f"{len(changes)} sets of values for {len(cards)} programs: give one for each")
        changed = [self._changed(card, change) for card, change in zip(cards, changes, strict=True)]
        return BatchFeature({"inputs_embeds": torch.stack([card.T for card in changed])})

    def _punched(self, text: str) -> Tensor:
        try:
            from punchcard.export.hugging_face import punch
        except ImportError:
            raise ImportError("Punchcard reads a program's text, and is not installed: pip install punchcard") from None
        card: Tensor = punch(self.machine["machine"], text)
        return card

    def _changed(self, card: Tensor, values: Mapping[str, Any]) -> Tensor:
        """The card with other values."""
        card = card.clone()
        for name, value in values.items():
            found = [place for place in self.machine["values"] if place["name"] == name]
            if len(found) != 1:
                known = ", ".join(place["name"] for place in self.machine["values"])
                raise ValueError(f"{name!r} names {len(found) or 'no'} values of the program: there are {known}")
            _put(card, found[0], value)
        return card

    def decode(self, cards: Tensor) -> list[dict[str, dict[str, Any]]]:
        """The values on cards of (batch, columns, rows), by group and name: integers and matrices, or None for neither."""
        return [decode(card.T, self.machine["values"]) for card in cards.detach().cpu()]

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], **options: Any) -> PunchcardProcessor:
        processor: PunchcardProcessor = super().from_pretrained(folder, **options)
        known = ("cache_dir", "force_download", "token", "revision", "local_files_only", "subfolder")
        where = {name: options[name] for name in known if options.get(name) is not None}
        file = cached_file(folder, CARD, _raise_exceptions_for_missing_entries=False, **where)
        processor.card = load_file(file)["card"] if file is not None else None
        return processor

    def save_pretrained(self, save_directory: str | os.PathLike[str], **options: Any) -> Any:
        written = super().save_pretrained(save_directory, **options)
        if self.card is not None:
            save_file({"card": self.card.contiguous()}, os.path.join(save_directory, CARD))
        return written


def _put(card: Tensor, place: Mapping[str, Any], value: Any) -> None:
    """Write a value to its place."""
    start, rows, column, columns = place["start"], place["rows"], place["column"], place["columns"]
    name = place["name"]
    if place["kind"] == "numbers":
        matrix = torch.as_tensor(value, dtype=card.dtype, device=card.device)
        matrix = matrix.reshape(1, 1) if matrix.ndim == 0 else matrix
        if tuple(matrix.shape) != (rows, columns):
            raise ValueError(f"{name}: a value of shape {tuple(matrix.shape)}, the program's is {(rows, columns)}")
        if not bool(matrix.isfinite().all()):
            raise ValueError(f"{name}: a value that is not finite")
    elif place["kind"] in ("signed", "unsigned") and columns == 1 and place["pending"] is None:
        signed = place["kind"] == "signed"
        least, most = (-(1 << rows - 1), (1 << rows - 1) - 1) if signed else (0, (1 << rows) - 1)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"{name}={value!r}: it must be an integer from {least} to {most}")
        word = (value - place["offset"]) % (1 << rows)
        matrix = card.new_tensor([[1.0 if word >> i & 1 else -1.0] for i in range(rows)])
    else:
        raise ValueError(f"{name} can be read but not set: set the values that it comes from")
    card[start : start + rows, column : column + columns] = matrix
    if place["plus"] is not None:
        card[place["plus"] : place["plus"] + rows, column : column + columns] = 0
