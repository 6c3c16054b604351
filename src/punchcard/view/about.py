"""What of a machine and its program does not change in a run, as `about` tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from punchcard.card.layout import Layout, RowBlock
from punchcard.machines.base import Machine
from punchcard.machines.display_values import DisplayValue
from punchcard.machines.listing import ListedInstruction, Listing
from punchcard.view.protocol import (
    BlockReply,
    ContentKind,
    InstructionReply,
    LayerReply,
    LayoutReply,
    ProgramReply,
    ShownReply,
)

MOST_LINES = 20_000
MOST_INSTRUCTIONS = 20_000


def layout_reply(layout: Layout) -> LayoutReply:
    """The rows and columns by name."""
    return {
        "width": layout.width, "columns": layout.columns,
        "blocks": [_block(layout, block) for block in layout.blocks],
        "regions": [{"name": region.name, "start": layout.region(region.name).start, "columns": region.size,
                     "about": region.about} for region in layout.regions],
    }


def _block(layout: Layout, block: RowBlock) -> BlockReply:
    held = set(block.holds.values())
    kind: ContentKind = "mixed" if len(held) > 1 else next(iter(held), "empty")
    parts = [(name, *_span(layout, f"{block.name}.{name}")) for name in block.parts]
    return {"name": block.name, "start": layout.rows(block.name).start, "rows": block.size, "about": block.about,
            "kind": kind, "parts": parts, "within": block.within}


def _span(layout: Layout, rows: str) -> tuple[int, int]:
    place = layout.rows(rows)
    return place.start, place.stop - place.start


def shown_reply(layout: Layout, shown: DisplayValue) -> ShownReply:
    """A value with its rows as numbers."""
    return cast("ShownReply", shown.plain(layout))


def layers_reply(machine: Machine[Any, Any]) -> list[LayerReply]:
    """The layers, without their formulas."""
    return [{"name": f"layer {number + 1}", "formulas": None, "hidden": layer.hidden,
             "heads": [{"about": None, "temperature": float(t), "gap": None} for t in layer.temperature]}
            for number, layer in enumerate(machine.weights.layers)]


def program_reply(name: str, listing: Listing) -> ProgramReply:
    """The program's text and instructions; of very long ones the beginning."""
    lines, instructions = list(listing.lines), list(listing.instructions)
    left_out = max(0, len(lines) - MOST_LINES) + max(0, len(instructions) - MOST_INSTRUCTIONS)
    return {"name": name, "lines": lines[:MOST_LINES], "left_out": left_out,
            "instructions": [_instruction(each) for each in instructions[:MOST_INSTRUCTIONS]]}


def _instruction(listed: ListedInstruction) -> InstructionReply:
    return {"number": listed.number, "line": listed.line, "text": listed.text}


def active_columns(machine: Machine[Any, Any]) -> Sequence[int]:
    """The columns of the regions in which a row that some head matches by may change: where the computation happens."""
    layout, matched = machine.layout, set[int]()
    for layer in machine.weights.layers:
        used = np.abs(layer.key).sum((0, 1)) + np.abs(layer.query).sum((0, 1))
        matched |= set(np.flatnonzero(used).tolist())
    regions = {region for block in layout.blocks for region in block.changes
               if matched & set(range(*layout.rows(block.name).indices(layout.width)))}
    return [column for region in layout.regions if region.name in regions
            for column in range(*layout.region(region.name).indices(layout.columns))]
