"""What a loop of the von Neumann machine does, in words, for a proof."""

from __future__ import annotations

from punchcard.machines.meaning import Meaning
from punchcard.machines.subleq.semantics import difference_of, jumps_at
from punchcard.machines.von_neumann.addresses import INSTRUCTION, AddressMap
from punchcard.words.word import FALSE, Word, constant

FIRST = 1
"""The column of address 0."""


def meaning(sizes: AddressMap, offsets: tuple[str, ...], card: Meaning) -> None:
    """The instruction in the registers is executed; the next one is fetched, as this one has left it."""
    scratchpad, length = card.only("scratchpad"), sizes.pointer_bits
    cells = ("memory", "spare") if sizes.spare else ("memory",)

    def at(address: Word, is_away: Word) -> Word:
        """The word in a cell, by the low bits of its address, or in a port."""
        low = address[:length]
        found = card.read("memory", cells, low.extend(length + 2) + FIRST)
        for port, number in ports.items():
            there = card.at("ports", constant(number, card.place_bits))
            found = (is_away & low.equals(port)).choose(there["memory"], found)
        return found

    first_port = card.first("ports")
    ports = {port % (1 << length): first_port + i for i, port in enumerate(sizes.port_cells)}
    source, destination = (scratchpad[f"word.{x}"] for x in (sizes.source, sizes.destination))
    away = {x: scratchpad[f"away.{x}"] for x in "ab"}
    difference = card.lemma(1, "difference", "scratchpad",
                            difference_of(at(source, away[sizes.source]), at(destination, away[sizes.destination])))
    jumps = jumps_at(difference)
    if not sizes.ports_branch:
        jumps &= ~away["a"] & ~away["b"]
    counter = card.lemma(1, "counter", "scratchpad", jumps.choose(scratchpad["word.c"], scratchpad["counter"]))
    store, to_port = scratchpad["store.here"], scratchpad["away.store"]

    def fetched(offset: int) -> Word:
        address = counter[:length] + offset
        return (address.equals(store) & ~to_port).choose(difference, at(address, FALSE))

    words = {x: fetched(i) for i, x in enumerate("abc")}
    gone = {x: words[x].at_least(sizes.first_port) for x in "ab"}
    next_source, next_destination = words[sizes.source], words[sizes.destination]
    for x in "abc":
        card.expect(f"word.{x}", "scratchpad", words[x])
    for name, bit in {"a": gone["a"], "b": gone["b"], "store": gone[sizes.destination], "fetch": FALSE}.items():
        card.expect(f"away.{name}", "scratchpad", bit)
    for less, offset in enumerate(offsets):
        card.expect(f"store.{offset}", "scratchpad", next_destination[:length] - less)
    card.expect("counter", "scratchpad", counter + INSTRUCTION)
    for name, condition in {
        "source": next_source.at_least(sizes.data_end),
        "destination": next_destination.at_least(sizes.data_end) & next_destination.differs(sizes.output_port),
        "counter": counter.at_least(sizes.code_end),
        "output": to_port & store.equals(sizes.output_port),
    }.items():
        card.expect(f"event.{name}", "scratchpad", condition)
    for region in cells:
        card.expect("memory", region, lambda cell: (~to_port & cell.is_at(store.extend(length + 2) + FIRST)).choose(
            difference, cell["memory"]))
    card.expect("memory", "ports", lambda cell: (to_port & cell["position.here"].equals(store)).choose(
        difference, cell["memory"]))
