"""The von Neumann machine's card and weights: code and data in one memory, one instruction a loop, two layers.

The scratchpad holds the instruction that was fetched in the loop before. Layer A reads the two operands, subtracts and
branches. Layer B stores the difference and fetches the three words of the next instruction, a head for each. The key of
the scratchpad outranks the cell that it names (a store key), so a word that is stored in this loop is fetched as stored.

Every pointer on the card names a column, whatever the program does: the addresses below 2^L all have one (cells beyond the
memory's end are `spare`), and a pointer takes its low L bits from a word. Whether the word itself was a legal address is
shown by the rows `event`, and the run stops there. The columns of `ports` have the addresses that no cell can have: the row
`beyond` is 1 there, and a pointer has a bit `away` to match it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from punchcard.card.encoding import Numbers
from punchcard.card.facts import AnyFact, ColumnWords, Fact, Holds
from punchcard.card.layout import Card, Cards, Layout, Pattern, Region, RowBlock, holding, persistent_bits
from punchcard.machines.design import Design, event_patterns
from punchcard.machines.story import WARMS_UP, Condition, Quote, Sentence, Story, ValuePlace, name
from punchcard.machines.von_neumann.addresses import INSTRUCTION, AddressMap
from punchcard.primitives.bits import at_least, branch, difference_bits, offset_bits, step
from punchcard.primitives.memory import ADDRESS_GAP, clip_where, clipped_where, store_factor, store_gap
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Expression, Rows, rows, stack
from punchcard.transformer.precision import Precision
from punchcard.words.word import Word, all_of, any_of

CELLS = ("memory", "ports")


class VonNeumannDesign(Design[AddressMap]):
    """6 N + 6 L + 11 rows."""

    name: ClassVar[str] = "two-layer"
    warm_up: ClassVar[int] = 1
    """Loops before the first instruction is executed: the reset vector subtracts 0 from cell 0 and goes to 0."""
    idle: ClassVar[int] = 1
    event_names: ClassVar[tuple[str, ...]] = ("source", "destination", "counter", "output")
    offsets: ClassVar[tuple[str, ...]] = ("here", "less1", "less2")

    def layout(self, sizes: AddressMap) -> Layout:
        n, length = sizes.word_bits, sizes.pointer_bits
        filled = ("spare",) if sizes.spare else ()
        cells = (*CELLS, *filled)
        offsets = dict.fromkeys(self.offsets, length)
        regions = [Region("scratchpad", 1, "where the computation happens"), Region("memory", sizes.memory, "the cells")]
        if sizes.spare:
            regions.append(Region("spare", sizes.spare, "addresses from the memory's end to 2^L, which no program may use"))
        regions.append(Region("ports", len(sizes.port_cells), "what the host reads and writes"))
        return Layout(
            [
                RowBlock("memory", n, "the words", holds=holding("bits", *cells), changes=cells),
                RowBlock("position", 3 * length, "each column's address, and 1 and 2 less", offsets,
                         holding("bits", *cells)),
                RowBlock("beyond", 1, "1 for ports, -1 for cells", holds=holding("bits", *cells)),
                RowBlock("inside", 1, "indicator of the scratchpad", holds=holding("one", "scratchpad")),
                RowBlock("outside", 1, "indicator of all other columns", holds=holding("one", *cells)),
                persistent_bits("word", 3 * n, "the instruction as fetched", dict.fromkeys("abc", n)),
                persistent_bits("away", 4, "whether a pointer goes to a port; the fetch's never does",
                                dict.fromkeys(("a", "b", "store", "fetch"), 1)),
                persistent_bits("store", 3 * length, "where the result goes, and 1 and 2 less", offsets),
                persistent_bits("counter", n, "the program counter plus 3"),
                persistent_bits("event", len(self.event_names), "what the host must look at",
                                dict.fromkeys(self.event_names, 1)),
                RowBlock("difference", n, "mem[b] - mem[a]: bit by bit, then as a word"),
            ],
            regions,
            facts(sizes, self.offsets),
        )

    def layers(self, sizes: AddressMap, layout: Layout, precision: Precision) -> list[Part]:
        memory, one, counter, difference = (rows(layout, name) for name in ("memory", "inside", "counter", "difference"))
        return [
            # A. The scratchpad reads mem[b] - mem[a]; any other column reads its own word twice, which cancels.
            self._read(layout, sizes.source, -memory)
            + self._read(layout, sizes.destination, memory)
            + assign(difference, difference_bits(difference, one))
            + assign(counter, self._next(sizes, layout))
            + clear(rows(layout, "word")),
            # B. The scratchpad fetches three words; the cell that `store` names takes the difference.
            self._fetch(layout, 0, stack(memory + difference, 2 * difference), rows(layout, "word.a", "memory"), stores=True)
            + self._fetch(layout, 1, memory + difference, rows(layout, "word.b"))
            + self._fetch(layout, 2, memory + difference, rows(layout, "word.c"))
            + clip_where(1 - one, memory, precision.gate)
            + clip_where(one, rows(layout, "word"), precision.gate)
            + self._pointers(sizes, layout, precision.gate)
            + self._events(sizes, layout)
            + assign(counter, offset_bits(counter, INSTRUCTION, one))
            + clear(difference),
        ]

    def _place(self, layout: Layout, offset: int) -> Rows:
        """The address that a column answers to in a head: its own, or the one before, or the one before that."""
        return rows(layout, f"position.{self.offsets[offset]}", "beyond")

    def _read(self, layout: Layout, operand: str, value: Expression) -> Part:
        """Add a word to `difference`: the scratchpad finds the operand's column, any other column itself."""
        place = self._place(layout, 0)
        pointer = stack(self._low(layout, f"word.{operand}"), rows(layout, f"away.{operand}"))
        return attend(query=pointer + place, key=place, value=value, into=rows(layout, "difference"), gap=ADDRESS_GAP)

    def _fetch(self, layout: Layout, offset: int, value: Expression, into: Rows, *, stores: bool = False) -> Part:
        """Word `offset` of the next instruction: the column whose address less `offset` is the program counter.

        One head is enough to store. In the others a column outside must not find the scratchpad: in one more dimension all
        columns outside agree, and disagree with the scratchpad by more than an address can make good.
        """
        place = self._place(layout, offset)
        target = stack(self._low(layout, "counter"), rows(layout, "away.fetch"))
        store = rows(layout, f"store.{self.offsets[offset]}", "away.store")
        query, key = place + target, store_factor(place.size) * place + store
        if not stores:
            outside = rows(layout, "outside")
            query, key = stack(query, outside), stack(key, place.size * (outside - rows(layout, "inside")))
        return attend(query=query, key=key, value=value, into=into, gap=store_gap(place.size))

    def _next(self, sizes: AddressMap, layout: Layout) -> Expression:
        """The next program counter: c where the result is at most 0, else the next instruction.

        Where ports never branch, `closed` is 2 or 4 if an operand is a port, and 0 else. Taken from both alternatives it
        turns them into bits that are off; given back to the second, it leaves the second.
        """
        jump, following, one = (rows(layout, name) for name in ("word.c", "counter", "inside"))
        closed = 0.0 * one if sizes.ports_branch else rows(layout, "away.a") + rows(layout, "away.b") + 2 * one
        return branch(rows(layout, "difference"), yes=jump - closed, no=following - closed, one=one) + closed

    def _pointers(self, sizes: AddressMap, layout: Layout, gate: float) -> Part:
        """The pointers of the fetched instruction, beyond the low bits of its words."""
        one = rows(layout, "inside")
        low = self._low(layout, f"word.{sizes.destination}")
        copy = clipped_where(one, low, gate)  # by the units of the words' own clip
        away = {x: 2 * at_least(rows(layout, f"word.{x}"), sizes.first_port, one) - one for x in "ab"}
        return (
            assign(rows(layout, "store.here"), copy)
            + assign(rows(layout, "store.less1"), offset_bits(low, -1, one))
            + assign(rows(layout, "store.less2"), offset_bits(low, -2, one))
            + assign(rows(layout, "away"), stack(away["a"], away["b"], away[sizes.destination], -one))
        )

    def _events(self, sizes: AddressMap, layout: Layout) -> Part:
        """Flags for the host: an operand that is not a cell, a counter without an instruction, a store to the output.

        A store to the output port needs no host before it, only after: so its flag tells of the store of this very loop. It
        counts the bits in which the stored address and the port's agree.
        """
        one = rows(layout, "inside")
        source, destination = (rows(layout, f"word.{x}") for x in (sizes.source, sizes.destination))
        stored = rows(layout, "store.here", "away.store")
        port = [1.0 if sizes.output_port >> i & 1 else -1.0 for i in range(sizes.pointer_bits)] + [1.0]
        flags = {
            "source": at_least(source, sizes.data_end, one),
            "destination": at_least(destination, sizes.data_end, one) - at_least(destination, sizes.output_port, one)
            + at_least(destination, sizes.output_port + 1, one),
            "counter": at_least(rows(layout, "counter"), sizes.code_end, one),
            "output": step(0.5 * (stored.total(port) - stored.size * one), one),
        }
        return assign(rows(layout, "event"), stack(*(2 * flags[name] - one for name in self.event_names)))

    def _low(self, layout: Layout, name: str) -> Rows:
        """The low L bits of a word, which point at a column."""
        return rows(layout, name)[: rows(layout, "position.here").size]

    def events(self, sizes: AddressMap) -> tuple[Pattern, ...]:
        return event_patterns(len(self.event_names))

    def story(self, sizes: AddressMap, layout: Layout) -> Story:
        pad, one, two, cell = ValuePlace(0), ValuePlace(0, head=0), ValuePlace(0, head=1), ValuePlace(0, head=0, gives=True)
        first = layout.region("memory").start
        operands = {"a": name(one), "b": name(two), "word_a": Quote(one, "memory"), "word_b": Quote(two, "memory")}
        following = Quote(pad, "counter", offset=first, names=True)
        outcome = {"difference": Quote(pad, "difference"), "next": following, "counter": Quote(pad, "counter", "unsigned")}
        halts = Condition("counter", ">=", sizes.halts_from)
        subtracts = "The ReLU layer subtracts {word_a} from {word_b}: the bits of {difference}."
        cleans = "The ReLU layer makes clean bits of it: {cell} is {word}."
        fetch = "fetch the three words of the instruction at {next}."
        return (
            (Sentence("Head 1 fetches mem[{a}] = {word_a} and head 2 mem[{b}] = {word_b} into difference.", operands, [
                (WARMS_UP, "The first loop warms up: it subtracts 0, and goes to the first instruction.")]),
             Sentence(f"{subtracts} It is positive, so {{next}} follows.", operands | outcome, [
                 (halts, f"{subtracts} It is not positive, so the program halts."),
                 (Condition("difference", "<=", 0), f"{subtracts} It is not positive, so the program goes to {{next}}.")])),
            (Sentence(f"Head 1 stores {{difference}} in {{cell}}; heads 1, 2 and 3 {fetch}",
                      outcome | {"cell": name(cell), "difference": Quote(pad, "difference", before=True)}, [
                          (WARMS_UP, f"Heads 1, 2 and 3 {fetch}"),
                          (halts, "Head 1 stores {difference} in {cell}. There is no next instruction.")]),
             Sentence(f"{cleans} The scratchpad holds {{next_a}} {{next_b}} {{next_c}}.",
                      {"cell": name(cell), "word": Quote(cell, "memory"),
                       "counter": Quote(pad, "counter", "unsigned", before=True),
                       **{f"next_{x}": Quote(pad, f"word.{x}") for x in "abc"}}, [(halts, cleans)])),
        )

    def punch(self, sizes: AddressMap, layout: Layout, content: Sequence[int], card: Card) -> None:
        """Write the image's words, 0 in all other cells, all addresses, and the reset vector on a blank card."""
        size = 1 << sizes.pointer_bits
        words: dict[str, Sequence[int]] = {"memory": content, "ports": ()}
        addresses = {"memory": np.arange(sizes.memory), "ports": np.array(sizes.port_cells) % size}
        if sizes.spare:
            words["spare"], addresses["spare"] = (), np.arange(sizes.memory, size)
        for region in words:
            layout.put_numbers(card, region, {"memory": words[region]}, rest=0)
            layout.put(card, "beyond", region, 1.0 if region == "ports" else -1.0)
            layout.put(card, "outside", region, 1.0)
            layout.put_numbers(card, region, {f"position.{offset}": (addresses[region] - less) % size
                                              for less, offset in enumerate(self.offsets)})
        layout.put(card, "inside", "scratchpad", 1.0)
        for block in ("word", "away", "store", "counter", "event"):
            layout.put(card, block, "scratchpad", -1.0)
        layout.put_numbers(card, "scratchpad", {
            f"word.{sizes.source}": [sizes.input_cell], f"away.{sizes.source}": [1],
            **{f"store.{offset}": [-less % size] for less, offset in enumerate(self.offsets)}})

    def read(self, sizes: AddressMap, layout: Layout, card: Cards) -> tuple[Numbers, Numbers]:
        """The cells, unsigned, and the program counter, of a card or of each card of a batch."""
        after = layout.numbers(card, "counter", "scratchpad")[..., 0]
        return layout.numbers(card, "memory", "memory"), (after - INSTRUCTION) % (1 << sizes.word_bits)


def counter_on(card: Card, sizes: AddressMap, layout: Layout) -> int:
    """The program counter on a card."""
    after = layout.number_at(card, "counter", layout.region("scratchpad").start)
    return (after - INSTRUCTION) % (1 << sizes.word_bits)


def facts(sizes: AddressMap, offsets: tuple[str, ...]) -> list[AnyFact]:
    """What is true of every card when a loop begins.

    Addresses are where they should be, and a pointer that goes away goes to a port, or the host has looked at it.
    """
    size = 1 << sizes.pointer_bits
    spans = {"memory": range(sizes.memory), "spare": range(sizes.memory, size)}
    spans = {region: span for region, span in spans.items() if len(span)}
    found: list[AnyFact] = []
    for less, offset in enumerate(offsets):
        found += [Holds(f"position.{offset}", region, range(span.start - less, span.stop - less))
                  for region, span in spans.items()]
        found.append(Holds(f"position.{offset}", "ports", tuple(port - less for port in sizes.port_cells)))
    found += [Holds("beyond", region, (0,) * len(span)) for region, span in spans.items()]
    found.append(Holds("beyond", "ports", (1,) * len(sizes.port_cells)))

    def pointer_fact(rows: str, away: str, event: str) -> Fact:
        def is_cell_or_port(column: ColumnWords) -> Word:
            pointer = column[rows][: sizes.pointer_bits]
            return column[away].equals(0) | any_of(*(pointer.equals(port) for port in sizes.port_cells))

        return Fact("scratchpad", is_cell_or_port, f"{rows} names a cell or a port",
                    unless=lambda column: column[f"event.{event}"].equals(1))

    return [
        *found,
        pointer_fact(f"word.{sizes.source}", f"away.{sizes.source}", "source"),
        pointer_fact(f"word.{sizes.destination}", f"away.{sizes.destination}", "destination"),
        pointer_fact("store.here", "away.store", "destination"),
        Fact("scratchpad", lambda column: all_of(*(column[f"store.{offset}"].equals(column["store.here"] - less)
                                                   for less, offset in enumerate(offsets))),
             "the store's address and those before it belong together"),
        Fact("scratchpad", lambda column: column["away.fetch"].equals(0), "instructions are not fetched from ports"),
    ]
