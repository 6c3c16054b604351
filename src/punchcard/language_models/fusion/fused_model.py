"""A language model with a computer inside, for Hugging Face. This file needs torch and transformers alone.

It is copied as it is into a saved folder, so that `trust_remote_code=True` opens the folder where Punchcard is not
installed. So the whole model is in one file, however long it is.

There are two residual streams. The base's is computed by the base's own code. The card's is this:

    embedding     row t of E: the bits of the bytes of token t, ±1, and 0 behind its last byte
    positions     a token's key is the ±1 encoding of its position; its value is 2 relu(E_t)
    one head      cell j of the card's window takes the token j places back: it asks for that position. A column without
                  bytes scores one less than a match: it answers for places before the text
    loops         card = layers(card), the equation of a looped transformer, until a pattern on the card ends the run
    unembedding   relu(E o - (8 L - 1)) is 1 at the tokens of L bytes with which the text o begins, and 0 at all others

The logits are added. Where the program on the card has no opinion, nothing is added.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer
from transformers.modeling_outputs import CausalLMOutputWithPast

WORD, FORMAT = 32, torch.float32
HARD = 104.0
"""In float32, exp(-104) is 0: at this temperature a head takes from one column alone."""
AT_ONCE = 32
"""Positions whose windows are taken together."""
SAYS, FORBIDS = 1, 2


class FusedConfig(PreTrainedConfig):
    """The configuration of the base, and of the card beside it.

    base   the configuration of the language model
    card   sizes: see `CardStream`
    """

    model_type = "punchcard-fused"
    sub_configs = {"base": AutoConfig}  # noqa: RUF012, as transformers has it

    def __init__(
        self, base: PreTrainedConfig | Mapping[str, Any] | None = None, card: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        found: PreTrainedConfig | None = AutoConfig.for_model(**base) if isinstance(base, Mapping) else base
        self.base = found
        self.card = dict(card or {})
        if found is not None:
            options["tie_word_embeddings"] = bool(getattr(found, "tie_word_embeddings", False))
            for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
                options.setdefault(name, getattr(found, name, None))
            options.setdefault("attn_implementation", getattr(found, "_attn_implementation", None))  # keeps the base's
        super().__init__(**options)

    def get_text_config(self, *args: Any, **options: Any) -> PreTrainedConfig:
        """What a cache is made for."""
        return self if self.base is None else self.base.get_text_config(*args, **options)

    @property
    def vocab_size(self) -> int:
        return 0 if self.base is None else int(self.base.get_text_config().vocab_size)


@contextmanager
def card_settings() -> Iterator[None]:
    """The card is on the CPU, outside autocast; both settings are of this thread alone.

    The default dtype is of the whole process: it is left as it is, and tensors of the card have their own. A default device
    that is the CPU already is left too: a mode of torch makes each of its calls slower.
    """
    is_there = torch.get_default_device().type == "cpu"
    with torch.autocast("cpu", enabled=False), nullcontext() if is_there else torch.device("cpu"):
        yield


class CardLayer(nn.Module):
    """The weights of a layer: X + sum_h V_h X softmax(t_h (K_h X)^T (Q_h X)), then X + W2 relu(W1 X + b1) + b2."""

    key: Tensor
    query: Tensor
    value: Tensor
    temperature: Tensor
    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor

    def __init__(self, width: int, heads: int, key_size: int, hidden: int) -> None:
        super().__init__()
        shapes = {"key": (heads, key_size, width), "query": (heads, key_size, width), "value": (heads, width, width),
                  "temperature": (heads,), "w1": (hidden, width), "b1": (hidden, 1), "w2": (width, hidden), "b2": (width, 1)}
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape, dtype=FORMAT), requires_grad=False))

    def taken(self, card: Tensor, columns: Tensor) -> Tensor:
        """What the heads bring to some columns, as the equation has it."""
        brought = torch.zeros(len(card), len(columns), dtype=FORMAT)
        for head in range(len(self.key)):
            scores = (self.key[head] @ card).T @ (self.query[head] @ card[:, columns])
            brought += self.value[head] @ (card @ torch.softmax(self.temperature[head] * scores, dim=0))
        return brought

    def fed(self, columns: Tensor) -> Tensor:
        """The feed-forward part."""
        return columns + self.w2 @ torch.relu(self.w1 @ columns + self.b1) + self.b2

    def totals(self, sizes: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """What no sum exceeds, in whatever order it is added, and no entry afterwards, for entries up to these sizes."""
        key, query, value, w1, w2 = (each.double().abs() for each in (self.key, self.query, self.value, self.w1, self.w2))
        keys, queries, values = key @ sizes, query @ sizes, value @ sizes
        scores = (keys * queries).sum(-1)
        attended = sizes + values.sum(0)
        units = w1 @ attended + self.b1[:, 0].double().abs()
        outputs = attended + w2 @ units + self.b2[:, 0].double().abs()
        found = {"a key": keys, "a query": queries, "a score": scores, "a score times the temperature":
                 scores * self.temperature.double().abs(), "a row after the attention": attended, "a hidden unit": units,
                 "a row of the output": outputs}
        return found, outputs


@dataclass
class Opinion:
    """What the program on a card says about one position.

    skill    the number of the program
    row      which sequence of the batch
    place    the position of the last token that it has read
    kind     0: nothing; 1: what comes next; 2: what does not
    said     ±1 bits of the bytes that come next
    never    for each byte, 1: no token begins with it
    loops    how many were made
    """

    skill: int
    row: int
    place: int
    kind: int
    said: Tensor
    never: Tensor
    loops: int


class CardStream(nn.Module):
    """The parts beside the language model. `sizes`:

    vocabulary, bytes, tokens         rows of E; bytes of a token; tokens of the window
    position_bits, width, columns     of a position; of the card
    shapes                            of every layer: heads, height of K and Q, hidden units
    word_row                          the first of the 32 rows that hold words
    ends, proper                      patterns that end a run; how many of the first mean that the program came to its end
    active                            columns whose keys and queries change in a loop
    skills                            of each program: its name, the columns `context`, `next`, `never`, `opinion`; for views
                                      its entry and symbols
    height, step                      how much is added to a logit; how much more for each byte
    most_loops                        loops after which a program has no opinion
    """

    cards: Tensor

    def __init__(self, sizes: Mapping[str, Any]) -> None:
        super().__init__()
        self.sizes = dict(sizes)
        self.bits, vocabulary = 8 * sizes["bytes"], sizes["vocabulary"]
        self.tokens = nn.Parameter(torch.zeros(vocabulary, self.bits, dtype=FORMAT), requires_grad=False)
        self.threshold = nn.Parameter(torch.zeros(vocabulary, dtype=FORMAT), requires_grad=False)
        self.reward = nn.Parameter(torch.zeros(vocabulary, dtype=FORMAT), requires_grad=False)
        self.temperature = nn.Parameter(torch.zeros((), dtype=FORMAT), requires_grad=False)
        self.layers = nn.ModuleList(CardLayer(sizes["width"], *shape) for shape in sizes["shapes"])
        self.register_buffer("cards", torch.zeros(len(sizes["skills"]), sizes["width"], sizes["columns"], dtype=torch.int8))
        self.looped: Loops | None = None
        self.engine = "auto"
        self.observers: list[Callable[[Opinion], None]] = []
        self._by_byte: tuple[Any, list[Tensor], Tensor] | None = None
        self._has_warned = False
        self._sums: tuple[object, ...] = ()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> CardStream:
        """Stay on the CPU in float32, whatever the base is moved or cast to: another format would drop bits of weights."""
        if any(each.is_meta for each in self.parameters()):
            super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __getstate__(self) -> dict[str, object]:
        """Without what was prepared from the weights, and without those who watch."""
        return {**self.__dict__, "looped": None, "_sums": (), "observers": []}

    @property
    def looped_layers(self) -> list[CardLayer]:
        """The layers of the machine."""
        return [layer for layer in self.layers if isinstance(layer, CardLayer)]

    def renew(self, logits: torch.dtype = FORMAT) -> None:
        """Before a text: weights may have been changed in a way that leaves no trace, as by `.data`. Then prepare anew."""
        self.check_finite()
        sums = (logits, *(float(each.sum()) + float(each.abs().sum()) for each in self.parameters()))
        if sums != self._sums:
            self.check_sums(logits)
            self._sums, self.looped = sums, None

    def check_finite(self) -> None:
        """Refuse weights that are not finite, and scores that overflow: what they give is not an answer."""
        for name, each in self.named_parameters():
            if not bool(each.isfinite().all()):
                raise ValueError(f"{name} has an entry that is not finite: the card needs finite weights")
        if not torch.isfinite(self.temperature * self.sizes["position_bits"]):
            raise ValueError(f"temperature is {float(self.temperature):.3g}: times a score it is beyond float32")

    def check_sums(self, logits: torch.dtype = FORMAT) -> None:
        """Refuse weights with which a sum of a loop, or what is added to a logit in this format, may overflow."""

        def check(name: str, found: Tensor, dtype: torch.dtype = FORMAT) -> None:
            most, limit = float(found.max()), torch.finfo(dtype).max
            if not most <= limit:
                raise ValueError(f"{name} may reach {most:.3g}, {name_of(dtype)} holds {limit:.3g}")

        tokens = self.tokens.double().abs()
        check("tokens: what the head brings", 2 * tokens)
        sizes = torch.ones(self.sizes["width"], dtype=torch.float64) * (self.cards.abs().max() + 2 * tokens.max())
        for number, layer in enumerate(self.looped_layers):
            sums, sizes = layer.totals(sizes)
            for name, found in sums.items():
                check(f"layers.{number}: {name}", found)
        beyond = torch.relu(tokens.sum(1) - self.threshold.double())
        check("reward: what is added to a logit", self.reward.double().abs() * beyond, logits)

    # The head

    def encoded(self, positions: Tensor) -> Tensor:
        """The ±1 encoding of positions."""
        return ((positions[..., None] >> torch.arange(self.sizes["position_bits"])) & 1).float() * 2 - 1

    def offered(self, tokens: Tensor, start: int, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Keys and values of new tokens, for the cache: (batch, 1, tokens, entries). Masked ones have no bytes."""
        values = 2 * torch.relu(self.tokens[tokens])
        if mask is not None:
            values = values * mask[..., None].to(values.dtype)
        keys = self.encoded(torch.arange(start, start + tokens.shape[1]))
        return keys.expand(len(tokens), 1, -1, -1), values[:, None]

    def windows(self, keys: Tensor, values: Tensor, asked: Tensor) -> Tensor:
        """For each asked position what the head brings to the cells: (asked, tokens, bits).

        A match scores 1 more than a column without bytes, and 2 more than any other position. With temperature >= 104
        all that lose have the weight 0 exactly. So where keys are the positions in sequence, the cells are the last tokens.
        """
        count, bits = self.sizes["tokens"], self.sizes["position_bits"]
        if self.temperature >= HARD:
            first, last = max(0, int(asked.min()) - count + 1), int(asked.max()) + 1
            keys, values = keys[first:last], values[first:last]
            if torch.equal(keys, self.encoded(torch.arange(first, last))):
                behind = torch.cat([torch.zeros(count - 1, self.bits, dtype=FORMAT), values])
                return behind[(asked - first)[:, None] + torch.arange(count)]
        scores = self.encoded(asked[:, None] - torch.arange(count - 1, -1, -1)) @ keys.T
        nothing = torch.full((*scores.shape[:2], 1), bits - 1.0, dtype=FORMAT)
        pattern = torch.softmax(self.temperature * torch.cat([nothing, scores], -1), -1)
        return pattern @ torch.cat([torch.zeros(1, self.bits, dtype=FORMAT), values])

    # The loops

    def opinions(self, keys: Tensor, values: Tensor, asked: Tensor) -> list[Opinion]:
        """What the programs say of each asked position of each sequence; the first that has an opinion is heard."""
        found = []
        for row in range(len(keys)):
            for some in torch.split(asked, AT_ONCE):
                windows = self.windows(keys[row, 0], values[row, 0], some)
                found += [self.opinion(window, row, place) for window, place in zip(windows, some.tolist(), strict=True)]
        return found

    def opinion(self, window: Tensor, row: int = 0, place: int = 0) -> Opinion:
        """What the programs say of one window, in their order."""
        for number in range(len(self.cards)):
            found = self._heard(number, window, row, place)
            for observer in self.observers:
                observer(found)
            if found.kind:
                break
        return found

    def _heard(self, number: int, window: Tensor, row: int, place: int) -> Opinion:
        skill = self.sizes["skills"][number]
        words = self.bits // WORD
        sizes = (("next", words), ("never", 8), ("opinion", 1))
        names = {name: count for name, count in sizes if skill.get(name) is not None}
        columns = [column for name, count in names.items() for column in range(skill[name], skill[name] + count)]
        if self.looped is None:
            self.looped = loops_of(self)
        read, loops, ended = self.looped.run(number, window.reshape(-1, WORD), columns)
        parts = dict(zip(names, torch.split(read, list(names.values())), strict=True))
        blank = -torch.ones(words, WORD, dtype=FORMAT)
        kind = as_word(parts["opinion"][0]) if ended else 0
        if not ended and not self._has_warned:
            self._has_warned = True
            warnings.warn(f"{skill['name']}: the program has not ended after {loops} loops, or came to a fault: it has no "
                          "opinion there", stacklevel=2)
        if {SAYS: "next", FORBIDS: "never"}.get(kind) not in parts:
            kind = 0
        never = (parts.get("never", -torch.ones(8, WORD, dtype=FORMAT)).reshape(-1) + 1) / 2
        return Opinion(number, row, place, kind, parts.get("next", blank).reshape(-1), never, loops)

    # The unembedding

    def added(self, opinion: Opinion) -> Tensor:
        """What one opinion adds to the logits of a position."""
        by_byte, first = self._first_bytes()
        if opinion.kind == FORBIDS:  # F m, with F one-hot: a row has its 1 at the token's first byte
            forbidden: Tensor = -self.sizes["height"] * torch.cat([opinion.never, torch.zeros(1, dtype=FORMAT)])[first]
            return forbidden
        added = torch.zeros(len(self.tokens), dtype=FORMAT)
        rows = by_byte[as_word(opinion.said[:8])] if by_byte else torch.arange(len(self.tokens))
        added[rows] = self.reward[rows] * torch.relu(self.tokens[rows] @ opinion.said - self.threshold[rows])
        return added

    def _first_bytes(self) -> tuple[list[Tensor], Tensor]:
        """The tokens that begin with each byte, and the first byte of each token, 256 where it has none.

        A token with another first byte than the text misses at least 2 of its 8 L: its relu is 0, and it is left out. That
        is so where E holds ±1 and 0 alone; else the first is empty, and all rows are computed.
        """
        version = self.tokens._version, self.tokens.data_ptr(), float(self.tokens.sum())
        if self._by_byte is None or self._by_byte[0] != version:
            bits = self.tokens[:, :8]
            whole = bool((bits.abs() == 1).all(1).logical_or((self.tokens == 0).all(1)).all())
            whole = whole and bool(((self.tokens.abs() == 1) | (self.tokens == 0)).all())
            first = ((bits > 0).long() << torch.arange(8)).sum(1)
            first[(bits == 0).all(1)] = 256
            self._by_byte = version, [torch.where(first == byte)[0] for byte in range(256)] if whole else [], first
        return self._by_byte[1], self._by_byte[2]


def name_of(dtype: torch.dtype) -> str:
    """A number format's name, such as "float32"."""
    return str(dtype).removeprefix("torch.")


def check_card(loop: int, card: Tensor) -> None:
    """Refuse a card, or columns of one, that a sum has left its number format for."""
    if not bool(card.isfinite().all()):
        raise ValueError(f"after loop {loop} the card has an entry that is not finite: with these weights its sums leave "
                         f"{name_of(FORMAT)}")


def as_word(bits: Tensor) -> int:
    """A number from its ±1 bits."""
    return sum(1 << i for i, bit in enumerate(bits.tolist()) if bit > 0)


class Loops(Protocol):
    """Makes the loops of a skill."""

    def run(self, skill: int, words: Tensor, columns: Sequence[int]) -> tuple[Tensor, int, bool]:
        """Words in some columns after a run that begins with these words in the window; loops; whether it ended."""
        ...


def loops_of(stream: CardStream) -> Loops:
    """What makes the loops: Punchcard's engines, where it is installed; else the equation, in this file."""
    if stream.engine != "equation" and find_spec("punchcard") is not None:
        try:
            from punchcard.language_models.fusion.runner import KeptRunner
        except ImportError:
            pass
        else:
            return KeptRunner(stream)
    return ScratchpadLoops(stream)


class NotHard(Exception):
    """A head takes from several columns, or another column than expected changes: the layer must be computed in full."""


class LayerView:
    """A layer, prepared for cards of which few columns change: keys and queries of all others are known beforehand.

    best      for each head and column, the largest score among the columns that are not active
    itself    whether that is the column's own: then it takes from itself; else it takes nothing, which is checked
    sources   the columns from which others take nothing
    """

    def __init__(self, layer: CardLayer, card: Tensor, active: Tensor) -> None:
        self.layer, self.active = layer, active
        self.w1, self.w2 = layer.w1.to_sparse(), layer.w2.to_sparse()
        self.passive = torch.ones(len(card), dtype=torch.bool)
        self.passive[active] = False
        self.keys = [card @ key.T for key in layer.key]
        self.queries = [card @ query.T for query in layer.query]
        self.sources = torch.zeros(len(card), dtype=torch.bool)
        found = [self._winners(head, card) for head in range(len(layer.key))]
        self.best, self.itself = [best for best, _ in found], [itself for _, itself in found]

    def _winners(self, head: int, card: Tensor) -> tuple[Tensor, Tensor]:
        keys = torch.where(self.passive)[0]
        asked, which = torch.unique(self.queries[head], dim=0, return_inverse=True)
        offered = self.keys[head][keys].T.contiguous()
        tops = [(self.layer.temperature[head] * (some @ offered)).topk(2) for some in torch.split(asked, 256)]
        values, places = (torch.cat(each)[which] for each in zip(*tops, strict=True))
        winner = keys[places[:, 0]]
        itself = winner == torch.arange(len(card))
        others = torch.unique(winner[self.passive & ~itself])
        self.sources[others] = True
        if bool((values[:, 0] - values[:, 1] < HARD)[self.passive].any()) or bool(self._value(head, card[others]).any()):
            raise NotHard
        return values[:, 0], itself

    def _value(self, head: int, columns: Tensor) -> Tensor:
        return columns @ self.layer.value[head].T

    def _fed(self, columns: Tensor) -> Tensor:
        """The feed-forward part, for columns that lie in rows here."""
        hidden = torch.relu(self.w1 @ columns.T + self.layer.b1)
        return columns + (self.w2 @ hidden + self.layer.b2).T

    def undisturbed(self, card: Tensor, some: Tensor | None = None, won: Sequence[Tensor] = ()) -> Tensor:
        """What the heads bring to some columns, or all, from themselves: not where an active column has won."""
        columns = card if some is None else card[some]
        brought = torch.zeros_like(columns)
        for head, itself in enumerate(self.itself):
            takes = itself.clone()
            takes[won[head] if won else self.active] = False
            takes = takes if some is None else takes[some]
            brought[takes] += self._value(head, columns[takes])
        return brought

    def settled(self, card: Tensor) -> Tensor:
        """Which columns stay as they are, while no active column wins there."""
        return ~self.passive | (self._fed(card + self.undisturbed(card)) == card).all(1)

    def after(self, card: Tensor, unsettled: Tensor) -> tuple[Tensor, Tensor]:
        """The columns that may change in this layer, and what they become."""
        own, brought, won = card[self.active], [], []
        for head, temperature in enumerate(self.layer.temperature):
            keys = self.keys[head].clone()
            keys[self.active] = own @ self.layer.key[head].T
            top = (temperature * ((own @ self.layer.query[head].T) @ keys.T)).topk(2)
            lead = temperature * (self.queries[head] @ keys[self.active].T) - self.best[head][:, None]
            if bool((top.values[:, 0] - top.values[:, 1] < HARD).any()) or bool((lead.abs() < HARD)[self.passive].any()):
                raise NotHard
            brought.append((self.active, self._value(head, card[top.indices[:, 0]])))
            columns, whose = torch.where((lead > 0) & self.passive[:, None])
            brought.append((columns, self._value(head, own[whose])))
            won.append(torch.cat([self.active, columns]))
        some = torch.unique(torch.cat([self.active, unsettled, *won]))
        taken = card[some] + self.undisturbed(card, some, won)
        for columns, values in brought:
            taken.index_add_(0, torch.searchsorted(some, columns), values)
        return some, self._fed(taken)

    def check(self, columns: Tensor, card: Tensor) -> None:
        """Columns that are not active keep their keys and queries, and no other column takes from them."""
        if bool(self.sources[columns].any()):
            raise NotHard
        for head in range(len(self.layer.key)):
            for known, weights in ((self.keys[head], self.layer.key[head]), (self.queries[head], self.layer.query[head])):
                if not torch.equal(known[columns], card[columns] @ weights.T):
                    raise NotHard


class ScratchpadLoops:
    """The equation, of which only what can change is computed.

    Keys and queries change in the `active` columns alone. For every other column the best of the others is known; in a loop
    it is compared with the active ones. A column that takes nothing, and that no layer changes, is left alone. Where a head
    is not hard, or another column's keys change, all columns are computed.
    """

    def __init__(self, stream: CardStream) -> None:
        self.stream = stream
        self.active = torch.tensor(stream.sizes["active"])
        self.views: list[LayerView] | None = None
        self.version: tuple[Any, ...] = ()
        self.restless: dict[int, Tensor] = {}

    @torch.no_grad()
    def run(self, skill: int, words: Tensor, columns: Sequence[int]) -> tuple[Tensor, int, bool]:
        """Words in some columns after a run that begins with these words in the window; loops; whether it ended."""
        sizes, rows = self.stream.sizes, slice(self.stream.sizes["word_row"], self.stream.sizes["word_row"] + WORD)
        card = self.stream.cards[skill].T.float().contiguous()
        context = sizes["skills"][skill]["context"]
        card[context : context + len(words), rows] += words
        unsettled = {column: len(self.stream.layers) for column in self._prepared(skill, card).tolist()}
        unsettled |= dict.fromkeys(range(context, context + len(words)), len(self.stream.layers))
        for loop in range(1, sizes["most_loops"] + 1):
            for number, layer in enumerate(self.stream.looped_layers):
                try:
                    card = self._step(number, card, unsettled, loop)
                except NotHard:
                    self.views = None
                if self.views is None:
                    card = self._in_full(layer, card)
                    check_card(loop, card)
            for kind, pattern in enumerate(sizes["ends"]):
                wanted = torch.tensor(pattern["bits"])
                entries = card[pattern["column"], pattern["rows"] : pattern["rows"] + len(wanted)]
                if bool((((entries - wanted).abs() < 0.5) | (wanted == 0)).all()):
                    return card[list(columns), rows], loop, kind < sizes["proper"]
        return card[list(columns), rows], sizes["most_loops"], False

    def _prepared(self, skill: int, card: Tensor) -> Tensor:
        """Prepare the layers, if that is not done; the columns of this card that a layer would change."""
        version = tuple((each._version, each.data_ptr()) for each in self.stream.layers.parameters())
        if version != self.version:
            self.version, self.restless = version, {}
            try:
                self.views = [LayerView(layer, card, self.active) for layer in self.stream.looped_layers]
            except NotHard:
                self.views = None
        if self.views is None:
            return torch.zeros(0, dtype=torch.long)
        if skill not in self.restless:
            settled = torch.stack([view.settled(card) for view in self.views]).all(0)
            self.restless[skill] = torch.where(~settled)[0]
        return self.restless[skill]

    def _step(self, number: int, card: Tensor, unsettled: dict[int, int], loop: int) -> Tensor:
        """A layer. A column that has changed is computed until no layer has changed it."""
        if self.views is None:
            return card
        some, following = self.views[number].after(card, torch.tensor(list(unsettled), dtype=torch.long))
        check_card(loop, following)
        moved = (following != card[some]).any(1)
        card[some] = following
        for column in list(unsettled):
            unsettled[column] -= 1
            if not unsettled[column]:
                del unsettled[column]
        changed = some[moved & self.views[number].passive[some]]
        unsettled |= dict.fromkeys(changed.tolist(), len(self.views))
        for view in self.views if len(changed) else ():
            view.check(changed, card)
        return card

    def _in_full(self, layer: CardLayer, card: Tensor) -> Tensor:
        """All columns, as the equation has them."""
        every, turned = torch.arange(len(card)), card.T
        return torch.cat([layer.fed(turned[:, some] + layer.taken(turned, some)).T for some in torch.split(every, 512)])


def is_text(mask: Tensor | Mapping[str, Tensor] | None, start: int, count: int) -> Tensor | None:
    """Which of the last tokens are not padding, by the mask of attention; None: all.

    With a static cache `generate` gives (batch, 1, queries, keys), of each kind of layer or of all. Padding is what no query
    attends to. A query that attends to what comes after it is padding itself: it has nothing else, and its row is open.
    """
    if isinstance(mask, Mapping):
        mask = next((each for each in mask.values() if isinstance(each, Tensor)), None)
    if not isinstance(mask, Tensor) or mask.ndim not in (2, 4):
        return None
    if mask.ndim == 2:
        return mask[:, -count:].cpu()
    seen = mask[:, 0] if mask.dtype == torch.bool else mask[:, 0] == 0
    later = torch.arange(seen.shape[2], device=seen.device) > torch.arange(start, start + count, device=seen.device)[:, None]
    proper = ~(seen & later).any(-1, keepdim=True)
    return (seen & proper).any(1)[:, start : start + count].cpu()


class FusedForCausalLM(PreTrainedModel, GenerationMixin):
    """A language model and a card stream beside it: `generate` and `pipeline` take it as any other."""

    config_class = FusedConfig
    config: FusedConfig
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_attention_backend = True
    _keep_in_fp32_modules_strict = ["card"]  # noqa: RUF012, as transformers has it

    def __init__(self, config: FusedConfig, language_model: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.language_model = AutoModelForCausalLM.from_config(config.base) if language_model is None else language_model
        self.card = CardStream(config.card)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """All weights are loaded: the base's were trained, the card's are set by formula."""

    def get_input_embeddings(self) -> nn.Module:
        found: nn.Module = self.language_model.get_input_embeddings()
        return found

    def get_output_embeddings(self) -> nn.Module:
        found: nn.Module = self.language_model.get_output_embeddings()
        return found

    def resize_token_embeddings(self, *args: object, **options: object) -> nn.Module:
        """Refused: the card has a row for each token of the base."""
        raise ValueError("a fused model keeps its vocabulary: resize its `language_model`, and fuse that again")

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        """As the base has it. `generate` looks at the names here."""
        prepared: dict[str, Any] = self.language_model.prepare_inputs_for_generation(input_ids, **kwargs)
        return prepared

    def forward(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, position_ids: Tensor | None = None,
        past_key_values: Cache | None = None, inputs_embeds: Tensor | None = None, labels: Tensor | None = None,
        use_cache: bool | None = None, logits_to_keep: int | Tensor = 0, return_dict: bool | None = None, **options: Any,
    ) -> CausalLMOutputWithPast | tuple[object, ...]:
        """The base's logits, and what the card adds to them."""
        if input_ids is None or inputs_embeds is not None:
            raise ValueError("inputs_embeds: the card reads tokens, so a fused model needs input_ids")
        if past_key_values is None and use_cache is not False:
            past_key_values = DynamicCache(config=self.config.get_text_config())
        start = 0 if past_key_values is None else int(past_key_values.get_seq_length())  # a static one counts in place
        if position_ids is not None:
            options["position_ids"] = position_ids
        out = self.language_model(
            input_ids=input_ids, attention_mask=attention_mask, past_key_values=past_key_values, use_cache=use_cache,
            logits_to_keep=logits_to_keep, return_dict=True, **options)
        added = self._added(out.logits, input_ids, attention_mask, past_key_values, start, logits_to_keep)
        if added:
            out.logits = out.logits.clone()
        for place, what in added.items():
            out.logits[place] += what
        if labels is not None:
            out.loss = self.loss_function(logits=out.logits, labels=labels, vocab_size=self.config.vocab_size)
        return out.to_tuple() if return_dict is False else out

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    @torch.no_grad()
    @card_settings()
    def _added(self, logits: Tensor, tokens: Tensor, mask: Tensor | None, cache: Cache | None, start: int,
               kept: int | Tensor) -> dict[tuple[int, int], Tensor]:
        """What the card adds, by sequence and place among the logits; nothing where there is no opinion."""
        tokens = tokens.cpu()
        count = tokens.shape[1]
        if not start:
            self.card.renew(logits.dtype)
        keys, values = self.card.offered(tokens, start, is_text(mask, start, count))
        if cache is not None:
            keys, values = self._cached(cache, keys, values, start)
        elif start:
            raise ValueError(f"the card must read the {start} tokens before these too: give the cache that this model "
                             "filled with them, or all tokens at once")
        asked = torch.arange(start, start + count)
        asked = asked[kept.cpu()] if isinstance(kept, Tensor) else asked[-logits.shape[1]:]
        found = self.card.opinions(keys, values, asked)
        added = {divmod(number, len(asked)): self.card.added(opinion).to(logits.device, logits.dtype)
                 for number, opinion in enumerate(found) if opinion.kind}
        for place, what in added.items():
            if bool((logits[place].isfinite() & ~(logits[place] + what).isfinite()).any()):
                raise ValueError(f"what the card adds to a logit leaves {name_of(logits.dtype)}")
        return added

    def _cached(self, cache: Cache, keys: Tensor, values: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """The card's keys and values are one more layer of the cache: what is done to a cache is done to them."""
        layer = self.config.get_text_config().num_hidden_layers
        while len(cache.layers) <= layer:
            cache.layers.append(DynamicLayer())
        held = cache.layers[layer].get_seq_length()
        if held != start:
            raise ValueError(f"the cache holds {start} tokens, and the card has read {held} of them: use a cache that this "
                             "model has filled from the beginning")
        found: tuple[Tensor, Tensor] = cache.layers[layer].update(keys, values)
        return found


FusedConfig.register_for_auto_class()
FusedForCausalLM.register_for_auto_class("AutoModelForCausalLM")
