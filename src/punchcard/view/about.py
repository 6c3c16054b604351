"""What does not change in a run: the reply to `about`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from punchcard.card.layout import Layout, RowBlock
from punchcard.formatting import plain_data
from punchcard.machines.base import Machine
from punchcard.machines.display_values import DisplayValue, ListedInstruction, Listing
from punchcard.view.protocol import (
    AboutReply,
    BlockReply,
    ContentKind,
    InstructionReply,
    LayerReply,
    LayoutReply,
    ProgramReply,
    ShownReply,
)

if TYPE_CHECKING:
    from punchcard.view.session import Session

MOST_LINES = 20_000
MOST_INSTRUCTIONS = 20_000


def about_reply(session: Session) -> AboutReply:
    """The machine, the program, and what there is to see."""
    machine, layout, timeline = session.machine, session.layout, session.timeline
    names = {column: name for column in session.columns_shown.tolist()
             if (name := machine.column_name(column, session.program)) != layout.column_name(column)}
    layers, end = layers_reply(machine), timeline.end
    if not machine.keeps_weights:  # else the formulas take long to work out: `formulas` gives them on demand
        for number, layer in enumerate(layers):
            found = session.formula_texts.layer(number)
            layer["heads"], layer["formulas"] = found["heads"], found["formulas"]
    return {
        "title": machine.title(), "machine": machine.kind.name, "design": machine.design.name,
        "dtype": machine.precision.name, "facts": plain_data(machine.summary()),
        "layout": layout_reply(layout), "layers": layers, "program": program_reply(session.name, session.listing),
        "shown": [shown_reply(layout, shown) for shown in session.shown],
        "counter": None if session.counter is None else shown_reply(layout, session.counter),
        "columns_shown": session.columns_shown.tolist(), "column_names": names,
        "loops": None if end is None else end.loops, "ended": None if end is None else end.reason,
        "known_loops": timeline.known, "ports": machine.has_ports, "input": session.input.decode("utf-8", "replace"),
    }


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
