"""Scores as a page, one file of HTML: means with bars, and a row for each model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from punchcard.formatting import plural
from punchcard.ground_truth.score import FIGURES, means
from punchcard.viewer.page import escape, still

TITLES = {"precision": "precision", "recall": "recall", "roc": "ROC", "accuracy": "accuracy"}
STYLE = """
#punchcard-still section { background: var(--panel); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem;
  margin-top: .9rem; overflow-x: auto; }
#punchcard-still table { border-collapse: collapse; width: 100%; }
#punchcard-still th, #punchcard-still td { text-align: left; padding: .2rem .7rem .2rem 0;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; white-space: nowrap; }
#punchcard-still th { color: var(--muted); font-weight: 600; font-size: .8rem; }
#punchcard-still .meter { display: inline-block; width: 6rem; height: .7rem; margin-right: .5rem; background: var(--button);
  border-radius: .2rem; vertical-align: middle; }
#punchcard-still .meter > i { display: block; height: 100%; background: var(--plus); border-radius: .2rem; }
#punchcard-still h2 { padding: 0 0 .5rem; }
#punchcard-still p { max-width: 52rem; color: var(--muted); margin-top: .4rem; }
"""
ABOUT = ("Precision and recall are those of scores of 1/2 or more; ROC is the area under the curve. Variables have the "
         "accuracy of interchange interventions. A figure that cannot be given, as where no part matters, is left out.")


def score_page(name: str, answers: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The page of the scores of a file of answers about a set."""
    count = len({row["model"] for row in rows})
    variables = [row for row in rows if row["kind"] == "variables"]
    parts = [
        f"<header><h1>{escape(answers)}</h1><p>scored on {escape(name)}: {plural(count, 'model')}</p></header>\n",
        f"<p>{ABOUT}</p>\n",
        _section("Means over models", _table(("what", "task", "models"), means(rows))),
        _section("Each model, all pairs", _table(("model", "what"), [
            each for each in means(rows, by_model=True) if each["task"] == "all"]))]
    if variables:
        parts.append(_section("Each variable", _table(("model", "variable"), [
            {**row, "kind": row["task"]} for row in variables])))
    return still(f"Scores of {answers}", "".join(parts), STYLE)


def _section(title: str, table: str) -> str:
    return f"<section><h2>{title}</h2>\n{table}</section>\n"


def _table(heads: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table by columns that say what it is, and all figures that there are."""
    listed = list(rows)
    figures = [figure for figure in FIGURES if any(figure in row for row in listed)]
    keys = {"what": "kind", "variable": "kind"}
    lines = ["<table><tr>" + "".join(f"<th>{head}</th>" for head in (*heads, *(TITLES[each] for each in figures))) + "</tr>"]
    for row in listed:
        cells = [f"<td>{escape(str(row[keys.get(head, head)]))}</td>" for head in heads]
        lines.append("<tr>" + "".join([*cells, *(_bar(row.get(figure)) for figure in figures)]) + "</tr>")
    return "\n".join([*lines, "</table>\n"])


def _bar(value: float | None) -> str:
    if value is None or value != value:
        return "<td></td>"
    return f'<td><span class="meter"><i style="width: {100 * value:.0f}%"></i></span>{value:.2f}</td>'
