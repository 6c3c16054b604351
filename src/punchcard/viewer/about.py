"""What does not change in a run: the reply to `about`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchcard.card.layout import Layout, RowBlock
from punchcard.formatting import plain_data
from punchcard.viewer.protocol import AboutReply, BlockReply, ContentKind, LayerReply, LayoutReply, ProgramReply

if TYPE_CHECKING:
    from punchcard.viewer.session import Session

MOST_LINES = 20_000
MOST_INSTRUCTIONS = 20_000


def about_reply(session: Session) -> AboutReply:
    """The machine, the program, and what there is to see."""
    machine, layout = session.machine, session.layout
    names = {column: name for column in session.inspector.columns_shown.tolist()
             if (name := machine.column_name(column, session.program)) != layout.column_name(column)}
    layers: list[LayerReply] = [
        {"name": f"layer {number + 1}", "formulas": None, "hidden": layer.hidden,
         "heads": [{"about": None, "temperature": float(t), "gap": None} for t in layer.temperature]}
        for number, layer in enumerate(machine.weights.layers)]
    if not machine.keeps_weights:  # else the formulas take long to work out: `formulas` gives them on demand
        for number, layer in enumerate(layers):
            found = session.formula_texts.layer(number)
            layer["heads"], layer["formulas"] = found["heads"], found["formulas"]
    return {
        "title": machine.title(), "machine": machine.kind.name, "design": machine.design.name,
        "dtype": machine.precision.name, "facts": plain_data(machine.summary()),
        "layout": layout_reply(layout), "layers": layers, "program": program_reply(session),
        "shown": [shown.plain(layout) for shown in session.shown],
        "counter": None if session.counter is None else session.counter.plain(layout),
        "columns_shown": session.inspector.columns_shown.tolist(), "column_names": names, **session.end_reply(),
        "ports": machine.has_ports, "input": session.input.decode("utf-8", "replace"),
    }


def program_reply(session: Session) -> ProgramReply:
    """The program's text and instructions; of very long ones the beginning."""
    lines, instructions = session.listing
    left_out = max(0, len(lines) - MOST_LINES) + max(0, len(instructions) - MOST_INSTRUCTIONS)
    return {"name": session.name, "lines": list(lines[:MOST_LINES]), "left_out": left_out,
            "instructions": [each._asdict() for each in instructions[:MOST_INSTRUCTIONS]]}


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
    places = {name: layout.rows(f"{block.name}.{name}") for name in block.parts}
    parts = [(name, place.start, place.stop - place.start) for name, place in places.items()]
    return {"name": block.name, "start": layout.rows(block.name).start, "rows": block.size, "about": block.about,
            "kind": kind, "parts": parts, "within": block.within}
