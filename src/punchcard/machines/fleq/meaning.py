"""What a loop of the FLEQ machine does, in words, for a proof: all that is bits, and where real numbers go.

    current instruction      the one that the program counter names
    addresses                a + i, b + i, c + i for lane i
    masks                    lanes beyond a width, rows beyond a height, functions that are not called
    operands                 what the cells at these addresses hold, or 0
    write                    cell c + i takes lane i of the result; every other cell keeps what it holds
    branch                   p where mem[flag] <= 0, else the next instruction
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context
from functools import cache, partial

from punchcard.errors import PunchcardError
from punchcard.machines.fleq.blocks.block import Block, Operands, Scale
from punchcard.machines.fleq.blocks.workspace import ScratchColumn
from punchcard.machines.fleq.designs.base import FleqDesign, flag_grid
from punchcard.machines.fleq.designs.compact import CompactDesign
from punchcard.machines.fleq.designs.paper import PaperFleqDesign
from punchcard.machines.fleq.designs.three_layer import ThreeLayerFleqDesign
from punchcard.machines.fleq.facts import INSTRUCTION, REGISTERS, cases, indicated
from punchcard.machines.fleq.functions import POINTERS, fitting_shapes
from punchcard.machines.meaning import ColumnBefore, Entries, Entry, ErrorClaim, RealMeaning, Result
from punchcard.words.word import FALSE, TRUE, Word, all_of, any_of

TOLERANCE = 3 / 64
"""A flag is an integer up to this: a run refuses what is beyond (`guard.MOST_TOLERANCE`)."""
Lanes = dict[int, list[ColumnBefore]]
"""The columns that give each lane of a result."""


class FleqMeaning:
    """The words that all designs need."""

    def __init__(self, design: FleqDesign, card: RealMeaning) -> None:
        self.design, self.card, self.sizes = design, card, design.sizes
        self.contents = cache(self._contents)  # asked for by many columns, worked out once
        self.counter = card.shared("scratchpad", "program_counter")
        card.split("instructions", self.counter, cases(design.blocks))
        self.instruction = card.at("instructions", self.counter)
        self.called = next((block for block in design.blocks if block.name == card.case), None)
        self.rewrites = self.called is not None and self.called.reads_instructions
        """Whether a pointer function is called."""
        if self.rewrites or (card.case is None and any(block.reads_instructions for block in design.blocks)):
            self._named_fields(self.called)

    def _named_fields(self, called: Block | None) -> None:
        """Operand b of a pointer function names fields of an instruction: by ±1 bits, or by 1 to count on; else it is 0."""
        values = [1.0] if called is not None and called.name == "incr_pointer" else [1.0, -1.0]
        entries = [(name, values if name in POINTERS else [])
                   for name, size in self.sizes.instruction_parts().items() for _ in range(size)]
        self.card.promise("memory", self["b"], entries, "operand b of a pointer function is a constant that names pointers")

    def __getitem__(self, field: str) -> Word:
        return self.instruction[f"{INSTRUCTION}.{field}"]

    def lane(self, column: ColumnBefore) -> int:
        """Which column of an operand a scratchpad column is for."""
        return sum(int(bit) << i for i, bit in enumerate(column.constants("lane")))

    def beyond(self, place: int, width: str) -> Word:
        """Whether a number is not below a width."""
        return self[width].less(place + 1)

    def everywhere(self, layer: int, rows: str, about: str, entries: Entries, *, heads_only: bool = False) -> None:
        """The entries in every column of the scratchpad."""
        self.card.expect_after(layer, rows, "scratchpad", about, entries, heads_only=heads_only)

    def shared(self, layer: int) -> None:
        """What the layer that reads the instruction works out, in most designs."""
        card = self.card
        self.everywhere(layer, "current", "the instruction that the program counter names",
                        lambda column: card.signs(self.instruction[INSTRUCTION]))
        self.write_pointer(layer)

    def write_pointer(self, layer: int) -> None:
        self.everywhere(layer, "write_pointer", "c + i", lambda column: self.card.signs(self["c"] + self.lane(column)))

    def register(
        self, layer: int, rows: str, users: Sequence[Sequence[str]] = (), of: ColumnBefore | None = None, prefix: str = "",
    ) -> None:
        """What a design works out of this instruction, or of another one."""
        instruction = of or self.instruction
        self.everywhere(layer, prefix + rows, REGISTERS[rows], lambda column: [
            self.card.truth(condition) for condition in indicated(
                rows, lambda name: instruction[f"{INSTRUCTION}.{name}"], self.sizes.size,
                (operand(column), self.lane(column)), users)])

    def reads(self, column: ColumnBefore, of: ColumnBefore | None = None) -> Word:
        """The column that a column of the compact and the three-layer design is to read: a + i, or b + i."""
        return (of or self.instruction)[f"{INSTRUCTION}.{operand(column)}"] + self.lane(column)

    def operands(self, layer: int) -> None:
        """What the compact and the three-layer design read."""
        card, height = self.card, self.design.height

        def held(column: ColumnBefore) -> Sequence[Entry]:
            beyond = self.beyond(self.lane(column), f"{operand(column)}_width")
            return card.pick([(~beyond, self.contents(self.reads(column), height))], height)

        self.everywhere(layer, "operand", "what the cell at a + i or b + i holds; 0 beyond the width", held)

    def given(self, columns: Sequence[ScratchColumn]) -> Lanes:
        """The columns that give each lane of the result, in the compact and the three-layer design."""
        lanes: Lanes = {}
        if self.called is not None:
            for kind, column in zip(columns, self.card.all("scratchpad"), strict=True):
                if self.called.transport.gives(kind, self.sizes.size):
                    lanes.setdefault(kind.lane, []).append(column)
        return lanes

    def error(
        self, lanes: Lanes, read: int, made: int, brings: Callable[[str, ColumnBefore], bool], first: int | None = None,
    ) -> None:
        """The error of the function that is called: its operands are there after layer `read`, its result after `made`.

        A column `brings` an operand, by its name. The feed-forward of layer `first` is the first to compute.
        """
        block, card = self.called, self.card
        if block is None:
            return
        of = {x: [column for column in card.all("scratchpad") if brings(x, column)] for x in "ab"}

        def columns(x: str) -> list[Sequence[Entry]]:
            """The entries of an operand's columns, lane by lane; 0 where there is none."""
            found = {self.lane(column): column for column in of[x]}
            nothing = [card.constant(0.0)] * self.design.height
            return [card.mean([found[lane]], read, "operand") if lane in found else nothing
                    for lane in range(self.sizes.size)]

        def exact() -> Result:
            over = [self["c_height"].less(row + 1) for row in range(self.sizes.size)]
            fields: dict[str, slice] = {name: self.sizes.field_rows(name) for name in POINTERS}
            made = block.exact(Operands(card, columns("a"), columns("b"), over, fields))
            return [(column, ~self.beyond(lane, "c_width"), padded(card, entries, self.design.height))
                    for lane, entries in enumerate(made or ()) for column in lanes.get(lane, ())]

        card.claim_error(ErrorClaim(
            f"error of {block.name}", first or read, made, "result", [column for each in lanes.values() for column in each],
            partial(error_text, block, self.design.scale), exact, partial(self._fits, block)))

    def _fits(self, block: Block) -> Word:
        """Whether the instruction's widths and heights are such as the function takes and gives."""
        if block.reads_instructions:
            return TRUE
        found = []
        for a, *b, c in fitting_shapes(block.function, self.sizes.size):
            sides = {"a_height": a.rows, "a_width": a.columns, "c_height": c.rows, "c_width": c.columns}
            if b:
                sides["b_width"] = b[0].columns
            found.append(all_of(*(self[name].equals(value) for name, value in sides.items())))
        return any_of(*found)

    def _contents(self, pointer: Word, size: int) -> Sequence[Entry]:
        """What the column with this number holds, wherever it is."""
        card = self.card
        unit = [card.constant(float(row == 0)) for row in range(size)]
        is_unit = pointer.equals(self.sizes.unit_column)
        found = card.contents_at(("memory", "instructions"), pointer, size)
        return card.pick([(~is_unit, found), (is_unit, unit)], size)

    def integer_flag(self, layer: int, rows: str, roundings: int = 1) -> None:
        """The promise that a flag is an integer, where the heads of a layer bring it, rounded so often to its grid."""
        design = self.design
        grid = flag_grid(design.flag_bound, design.scale.unit) if design.flag_shift else 0.0
        self.card.promise_integer(layer, rows, "scratchpad", TOLERANCE + roundings * grid, design.range + TOLERANCE,
                        design.flag_shift, grid)

    def writes_lane(self, column: ColumnBefore, lane: int) -> Word:
        """Whether a lane of the result is written to a column."""
        return ~self.beyond(lane, "c_width") & column.is_at(self["c"] + lane)

    def step(
        self, lanes: Lanes, made: int, flag: int, following: Word | None = None, brought: Entries | None = None,
    ) -> Callable[[], Word]:
        """The loop as a whole: `lanes` are the columns that give each lane of the result, made in layer `made`.

        The flag is `brought` by the heads of layer `flag`. Gives whether the branch is taken, once that is known.
        """
        card = self.card
        pad = card.all("scratchpad")[0]
        # a result that is about to be written is the mean of several columns, each with its rounding
        self.integer_flag(flag, "flag", 1 + max(map(len, lanes.values()), default=0))

        @cache
        def after_the_write() -> list[Entry]:
            named = [(~self.beyond(lane, "c_width") & self["flag"].equals(self["c"] + lane),
                      card.mean(columns, made, "result")[:1]) for lane, columns in lanes.items()]
            value = card.pick([(TRUE, self.contents(self["flag"], 1)), *named], 1)[0]
            return [value + card.constant(self.design.flag_shift)]

        self.everywhere(flag, "flag", "mem[flag] after the write, and what is added to it",
                        brought or (lambda column: after_the_write()), heads_only=True)

        def taken() -> Word:
            return card.is_at_most_zero("flag", pad, flag)

        card.expect("program_counter", "scratchpad", lambda column: taken().choose(
            self["p"], self.counter + 1 if following is None else following))
        card.expect("halted", "scratchpad", self["halt"])

        def by(column: ColumnBefore) -> Sequence[Entry]:
            size = self.sizes.data_rows
            return card.pick([(self.writes_lane(column, lane), padded(card, card.mean(columns, made, "result"), size))
                              for lane, columns in lanes.items()], size)

        for region, what in (("memory", "a cell"), ("instructions", "an instruction")):
            card.expect_contents(region, f"{what} that c names takes the result, and any other keeps what it holds",
                       lambda column: any_of(*(self.writes_lane(column, lane) for lane in lanes)), by)
        return taken


def error_text(block: Block, scale: Scale, rounding: float | None, exact: bool) -> str:
    """What is known of a block's error, in words: by its formula, or by how far a proof found its result rounded."""
    found = block.enclosure(scale)
    if rounding is not None:
        found = replace(found, truncation=0.0, rounding=rounding)
    if not found.proven:
        return f"not proven: at most {found.error:.3g} over {found.over}, as far as it was measured; {OWN}"
    error, formula, rounded = map(rounded_up, (found.error, found.truncation, found.rounding))
    return (f"at most {error} over {found.over}: {formula} of the formula and {rounded} of rounding; "
            + (EXACT if exact else OWN))


OWN = "it is that of the design's formula, and the weights that compute it are the design's own, bit for bit"
EXACT = "by the weights, the result is the block's formula of the operands, but for rounding"


def rounded_up(value: float) -> str:
    """A number with three digits, never below it."""
    digits = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(value)
    return f"{float(digits):.3g}"


def _given(entries: Sequence[Entry], column: ColumnBefore) -> Sequence[Entry]:
    """The same entries, whichever column it is."""
    return entries


def padded(card: RealMeaning, entries: Sequence[Entry], size: int) -> list[Entry]:
    return [*entries, *[card.constant(0.0)] * (size - len(entries))]


def operand(column: ColumnBefore) -> str:
    """The operand that a column reads, in the compact and the three-layer design."""
    return "b" if column.constants("not_b") == [0.0] else "a"


def reads_operand(x: str, column: ColumnBefore) -> bool:
    """Whether a column reads an operand, in the compact and the three-layer design."""
    return operand(column) == x


def compact(design: CompactDesign, card: RealMeaning) -> None:
    """The four layers of the compact design."""
    words = FleqMeaning(design, card)
    words.shared(1)
    words.everywhere(1, "read_pointer", "a + i, or b + i", lambda column: card.signs(words.reads(column)))
    for rows in REGISTERS:
        words.register(1, rows, list(design.users().values()))
    words.operands(2)
    lanes = words.given(design.columns)
    words.step(lanes, made=3, flag=4)
    words.error(lanes, read=2, made=3, brings=reads_operand)


def three_layer(design: ThreeLayerFleqDesign, card: RealMeaning) -> None:
    """The three layers of the design that fetches ahead: both instructions that may come next, and their registers."""
    words = FleqMeaning(design, card)
    counter, users = words.counter, list(design.users().values())
    following = card.simplified(counter.equals(words.sizes.columns - 1).choose(counter, counter + 1))
    go_on, jump = (card.at("instructions", place) for place in (following, words["p"]))
    words.operands(1)
    words.write_pointer(1)
    words.everywhere(1, "following", "the next instruction's column", lambda column: card.signs(following))
    words.everywhere(1, "kept", "pointers of the instruction",
                     lambda column: [bit for name in design.kept for bit in card.signs(words[name])])
    for of, prefix, rows, pointer in ((go_on, "", "current", "read_pointer"), (jump, "jump_", "jump", "jump_pointer")):
        words.everywhere(2, rows, "the instruction that may come next",
                         partial(_given, card.signs(of[INSTRUCTION])))
        words.everywhere(2, pointer, "its a + i, or b + i",
                         partial(lambda of, column: card.signs(words.reads(column, of)), of))
        for register in REGISTERS:
            words.register(2, register, users, of, prefix)
    ahead = Ahead(words) if design.pointer_functions else None
    lanes = words.given(design.columns)
    words.error(lanes, read=1, made=2, brings=reads_operand)
    taken = words.step(lanes, made=2, flag=3, following=following, brought=ahead.flag if ahead and words.rewrites else None)

    def next_one(place: Word, fetched: ColumnBefore) -> Word:
        """An instruction as it is after the write."""
        if not words.rewrites:
            return fetched[INSTRUCTION]
        result = card.as_word(card.mean(lanes[0], 2, "result")[: words.sizes.instruction_rows])
        return place.equals(words["c"]).choose(result, fetched[INSTRUCTION])

    def chosen() -> Word:
        return card.simplified(taken().choose(next_one(words["p"], jump), next_one(following, go_on)))

    def reads(column: ColumnBefore) -> Word:
        return chosen()[words.sizes.field_rows(operand(column))] + words.lane(column)

    card.expect("current", "scratchpad", lambda column: chosen())
    card.expect("read_pointer", "scratchpad", reads)


class Ahead:
    """What the three-layer design foresees where an instruction changes the one that comes next."""

    def __init__(self, words: FleqMeaning) -> None:
        self.words, self.card = words, words.card
        words.integer_flag(2, "flag_before")
        self.card.at("memory", words["flag"])  # known before it is asked for by what is the flag or c
        shift = self.card.constant(words.design.flag_shift)
        wide = words["c"].size + 1
        c, counter, p = (word.extend(wide) for word in (words["c"], words.counter, words["p"]))
        called = TRUE if words.rewrites else FALSE
        self.meets = [self.card.simplified(called & met) for met in (c.equals(counter + 1), c.equals(p))]
        self.met = any_of(*self.meets)
        words.everywhere(1, "meets", "1 where c is the next instruction, or the one that is jumped to",
                         partial(_given, [self.card.truth(met) for met in self.meets]))
        words.everywhere(2, "flag_before", "mem[flag] before the write, and what is added to it",
                         lambda column: [words.contents(words["flag"], 1)[0] + shift], heads_only=True)
        words.everywhere(2, "ask", "c where the instruction that comes next is changed, else the flag", lambda column:
                         self.card.signs(self.met.choose(words["c"], words["flag"])))
        words.everywhere(2, "forward", "1 where the instruction that was changed comes next", lambda column: [
            self.card.truth(self._taken().choose(self.meets[1], self.meets[0]))])

    def _taken(self) -> Word:
        return self.card.is_at_most_zero("flag_before", self.card.all("scratchpad")[0], 2)

    def flag(self, column: ColumnBefore) -> list[Entry]:
        """The number at `flag` where a pointer function is called: the flag as far as it is known, or mem[flag]."""
        card = self.card
        known = card.truth(~self._taken())
        value = card.pick([(TRUE, self.words.contents(self.words["flag"], 1)), (self.met, [known])], 1)[0]
        return [value + card.constant(self.words.design.flag_shift)]


def paper(design: FleqDesign, card: RealMeaning) -> None:
    """The layers of the paper's design: 9 and those of the functions."""
    words = FleqMeaning(design, card)
    lane, height = words.lane, design.height
    last = 9 + max(block.lemma.depth for block in design.blocks)
    words.shared(1)

    def is_for(x: str, column: ColumnBefore) -> bool:
        return bool(column.constants(f"in_{x}") == [1.0])

    def shut(x: str, column: ColumnBefore) -> Word:
        """Whether a column is not for an operand, or beyond its width."""
        return words.beyond(lane(column), f"{x}_width") if is_for(x, column) else TRUE

    for x in "ab":
        words.everywhere(1, f"{x}_pointer", f"{x} + i", partial(lambda x, column: card.signs(words[x] + lane(column)), x))
    for x in "abc":
        words.everywhere(1, f"shut_{x}", f"0 where column i of {x} belongs, else 1",
                         partial(lambda x, column: [card.truth(shut(x, column))], x))
    words.everywhere(1, "off", "0 for the function that is called, else 1",
                     lambda column: [card.truth(~words[f"call_{block.name}"]) for block in design.blocks])
    for rows in ("deep", "over"):
        words.register(1, rows)
    words.everywhere(2, "operand", "what the cell at a + i or b + i holds; 0 beyond the width", lambda column: card.pick(
        [(~shut(x, column), words.contents(words[x] + lane(column), height)) for x in "ab"], height))
    lanes = {lane(column): [column] for column in card.all("scratchpad") if is_for("c", column)}
    words.step(lanes if card.case != "nothing" else {}, made=last - 5, flag=last - 3)
    words.error(lanes, read=2, made=last - 5, brings=is_for, first=3)


def tell(design: FleqDesign, card: RealMeaning) -> None:
    """What a loop does, for a proof."""
    if isinstance(design, ThreeLayerFleqDesign):
        three_layer(design, card)
    elif isinstance(design, CompactDesign):
        compact(design, card)
    elif isinstance(design, PaperFleqDesign):
        paper(design, card)
    else:
        raise PunchcardError(f"the design {design.name!r} has no meaning for a proof")
