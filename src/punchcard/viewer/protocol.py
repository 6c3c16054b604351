"""The questions of a view and the replies of a session, as JSON.

A run is a line of moments. With L layers, moment m = 2 L loop + 2 layer + stage. At stage 0 the card is before the layer,
at stage 1 after its attention and before its feed-forward. Moment 2 L loop is the card after `loop` loops, with what a host
has put there for the next one.

Over HTTP a question is POST /api/NAME with a JSON object of the arguments below, and the reply is the object of that name. A
question that cannot be answered is answered with {"error": one line}, and a status that is not 200.

    about()                                  AboutReply
    formulas(layer)                          FormulasReply
    state(moment, columns=[])                StateReply      `columns`: wanted beside those that are shown anyway
    attention(loop, layer, head, columns=[]) AttentionReply
    explain(moment, column)                  ExplainReply    of the step that ends at this moment
    weights(layer, head=null, unit=null)     WeightsReply
    explore(seconds=0.2)                     ExploreReply    runs ahead, to learn where the run ends
    find(what, moment, forward=true, ...)    FindReply

Numbers in bulk are base64 of little-endian float64: `entries` has `width` numbers for each column of `columns`, one column
after the other.
"""

from __future__ import annotations

import base64
from typing import Literal, TypedDict

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout, RowBlock

ContentKind = Literal["bits", "one", "real", "fixed", "mixed", "empty"]
"""What a row block holds when a loop begins; "mixed": different things in different regions; "empty": 0 everywhere."""


class BlockReply(TypedDict):
    """A row block. `parts` are [name, first row, rows]; `within` is what it holds in the middle of a loop, if declared."""

    name: str
    start: int
    rows: int
    about: str
    kind: ContentKind
    parts: list[tuple[str, int, int]]
    within: str | None


class RegionReply(TypedDict):
    """A range of columns."""

    name: str
    start: int
    columns: int
    about: str


class LayoutReply(TypedDict):
    """The rows and columns of the card."""

    width: int
    columns: int
    blocks: list[BlockReply]
    regions: list[RegionReply]


class HeadReply(TypedDict):
    """A head. `about` is what `attend` was given; both it and `gap` are null until the layer's formulas are asked for.

    `carries` are the bands of rows that it moves something of.
    """

    about: str | None
    temperature: float
    gap: float | None
    carries: list[str]


class LayerReply(TypedDict):
    """A layer. `formulas` is what `assign` was given; null until asked for (`formulas(layer)`)."""

    name: str
    heads: list[HeadReply]
    formulas: list[str] | None
    hidden: int


class ProgramReply(TypedDict):
    """The program: its name, its source (or a listing of it), and its instructions: see `machines.display_values`.

    Long ones are cut: `left_out` is by how many lines and instructions.
    """

    name: str
    lines: list[str]
    instructions: list[dict[str, object]]
    left_out: int


class ExploreReply(TypedDict):
    """How far the run is known now, and where it ends, if that is known.

    known_loops    how many loops have been made so far, which is the least that a slider can reach
    loops, ended   after how many loops the run ends and why: "halted", "fault", "steps" or "error"
    message        a fault, or a promise that the program broke
    """

    known_loops: int
    loops: int | None
    ended: str | None
    message: str | None


class ChoiceReply(TypedDict):
    """An option of the machine: its name, what a person calls it, its value now, and those that there are."""

    name: str
    label: str
    now: str | int
    options: list[str | int]


class AboutReply(ExploreReply):
    """All that does not change in a run.

    title          the machine in one line;  `machine`, `design`, `dtype`: its kind, design and number format
    facts          its figures by name
    columns_shown  the columns that are always shown; all of them for a small card
    counter_base   in which base people write it: 10, or 16
    counter        the place of the program counter, as a value, or null if the machine has none
    column_names   names of the columns that have one beyond their region and number
    labels         what numbers are called, by the rows that hold them
    shown          the values on the card, as `machines.display_values.DisplayValue.plain` gives them
    ports          whether the program reads input and writes output
    input          its input, as text
    pointers       the bands whose numbers are columns
    signed         the bands whose words have a sign where the story quotes them
    choices        what the page may choose about the machine: the server is asked build(NAME=VALUE, ...)
    """

    title: str
    machine: str
    design: str
    dtype: str
    facts: dict[str, object]
    layout: LayoutReply
    layers: list[LayerReply]
    program: ProgramReply
    shown: list[dict[str, object]]
    counter: dict[str, object] | None
    labels: dict[str, list[str]]
    counter_base: int
    columns_shown: list[int]
    column_names: dict[int, str]
    ports: bool
    input: str
    pointers: list[str]
    signed: list[str]
    choices: list[ChoiceReply]


class StateReply(ExploreReply):
    """The card at a moment; one beyond the end of the run is answered with the last, so look at `moment`.

    columns          the numbers of the columns that are shown, ascending
    names            the names of those that are not always shown (`about.column_names` has the others)
    entries          base64 of float64, `width` numbers for each of them
    changed          [row, column] of the shown entries that differ from the moment before
    values           the values by name, in the order of `about.shown`; a list, since two may have the same name
    story            what the half layer before this moment did, in a sentence
    program_counter  of the loop that the moment belongs to; or null if there is none
    instruction      the text of the instruction there;  `line`: its line in the source, from 1; of a routine without one
                     the line that uses it
    output           what has been written so far;  `read`: how many bytes of the input have been read
    ended, message   at the last moment of the run alone
    """

    moment: int
    loop: int
    layer: int
    stage: int
    columns: list[int]
    names: dict[int, str]
    entries: str
    changed: list[tuple[int, int]]
    values: list[str]
    story: str
    program_counter: int | None
    instruction: str | None
    line: int | None
    output: str
    read: int


class AttentionReply(TypedDict):
    """Who takes from whom in one head of one loop.

    columns      the columns that ask, ascending
    moves        [source, target, weight, score, gap] for each weight of at least 1/64, the column itself included;
                 `score` is (K X)^T (Q X) without the temperature, `gap` how far it is above the best score that is lower
                 (null: every key has the same score)
    matrix       base64 of float64, for small cards: `columns.length` numbers (whom it takes from) for each asking column,
                 one asking column after the other; null for large cards
    """

    loop: int
    layer: int
    head: int
    temperature: float
    columns: list[int]
    moves: list[tuple[int, int, float, float, float | None]]
    matrix: str | None


class FormulaReply(TypedDict):
    """What one head (kind "attend") or one assignment (kind "assign") did to a column.

    text      what it was given;  `rows`: the names of the rows that it writes
    before    the entries of these rows in the step before, and `after` it
    details   the formula of each row, if the text is for several
    """

    kind: Literal["attend", "assign"]
    text: str
    rows: list[str]
    before: list[float]
    after: list[float]
    details: list[str]


class ExplainReply(TypedDict):
    """The step that ends at a moment (stage 1: an attention; stage 0: the feed-forward before it), in one column.

    before, after   base64 of float64: all rows
    host            whether a host changed the card between two loops in this column
    """

    moment: int
    column: int
    name: str
    before: str
    after: str
    formulas: list[FormulaReply]
    host: bool


class FormulasReply(TypedDict):
    """A layer's formulas: heads as in `about`, and each assignment with the rows that it sets and their own formulas."""

    layer: int
    heads: list[HeadReply]
    formulas: list[str]
    rows: list[list[str]]
    details: list[list[str]]


class WeightsPart(TypedDict):
    """A matrix by its entries that are not 0: [what it makes, from which row, weight]; `bias` of a hidden unit."""

    name: str
    nonzero: list[tuple[str, str, float]]
    bias: float | None


class WeightsReply(TypedDict):
    """The weights of a head (key, query, value), of a hidden unit (in, out), or of a layer: its parts are empty then."""

    name: str
    layer: int
    heads: int
    hidden: int
    temperature: float | None
    parts: list[WeightsPart]


class FindReply(TypedDict):
    """The moment that was looked for (see `Session.find`), or null; the loop up to, or back to, which it was looked for."""

    moment: int | None
    searched: int


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


def encoded(entries: AnyArray) -> str:
    """Columns one after the other, as base64 of little-endian float64."""
    return base64.b64encode(np.ascontiguousarray(entries.T, dtype="<f8").tobytes()).decode("ascii")


def decoded(text: str, width: int) -> AnyArray:
    """The entries again: rows by columns."""
    return np.frombuffer(base64.b64decode(text), "<f8").reshape(-1, width).T
