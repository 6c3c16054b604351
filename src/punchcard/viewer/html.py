"""One HTML file with a run inside, which opens by double click: the loops as they were recorded, or the model itself.

With the model inside the page computes the equation in float64. So the machine has to be one of float64, and the card small.
"""

from __future__ import annotations

import base64
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import AnyArray
from punchcard.errors import PunchcardError
from punchcard.files import write_atomic
from punchcard.transformer.weights import Weights
from punchcard.viewer import page
from punchcard.viewer.protocol import decoded, encoded
from punchcard.viewer.session import Session
from punchcard.viewer.stages import SMALL, entries_of

DEFAULT_LOOPS = 64
MOST_BY_DEFAULT = 256
"""Loops that are recorded to reach the first output."""
MOST_LOOPS = 100_000
MATRIX_COLUMNS = 32
"""Beyond so many columns a recorded file has who takes from whom, and no matrices."""
SECONDS = 10.0
"""How long to look for the end of a run."""


@checked
def html_of(session: Session, *, first: int = 0, last: int | None = None, model: bool = False) -> str:
    """The file as text: loops `first` to `last`, by default the first 64; or the model, and a run up to `last`."""
    if first < 0 or (last is not None and last < first):
        raise PunchcardError(f"loops {first} to {last}: the first is 0 or more, and not after the last")
    if last is not None and last - first > MOST_LOOPS:
        raise PunchcardError(f"loops {first} to {last}: a file has at most {MOST_LOOPS}")
    session.timeline.patience = math.inf  # nobody waits for a single loop
    found = computed_data(session, last) if model else recorded_data(session, *recorded_range(session, first, last))
    return page.document(f"{session.name} – Punchcard", found)


@checked
def write_html(path: str | Path, session: Session, *, first: int = 0, last: int | None = None, model: bool = False) -> int:
    """Write the file; its size in bytes."""
    text = html_of(session, first=first, last=last, model=model).encode()
    write_atomic(path, text)
    return len(text)


@checked
def recorded_loops(session: Session, first: int = 0, last: int | None = None, *, model: bool = False) -> str:
    """Which loops of a run are in its file, in words."""
    end = session.timeline.end
    if model and last is None:
        return "all loops" if end is None else f"all {end.loops:,} loops"
    if not model:
        first, last = recorded_range(session, first, last)
    held = session.place((last or 0) * session.per_loop)[0]
    return f"loops {first:,} to {held:,}" + ("" if end is None else f" of {end.loops:,}")


def recorded_range(session: Session, first: int = 0, last: int | None = None) -> tuple[int, int]:
    """The first and the last loop of a recorded file. With `last`, these.

    Without: 64 loops, or up to the first output; where that is far away, the loops before it.
    """
    if last is not None:
        return first, last
    session.timeline.patience = math.inf
    usual = first + DEFAULT_LOOPS
    written = _first_output(session) if session.machine.has_ports and first == 0 else None
    if written is None:
        return first, usual
    return (0, max(usual, written)) if written <= MOST_BY_DEFAULT else (written - DEFAULT_LOOPS, written)


def _first_output(session: Session) -> int | None:
    """After how many loops something has been written; None if nothing is soon."""
    session.timeline.mark(DEFAULT_LOOPS)  # the engine compiles the weights: that is not time of the search
    moment: int | None = 0
    stop = time.monotonic() + SECONDS
    while moment is not None and time.monotonic() < stop:
        moment = session.find("port", moment, seconds=1.0)
        if moment is not None and session.timeline.served(moment // session.per_loop).traffic.written:
            return moment // session.per_loop
    return None


def _constant(session: Session, last: int | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What does not change: `about` and all formulas. The run ends at `last`, or at its own end if that comes first."""
    about: dict[str, Any] = dict(session.about())
    end = session.timeline.end
    reached = last if end is None else end.loops if last is None else min(end.loops, last)
    about |= {"loops": reached, "known_loops": reached or 0,
              "ended": end.reason if end is not None and reached == end.loops else None}
    formulas: list[dict[str, Any]] = [dict(session.formulas(layer)) for layer in range(session.layers)]
    if session.machine.keeps_weights:  # a large one: without the formula of each row
        formulas = [{**layer, "details": [[] for _ in layer["details"]]} for layer in formulas]
    about["layers"] = [{**layer, "heads": found["heads"], "formulas": found["formulas"]}
                       for layer, found in zip(about["layers"], formulas, strict=True)]
    return about, formulas


def recorded_data(session: Session, first: int, last: int) -> dict[str, Any]:
    """States, attention and weights, written down."""
    last = session.place(last * session.per_loop)[0]
    if first > last:
        raise PunchcardError(f"loops from {first} on: the run ends after {last}")
    states: list[dict[str, Any]] = []
    before: tuple[list[int], AnyArray] | None = None
    names: dict[int, str] = {}
    heads = [(layer, head) for layer, arrays in enumerate(session.machine.weights.layers) for head in range(arrays.heads)]
    attention = {}
    for moment in range(first * session.per_loop, last * session.per_loop + 1):
        state: dict[str, Any] = dict(session.state(moment))
        names |= state.pop("names")
        entries = decoded(state["entries"], session.layout.width)
        if before is not None:
            state["changes"] = changes(_carried(*before, state["columns"]), entries, state["columns"])
            del state["entries"]
        same, before = before is not None and before[0] == state["columns"], (state["columns"], entries)
        if same:
            del state["columns"]
        states.append(state)
        loop, stage = divmod(moment, session.per_loop)
        for layer, head in heads if stage == 0 and loop < last else ():  # while what a loop computes is kept
            reply: dict[str, Any] = dict(session.attention(loop, layer, head))
            if session.layout.columns > MATRIX_COLUMNS:
                reply["matrix"] = None
            attention[f"{loop}/{layer}/{head}"] = reply
    weights = {f"{layer}/{head}/": session.weights(layer, head=head) for layer, head in heads}
    session.explore(SECONDS)
    about, formulas = _constant(session, last)
    end = session.timeline.end
    about |= {"first_loop": first, "all_loops": None if end is None else end.loops,
              "column_names": about["column_names"] | names}
    return {"kind": "recorded", "about": about, "states": states, "attention": attention, "weights": weights,
            "formulas": formulas}


def _carried(columns: list[int], entries: AnyArray, wanted: list[int]) -> AnyArray:
    """The wanted columns as they were before; 0 if they were not shown. A large card shows other columns in each loop."""
    if columns == wanted:
        return entries
    found = np.zeros((len(entries), len(wanted)))
    _, here, there = np.intersect1d(columns, wanted, assume_unique=True, return_indices=True)
    found[:, there] = entries[:, here]
    return found


def changes(before: AnyArray, after: AnyArray, columns: list[int]) -> list[tuple[int, int, float | int]]:
    """[row, column, value] of the entries that differ; whole numbers are written as such."""
    rows, places = np.nonzero(before != after)
    return [(row, columns[place], int(value) if value.is_integer() and abs(value) < 1 << 53 else value)
            for row, place, value in zip(rows.tolist(), places.tolist(), after[rows, places].tolist(), strict=True)]


def computed_data(session: Session, last: int | None) -> dict[str, Any]:
    """The first card and the weights; and for a program that reads and writes, what a host did."""
    machine = session.machine
    if machine.precision.name != "float64":
        raise PunchcardError(f"a page computes in float64, and the machine in {machine.precision.name}: build it with "
                             "float64 (--dtype float64), or leave --model out")
    if session.layout.columns > SMALL:
        raise PunchcardError(f"a card of {session.layout.columns} columns is too large for a page that computes it, which "
                             f"takes {SMALL}: use a smaller machine, or leave --model out")
    session.explore(SECONDS)
    end = session.timeline.end
    reached = MOST_LOOPS if end is None else end.loops
    if last is not None or machine.has_ports:
        reached = min(reached, MOST_LOOPS if last is None else last)
    about, formulas = _constant(session, None if end is not None and last is None else reached)
    facts = _facts(session, reached) if machine.has_ports else {}
    if end is not None and end.loops == reached and end.message is not None:
        facts.setdefault(reached, {})["message"] = end.message
    card = entries_of(session.timeline.served(0).card).astype(np.float64)
    return {"kind": "computed", "about": about, "model": model_data(machine.weights), "card": encoded(card),
            "loops": facts, "formulas": formulas, "story": session.storyteller.plain()}


def _facts(session: Session, reached: int) -> dict[int, dict[str, Any]]:
    """What was read and written by each loop, and what the host wrote to the card after it."""
    facts: dict[int, dict[str, Any]] = {}
    for loop in range(reached + 1):
        served = session.timeline.served(loop)
        facts[loop] = {"output": served.traffic.written.decode("utf-8", "replace"), "read": len(served.traffic.read)}
        if loop:
            made = session.inspector.stages(loop - 1).stages[-1]
            found = changes(made, entries_of(served.card), list(range(session.layout.columns)))
            if found:
                facts[loop]["changes"] = found
    return facts


def model_data(weights: Weights) -> dict[str, Any]:
    """All layers of a model, which JavaScript reads bit for bit."""
    return {"width": weights.width, "layers": [{
        "heads": [{**{name: _sparse(getattr(layer, name)[head]) for name in ("key", "query", "value")},
                   "temperature": float(layer.temperature[head])} for head in range(layer.heads)],
        **{name: _sparse(getattr(layer, name)) for name in ("w1", "b1", "w2", "b2")}} for layer in weights.layers]}


def _sparse(array: AnyArray) -> dict[str, Any]:
    """A matrix by its entries that are not 0: their places, counted row by row, and their values."""
    flat = np.ravel(array)
    at = np.flatnonzero(flat)
    return {"shape": list(array.shape), "at": base64.b64encode(at.astype("<u4").tobytes()).decode("ascii"),
            "values": encoded(flat[at])}
