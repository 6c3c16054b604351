"""The results of a sweep as a page: tables in Markdown, and plots by matplotlib.

    report.md            tables
    plots/KIND.svg       the share of runs that end right, against the size of a change
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punchcard.errors import SweepError
from punchcard.export.targets import missing_of
from punchcard.files import write_atomic
from punchcard.folders import naming
from punchcard.formatting import plural
from punchcard.sweep.results import Results

if TYPE_CHECKING:
    import pandas

PAGE, PLOTS = "report.md", "plots"
VARIED = ("machine", "design", "dtype", "program", "temperature", "gate", "engine")
"""What tells machines and runs apart, beside the options of machines."""
ONE_BY_ONE = ("layer", "tensor", "where", "bits")
"""What tells changes of one kind apart, beside their amount."""
Line = Sequence[object]


def require_report() -> None:
    """Refuse where a library is missing."""
    if missing := missing_of(["pandas", "matplotlib"]):
        raise SweepError(f"a report needs {missing[0]}, which is not installed: pip install 'punchcard[sweep]'")


class SweepReport:
    """Tables of a sweep's results. They can be made while the sweep continues, of what is there."""

    def __init__(self, results: Results) -> None:
        require_report()
        self.results, self.frame = results, results.pandas()
        options = list(self.frame.columns[self.frame.columns.get_loc("worker") + 1:])
        self.setup = [name for name in (*VARIED, *options) if self._varies(self.frame, name)]
        self.measured = self.frame[self.frame.status == "ok"]

    def _varies(self, frame: pandas.DataFrame, name: str) -> bool:
        return bool(frame[name].astype(str).nunique() > 1)

    def page(self) -> str:
        """The page in Markdown."""
        parts = [f"# The sweep {self.results.about['name']!r}\n\n{self.counts()}"]
        for kind, some in self.measured.groupby("change"):
            parts.append(f"## {kind}\n\n{self.right_table(some)}")
            if self._is_scale(some):
                parts.append(f"{self.threshold_table(some)}\n\n![the share of right runs]({PLOTS}/{kind}.svg)")
        return "\n\n".join(parts) + "\n"

    def counts(self) -> str:
        """How many jobs ended in which way."""
        found = self.frame.status.value_counts()
        lines = [[status, count, self._example(str(status))] for status, count in found.items()]
        return (f"{len(self.frame):,} of {plural(self.results.jobs, 'job')}, {self.frame.seconds.sum():,.1f} CPU seconds of "
                f"runs.\n\n" + table(["status", "jobs", "message of one"], lines))

    def _example(self, status: str) -> str:
        if status == "ok":
            return ""
        return str(self.frame[self.frame.status == status].message.iloc[0])

    def right_table(self, some: pandas.DataFrame) -> str:
        """For each machine and change: runs, the share that ends right, the first wrong loop and the wrong entries there."""
        by = [*self.setup, *(name for name in ("amount", "to", *ONE_BY_ONE) if self._varies(some, name))]
        lines: list[Line] = []
        for names, group in some.groupby(by or ["change"], dropna=False, sort=False):
            wrong = group[group.first_wrong_loop.notna()]
            lines.append([*(names if by else ()), len(group), percent(group.right.astype(bool).mean()),
                          f"{wrong.first_wrong_loop.median():g}" if len(wrong) else "",
                          f"{wrong.wrong_entries.median():g}" if len(wrong) else "", f"{group.drift.max():.1e}"])
        return table([*by, "runs", "right at the end", "first wrong loop", "wrong entries", "largest drift while right"],
                     lines)

    def threshold_table(self, some: pandas.DataFrame) -> str:
        """For each machine: the largest amount with which all runs are right, and the least with which none is."""
        by = [*self.setup, *(name for name in ONE_BY_ONE if self._varies(some, name))]
        lines: list[Line] = []
        for names, group in some.groupby(by or ["change"], dropna=False, sort=False):
            all_right, none_right = thresholds(group)
            lines.append([*(names if by else ()), all_right, none_right])
        return table([*by, "all right up to", "none right from"], lines)

    def _is_scale(self, some: pandas.DataFrame) -> bool:
        return bool(some.amount.nunique() > 1)

    def plots(self) -> Iterable[tuple[str, bytes]]:
        """Names and bytes of the plots."""
        for kind, some in self.measured.groupby("change"):
            if self._is_scale(some):
                yield f"{kind}.svg", plot(some, [*self.setup, *(n for n in ONE_BY_ONE if self._varies(some, n))], str(kind))

    def write(self) -> list[Path]:
        """Write the page and the plots into the folder of the results."""
        folder = self.results.folder
        with naming(folder / PLOTS):
            (folder / PLOTS).mkdir(exist_ok=True)
        made = [folder / PLOTS / name for name, _ in self.plots()]
        for name, data in self.plots():
            write_atomic(folder / PLOTS / name, data)
        write_atomic(folder / PAGE, self.page())
        return [folder / PAGE, *made]


def thresholds(group: pandas.DataFrame) -> tuple[str, str]:
    """Of runs with several amounts: the largest up to which all are right, the least from which none is."""
    share = group.right.astype(bool).groupby(group.amount).mean().sort_index()
    all_right, none_right = "", ""
    for amount, right in share.items():
        if right < 1:
            break
        all_right = f"{amount:g}"
    for amount, right in share[::-1].items():
        if right > 0:
            break
        none_right = f"{amount:g}"
    return all_right, none_right


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def table(head: Sequence[str], lines: Iterable[Line]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *([_text(cell) for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return "" if cell != cell else f"{cell:g}"
    return str("" if cell is None else cell).replace("|", "\\|")


def plot(some: pandas.DataFrame, by: Sequence[str], kind: str) -> bytes:
    """The share of right runs against the amount of a change, a line for each machine."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes: Any = figure.subplots()
    for names, group in some.groupby(list(by) or ["change"], dropna=False, sort=False):
        share = group.right.astype(bool).groupby(group.amount).mean().sort_index()
        label = ", ".join(_text(name) for name in names)
        axes.plot(share.index, 100 * share.to_numpy(), marker="o", markersize=3, label=label)
    positive = some.amount[some.amount > 0]
    if len(positive) and positive.max() / positive.min() > 50:
        axes.set_xscale("log")
    axes.set(xlabel=f"amount of {kind}", ylabel="right at the end, %", ylim=(-4, 104))
    if axes.get_legend_handles_labels()[1]:
        figure.legend(loc="outside right upper", fontsize=7)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
