"""The Turing machine of `turing.py` as a stock GPT-2 or Llama: the rules and the tape are the prompt, `generate` writes the
steps.

    python examples/turing/turing.py export examples/turing/palindrome.tm --to gpt2 -o folder
    python examples/turing/turing.py run folder --on stock --trace

    0: 1 0 R >1       a rule: in state 0, symbol 1 becomes 0, the head goes right, and the state is 1
    4: 2 2 S halt     a state and a symbol without a rule
    @0 1              square 0 holds symbol 1; the squares beyond both ends hold |, the edge
    0: @3             here the prompt ends: state 0, and the head is at square 3

What follows is for each step the symbol that is written, the next state and the next square; `halt` where there is no rule.

    layer 1   the latest state; the latest square and its neighbours; the tokens 1, 2 and 3 places back
    layer 2   at a square: the latest symbol there
    layer 3   at a square: the rule for the state and the symbol: what it writes, where it goes, the next state, if it halts
    layer 4   the next state from the token before, the move from two before; feed-forward: which of them comes next
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from turing import MOVES, Configuration, TuringProgram

from punchcard.language_models.stock.decoder import (
    UNIT,
    ContextHead,
    DecoderLayer,
    Follower,
    StockDecoder,
    Tokens,
    embedding,
    families,
    number_bits,
    readout,
    stream_layout,
)
from punchcard.language_models.stock.formulas import Conditions, set_bits
from punchcard.language_models.stock.language import split_words
from punchcard.language_models.stock.positions import Positions
from punchcard.language_models.stock.text import HALT, TokenTrace
from punchcard.machines import toolkit as kit
from punchcard.transformer.expression import rows, stack

FAMILIES = ("label", "address", "symbol", "move", "goal", "halt")

@dataclass(frozen=True)
class TuringText:
    """Texts of Turing machines with so many states, symbols and squares."""

    machine: ClassVar[str] = "turing"
    tokens_a_step: ClassVar[int] = 3
    looks_back: ClassVar[int] = 3
    states: int
    symbols: int
    squares: int

    @classmethod
    def of(cls, sizes: Any) -> TuringText:
        return cls(sizes.states, sizes.symbols, sizes.squares)

    @property
    def sizes(self) -> dict[str, int]:
        return asdict(self)

    def words(self) -> dict[str, list[str]]:
        """The words of each family; a square's number in its family is one more than its own."""
        return {"label": [f"{i}:" for i in range(self.states)], "address": [f"@{i}" for i in range(-1, self.squares + 1)],
                "symbol": [*map(str, range(self.symbols)), "|"], "move": list(MOVES),
                "goal": [f">{i}" for i in range(self.states)], "halt": [HALT]}

    def vocabulary(self) -> tuple[str, ...]:
        return tuple(word for family in self.words().values() for word in family)

    def prompt(self, program: TuringProgram) -> str:
        letters, (tape, head, state) = {move: letter for letter, move in MOVES.items()}, self._begin(program)
        names = [f"; {what} {', '.join(f'{i} {name}' for i, name in enumerate(some))}"
                 for what, some in (("states", program.states), ("symbols", program.symbols))]
        lines = []
        for pair in product(range(self.states), range(self.symbols + 1)):
            new, move, then = program.rules.get(pair, (pair[1], 0, -1))
            goal = HALT if then < 0 else f">{then}"
            lines.append(f"{pair[0]}: {self._symbol(pair[1])} {self._symbol(new)} {letters[move]} {goal}")
        lines += [f"@{i} {self._symbol(symbol)}" for i, symbol in enumerate([self.symbols, *tape, self.symbols], start=-1)]
        return "\n".join([*names, *lines, f"{state}: @{head}"])

    def program(self, prompt: str) -> TuringProgram:
        words, known = split_words(prompt), self.words()
        rules, tape = dict[tuple[int, int], tuple[int, int, int]](), dict[int, int]()
        at = 0

        def take(*families: str) -> list[int]:
            nonlocal at
            found = []
            for family in families:
                if at == len(words) or words[at] not in known[family]:
                    raise kit.ProgramError(f"{' '.join(words[at : at + 2])!r} where a {family} is expected, such as "
                                           f"{known[family][0]}: a rule is `0: 1 0 R >1`, a square `@0 1`, and a prompt "
                                           "ends with state and square")
                found.append(known[family].index(words[at]))
                at += 1
            return found

        while at < len(words) - 2:
            if words[at].startswith("@"):
                square, symbol = take("address", "symbol")
                tape[square - 1] = symbol
                continue
            state, old, new, move = take("label", "symbol", "symbol", "move")
            if at < len(words) and words[at] == HALT:
                at += 1
            else:
                rules[state, old] = new, list(MOVES.values())[move], take("goal")[0]
        [state, square] = take("label", "address")
        missing = [i for i in range(-1, self.squares + 1) if i not in tape]
        if missing:
            raise kit.ProgramError(f"the prompt has no square @{missing[0]}: it must have all of @-1 to @{self.squares}")
        begin = Configuration([tape[i] for i in range(self.squares)], square - 1, state)
        return TuringProgram(tuple(map(str, range(self.states))), tuple(map(str, range(self.symbols))), rules, begin)

    def expected(self, program: TuringProgram) -> Iterator[str]:
        at = self._begin(program)
        while (following := program.step(at)) is not None:
            yield from (self._symbol(following.tape[at.head]), f"{following.state}:", f"@{following.head}")
            at = following
        yield HALT

    def decoded(self, program: TuringProgram, trace: Sequence[str]) -> TokenTrace:
        (tape, head, state), steps = self._begin(program), 0
        for symbol, label, address in zip(trace[0::3], trace[1::3], trace[2::3], strict=False):
            tape[head] = self.words()["symbol"].index(symbol)
            state, head, steps = int(label[:-1]), int(address[1:]), steps + 1
        return TokenTrace(tuple(tape), state, steps, trace[-1:] == [HALT] or trace[-1:] == (HALT,))

    def decoder(self, positions: Positions) -> StockDecoder:
        return _decoder(self, positions)

    def _begin(self, program: TuringProgram) -> Configuration:
        """How it begins, on all squares of the tape."""
        tape, head, state = program.begin
        return Configuration(tape + [0] * (self.squares - len(tape)), head, state)

    def _symbol(self, number: int) -> str:
        return "|" if number == self.symbols else str(number)


def _decoder(sizes: TuringText, positions: Positions) -> StockDecoder:
    q, s, p = (kit.pointer_bits(count) for count in (sizes.states, sizes.symbols + 1, sizes.squares + 2))
    n = max(q, s, p)
    layout = stream_layout({
        **dict.fromkeys(FAMILIES, 1), "own": n, "up": n, "down": n, "left": 1, "right": 1, "ends": 1,    # what the token is
        "state": q, "place": n, "above": n, "below": n,                                                  # layer 1
        "before": n, "value": 1, "goes": 2, "new": n, "old": s,
        "seen": s, "write": n, "then": n, "turn": 2, "stop": 1, "next": n, "moved": 2, "out": n,         # layers 2 to 4
    }, positions.blocks(), positions.count)

    def x(*names: str) -> Any:
        return rows(layout, *names)

    one, label, address, symbol, own = (x(name) for name in ("one", "label", "address", "symbol", "own"))
    conditions = Conditions(layout)
    holds, truth, chosen = conditions.holds, conditions.truth, conditions.chosen
    move = x("moved")
    layers = [
        DecoderLayer(
            (ContextHead(own[:q], x("state"), query=one, key=label),
             ContextHead(stack(own, x("up"), x("down")), x("place", "above", "below"), query=one, key=address),
             ContextHead(stack(own, address, x("left"), x("right")), x("before", "value", "goes"), back=1),
             ContextHead(own, x("new"), back=2), ContextHead(own[:s], x("old"), back=3)),
            kit.assign(x("value"), truth(holds(symbol, x("value"))))),
        DecoderLayer((ContextHead(own[:s], x("seen"), query=stack(own[:p], one), key=stack(x("before")[:p], x("value"))),)),
        DecoderLayer((ContextHead(
            stack(x("new"), own, x("goes"), x("halt")), x("write", "then", "turn", "stop"),
            query=stack(x("state"), x("seen"), one), key=stack(x("state"), x("old"), x("ends"))),)),
        DecoderLayer(
            (ContextHead(x("then"), x("next"), back=1), ContextHead(x("turn"), move, back=2)),
            set_bits(x("out"), chosen(
                (x("write"), holds(address)), (x("next"), holds(symbol)),
                (x("below"), holds(label, move[0], false=(move[1],))), (x("above"), holds(label, move[1], false=(move[0],))),
                (x("place"), holds(label, false=(move[0], move[1])))))),
    ]
    tokens = families([len(some) for some in sizes.words().values()])
    return StockDecoder(layout, sizes.vocabulary(), len(tokens.family) - 1, _embedding(layout, positions, n, tokens),
                   tuple(layers), _readout(layout, n, tokens))


def _embedding(layout: kit.Layout, positions: Positions, n: int, tokens: Tokens) -> Any:
    family, number = tokens
    moves = family == FAMILIES.index("move")
    return embedding(layout, positions.blocks(), {
        **{name: family == i for i, name in enumerate(FAMILIES)},
        "ends": np.isin(family, [FAMILIES.index("goal"), FAMILIES.index("halt")]),
        "own": number_bits(number, n), "up": number_bits(number + 1, n), "down": number_bits(number - 1, n),
        "left": moves & (number == 0), "right": moves & (number == 2)})


def _readout(layout: kit.Layout, n: int, tokens: Tokens) -> Any:
    """After a square a symbol, or `halt` where the rule says so; after a symbol a state; after a state a square."""
    lead = 4 * n + 8
    found = readout(layout, tokens, 2 * n + 2, [
        Follower("symbol", lead, n), Follower("label", lead, n), Follower("address", lead, n, {"stop": -1}),
        Follower("one", -lead, n), Follower("one", -lead, n), Follower("address", lead, 0, {"stop": 1})])
    found[tokens[0] == FAMILIES.index("goal"), layout.rows("turn")] = -UNIT       # tells goals from moves: none is written
    return found
