"""For the tests of the lowered engine: machines that the package does not contain, and a comparison loop by loop."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from punchcard.card.layout import Layout, Region, RowBlock, holding
from punchcard.engines.base import Run
from punchcard.primitives.bits import increment_bits, step, sum_bits
from punchcard.primitives.memory import ADDRESS_GAP, clip, clip_where, store_factor, store_gap
from punchcard.transformer.build import assign, attend, build, clear
from punchcard.transformer.expression import Expression, gated, rows, stack
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.precision import Precision
from tests.engine_runs import card_with, run_lowered


@contextmanager
def code_kept_in(folder: Path) -> Iterator[None]:
    """Compiled code is kept here and not with the user's."""
    before = os.environ.get("PUNCHCARD_CACHE")
    os.environ["PUNCHCARD_CACHE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PUNCHCARD_CACHE"]
        else:
            os.environ["PUNCHCARD_CACHE"] = before


@dataclass(frozen=True)
class Machine:
    """A model, its layout and a card to begin with."""

    layout: Layout
    model: LoopedTransformer
    card: Tensor


def cards_of(model: LoopedTransformer, card: Tensor, layout: Layout, loops: int) -> tuple[list[Tensor], Run]:
    """The cards after every loop of the lowered engine."""
    seen: list[Tensor] = []
    ran = run_lowered(model, card, loops, facts=layout, watch=lambda _, now: seen.append(now))
    assert (ran.loops, ran.reason, len(seen)) == (loops, "loops", loops)
    assert torch.equal(ran.card.nan_to_num(), seen[-1].nan_to_num())
    return seen, ran


def assert_the_equation(
    model: LoopedTransformer, card: Tensor, layout: Layout, loops: int, *, engine: str = "lowered",
    notes: tuple[str, ...] | None = (),
) -> Run:
    """Every card is bit for bit what the model makes of the one before; `notes` None: whatever they are."""
    seen, ran = cards_of(model, card, layout, loops)
    for loop, found in enumerate(seen, start=1):
        card = model(card)
        wrong = (found != card) & ~(found.isnan() & card.isnan())
        assert not bool(wrong.any()), f"loop {loop}: {int(wrong.sum())} entries differ, at {wrong.nonzero()[0].tolist()}"
    assert engine in ran.made, "it made loops, or was ready to"
    assert sum(ran.made.values()) == loops
    assert ran.made[ran.engine] == max(ran.made.values())
    if not ran.notes or engine != "lowered":
        assert ran.made == {engine: loops}
    if notes is not None:
        assert ran.notes == notes
    return ran


# A Turing machine

STATE_BITS = 2
Rules = Mapping[tuple[int, int], tuple[int, int, int]]
"""(state, symbol) to (state, symbol, step): symbols are 0 and 1, steps -1 and 1."""


def random_rules(rng: random.Random) -> Rules:
    return {(state, symbol): (rng.randrange(1 << STATE_BITS), rng.randrange(2), rng.choice((-1, 1)))
            for state in range(1 << STATE_BITS) for symbol in range(2)}


def turing_machine(rules: Rules, tape: list[int], place: int, bits: int, dtype: torch.dtype = torch.float64) -> Machine:
    """The head reads its cell and follows a rule (layer 1); it stores a symbol there and moves (layer 2, a store key).

    Cells are numbered from 0; the tape is a ring if there are 2^bits of them.
    """
    layout = Layout(
        [RowBlock("symbol", 1, holds=holding("bits", "head", "tape"), changes=("head", "tape")),
         RowBlock("position", bits, holds=holding("bits", "tape")),
         RowBlock("place", bits, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("state", STATE_BITS, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("inside", 1, holds=holding("one", "head")),
         RowBlock("seen", 1), RowBlock("written", 1), RowBlock("back", 1)],
        [Region("head", 1), Region("tape", len(tape))],
    )
    symbol, position, place_row, state, one, seen, written, back = (rows(layout, b.name) for b in layout.blocks)
    applies = {}
    for was, symbol_was in rules:
        signs = [1.0 if was >> i & 1 else -1.0 for i in range(STATE_BITS)] + [1.0 if symbol_was else -1.0]
        agreeing = stack(state, seen).total(signs)  # less by 2 for every bit that differs
        applies[was, symbol_was] = step(0.5 * (agreeing - len(signs) * one), one)

    def bit(wanted: Callable[[int, int, int], object]) -> Expression:
        """1 where a rule applies whose outcome is wanted, else -1."""
        return stack(*(applies[k] for k, rule in rules.items() if wanted(*rule)), 0 * one).total() * 2 - one

    def state_bit(i: int) -> Expression:
        return bit(lambda state, symbol, move: state >> i & 1)

    parts = [
        attend(query=place_row + position, key=position, value=symbol, into=seen, gap=ADDRESS_GAP)
        + assign(state, stack(*map(state_bit, range(STATE_BITS))))
        + assign(written, bit(lambda state, symbol, move: symbol))
        + assign(back, bit(lambda state, symbol, move: move < 0)),
        attend(query=position + place_row, key=store_factor(bits) * position + place_row, value=2 * written, into=symbol,
               gap=store_gap(bits))
        + clip(symbol)
        + assign(place_row, sum_bits(place_row, stack(one, *[back] * (bits - 1)), one))
        + clear(seen) + clear(written) + clear(back),
    ]
    card = card_with(layout, {
        ("symbol", "tape"): tape, ("symbol", "head"): -1.0, ("position", "tape"): list(range(len(tape))),
        ("place", "head"): place, ("state", "head"): 0, ("inside", "head"): 1.0})
    return Machine(layout, build(parts, layout.width, Precision(dtype)), card.to(dtype))


def run_turing_machine(rules: Rules, tape: list[int], place: int, bits: int, loops: int) -> tuple[list[int], int, int]:
    """The same in plain Python: tape, place and state."""
    tape, state = list(tape), 0
    for _ in range(loops):
        state, tape[place], move = rules[state, tape[place]]
        place = (place + move) % (1 << bits)
    return tape, place, state


# Two heads that meet

def painters(cells: int, bits: int, moves: tuple[float, ...] = (1.0, 0.0)) -> Machine:
    """Two heads compute alike: each paints the cell at its place with its colour; the first moves on, the second stays."""
    layout = Layout(
        [RowBlock("colour", 1, holds=holding("fixed", "heads") | holding("bits", "tape"), changes=("tape",)),
         RowBlock("position", bits, holds=holding("bits", "tape")),
         RowBlock("outside", 1, holds=holding("one", "tape")),
         RowBlock("place", bits, holds=holding("bits", "heads"), changes=("heads",)),
         RowBlock("inside", 1, holds=holding("one", "heads")),
         RowBlock("moves", 1, holds=holding("fixed", "heads")),
         RowBlock("paint", 1)],
        [Region("heads", 2, groups=(2,)), Region("tape", cells)],
    )
    colour, position, outside, place, one, going, paint = (rows(layout, b.name) for b in layout.blocks)
    # bits of moves: the lowest is ±1, the others -1
    by = stack(2 * going - one, *[-1 * one] * (bits - 1))
    parts = [
        attend(query=position, key=store_factor(bits) * position + place, value=2 * colour, into=paint, gap=store_gap(bits))
        + clip_where(outside, paint, 8.0)
        + assign(place, sum_bits(place, by, one)),
        assign(colour, colour + gated(paint - colour, 1 - outside, 8.0)) + clear(paint),
    ]
    card = card_with(layout, {
        ("colour", "heads"): torch.tensor([[1.0, -1.0]]), ("colour", "tape"): -1.0, ("position", "tape"): list(range(cells)),
        ("outside", "tape"): 1.0, ("place", "heads"): [0, 3], ("inside", "heads"): 1.0,
        ("moves", "heads"): torch.tensor([list(moves)])})
    return Machine(layout, build(parts, layout.width, Precision()), card)


# Operations that select what a loop does

def operations(ops: list[int], bits: int, op_bits: int = 2) -> Machine:
    """The head reads an operation and counts its number on (bit 0 of the operation), or takes the complement (bit 1).

    The operation decides what the rest of the loop does, and the layout says so. Further bits mean nothing.
    """
    layout = Layout(
        [RowBlock("operation", op_bits, holds=holding("bits", "code")),
         RowBlock("position", bits, holds=holding("bits", "code")),
         RowBlock("counter", bits, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("number", 4, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("inside", 1, holds=holding("one", "head")),
         RowBlock("current", op_bits, parts={"operation": op_bits}, within="bits", selects=("operation",))],
        [Region("head", 1), Region("code", len(ops))],
    )
    operation, position, counter, number, one, current = (rows(layout, b.name) for b in layout.blocks)
    turns = 0.5 * (current[1:2] + one)
    parts = [
        attend(query=counter + position, key=position, value=operation, into=current, gap=ADDRESS_GAP),
        assign(number, sum_bits(number, stack(current[:1], *[-1 * one] * 3), one))
        + assign(counter, increment_bits(counter, one)),
        assign(number, number - 2 * gated(number, 1 - turns, 8.0)) + clear(current),
    ]
    card = card_with(layout, {("operation", "code"): ops, ("position", "code"): list(range(len(ops))),
                              ("counter", "head"): 0, ("number", "head"): 0, ("inside", "head"): 1.0})
    return Machine(layout, build(parts, layout.width, Precision()), card)
