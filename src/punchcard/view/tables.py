"""What a notebook shows of a machine, a result or a report: a small table, and a picture of the card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from punchcard.formatting import format_value, plural
from punchcard.view.svg import card_svg

if TYPE_CHECKING:
    from punchcard.machines.base import Machine
    from punchcard.machines.result import Report, Result

MOST = 16
"""Values of a program that are shown."""
LONGEST = 400
"""Characters of an output that is shown."""
LEFT = "style='text-align:left;vertical-align:top'"


def result_html(result: Result[Any]) -> str:
    """How the run ended, its values and output, and its last card."""
    return f"<div><p>{escape(result.summary())} on the {escape(result.engine)} engine</p>{_rest(result)}</div>"


def report_html(report: Report[Any]) -> str:
    """The same, and what the interpreter says of it."""
    result = report.result
    mark = "✓" if report.agrees else "✗" if report.agrees is False else "–"
    return (f"<div><p>{escape(result.summary())} on the {escape(result.engine)} engine<br>"
            f"{mark} {escape(report.summary())}</p>{_rest(result)}</div>")


def machine_html(machine: Machine[Any, Any]) -> str:
    """Its figures, and the blocks and regions of its card."""
    facts = {name: value for name, value in machine.summary().items() if name not in ("paper", "machine", "design")}
    layout = machine.layout
    blocks = ((block.name, block.size, block.about, ", ".join(f"{content} in {region}" for region, content in
              block.holds.items()) or "nothing when a loop begins") for block in layout.blocks)
    regions = ((region.name, region.size, region.about) for region in layout.regions)
    return (f"<div><p>{escape(machine.title())}</p>{named(facts)}"
            f"<details><summary>{plural(layout.width, 'row')}</summary>{table(('block', 'rows', 'what', 'holds'), blocks)}"
            f"</details><details><summary>{plural(layout.columns, 'column')}</summary>"
            f"{table(('region', 'columns', 'what'), regions)}</details></div>")


def _rest(result: Result[Any]) -> str:
    values = dict(list(result.memory.items())[:MOST])
    more = len(result.memory) - len(values)
    text = result.output[:LONGEST].decode(errors="replace")
    written = f"<pre>{escape(text)}{'…' * (len(result.output) > LONGEST)}</pre>" if result.output else ""
    card = card_svg(result.layout, result.raw_card, names=result.names) if result.layout is not None else ""
    return f"{named(values)}{f'<p>and {more:,} more</p>' if more > 0 else ''}{written}{card}"


def named(values: Mapping[str, Any]) -> str:
    """Names and values."""
    return table((), ((name, format_value(value, 200)) for name, value in values.items())) if values else ""


def table(heading: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A plain table; every cell is text."""
    head = "".join(f"<th {LEFT}>{escape(str(name))}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td {LEFT}>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"
