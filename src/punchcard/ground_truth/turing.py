"""A machine of your own, a Turing machine: one layer, one step a loop. The rules are on the card, never in the weights.

    python examples/turing/turing.py run examples/turing/increment.tm --trace

When a loop begins, the scratchpad has the state and the symbol under the tape's head. Three heads of attention look at once:

         who looks           what it finds                  what it takes
    1    the scratchpad      the rule of symbol and state   its action: next state, what to write, left, right, halt
         the square behind   the scratchpad                 the symbol that was written there a loop before
    2    the scratchpad      the square on the left         its symbol
    3    the scratchpad      the square on the right        its symbol

`behind` is where the tape's head was a loop before: what is written reaches the tape a loop late. A state and symbol without
a rule halt: their action writes the same symbol, stays, and says so. The tape is a ring, closed by an edge of squares whose
symbol has no rules: a head that leaves the tape halts there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np

import punchcard
from punchcard.machines import toolkit as kit

MOVES = {"L": -1, "S": 0, "R": 1}


class Configuration(NamedTuple):
    """Symbols and state by number. The head is at -1, or at the number of squares, once it has left the tape."""

    tape: list[int]
    head: int
    state: int


class TuringProgram(NamedTuple):
    """Rules (state, symbol): (symbol, move, state), by number in the order of the text. Symbol 0 is blank."""

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    rules: dict[tuple[int, int], tuple[int, int, int]]
    begin: Configuration

    def step(self, at: Configuration) -> Configuration | None:
        """The oracle, in plain Python: the next configuration, or None if there is no rule: it has halted."""
        tape, head, state = at
        if not 0 <= head < len(tape) or (state, tape[head]) not in self.rules:
            return None
        new, move, then = self.rules[state, tape[head]]
        return Configuration([*tape[:head], new, *tape[head + 1 :]], head + move, then)

    def drawn(self, at: Configuration) -> str:
        """The tape as text, with the head in brackets; a symbol that the program does not have is a ?."""
        tape = [dict(enumerate(self.symbols)).get(symbol, "?") for symbol in at.tape]
        return "".join(f"[{symbol}]" if i == at.head else symbol for i, symbol in enumerate(tape))


def assemble(text: str, source: str = "") -> TuringProgram:
    states, symbols = defaultdict[str, int](count().__next__), defaultdict[str, int](count(1).__next__, {"_": 0})
    rules, tape = dict[tuple[int, int], tuple[int, int, int]](), "[_]"
    for number, line in enumerate(text.splitlines(), start=1):
        match line.split(";")[0].split():
            case ["tape", squares] if re.fullmatch(r"[^][]*\[[^][]\][^][]*", squares):
                tape = squares
            case [state, old, "->", new, move, then] if re.fullmatch(r"[^][]{2}", old + new) and move in MOVES and (
                    pair := (states[state], symbols[old])) not in rules:
                rules[pair] = symbols[new], MOVES[move], states[then]
            case [_, *_]:
                raise kit.SourceError(f"{line.strip()!r} is not a tape with the head in brackets, `tape _[1]01_`, or the "
                                      "only rule of its state and symbol, `state symbol -> symbol L|S|R state`",
                                      line=number, column=1, text=line, source=source)
    if not rules:
        raise kit.ProgramError(f"{source or 'the program'} has no rules: write `state symbol -> symbol L|S|R state`")
    begin = Configuration([symbols[symbol] for symbol in tape if symbol not in "[]"], tape.index("["), 0)
    return TuringProgram(tuple(states), tuple(symbols), rules, begin)


def disassemble(program: TuringProgram) -> str:
    states, symbols, letters = program.states, program.symbols, {move: letter for letter, move in MOVES.items()}
    return f"tape {program.drawn(program.begin)}\n" + "".join(
        f"{states[state]} {symbols[old]} -> {symbols[new]} {letters[move]} {states[then]}\n"
        for (state, old), (new, move, then) in program.rules.items())


class Sizes(NamedTuple):
    states: int
    symbols: int
    squares: int

    def bits(self) -> tuple[int, int, int, int]:
        """Of a state; of a symbol, the edge's too; of a square, with one beyond each end; of an address."""
        q, s, p = kit.pointer_bits(self.states), kit.pointer_bits(self.symbols + 1), kit.pointer_bits(self.squares + 2)
        return q, s, p, max(p, q + s) + 1


class TuringDesign(kit.Design[Sizes]):
    """A square's address is its number; a rule's is its symbol, its state and a highest bit."""

    name, idle = "one-layer", 1

    def layout(self, sizes: Sizes) -> kit.Layout:
        q, s, p, length = sizes.bits()
        pad, done = (kit.holding("bits", "scratchpad"), ("scratchpad",)), {"write": s, "left": 1, "right": 1, "halt": 1}
        return kit.Layout([
            kit.RowBlock("square", s, "the tape's symbols", {}, kit.holding("bits", "tape"), ("tape",)),
            kit.RowBlock("address", length, "of a square or a rule", {}, kit.holding("bits", "tape", "table")),
            kit.RowBlock("action", q + s + 3, "what a rule does", {"state": q, **done}, kit.holding("bits", "table")),
            kit.RowBlock("inside", 1, "1 in the scratchpad", {}, kit.holding("one", "scratchpad")),
            kit.RowBlock("rule", length, "the rule to follow", {"symbol": s, "state": q, "mark": length - q - s}, *pad),
            kit.RowBlock("here", length, "the square of the tape's head", {}, *pad),
            kit.RowBlock("beside", 2 * length, "the squares on both sides", {"left": length, "right": length}, *pad),
            kit.RowBlock("behind", length, "where the head was a loop before", {}, *pad),
            kit.RowBlock("done", s + 3, "the action a loop before", done, *pad),
            kit.RowBlock("next", q + s + 3, "the action now", {"state": q, **done}),
            kit.RowBlock("seen", 2 * s, "the symbols on both sides", {"left": s, "right": s}),
        ], [
            kit.Region("scratchpad", 1, "where the computation happens"),
            kit.Region("tape", 1 << p, "the squares, and the edge"),
            kit.Region("table", sizes.states * (sizes.symbols + 1), "a rule for each state and symbol"),
        ], self.facts(sizes))

    def facts(self, sizes: Sizes) -> list[kit.AnyFact]:
        """What a proof needs to know of a card: addresses, rules that lead somewhere, and where the head was."""
        (q, s, p, length), edge = sizes.bits(), sizes.symbols + 1
        pairs = product(range(sizes.states), range(edge))

        def goes(column: kit.ColumnWords, rows: str, left: int, right: int) -> kit.Word:
            return column[f"{rows}.left"].equals(left) & column[f"{rows}.right"].equals(right)

        def is_rule(column: kit.ColumnWords) -> kit.Word:
            return (column["rule.mark"].equals(1 << length - q - s - 1) & column["rule.state"].less(sizes.states)
                    & column["rule.symbol"].less(edge))

        def is_action(column: kit.ColumnWords) -> kit.Word:
            moves = kit.any_of(*(goes(column, "action", *move) for move in ((0, 0), (0, 1), (1, 0))))
            return column["action.state"].less(sizes.states) & column["action.write"].less(edge) & moves

        def is_beside(column: kit.ColumnWords) -> kit.Word:  # modulo the number of squares
            return kit.all_of(*(column[f"beside.{side}"].equals((column["here"][:p] + step).extend(length))
                                for side, step in (("left", -1), ("right", 1))))

        def came(column: kit.ColumnWords) -> kit.Word:
            return kit.any_of(*(goes(column, "done", *move) & column["behind"].equals(column[rows]) for move, rows in (
                ((0, 0), "here"), ((1, 0), "beside.right"), ((0, 1), "beside.left"))))

        return [kit.Holds("address", "tape", range(1 << p)),
                kit.Holds("address", "table", [(1 << length - 1) + (state << s) + old for state, old in pairs]),
                kit.Fact("tape", lambda column: column["square"].less(edge), "a square holds a symbol, or the edge"),
                kit.Fact("table", is_action, "a rule leads to a state, writes a symbol and goes one way at most"),
                *(kit.Fact("scratchpad", predicate, about) for about, predicate in {
                    "the rule is one of the table": is_rule,
                    "the head is on the tape": lambda column: column["here"].less(1 << p),
                    "what was written is a symbol": lambda column: column["done.write"].less(edge),
                    "the squares beside it are its neighbours": is_beside,
                    "the head came from where it was": came}.items())]

    def layers(self, sizes: Sizes, layout: kit.Layout, precision: kit.Precision) -> list[kit.Part]:
        x, relu, (_, _, p, length) = partial(kit.rows, layout), kit.relu, sizes.bits()
        one, address, square, behind, written = x("inside"), x("address"), x("square"), x("behind"), x("done.write")
        # Head 1: in the scratchpad, the key for the square behind outranks that square's own.
        layer = kit.attend(query=address + x("rule"), key=kit.store_factor(length) * address + behind,
                           value=kit.stack(x("action"), 2 * written), into=x("next", "square"), gap=kit.store_gap(length))
        symbol = relu(x("next.write") - x("next.left") - x("next.right") + one - 3)  # the head stays: what is written now
        for side, back in ("left", "right"), ("right", "left"):  # heads 2 and 3
            seen, goes, came = x(f"seen.{side}"), x(f"next.{side}"), x(f"done.{back}")
            layer += kit.attend(query=address + x(f"beside.{side}"), key=address, value=square, into=seen,
                                gap=kit.ADDRESS_GAP)
            symbol += relu(seen + goes - came + 2 * one - 4)  # it goes on: what it saw there
            symbol += relu(written + goes + came - 2)  # it turns back: what was written there, which the tape has not yet
        move = kit.stack(x("next.left") + x("next.right") + one, *[x("next.left")] * (p - 1))  # -1, 0 or 1 in P bits
        for number in x("here")[:p], x("beside.left")[:p], x("beside.right")[:p]:
            layer += kit.assign(number, kit.sum_bits(number, move, one))
        layer += kit.assign(behind, x("here")) + kit.assign(x("rule.symbol"), 2 * symbol - one)
        layer += kit.assign(x("rule.state", "done"), 2 * relu(x("next") + 2 * one - 2) - one)
        return [layer + kit.clip_where(1 - one, square, precision.gate) + kit.clear(x("next", "seen"))]

    def halting(self, sizes: Sizes) -> tuple[kit.Pattern, ...]:
        return (kit.Pattern("done.halt", "scratchpad", (1,)),)

    def punch(self, sizes: Sizes, layout: kit.Layout, content: TuringProgram, card: kit.Card) -> None:
        (_, s, p, length), (tape, head, _), rules = sizes.bits(), content.begin, content.rules
        ring, mark, pairs = 1 << p, 1 << length - 1, list(product(range(sizes.states), range(sizes.symbols + 1)))
        tape = tape + [0] * (sizes.squares - len(tape)) + [sizes.symbols] * (ring - sizes.squares)
        new, move, then = zip(*(rules.get((state, old), (old, 0, state)) for state, old in pairs), strict=True)
        layout.put_numbers(card, "tape", {"square": tape, "address": range(ring)})
        layout.put_numbers(card, "table", {
            "address": [mark + (state << s) + old for state, old in pairs], "action.state": then, "action.write": new,
            "action.left": [m < 0 for m in move], "action.right": [m > 0 for m in move],
            "action.halt": [pair not in rules for pair in pairs]})
        layout.put_numbers(card, "scratchpad", {
            "inside": [1], "rule": [mark + tape[head]], "done": [tape[head]], "behind": [head], "here": [head],
            "beside.left": [(head - 1) % ring], "beside.right": [head + 1]})

    def read(self, sizes: Sizes, layout: kit.Layout, card: kit.Cards) -> list[Configuration]:
        behind, written, here, state = (
            layout.numbers(card, name, "scratchpad") for name in ("behind", "done.write", "here", "rule.state"))
        tape = layout.numbers(card, "square", "tape")[:, : sizes.squares]
        tape = np.where(np.arange(sizes.squares) == behind, written, tape)  # what has not reached it yet
        head = np.where(here > sizes.squares, -1, here)
        return [Configuration(t, h, q) for t, [h], [q] in zip(tape.tolist(), head.tolist(), state.tolist(), strict=True)]


class TuringVariation(kit.Variation):
    """For docs/ground-truth.md: random programs; another symbol near the head, another first square, another rule."""

    def random(self) -> TuringProgram:
        (states, symbols, squares), below = Sizes(**self.machine.options), self.below
        rules = {pair: (below(symbols), below(3) - 1, below(states)) for pair in product(range(states), range(symbols))
                 if below(10)}  # a tenth of them halt
        return TuringProgram(tuple(f"q{i}" for i in range(states)), tuple("_abcdefgh"[:symbols]), rules,
                             Configuration([below(symbols) for _ in range(squares)], below(squares), 0))

    def changed(self, program: TuringProgram, kind: str, state: Configuration) -> kit.ChangedProgram | None:
        (states, symbols, squares), (tape, head, _) = Sizes(**self.machine.options), program.begin
        if not 0 <= state.head < squares:
            return None
        square, pair = (state.head + self.below(3) - 1) % len(tape), (state.state, state.tape[state.head])
        data, pointer = [*tape[:square], self.below(symbols), *tape[square + 1 :]], self.below(len(tape))
        rule = self.below(symbols), self.below(3) - 1, self.below(states)
        made = {"data": (program._replace(begin=program.begin._replace(tape=data)), f"square {square}: {data[square]}"),
                "pointer": (program._replace(begin=program.begin._replace(head=pointer)), f"head: {head} -> {pointer}"),
                "instruction": (program._replace(rules={**program.rules, pair: rule}), f"the rule of {pair}: {rule}")}
        return kit.ChangedProgram(made[kind][0], kind, made[kind][1])


class TuringMachine(kit.Machine[TuringProgram, Configuration]):
    kind = kit.Kind("turing", "a Turing machine, one step a loop", TuringProgram, designs=("one-layer",),
                    languages=[kit.Language("Turing machine", (".tm",), assemble)], disassemble=disassemble, options=tuple(
                        kit.Option(name, f"{name} of the machine", least=1, most=1 << 16) for name in Sizes._fields),
                    variation=TuringVariation, stock="turing_stock:TuringText")
    designs = kit.by_name(TuringDesign())

    def __init__(self, *, states: int = 4, symbols: int = 3, squares: int = 30, design: str = "one-layer",
                 precision: kit.AsPrecision = "float64") -> None:
        sizes = Sizes(states, symbols, squares)
        self.build(sizes, design, precision, sizes._asdict())

    @classmethod
    def sizes_for(cls, program: TuringProgram) -> dict[str, Any]:
        return Sizes(len(program.states), len(program.symbols), len(program.begin.tape))._asdict()

    def oracle(self, program: TuringProgram, read: kit.Read, write: kit.Write) -> kit.Interpreter[Configuration]:
        tape, head, state = program.begin
        return kit.Stepper(program.step, Configuration(tape + [0] * (self.sizes.squares - len(tape)), head, state))

    def at_halt(self, program: TuringProgram, state: Configuration) -> bool:
        return program.step(state) is None

    def meaning(self, card: kit.Meaning) -> None:
        """The rule for the state and the symbol is followed; what was written a loop before reaches its square."""
        pad, (q, s, p, length) = card.only("scratchpad"), self.sizes.bits()
        here, behind, written = pad["here"], pad["behind"], pad["done.write"]
        wide = max(card.place_bits, q, s)
        rule = pad["rule.state"].extend(wide) * (self.sizes.symbols + 1) + pad["rule.symbol"].extend(wide)
        action = card.read("action", ("table",), rule + card.first("table"))
        state, write, done = action[:q], action[q : q + s], action[q : q + s + 3]
        left, right = action[q + s], action[q + s + 1]

        def symbol(square: kit.Word) -> kit.Word:  # what is there once all is written
            wider = square.extend(max(length, card.place_bits)) + card.first("tape")
            return square.equals(behind).choose(written, card.read("square", ("tape",), wider))

        def moved(square: kit.Word) -> kit.Word:
            low = square[:p]
            return left.choose(low - 1, right.choose(low + 1, low)).extend(length)

        seen = left.choose(symbol(pad["beside.left"]), right.choose(symbol(pad["beside.right"]), write))
        card.expect("square", "tape", lambda at: at["address"].equals(behind).choose(written, at["square"]))
        card.expect("rule", "scratchpad", kit.join(seen, state, pad["rule.mark"]))
        card.expect("beside", "scratchpad", kit.join(moved(pad["beside.left"]), moved(pad["beside.right"])))
        for rows, word in {"here": moved(here), "behind": here, "done": done}.items():
            card.expect(rows, "scratchpad", word)

    def labels(self, program: TuringProgram) -> dict[str, tuple[str, ...]]:
        """States and symbols by their names; `|` is the edge."""
        states = dict.fromkeys(("rule.state", "action.state", "next.state"), program.states)
        squares = "square", "rule.symbol", "action.write", "next.write", "done.write", "seen.left", "seen.right"
        blank = ("",) * (self.sizes.symbols - len(program.symbols))
        return states | dict.fromkeys(squares, (*program.symbols, *blank, "|"))

    def values(self, program: TuringProgram, state: Configuration) -> dict[str, Any]:
        off = {-1: "has left the tape on the left", len(state.tape): "has left the tape on the right"}
        name = dict(enumerate(program.states)).get(state.state, state.state)
        return {"state": name, "tape": program.drawn(state), "head": off.get(state.head, state.head)}


if __name__ == "__main__":
    punchcard.command_line(TuringMachine)()
