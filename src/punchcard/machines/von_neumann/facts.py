"""What is true of every card of a von Neumann machine when a loop begins."""

from __future__ import annotations

from functools import partial

from punchcard.card.facts import AnyFact, ColumnWords, Fact, Holds
from punchcard.machines.von_neumann.addresses import AddressMap
from punchcard.words.word import Word, all_of, any_of


def facts(sizes: AddressMap, offsets: tuple[str, ...]) -> list[AnyFact]:
    """Addresses stand where they should, and a pointer that goes away goes to a port, or the host has looked at it."""
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
    for rows, away, event in ((f"word.{sizes.source}", f"away.{sizes.source}", "source"),
                              (f"word.{sizes.destination}", f"away.{sizes.destination}", "destination"),
                              ("store.here", "away.store", "destination")):
        found.append(Fact("scratchpad", partial(_names_cell_or_port, sizes, rows, away), f"{rows} names a cell or a port",
                          unless=lambda column, event=event: column[f"event.{event}"].equals(1)))  # type: ignore[misc]
    return [
        *found,
        Fact("scratchpad", lambda column: all_of(*(column[f"store.{offset}"].equals(column["store.here"] - less)
                                                   for less, offset in enumerate(offsets))),
             "the store's address and those before it belong together"),
        Fact("scratchpad", lambda column: column["away.fetch"].equals(0), "instructions are not fetched from ports"),
    ]


def _names_cell_or_port(sizes: AddressMap, rows: str, away: str, column: ColumnWords) -> Word:
    pointer = column[rows][: sizes.pointer_bits]
    return column[away].equals(0) | any_of(*(pointer.equals(port) for port in sizes.port_cells))
