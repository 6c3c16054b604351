"""A fused model writing, token by token: what it wrote, whose token it was, and how many loops it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from punchcard.language_models.fusion.embedding import card_bytes
from punchcard.language_models.fusion.machine import machine_of
from punchcard.language_models.tokens import Tokenizer
from punchcard.machines.riscv.isa import WORD_BITS
from punchcard.machines.riscv.program import RiscvProgram, Segment

if TYPE_CHECKING:
    from punchcard.language_models.fusion.fused_model import FusedForCausalLM, Opinion

KINDS = ("nothing", "says", "forbids")
SHOWN = 8
MARGIN = 256
"""Bytes at the end of the memory, where the arguments of a program are."""


@dataclass(frozen=True)
class WrittenToken:
    """One token.

    token, text    its number, and what it is as text
    skill          the program that had an opinion; "": none, the base wrote it
    opinion        "says": this token; "forbids": not those; "nothing"
    said           the text that the program wanted
    forbidden      the bytes with which no token was to begin
    read           the last tokens that were on the card, the newest last
    loops          of each program that ran, by name
    """

    token: int
    text: str
    skill: str
    opinion: str
    said: str
    forbidden: str
    read: tuple[str, ...]
    loops: dict[str, int]


class TokenWriter:
    """Writes with a fused model, always its best token; of the tokens on the card the last `window` are kept."""

    def __init__(self, model: FusedForCausalLM, tokenizer: Tokenizer, *, window: int = SHOWN) -> None:
        self.model, self.tokenizer, self.window = model, tokenizer, window
        self.shown = card_bytes(tokenizer, model.card.sizes["vocabulary"])
        self.names = [skill["name"] for skill in model.card.sizes["skills"]]
        self.ends = set(self._ends())

    def _ends(self) -> list[int]:
        found = self.model.generation_config.eos_token_id
        return [] if found is None else [found] if isinstance(found, int) else list(found)

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The tokens of a chat, in the tokenizer's template; without one the last message, and where the answer goes."""
        if getattr(self.tokenizer, "chat_template", None):
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            return list(self.tokenizer.encode(text, add_special_tokens=False))
        return list(self.tokenizer.encode(f"Q: {messages[-1]['content']}\nA:"))

    @torch.no_grad()
    def write(self, tokens: list[int], most: int) -> Iterator[WrittenToken]:
        """The tokens that come next, `most` of them at most, until the model ends the text."""
        heard: list[Opinion] = []
        given, cache, context = torch.tensor([tokens]), None, list(tokens)
        self.model.card.observers.append(heard.append)
        try:
            for _ in range(most):
                heard.clear()
                out = self.model(input_ids=given, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, token = out.past_key_values, int(out.logits[0, -1].argmax())
                yield self._written(token, context, heard)
                if token in self.ends:
                    return
                context.append(token)
                given = torch.tensor([[token]])
        finally:
            self.model.card.observers.remove(heard.append)

    @torch.no_grad()
    def program(self, tokens: list[int], skill: str = "") -> RiscvProgram:
        """A skill's program with the end of a text on its card, as it is before the first loop: to run, trace and view."""
        number = self.names.index(skill) if skill else 0
        stream, place = self.model.card, self.model.card.sizes["skills"][number]
        keys, values = stream.offered(torch.tensor([tokens]), 0, None)
        window = stream.windows(keys[0, 0], values[0, 0], torch.tensor([len(tokens) - 1]))[0].reshape(-1, WORD_BITS)
        layout = machine_of(stream.sizes).layout
        memory = stream.cards[number].float()[layout.rows("memory"), layout.region("memory")].T.contiguous()
        first = place["context"] - layout.region("memory").start
        memory[first : first + len(window)] += window
        words = np.packbits(memory.numpy() > 0, axis=1, bitorder="little").tobytes()
        base = stream.sizes["machine"]["base"]
        held = Segment(base, words[:-MARGIN].rstrip(b"\0"), len(words) - MARGIN)
        return RiscvProgram((held,), place["entry"], base, place["symbols"], source=f"{place['name']}.elf")

    def _written(self, token: int, context: list[int], heard: list[Opinion]) -> WrittenToken:
        last = heard[-1]
        bits = last.said.reshape(-1, 8)
        said = bytes(sum(1 << i for i, bit in enumerate(byte.tolist()) if bit > 0) for byte in bits).rstrip(b"\0")
        forbidden = bytes(byte for byte, bit in enumerate(last.never.tolist()) if bit)
        return WrittenToken(
            token, self.tokenizer.decode([token]), self.names[last.skill] if last.kind else "", KINDS[last.kind],
            said.decode(errors="replace") if last.kind == 1 else "",
            forbidden.decode(errors="replace") if last.kind == 2 else "",
            tuple(self.shown[number].decode(errors="replace") for number in context[-self.window:]),
            {self.names[each.skill]: each.loops for each in heard})
