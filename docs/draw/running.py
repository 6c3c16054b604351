"""running.svg: a program running, as a film. Six times three on the two-layer SUBLEQ machine.

Each loop has three frames: attention reads two words; a ReLU layer subtracts them; attention stores the difference and
fetches the next instruction. All that moves and changes is what `observe` saw on the cards of this run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from docs.draw.film import Film
from docs.draw.listing import instruction_text
from docs.draw.places import Places
from docs.draw.svg import (
    BOLD,
    EXAMPLES,
    FAINT,
    FETCH,
    FRESH,
    INK,
    MONO,
    READ,
    REGIONS,
    SMALL,
    STORE,
    box,
    curve,
    sheet,
    text,
)
from torch import Tensor, stack

import punchcard
from punchcard.machines.subleq.isa import State, Subleq
from punchcard.trace import Move, Snapshot
from punchcard.viewer.session import Session

VALUES = {"a": 6, "b": 3}
WIDTHS = {"scratchpad": 100, "constants": 27, "memory": 66, "instructions": 44}
LEFT, TOP, ROW, GAP, MARGIN = 440, 164, 7, 8, 26
STORY, SENTENCE, LINE_LETTERS = 92, 30, 62  # room for the sentence above all else, its size, and letters in a line of it
SECONDS, REST = 0.75, 3.5  # of a frame, and of the last one
STEPS = (("read", "1  attention reads two words"), ("compute", "2  a ReLU layer subtracts"),
         ("store", "3  attention stores, and fetches"))
COLOURS = {"read": READ, "compute": FRESH, "store": STORE}


class Frame(NamedTuple):
    """The card, what is new on it, which step it is, what moves, and what the machine says of it, in a sentence too."""

    loop: int
    step: str
    card: Tensor
    before: Tensor
    moves: Sequence[Move]
    state: State
    line: int
    sentence: str = ""


class Run(NamedTuple):
    machine: punchcard.SubleqMachine
    program: punchcard.Program
    frames: list[Frame]


def frames(machine: punchcard.SubleqMachine, seen: Sequence[Snapshot]) -> Iterator[Frame]:
    """Three for each loop that executes an instruction, and one at the end."""
    for first, second in zip(seen[2::2], seen[3::2], strict=True):
        state = machine.read(first.before)
        loop, line = first.loop, state.program_counter
        reads = [move for head in range(2) for move in first.moves(head)]
        yield Frame(loop, "read", first.before, first.before, reads, state, line)
        yield Frame(loop, "compute", first.after, first.before, (), state, line)
        yield Frame(loop, "store", second.after, second.before, second.moves(0), machine.read(second.after), line)
    end = seen[-1].after
    yield Frame(seen[-1].loop, "end", end, end, (), machine.read(end), machine.read(end).program_counter)


def run() -> Run:
    program = punchcard.load(EXAMPLES / "multiply.subleq").with_values(VALUES)
    machine = punchcard.build(program, design="two-layer", word_bits=8)
    with machine.observe(program) as seen:
        machine.run(program, max_steps=1000)
    session = Session(machine, program)
    moment = {"read": 1, "compute": 2, "store": 3}
    shown = [frame._replace(sentence="The program has halted." if frame.step == "end" else session.story(
        frame.loop * session.per_loop + moment[frame.step])) for frame in frames(machine, seen)]
    return Run(machine, program, shown)


def changing(film: Film, texts: Iterable[tuple[str, str]], place: tuple[float, float], **look: str | float) -> Iterator[str]:
    """A text that changes: (words, colour) in each frame; words "" are not drawn."""
    said = list(texts)
    for words, colour in dict.fromkeys(said):
        if words:
            where = film.shown([one == (words, colour) for one in said])
            more = f"class='{where}' {look.get('more', '')}"
            yield text(*place, words, colour=colour, **{**look, "more": more})  # type: ignore[arg-type]


def holes(film: Film, places: Places, shown: list[Frame]) -> Iterator[str]:
    """The entries of the card: what never changes is drawn once, what changes has a look for each frame."""
    for row, column in stack([frame.card for frame in shown]).any(dim=0).nonzero().tolist():
        values = [float(frame.card[row, column]) for frame in shown]
        fresh = [bool(frame.card[row, column] != frame.before[row, column]) for frame in shown]
        for value in (1.0, -1.0):
            if value not in values:
                continue
            there = [v == value for v in values]
            if all(there) and not any(fresh):
                yield places.hole(row, column, value)
                continue
            faint = 1 if value > 0 else 0.35
            looks = [f"opacity:{(1 if f else faint) if t else 0};fill:{FRESH if f and t else INK}"
                     for t, f in zip(there, fresh, strict=True)]
            yield places.hole(row, column, value, f"class='{film.looks(looks)}'")


def arrows(film: Film, places: Places, shown: list[Frame], names: list[str]) -> Iterator[str]:
    """What attention moves, with a dot that goes the way; reads above the card, store and fetch below."""
    found: dict[tuple[int, int, str, float], list[bool]] = {}
    for number, frame in enumerate(shown):
        for order, move in enumerate(frame.moves):
            kind = "fetch" if frame.step == "store" and move.target_column == 0 else frame.step
            lane = float(order) if kind == "read" else 0.0
            key = (move.source_column, move.target_column, kind, lane)
            found.setdefault(key, [False] * len(shown))[number] = True
    for (source, target, kind, lane), there in found.items():
        shift = {"read": -16 + 32 * lane, "store": 16, "fetch": -16}[kind]
        start, end = (places.columns[c] + (shift if c == 0 else 0) for c in (source, target))
        y, height = (TOP - 50, 66 + 34 * lane) if kind == "read" else (places.bottom + 34, -50 if kind == "store" else -92)
        colour = FETCH if kind == "fetch" else COLOURS[kind]
        yield curve(start, end, y, height, colour, f"class='{film.shown(there)}'")
        way = f"M{start:g} {y:g} C{start:g} {y - height:g} {end:g} {y - height:g} {end:g} {y:g}"
        yield f"<circle r='5.5' fill='{colour}' class='{film.travels(there)}' style=\"offset-path:path('{way}')\"/>"
        if kind != "read":
            column = target if kind == "store" else source
            yield text((start + end) / 2, y - 0.75 * height + 17, f"{kind} {names[column]}", size=SMALL, colour=colour,
                       anchor="middle", more=f"class='{film.shown(there)}'")


def listing(film: Film, ran: Run) -> Iterator[str]:
    """The program, and its current line."""
    labels = {place: name for name, place in ran.program.labels}
    top, step = 176, 26
    for number in range(len(ran.program.instructions)):
        y = top + step * number
        there = film.shown([frame.line == number for frame in ran.frames])
        yield box(MARGIN + 14, y - 18, 284, step, REGIONS["scratchpad"], f"rx='5' class='{there}'")
        if number in labels:
            yield text(MARGIN + 22, y, f"{labels[number]}:", colour=FAINT, size=15, more=MONO)
        yield text(MARGIN + 76, y, instruction_text(ran.program, number), size=15, more=MONO)


def steps(film: Film, ran: Run) -> Iterator[str]:
    """Which loop, and which of its three steps."""
    last = ran.frames[-1].loop + 1
    yield from changing(film, [(f"loop {frame.loop + 1} of {last}", INK) for frame in ran.frames], (MARGIN + 22, 348),
                        size=19, more=BOLD)
    for number, (step, words) in enumerate(STEPS):
        y = 380 + 27 * number
        yield text(MARGIN + 22, y, words, size=15, colour=FAINT)
        there = film.shown([frame.step == step for frame in ran.frames])
        yield box(MARGIN + 14, y - 19, 284, 27, "#f8f2e2", f"class='{there}'")
        yield text(MARGIN + 22, y, words, size=15, colour=COLOURS[step], more=f"class='{there}' {BOLD}")
    ended = film.shown([frame.step == "end" for frame in ran.frames])
    product = ran.program.named(ran.frames[-1].state.memory)["product"]
    yield text(MARGIN + 22, 486, f"halted: {VALUES['a']} × {VALUES['b']} = {product}", size=21, colour=FRESH,
               more=f"class='{ended}' {BOLD}")


def values(film: Film, ran: Run, places: Places) -> Iterator[str]:
    """What the memory's columns say, and what the scratchpad is doing."""
    sizes, cells = ran.machine.sizes, ran.program.cell_names()
    for cell in range(len(ran.program.memory)):
        told = []
        for number, frame in enumerate(ran.frames):
            now, then = frame.state.memory[cell], ran.frames[max(number - 1, 0)].state.memory[cell]
            told.append((str(now), FRESH if now != then or (frame.step, cells[cell]) == ("end", "product") else INK))
        yield from changing(film, told, (places.columns[sizes.memory_column + cell], places.bottom + 16), size=18,
                            anchor="middle", more=f"{MONO} {BOLD}")
    sums = []
    for number, frame in enumerate(ran.frames):
        instruction = ran.program.instructions[frame.line]
        if frame.step in ("compute", "store") and isinstance(instruction, Subleq):
            words = ran.frames[number - (1 if frame.step == "compute" else 2)].state.memory
            left, right = words[instruction.b], words[instruction.a]
            sums.append((f"{left} - {right if right >= 0 else f'({right})'} = {left - right}", FRESH))
        else:
            sums.append(("", INK))
    yield from changing(film, sums, (places.columns[0], places.bottom + 16), size=15, anchor="middle", more=f"{MONO} {BOLD}")


def story(film: Film, ran: Run) -> Iterator[str]:
    """What each half layer does: the largest text, which a phone can show. A long sentence has two lines."""
    lines = [wrap(frame.sentence, LINE_LETTERS) for frame in ran.frames]
    for number in range(2):
        told = [(each[number] if number < len(each) else "", COLOURS.get(frame.step, FRESH))
                for each, frame in zip(lines, ran.frames, strict=True)]
        yield from changing(film, told, (MARGIN + 22, 46 + 38 * number), size=SENTENCE, more=BOLD)


def row_names(ran: Run, places: Places) -> Iterator[str]:
    """What the rows are, beside the card."""
    for block in ran.machine.layout.blocks:
        top, bottom = places.blocks[block.name]
        yield text(LEFT - 10, (top + bottom) / 2 + 5, block.name, size=15, colour=FAINT, anchor="end")


def picture() -> str:
    """The whole film as SVG."""
    ran = run()
    poster = next(i for i, frame in enumerate(ran.frames) if frame.step == "store" and frame.line == 1)
    film = Film([SECONDS] * (len(ran.frames) - 1) + [REST], poster)
    layout = ran.machine.layout
    places = Places(layout, LEFT, TOP, WIDTHS, ROW, GAP)
    names = [ran.machine.column_name(j, ran.program) for j in range(layout.columns)]
    parts = [text(MARGIN + 22, 56, f"{VALUES['a']} × {VALUES['b']}, by a transformer", size=25, more=BOLD),
             text(MARGIN + 22, 84, "Its weights are set by formula.", size=15, colour=FAINT),
             text(MARGIN + 22, 104, "The program is data on the card.", size=15, colour=FAINT),
             text(MARGIN + 22, 124, "One loop executes one instruction.", size=15, colour=FAINT)]
    for region in layout.regions:
        left, right = places.regions[region.name]
        parts.append(box(left, TOP - 48, right - left, 24, REGIONS[region.name], "rx='4'"))
        name = "" if region.name == "constants" else region.name
        parts.append(text((left + right) / 2, TOP - 30, name, size=15, anchor="middle", more=BOLD))
    for j, name in enumerate(names):
        if j and not name.startswith("constant "):
            parts.append(text(places.columns[j], TOP - 8, name.removeprefix("instruction "), size=SMALL, colour=FAINT,
                              anchor="middle", more=MONO))
    y = places.bottom + 108
    for x, mark, words in ((0, box(MARGIN + 22, y - 8, 13, 5, INK, "rx='1.5'"), "1"),
                           (40, box(MARGIN + 62, y - 6, 7, 1, INK, "opacity='.5'"), "-1"),
                           (82, box(MARGIN + 104, y - 8, 13, 5, FRESH, "rx='1.5'"), "new in this step")):
        parts += [mark, text(MARGIN + 42 + x, y, words, size=SMALL, colour=FAINT)]
    parts += [*places.tints(), *holes(film, places, ran.frames), *listing(film, ran), *steps(film, ran),
              *values(film, ran, places), *arrows(film, places, ran.frames, names), *row_names(ran, places)]
    parts = [f"<g transform='translate(0 {STORY - 20})'>", *parts, "</g>", *story(film, ran)]
    return sheet(places.right + MARGIN, places.bottom + 140 + STORY - 20, "A program running on a looped transformer",
                 "multiply.subleq on the two-layer machine: in each loop attention reads two words, a ReLU layer subtracts "
                 "them, and attention stores the difference and fetches the next instruction", parts, film.style)
