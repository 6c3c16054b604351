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
from punchcard.viewer.colours import ABOVE, BELOW, CHANGED, FAINT, INK, ZERO
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

    figure = Picture(figsize=(width, height), layout="constrained", facecolor="white")
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
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("card", [BELOW, ZERO, ABOVE])
    height = sum(len(band.entries) for band in shown.bands)
    scaled = np.vstack([band.scaled for band in shown.bands]) if shown.bands else np.zeros((0, 0))
    left, first, ticks, labels = 0.0, 0, list[float](), list[str]()
    for group in shown.groups:
        size = len(group.columns)
        axes.imshow(scaled[:, first:first + size], cmap=colours, vmin=-1, vmax=1, interpolation="none", aspect="auto",
                    extent=(left, left + size, height, 0))
        folded = f"\n+ {group.folded:,} folded" if group.folded else ""
        axes.text(left + size / 2, -0.6, group.region.name + folded, ha="center", va="bottom", fontsize=7, **TEXT,
                  rotation=0 if size * 7 > len(group.region.name) * 2 else 40)
        for line in range(1, size):
            axes.axvline(left + line, color="white", linewidth=0.6)
        ticks += [left + i + 0.5 for i in range(size)]
        labels += [printable(names(column)) for column in group.columns]
        left, first = left + size + GAP, first + size
    axes.set_xlim(0, max(1.0, left - GAP))
    axes.set_ylim(max(1, height), 0)
    axes.set_xticks(ticks, labels, rotation=90, fontsize=6, **TEXT)
    _bands(axes, shown)
    if with_changes:
        _mark_changes(axes, shown, [tick - 0.5 for tick in ticks])


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


def _mark_changes(axes: Axes, shown: CardExcerpt, lefts: Sequence[float]) -> None:
    """A frame around each entry that is not what it was."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    frames, top = [], 0
    for band in shown.bands:
        frames += [Rectangle((lefts[column], top + row), 1, 1) for row, column in np.argwhere(band.other != band.entries)]
        top += len(band.entries)
    axes.add_collection(PatchCollection(frames, facecolor="none", edgecolor=CHANGED, linewidth=0.9))


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
    axes.scatter(range(len(columns)), [0] * len(columns), s=14, color=BELOW, edgecolor=INK, linewidth=0.5, zorder=3)
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
    axes.imshow(matrix, cmap=LinearSegmentedColormap.from_list("weights", [ZERO, ABOVE]), vmin=0, vmax=1,
                interpolation="none", aspect="auto")
    axes.set_xticks(columns, [printable(names(column)) for column in columns], rotation=90, fontsize=6, **TEXT)
    axes.set_yticks(columns, [printable(names(column)) for column in columns], fontsize=6, **TEXT)
    axes.set_xlabel("takes", fontsize=7, **TEXT)
    axes.set_ylabel("gives", fontsize=7, **TEXT)
