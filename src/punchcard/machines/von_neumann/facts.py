"""What is true of every card of a von Neumann machine when a loop begins."""

from __future__ import annotations

from punchcard.card.facts import AnyFact, Equals, Fact, Holds, Same, both, either
from punchcard.machines.von_neumann.addresses import AddressMap


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
        to_port = either(Equals(away, 0), *(Equals(rows, port, low=sizes.pointer_bits) for port in sizes.port_cells))
        found.append(Fact("scratchpad", to_port, f"{rows} names a cell or a port", unless=Equals(f"event.{event}", 1)))
    belong = [Same(f"store.{offset}", "store.here", -less) for less, offset in enumerate(offsets)]
    found += [Fact("scratchpad", both(*belong),
                   "the store's address and those before it belong together"),
              Fact("scratchpad", Equals("away.fetch", 0), "instructions are not fetched from ports")]
    return found
