"""A Turing machine of one's own: one layer, three heads, one step a loop. The rules are on the card, never in the weights.

When a loop begins, the scratchpad knows the state and the symbol under the head, so it can find their rule. At the same
time it reads the cells on both sides of the head. What it writes waits one loop for the tape. So the next symbol is

    what is written now                the head stays
    what was written a loop before     it turns back: the tape does not hold that symbol yet
    what was read from its new cell    it goes on

A state and symbol without a rule halt: their action writes the same symbol, stays, and says so. The tape is a ring, closed
by cells whose symbol has no rules (`edge`): a head that leaves the tape halts there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from punchcard.card.encoding import decode_unsigned, encode_unsigned, pointer_bits
from punchcard.card.layout import Layout, Pattern, Region, RowBlock, holding
from punchcard.errors import ProgramError, SourceError
from punchcard.primitives.add import sum_bits
from punchcard.primitives.address import ADDRESS_GAP, store_factor, store_gap
from punchcard.primitives.overwrite import clip_where
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Expression, relu, rows, stack
from punchcard.transformer.precision import Precision

BLANK, MOVES = "_", {"L": -1, "S": 0, "R": 1}


class TuringProgram(NamedTuple):
    """Rules (state, symbol): (symbol, move, state), in numbers. The tape begins with `tape`; the rest is blank, symbol 0."""

    states: tuple[str, ...]
    symbols: str
    rules: Mapping[tuple[int, int], tuple[int, int, int]]
    tape: list[int]
    head: int


class TuringState(NamedTuple):
    """The head is at -1, or at the number of cells, once it has left the tape."""

    tape: list[int]
    head: int
    state: int


def assemble(text: str, source: str = "") -> TuringProgram:
    """The program of a `.tm` text. It begins in the state of the first rule."""
    states, symbols, rules, tape, head = dict[str, int](), {BLANK: 0}, dict[tuple[int, int], tuple[int, int, int]](), "", 0

    def number(name: str, known: dict[str, int]) -> int:
        return known.setdefault(name, len(known))

    for count, line in enumerate(text.splitlines(), start=1):
        match line.split(";")[0].split():
            case []:
                pass
            case ["tape", cells]:
                tape = cells
            case ["head", cell] if cell.isdecimal():
                head = int(cell)
            case [state, symbol, "->", write, move, then] if len(symbol) == len(write) == 1 and move in MOVES and (
                    pair := (number(state, states), number(symbol, symbols))) not in rules:
                rules[pair] = number(write, symbols), MOVES[move], number(then, states)
            case _:
                raise SourceError(f"{line.strip()!r} is not `tape 10_1`, `head 2` or the one rule of its state and symbol: "
                                  "`state symbol -> symbol L|R|S state`", line=count, column=1, text=line, source=source)
    if not rules:
        raise ProgramError(f"{source or 'the program'} has no rules: write `state symbol -> symbol L|R|S state`")
    first = [number(symbol, symbols) for symbol in tape]
    return TuringProgram(tuple(states), "".join(symbols), rules, first, head)


def disassemble(program: TuringProgram) -> str:
    """A `.tm` text that assembles to the same program."""
    states, symbols, moves = program.states, program.symbols, {move: letter for letter, move in MOVES.items()}
    return "\n".join([f"tape {''.join(symbols[s] for s in program.tape) or BLANK}", f"head {program.head}", *(
        f"{states[state]} {symbols[symbol]} -> {symbols[write]} {moves[move]} {states[then]}"
        for (state, symbol), (write, move, then) in program.rules.items()), ""])


class TuringInterpreter:
    """The oracle: one rule at a time, in plain Python."""

    def __init__(self, program: TuringProgram, cells: int) -> None:
        self.rules, self.head, self.now, self.steps = program.rules, program.head, 0, 0
        self.tape = program.tape + [0] * (cells - len(program.tape))

    @property
    def halted(self) -> bool:
        return not 0 <= self.head < len(self.tape) or (self.now, self.tape[self.head]) not in self.rules

    @property
    def state(self) -> TuringState:
        return TuringState(list(self.tape), self.head, self.now)

    def step(self) -> None:
        if not self.halted:
            self.tape[self.head], move, self.now = self.rules[self.now, self.tape[self.head]]
            self.head, self.steps = self.head + move, self.steps + 1


class TuringSizes(NamedTuple):
    states: int
    symbols: int
    cells: int

    @property
    def bits(self) -> tuple[int, int, int, int]:
        """Q, S, P, L: bits of a state; of a symbol, the edge's too; of a cell, beyond the ends too; of an address."""
        q, s, p = pointer_bits(self.states), pointer_bits(self.symbols + 1), pointer_bits(self.cells + 2)
        return q, s, p, max(p, q + s) + 1


class TuringDesign:
    """6 L + 2 Q + 6 S + 10 rows. An address is the number of a cell, or symbol and state of a rule and a highest bit."""

    def layout(self, sizes: TuringSizes) -> Layout:
        q, s, p, length = sizes.bits
        outside, inside, pad = holding("bits", "tape", "edge", "table"), holding("bits", "scratchpad"), ("scratchpad",)
        done, cells = {"write": s, "move": 2, "halt": 1}, {"here": length, "left": length, "right": length}
        return Layout([
            RowBlock("cell", s, "the tape's symbols", {}, holding("bits", "tape", "edge"), ("tape",)),
            RowBlock("address", length, "each column's own", {}, outside),
            RowBlock("action", q + s + 3, "what a rule does", {"state": q, **done}, holding("bits", "table")),
            RowBlock("inside", 1, "indicator of the scratchpad", {}, holding("one", "scratchpad")),
            RowBlock("rule", length, "the rule to follow", {"symbol": s, "state": q, "mark": length - q - s}, inside, pad),
            RowBlock("head", 3 * length, "the head's cell and those beside it", cells, inside, pad),
            RowBlock("behind", length, "the head's cell a loop before", {}, inside, pad),
            RowBlock("done", s + 3, "the action a loop before", done, inside, pad),
            RowBlock("next", q + s + 3, "the action now", {"state": q, **done}),
            RowBlock("seen", 2 * s, "the symbols beside the head", {"left": s, "right": s}),
        ], [
            Region("scratchpad", 1, "where the computation happens"),
            Region("tape", sizes.cells, "the cells"),
            Region("edge", (1 << p) - sizes.cells, "cells beyond both ends of the tape"),
            Region("table", sizes.states * (sizes.symbols + 1), "a rule for each state and symbol"),
        ])

    def layers(self, sizes: TuringSizes, layout: Layout, precision: Precision) -> list[Part]:
        _, _, p, length = sizes.bits
        address, cell, one, behind, written, move = (rows(layout, name) for name in (
            "address", "cell", "inside", "behind", "done.write", "next.move"))
        goes, came = directions(move, one), directions(rows(layout, "done.move"), one)
        # The scratchpad finds its rule. The cell `behind` finds the scratchpad, whose key outranks the cell's own.
        layer = attend(query=address + rows(layout, "rule"), key=store_factor(length) * address + behind,
                       value=stack(rows(layout, "action"), 2 * written), into=rows(layout, "next", "cell"),
                       gap=store_gap(length))
        symbol = both(rows(layout, "next.write"), goes["stay"])
        for side, other in (("left", "right"), ("right", "left")):
            seen, beside = rows(layout, f"seen.{side}"), rows(layout, f"head.{side}")
            layer += attend(query=address + beside, key=address, value=cell, into=seen, gap=ADDRESS_GAP)
            symbol += both(seen, goes[side], one - came[other]) + both(written, goes[side], came[other])
        for part in ("here", "left", "right"):
            number = rows(layout, f"head.{part}")[:p]
            layer += assign(number, sum_bits(number, stack(move, *[move[1]] * (p - 2)), one))
        return [
            layer
            + assign(rows(layout, "rule.state", "done"), 2 * both(rows(layout, "next"), one) - one)
            + assign(rows(layout, "rule.symbol"), 2 * symbol - one)
            + assign(behind, rows(layout, "head.here"))
            + clip_where(1 - one, cell, precision.gate)
            + clear(rows(layout, "next", "seen"))
        ]

    def halting(self, sizes: TuringSizes) -> tuple[Pattern, ...]:
        return (Pattern("done.halt", "scratchpad", (1,)),)

    def punch(self, sizes: TuringSizes, layout: Layout, program: TuringProgram, card: Tensor) -> None:
        _, s, p, length = sizes.bits
        ring, head, mark = 1 << p, program.head, 1 << length - 1
        tape = program.tape + [0] * (sizes.cells - len(program.tape)) + [sizes.symbols] * (ring - sizes.cells)
        pairs = [(state, symbol) for state in range(sizes.states) for symbol in range(sizes.symbols + 1)]
        actions = [(*program.rules.get(pair, (pair[1], 0, pair[0])), pair not in program.rules) for pair in pairs]
        for name, region, numbers in (
            ("cell", "tape", tape[: sizes.cells]),
            ("cell", "edge", tape[sizes.cells :]),
            ("address", "tape", list(range(sizes.cells))),
            ("address", "edge", list(range(sizes.cells, ring))),
            ("address", "table", [mark + (state << s) + symbol for state, symbol in pairs]),
            ("action.state", "table", [state for _, _, state, _ in actions]),
            ("action.write", "table", [write for write, _, _, _ in actions]),
            ("action.move", "table", [move % 4 for _, move, _, _ in actions]),
            ("action.halt", "table", [int(halt) for _, _, _, halt in actions]),
            ("inside", "scratchpad", [1]),
            ("rule", "scratchpad", [mark + tape[head]]),
            ("head.here", "scratchpad", [head]),
            ("head.left", "scratchpad", [(head - 1) % ring]),
            ("head.right", "scratchpad", [(head + 1) % ring]),
            ("behind", "scratchpad", [head]),
            ("done", "scratchpad", [tape[head]]),
        ):
            place = layout.rows(name)
            layout.put(card, name, region, encode_unsigned(numbers, place.stop - place.start))

    def read(self, sizes: TuringSizes, layout: Layout, cards: Tensor) -> list[TuringState]:
        behind, written, head, state = (decode_unsigned(layout.get(cards, name, "scratchpad")) for name in (
            "behind", "done.write", "head.here", "rule.state"))
        tape = torch.where(torch.arange(sizes.cells) == behind, written, decode_unsigned(layout.get(cards, "cell", "tape")))
        return [TuringState(*values) for values in zip(
            tape.tolist(), torch.where(head > sizes.cells, -1, head)[:, 0].tolist(), state[:, 0].tolist(), strict=True)]


def directions(move: Expression, one: Expression) -> dict[str, Expression]:
    """1 for the direction of a move, and 0 for the others; a move is -1, 0 or 1 in two bits."""
    return {"left": 0.5 * (one + move[1]), "right": 0.5 * (move[0] - move[1]), "stay": 0.5 * (one - move[0])}


def both(bits: Expression, *conditions: Expression) -> Expression:
    """1 where a bit is 1 and so are the conditions; 0 where the bit is -1, or a condition is 1/2 or less."""
    return relu(bits - 2 * sum((1 - condition for condition in conditions), start=0 * conditions[0]))
