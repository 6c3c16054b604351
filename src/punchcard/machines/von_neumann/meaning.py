"""What a loop of the von Neumann machine does, said with words: for a proof."""

from __future__ import annotations

from typing import Any

from punchcard.machines.von_neumann.addresses import INSTRUCTION, AddressMap

FIRST = 1
"""The column of address 0."""


def meaning(sizes: AddressMap, offsets: tuple[str, ...], card: Any) -> None:
    """The instruction in the registers is executed; the next one is fetched, as this one has left it."""
    scratchpad, length = card.only("scratchpad"), sizes.pointer_bits
    cells = ("memory", "spare") if sizes.spare else ("memory",)

    def at(address: Any, away: Any) -> Any:
        """The word in a cell, by the low bits of its address, or in a port."""
        low = card.low(address, length)
        found = card.read("memory", cells, card.wide(low, length + 2) + FIRST)
        for port, number in ports.items():
            there = card.both(away == 1, low == card.number(port, length))
            found = card.choose(there, card.at("ports", card.number(number, card.place_bits))["memory"], found)
        return found

    first_port = card.first("ports")
    ports = {port % (1 << length): first_port + i for i, port in enumerate(sizes.port_cells)}
    source, destination = (scratchpad[f"word.{x}"] for x in (sizes.source, sizes.destination))
    away = {x: scratchpad[f"away.{x}"] for x in "ab"}
    difference = card.lemma(1, "difference", "scratchpad",
                            at(destination, away[sizes.destination]) - at(source, away[sizes.source]))
    jumps = card.at_most_zero(difference)
    if not sizes.ports_branch:
        jumps = card.both(jumps, away["a"] == 0, away["b"] == 0)
    counter = card.lemma(1, "counter", "scratchpad", card.choose(jumps, scratchpad["word.c"], scratchpad["counter"]))
    store, to_port = scratchpad["store.here"], scratchpad["away.store"] == 1

    def fetched(offset: int) -> Any:
        address = card.low(counter, length) + offset
        here = card.both(address == store, scratchpad["away.store"] == 0)
        return card.choose(here, difference, at(address, card.number(0, 1)))

    words = {x: fetched(i) for i, x in enumerate("abc")}
    gone = {x: card.bit(card.is_at_least(words[x], sizes.first_port)) for x in "ab"}
    next_source, next_destination = words[sizes.source], words[sizes.destination]
    for x in "abc":
        card.expect(f"word.{x}", "scratchpad", words[x])
    for name, bit in {"a": gone["a"], "b": gone["b"], "store": gone[sizes.destination], "fetch": card.number(0, 1)}.items():
        card.expect(f"away.{name}", "scratchpad", bit)
    for less, offset in enumerate(offsets):
        card.expect(f"store.{offset}", "scratchpad", card.low(next_destination, length) - less)
    card.expect("counter", "scratchpad", counter + INSTRUCTION)
    outside = card.is_at_least(next_destination, sizes.data_end)
    output = next_destination == card.number(sizes.output_port, sizes.word_bits)
    stored_out = card.both(to_port, store == card.number(sizes.output_port, length))
    for name, condition in {
        "source": card.is_at_least(next_source, sizes.data_end),
        "destination": card.both(outside, card.negated(output)),
        "counter": card.is_at_least(counter, sizes.code_end),
        "output": stored_out,
    }.items():
        card.expect(f"event.{name}", "scratchpad", card.bit(condition))
    for region in cells:
        card.expect("memory", region, lambda cell: card.choose(
            card.both(card.negated(to_port), cell.is_at(card.wide(store, length + 2) + FIRST)), difference, cell["memory"]))
    card.expect("memory", "ports", lambda cell: card.choose(
        card.both(to_port, cell["position.here"] == store), difference, cell["memory"]))
