"""A Turing machine of one's own: one layer, three heads, one step a loop. The rules are on the card, never in the weights.

When a loop begins, the scratchpad knows the state and the symbol under the head. One attention finds the rule for the two
and reads both neighbours of the head; the feed-forward follows the rule. The written symbol waits one loop for the tape:

    head     the scratchpad finds          and takes     another column finds
    act      the column (state, symbol)    the action    itself; the cell `behind` the scratchpad, and takes `done.write`
    left     the cell left of the head     its symbol    itself
    right    the cell right of the head    its symbol    itself

So the tape does not hold the last symbol yet when the head turns back to it. The scratchpad does:

    the head       the next symbol under it
    stays          is what it writes now
    turns back     is what it wrote in the loop before
    goes on        is the neighbour's

A state and symbol without a rule halt: their action writes the same symbol, stays, and says so. The tape is a ring with
`edge` cells between its ends. Their symbol has no rules, so a head that leaves the tape halts there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from punchcard.card.encoding import decode_unsigned, encode_signed, encode_unsigned, pointer_bits
from punchcard.card.layout import Layout, Pattern, Region, RowBlock, holding
from punchcard.errors import ProgramError, SizeError, SourceError
from punchcard.primitives.add import sum_bits
from punchcard.primitives.address import ADDRESS_GAP, store_factor, store_gap
from punchcard.primitives.overwrite import clip_where
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Expression, Rows, relu, rows, stack
from punchcard.transformer.precision import Precision

BLANK, MOVES = "_", {"L": -1, "S": 0, "R": 1}
TAPE, OUTSIDE, PAD = ("tape", "edge"), ("tape", "edge", "table"), ("scratchpad",)


@dataclass(frozen=True)
class Program:
    """Rules (symbol, move, state) by state and symbol, all as numbers; cells from the tape's left end; the head's cell."""

    states: tuple[str, ...]
    symbols: str
    rules: Mapping[tuple[int, int], tuple[int, int, int]]
    tape: tuple[int, ...]
    head: int


@dataclass(frozen=True)
class State:
    """The head stands at -1 or at the number of cells when it has left the tape."""

    tape: tuple[int, ...]
    head: int
    state: int


def assemble(text: str, source: str = "") -> Program:
    """The program of a `.tm` text: lines `tape 10_1`, `head 2` and `state symbol -> symbol move state`."""
    states: dict[str, int] = {}
    symbols, rules, tape, head = {BLANK: 0}, {}, "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        match line.split(";")[0].split():
            case []:
                continue
            case ["tape", cells]:
                tape = cells
            case ["head", cell] if cell.isdecimal():
                head = int(cell)
            case [state, symbol, "->", write, move, after] if move in MOVES and len(symbol) == len(write) == 1:
                key = states.setdefault(state, len(states)), symbols.setdefault(symbol, len(symbols))
                rule = symbols.setdefault(write, len(symbols)), MOVES[move], states.setdefault(after, len(states))
                if rules.setdefault(key, rule) != rule:
                    raise SourceError(f"a second rule for {state} {symbol}", line=number, column=1, text=line, source=source)
            case _:
                raise SourceError(f"{line.strip()!r} is not `tape 10_1`, `head 2` or `state symbol -> symbol L|R|S state`",
                                  line=number, column=1, text=line, source=source)
    if not rules:
        raise ProgramError(f"{source or 'the program'} has no rules")
    cells_ = tuple(symbols.setdefault(symbol, len(symbols)) for symbol in tape)
    return Program(tuple(states), "".join(symbols), rules, cells_, head)


class Interpreter:
    """The oracle: plain Python, one rule at a time."""

    def __init__(self, program: Program, cells: int) -> None:
        self.rules, self.head, self.now, self.steps = program.rules, program.head, 0, 0
        self.tape = [*program.tape, *[0] * (cells - len(program.tape))]

    @property
    def halted(self) -> bool:
        return not 0 <= self.head < len(self.tape) or (self.now, self.tape[self.head]) not in self.rules

    @property
    def state(self) -> State:
        return State(tuple(self.tape), self.head, self.now)

    def step(self) -> None:
        if not self.halted:
            self.tape[self.head], move, self.now = self.rules[self.now, self.tape[self.head]]
            self.head, self.steps = self.head + move, self.steps + 1


@dataclass(frozen=True)
class Sizes:
    states: int
    symbols: int
    cells: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int) or value < 1:
                raise SizeError(f"{name}={value!r}: it must be a positive integer")

    @property
    def state_bits(self) -> int:
        return pointer_bits(self.states)

    @property
    def symbol_bits(self) -> int:
        return pointer_bits(self.symbols + 1)  # the edge has a symbol of its own

    @property
    def cell_bits(self) -> int:
        return pointer_bits(self.cells + 2)  # an edge cell at either end

    @property
    def address_bits(self) -> int:
        return max(self.cell_bits, self.symbol_bits + self.state_bits) + 1

    def rule(self, state: int, symbol: int) -> int:
        """The address of a rule's column; its highest bit is set, those of cells have it clear."""
        return (1 << self.address_bits - 1) + (state << self.symbol_bits) + symbol


class Design:
    """Q bits for a state, S for a symbol, L for an address: 6 L + 2 Q + 6 S + 10 rows."""

    def layout(self, sizes: Sizes) -> Layout:
        q, s, length = sizes.state_bits, sizes.symbol_bits, sizes.address_bits
        action, pad = {"state": q, "write": s, "move": 2, "halt": 1}, holding("bits", *PAD)
        return Layout(
            [
                RowBlock("cell", s, "the tape's symbols", holds=holding("bits", *OUTSIDE), changes=("tape",)),
                RowBlock("place", 3 * length, "each column's address, and those of its neighbours",
                         {"own": length, "left": length, "right": length}, holding("bits", *OUTSIDE)),
                RowBlock("action", q + s + 3, "what a rule does", action, holding("bits", "table")),
                RowBlock("inside", 1, "indicator of the scratchpad", holds=holding("one", *PAD)),
                RowBlock("rule", length, "the rule's address: the symbol under the head, the state, and that it is a rule",
                         {"symbol": s, "state": q, "rest": length - s - q}, pad, PAD),
                RowBlock("head", length, "the head's cell", holds=pad, changes=PAD),
                RowBlock("behind", length, "the head's cell in the loop before", holds=pad, changes=PAD),
                RowBlock("done", s + 3, "the last action", {"write": s, "move": 2, "halt": 1}, pad, PAD),
                RowBlock("next", q + s + 3, "the action of this loop", action),
                RowBlock("seen", 2 * s, "the symbols beside the head", {"left": s, "right": s}),
            ],
            [
                Region("scratchpad", 1, "where the computation happens"),
                Region("tape", sizes.cells, "the tape"),
                Region("edge", (1 << sizes.cell_bits) - sizes.cells, "cells that close the ring"),
                Region("table", sizes.states * (sizes.symbols + 1), "a rule for each state and symbol"),
            ],
        )

    def layers(self, sizes: Sizes, layout: Layout, precision: Precision) -> list[Part]:
        cell, action, one, head, behind, own, written, left, right = (rows(layout, name) for name in (
            "cell", "action", "inside", "head", "behind", "place.own", "done.write", "seen.left", "seen.right"))
        length, low = sizes.address_bits, head[: sizes.cell_bits]
        write, move = rows(layout, "next.write"), rows(layout, "next.move")
        goes, came = _directions(move, one), _directions(rows(layout, "done.move"), one)
        symbol = (_if(write, goes["S"])
                  + _if(left, goes["L"], one - came["R"]) + _if(written, goes["L"], came["R"])
                  + _if(right, goes["R"], one - came["L"]) + _if(written, goes["R"], came["L"]))

        def read(side: str, place: Rows) -> Part:
            return attend(query=place + head, key=place, value=cell, into=rows(layout, side), gap=ADDRESS_GAP)

        return [
            attend(query=own + rows(layout, "rule"), key=store_factor(length) * own + behind, gap=store_gap(length),
                   value=stack(action, 2 * written), into=rows(layout, "next", "cell"))
            + read("seen.left", rows(layout, "place.right"))  # the left neighbour has the head's cell to its right
            + read("seen.right", rows(layout, "place.left"))
            + clip_where(1 - one, cell, precision.gate)
            + assign(rows(layout, "rule.state", "done"), 2 * _if(rows(layout, "next"), one) - one)
            + assign(rows(layout, "rule.symbol"), 2 * symbol - one)
            + assign(behind, head)
            + assign(low, sum_bits(low, stack(move, *[move[1]] * (low.size - 2)), one))
            + clear(rows(layout, "next", "seen"))
        ]

    def halting(self, sizes: Sizes) -> tuple[Pattern, ...]:
        return (Pattern("done.halt", "scratchpad", (1,)),)

    def punch(self, sizes: Sizes, layout: Layout, program: Program) -> Tensor:
        card = layout.blank()

        def put(name: str, region: str, numbers: list[int]) -> None:
            place = layout.rows(name)
            layout.put(card, name, region, encode_unsigned(numbers, place.stop - place.start))

        ring = 1 << sizes.cell_bits
        tape = [*program.tape, *[0] * (sizes.cells - len(program.tape)), *[sizes.symbols] * (ring - sizes.cells)]
        keys = [(state, symbol) for state in range(sizes.states) for symbol in range(sizes.symbols + 1)]
        actions = [program.rules.get(key, (key[1], 0, key[0])) for key in keys]
        for name, shift in {"place.own": 0, "place.left": -1, "place.right": 1}.items():
            places = [(cell + shift) % ring for cell in range(ring)]
            put(name, "tape", places[: sizes.cells])
            put(name, "edge", places[sizes.cells :])
            put(name, "table", [sizes.rule(*key) for key in keys])
        put("cell", "tape", tape[: sizes.cells])
        put("cell", "edge", tape[sizes.cells :])
        put("cell", "table", [0] * len(keys))
        put("action.write", "table", [write for write, _, _ in actions])
        put("action.move", "table", [move % 4 for _, move, _ in actions])
        put("action.state", "table", [state for _, _, state in actions])
        put("action.halt", "table", [int(key not in program.rules) for key in keys])
        layout.put(card, "inside", "scratchpad", 1.0)
        layout.put(card, "done", "scratchpad", -1.0)
        put("done.write", "scratchpad", [tape[program.head]])
        put("rule", "scratchpad", [sizes.rule(0, tape[program.head])])
        put("head", "scratchpad", [program.head])
        put("behind", "scratchpad", [program.head])
        return card

    def read(self, sizes: Sizes, layout: Layout, cards: Tensor) -> list[State]:
        tape = decode_unsigned(layout.get(cards, "cell", "tape"))
        behind, written, head, state = (decode_unsigned(layout.get(cards, name, "scratchpad")) for name in (
            "behind", "done.write", "head", "rule.state"))
        tape = torch.where(torch.arange(sizes.cells) == behind, written, tape)
        head = torch.where(head > sizes.cells, head - (1 << sizes.cell_bits), head)
        return [State(tuple(t), h, q) for t, h, q in zip(tape.tolist(), head[:, 0].tolist(), state[:, 0].tolist(), strict=True)]


def _directions(move: Expression, one: Expression) -> dict[str, Expression]:
    """1 for the direction of a move, which is -1, 0 or 1 in two bits, and 0 for the others."""
    return {"L": 0.5 * (one + move[1]), "R": 0.5 * (move[0] - move[1]), "S": 0.5 * (one - move[0])}


def _if(bits: Expression, *conditions: Expression) -> Expression:
    """1 where a ±1 bit is 1 and so are all conditions, else 0."""
    return relu(bits - 2 * sum((1 - condition for condition in conditions), start=0.0 * conditions[0]))
