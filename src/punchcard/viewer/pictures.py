"""Static pictures with matplotlib (the extra `plot`): a card, what a step did to it, and who takes from whom in a head.

    plot(machine, program)                    the card of a program, or any card; also machine.plot(program)
    report.result.plot()                      the last card of a run
    seen[3].plot()                            the card after a layer, with what the layer changed
    seen.plot_attention(layer=1, head=0)      the attention of a head

Each gives a matplotlib figure, which a notebook shows and `figure.savefig` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card, Layout
from punchcard.errors import PunchcardError, printable
from punchcard.machines.base import Machine
from punchcard.viewer.colours import ABOVE, BELOW, CHANGED, EDGE, FAINT, INK, PAPER, ZERO
from punchcard.viewer.excerpt import MOST, CardExcerpt, excerpt
from punchcard.viewer.stages import differing_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from punchcard.trace import Move

Names = Callable[[int], str]
CELL, LINE = 0.26, 0.105
"""Inches of a column, and of a row."""
MATRIX = 96
"""Columns of the largest card whose attention is drawn as a matrix."""
CUT, MARGIN = 0.22, 0.02
"""Inches of the corner that is cut off, and around the card."""
PADDING = 0.12
"""Inches from the card's edge to what is drawn on it."""
PLUS, MINUS = (0.84, 0.66), (0.4, 0.14)
"""Width and height of a punched mark and of a dash, in columns and rows."""
GAP = 0.6
"""Between two regions, in columns."""
TEXT: Any = {"color": INK, "parse_math": False, "usetex": False}
"""How text is drawn: as it is, also where it has the signs of TeX."""


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """An empty figure of so many inches; without matplotlib the error names the extra."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PunchcardError("a plot needs matplotlib, which is not installed: pip install 'punchcard[plot]'") from None

    class Picture(Figure):
        """A notebook shows it even without pyplot imported, which registers figures with notebooks."""

        def _repr_png_(self) -> bytes:
            data = BytesIO()
            self.savefig(data, format="png")
            return data.getvalue()

    from matplotlib.patches import Polygon

    figure = Picture(figsize=(width, height), layout="constrained", facecolor="none")
    figure.set_layout_engine("constrained", w_pad=PADDING, h_pad=PADDING)
    cut, right, bottom = CUT / width, 1 - MARGIN / width, MARGIN / height
    corners = [(cut, 1 - bottom), (right, 1 - bottom), (right, bottom), (1 - right, bottom), (1 - right, 1 - CUT / height)]
    figure.add_artist(Polygon(corners, transform=figure.transFigure, facecolor=PAPER, edgecolor=EDGE, zorder=-1))
    if title:
        figure.suptitle(printable(title, keep="\n"), fontsize=10, **TEXT)
    return figure


@checked
def plot(
    machine: Machine[Any, Any], shown: Any, *, title: str = "", columns: int = MOST, rows: Sequence[str] | None = None
) -> Figure:
    """Draw a card with matplotlib. Row blocks are bands, and regions are groups of columns.

    shown     a program, whose first card is drawn, or a card
    title     text above the picture, default: none
    columns   about how many columns to draw; columns that are not empty come first
    rows      names of the row blocks to draw, default: all

    Returns a matplotlib `Figure`.
    """
    program = shown if machine.kind.is_for(shown) else None
    if program is None and not hasattr(shown, "ndim"):
        machine.check_type(shown)
    return card_figure(machine.layout, shown if program is None else machine.pack(program), title=title, columns=columns,
                       rows=rows, names=lambda column: machine.column_name(column, program))


def card_figure(
    layout: Layout, card: Card, *, before: Card | None = None, names: Names | None = None, title: str = "",
    columns: int = MOST, rows: Sequence[str] | None = None,
) -> Figure:
    """A card: row blocks as named bands, regions as groups of columns. `before` is the card that changes are marked against.

    `columns` is about how many are shown, those that changed first, and `rows` which row blocks; the others are folded.
    """
    keep = [] if before is None else differing_columns(before, card).tolist()
    shown = excerpt(layout, card, most=columns, keep=keep, rows=rows, beside=before)
    height = sum(len(band.entries) for band in shown.bands)
    wide = len(shown.columns) * CELL + len(shown.groups) * GAP * CELL
    figure = new_figure(max(4.0, wide + 2.0), max(2.2, height * LINE + 1.4), title)
    draw_card(figure.add_subplot(), shown, with_changes=before is not None, names=names or layout.column_name)
    return figure


def draw_card(axes: Axes, shown: CardExcerpt, *, with_changes: bool, names: Names) -> None:
    """The shown part of a card on axes of the caller's, a row of it 1 high and a column 1 wide."""
    height = sum(len(band.entries) for band in shown.bands)
    left, lefts, labels = 0.0, list[float](), list[str]()
    axes.set_facecolor("none")
    for group in shown.groups:
        size = len(group.columns)
        folded = f"\n+ {group.folded:,} folded" if group.folded else ""
        axes.text(left + size / 2, -0.6, group.region.name + folded, ha="center", va="bottom", fontsize=7, **TEXT,
                  rotation=0 if size * 7 > len(group.region.name) * 2 else 40)
        lefts += [left + i for i in range(size)]
        labels += [printable(names(column)) for column in group.columns]
        left += size + GAP
    axes.set_xlim(0, max(1.0, left - GAP))
    axes.set_ylim(max(1, height), 0)
    axes.set_xticks([x + 0.5 for x in lefts], labels, rotation=90, fontsize=6, **TEXT)
    _bands(axes, shown)
    if shown.bands:
        _marks(axes, shown, np.array(lefts), with_changes=with_changes)


def _marks(axes: Axes, shown: CardExcerpt, lefts: AnyArray, *, with_changes: bool) -> None:
    """+1 is a punched mark, -1 a faint dash, another number a bar, darker if larger; what changed has its own colour."""
    from matplotlib.collections import PolyCollection

    parts = ("entries", "other", "scaled")
    entries, other, scaled = (np.vstack([getattr(band, name) for band in shown.bands]) for name in parts)
    changed = (entries != other) & with_changes
    plus, minus = entries == 1, entries == -1
    number = (entries != 0) & ~plus & ~minus
    kinds: dict[str, tuple[AnyArray, tuple[float, float], str, float]] = {
        "+1": (plus, PLUS, INK, 1.0), "-1": (minus, MINUS, FAINT, 0.75),
        "above": (number & (entries > 0), PLUS, ABOVE, 0.0), "below": (number & (entries < 0), PLUS, BELOW, 0.0)}
    for gid, (chosen, (wide, high), colour, alpha) in kinds.items():
        for where, ink, what in ((chosen & ~changed, colour, gid), (chosen & changed, CHANGED, f"{gid} changed")):
            places = np.argwhere(where)
            if not len(places):
                continue
            x, y = lefts[places[:, 1]] + (1 - wide) / 2, places[:, 0] + (1 - high) / 2
            around = ((0, 0), (wide, 0), (wide, high), (0, high))
            corners = np.stack([np.stack([x + dx, y + dy], -1) for dx, dy in around], 1)
            strength = alpha or 0.25 + 0.75 * np.abs(scaled[where])
            axes.add_collection(PolyCollection(list(corners), facecolors=ink, alpha=strength, linewidths=0, gid=what))


def _bands(axes: Axes, shown: CardExcerpt) -> None:
    """Names on the left, and a line between two bands."""
    ticks, labels, top = [], [], 0
    for band in shown.bands:
        size = len(band.entries)
        axes.axhline(top, color=FAINT, linewidth=0.5)
        ticks.append(top + size / 2)
        labels.append(band.name + (f" (to ±{band.scale:.3g})" if band.scale != 1 else ""))
        top += size
    crowded = any(len(band.entries) < 2 for band in shown.bands)
    axes.set_yticks(ticks, labels, fontsize=5 if crowded else 7, **TEXT)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def attention_figure(moves: Sequence[Move], matrix: AnyArray, *, names: Names, title: str) -> Figure:
    """Who takes from whom in a head: arrows over the columns, and for a small card the whole matrix of weights.

    Entry (i, j) of the matrix is how much column j takes from column i.
    """
    small = len(matrix) <= MATRIX
    taking = sorted({column for move in moves for column in (move.source_column, move.target_column)})
    columns = list(range(len(matrix))) if small else taking
    wide = max(3.0, min(14.0, len(columns) * CELL))
    figure = new_figure(wide + 1.0, (wide if small else 0.6) + 2.0, title)
    if not small:
        _arrows(figure.add_subplot(), columns, moves, names)
    else:
        above, below = figure.subplots(2, 1, height_ratios=(1.2, wide), sharex=True)
        _arrows(above, columns, moves, names)
        above.tick_params(labelbottom=False)
        _matrix(below, matrix, names)
    return figure


def _arrows(axes: Axes, columns: Sequence[int], moves: Sequence[Move], names: Names) -> None:
    """Columns along a line, and an arrow from each column to the one that takes from it, as wide as its weight."""
    place = {column: i for i, column in enumerate(columns)}
    for move in moves:
        source, target = place[move.source_column], place[move.target_column]
        bend = min(0.9, 6.0 / max(6.0, abs(target - source))) * (-1 if source < target else 1)
        arrow: dict[str, Any] = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={0.35 * bend}", "color": ABOVE,
                                 "linewidth": 0.4 + 1.6 * move.weight, "alpha": 0.35 + 0.65 * min(1.0, move.weight)}
        axes.annotate("", (target, 0), (source, 0), arrowprops=arrow)
    axes.set_facecolor("none")
    axes.scatter(range(len(columns)), [0] * len(columns), s=12, color=INK, linewidth=0, zorder=3)
    axes.set_ylim(-0.4, 1.1)
    axes.set_xlim(-0.6, max(1, len(columns)) - 0.4)
    axes.set_yticks([])
    axes.set_xticks(range(len(columns)), [printable(names(column)) for column in columns], rotation=90, fontsize=6, **TEXT)
    if not moves:
        axes.text(0.5, 0.6, "no column takes from another", transform=axes.transAxes, ha="center", fontsize=8, **TEXT)
    for side in axes.spines.values():
        side.set_visible(False)


def _matrix(axes: Axes, matrix: AnyArray, names: Names) -> None:
    """The weights: the darker, the more."""
    from matplotlib.colors import LinearSegmentedColormap

    columns = range(len(matrix))
    axes.imshow(matrix, cmap=LinearSegmentedColormap.from_list("weights", [ZERO, INK]), vmin=0, vmax=1,
                interpolation="none", aspect="auto")
    axes.set_xticks(columns, [printable(names(column)) for column in columns], rotation=90, fontsize=6, **TEXT)
    axes.set_yticks(columns, [printable(names(column)) for column in columns], fontsize=6, **TEXT)
    axes.set_xlabel("across: who takes", fontsize=7, **TEXT)
    axes.set_ylabel("down: from whom", fontsize=7, **TEXT)
