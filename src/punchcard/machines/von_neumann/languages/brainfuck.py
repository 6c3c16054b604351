"""Brainfuck to `.asq` text, and so to an image: code first, then the tape, which has all memory that is left.

The current cell is kept in `$r`, as a negative number: clearing a cell and subtracting `$r` from it stores it. So `+ - . ,`
and the loops work at a fixed address, and only `<` and `>` touch the tape: one routine, whose instructions hold the
pointer, stores `$r`, moves their addresses, and loads `$r` again.

A cell is any word; as a byte it counts modulo 256, which divides 2^N, so only a loop has to reduce it: its test adds or
subtracts 256 until 0 to 255 is left, mostly not at all. Output takes the low byte anyway.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.source import where
from punchcard.machines.von_neumann.isa import STANDARD, Dialect, Image, find_dialect
from punchcard.machines.von_neumann.languages.asq import assembler as asq
from punchcard.machines.von_neumann.languages.options import CELLS, ENDS_OF_INPUT, MAX_CELLS, Cells, EndOfInput

DEFAULT_TAPE = 100
LEAST_WORD_BITS = 10  # 256 is a positive number, and more than that of code has an address
INSTRUCTION = 3
MOST_ADDITIONS = 16  # beyond that, a loop is shorter

_COMMANDS = re.compile(r"[+-]+|[<>]+|[.,[\]]")
_TESTS: dict[Cells, str] = {
    "byte": "loop{loop}: =-256 $r loop{loop}; =255 $r go{loop}; =1 $r end{loop}; =256 $r loop{loop}; @jump loop{loop}; "
            "go{loop}: =1 $r",
    "word": "loop{loop}: @jz $r end{loop}",
}
_INPUT: dict[EndOfInput, str] = {
    "0": "(-1) $t; $r; =-1 $t {end}; =1 $t; $t $r; {end}:",
    "-1": "(-1) $t; $r; $t $r",
    "unchanged": "(-1) $t; =-1 $t {end}; =1 $t; $r; $t $r; {end}:",
}
# $away is minus the distance; $return is minus the return address, which is negative, so setting it jumps.
_MOVE = """
# Store, move, load. `room` is the number of cells up to the pointer: it is 0 or less when the pointer has left the tape, and
# also when that number is too large for a positive word, long before the pointer could reach the port or the code.
move: old1:tape old2:tape; $r old3:tape
    $away old1; $away old2; $away old3; $away new
    $away room off
    $r; new:tape $r
    to; $return to; $z $z to:0
off: (-2) (-2)  # the machine reports this address, unless its memory is so large that it has such a cell
    @puts message
    @jump (-2)
. message:"\\npointer off the tape\\n" 0
. room:1
"""


@dataclass(frozen=True)
class BrainfuckStep:
    """`+`, `>`, `.`, `,`, `[` or `]`. Runs of + and - are one step with a count, and so are runs of > and <.

    `*` is a whole loop that only clears its cell and adds multiples of it to others: `adds`, distance and factor.
    """

    command: str
    count: int = 0
    loop: int = 0
    adds: tuple[tuple[int, int], ...] = ()
    place: int = field(default=0, compare=False)
    """Where it begins in the text."""


def assemble(text: str, source: str = "", *, cells: Cells = "byte", eof: EndOfInput = "0", tape: int = DEFAULT_TAPE,
             word_bits: int | None = None, memory: int | None = None, dialect: str | Dialect = STANDARD) -> Image:
    """The image of a Brainfuck program; `tape` is how many cells of the tape belong to it.

    Where the machine's sizes are given, a program whose code would be beyond the positive addresses is refused.
    """
    writer = _written(text, source, cells, eof, tape)
    try:
        listed = asq.assemble(writer.finish(tape), source)
    except SourceError as error:
        raise _at(text, writer.places[error.line - 1], error.message, source) from None
    code, size = listed.labels["tape"], len(listed.words)
    needed = max(LEAST_WORD_BITS, code.bit_length() + 1)
    if word_bits is not None and word_bits < needed:
        here = find_dialect(dialect)
        fits = memory is None or memory >= size
        raise ProgramError(f"{where(source)}the program has {code} words of code, for which words of {word_bits} bits are "
                           f"too short: {here.wider(needed) if fits else here.larger(size, word_bits, needed)}")
    return Image(listed.words, source, lines=_lines(text, listed.lines, writer.places[: writer.own]))


def routine_texts() -> dict[str, str]:
    """How a loop is tested, a character read and the pointer moved, in `.asq`, where cells are bytes."""
    return {"test": _TESTS["byte"], "read": _INPUT["0"], "move": _MOVE}


def translate(text: str, source: str = "", *, cells: Cells = "byte", eof: EndOfInput = "0",
              tape: int = DEFAULT_TAPE) -> str:
    """The program as `.asq` text."""
    return _written(text, source, cells, eof, tape).finish(tape)


def _written(text: str, source: str, cells: Cells, eof: EndOfInput, tape: int) -> _AsqLines:
    if cells not in CELLS:
        raise ProgramError(f"cells={cells!r}: cells are {' or '.join(map(repr, CELLS))}")
    if eof not in ENDS_OF_INPUT:
        raise ProgramError(f"eof={eof!r}: the end of the input is read as "
                           f"{', '.join(map(repr, ENDS_OF_INPUT))}")
    if not 1 <= tape <= MAX_CELLS:
        raise ProgramError(f"tape={tape}: a tape has at least one cell, and an image at most {MAX_CELLS:,}")
    writer = _AsqLines(_TESTS[cells], _INPUT[eof])
    for step in multiplied(parse(text, source)):
        writer.write(step)
        if writer.least_cells + tape > MAX_CELLS:
            raise _at(text, step.place, f"the program has more than {MAX_CELLS:,} cells, {tape:,} of them tape", source)
    return writer


def parse(text: str, source: str = "") -> list[BrainfuckStep]:
    """The steps of a program; every other character is a comment. Loops are numbered, and brackets must match."""
    steps: list[BrainfuckStep] = []
    open_loops: list[tuple[int, int]] = []
    loops = 0
    for match in _COMMANDS.finditer(text):
        run, place = match.group(), match.start()
        if run[0] in "+-":
            _merge(steps, "+", run.count("+") - run.count("-"), place)
        elif run[0] in "<>":
            _merge(steps, ">", run.count(">") - run.count("<"), place)
        elif run == "[":
            open_loops.append((loops, place))
            steps.append(BrainfuckStep("[", loop=loops, place=place))
            loops += 1
        elif run == "]":
            if not open_loops:
                raise _at(text, place, "no '[' opens the loop that this ']' closes", source)
            steps.append(BrainfuckStep("]", loop=open_loops.pop()[0], place=place))
        else:
            steps.append(BrainfuckStep(run, place=place))
        if len(steps) > MAX_CELLS:
            raise _at(text, place, f"the program has more than {MAX_CELLS:,} commands (runs of + - and of > < count as one)",
                      source)
    if open_loops:
        raise _at(text, open_loops[-1][1], "no ']' closes this '['", source)
    return steps


def multiplied(steps: list[BrainfuckStep]) -> list[BrainfuckStep]:
    """The same program with its loops of the kind [-] and [->++>+<<] as one step each."""
    result: list[BrainfuckStep] = []
    starts: list[int] = []
    innermost = False
    for step in steps:
        result.append(step)
        if step.command == "[":
            starts.append(len(result) - 1)
            innermost = True
        elif step.command == "]":
            start = starts.pop()
            adds = _multiples(result[start + 1 : -1]) if innermost else None
            if adds is not None:
                result[start:] = [BrainfuckStep("*", loop=step.loop, adds=adds, place=result[start].place)]
            innermost = False
    return result


def _multiples(body: list[BrainfuckStep]) -> tuple[tuple[int, int], ...] | None:
    """(distance, factor) of what a loop adds, when it does nothing else and ends where it began."""
    if not {step.command for step in body} <= {"+", ">"}:
        return None
    place, changes = 0, defaultdict[int, int](int)
    for step in body:
        if step.command == ">":
            place += step.count
        else:
            changes[place] += step.count
    per_round = changes.pop(0, 0)
    adds = tuple(sorted((distance, -per_round * count) for distance, count in changes.items() if count))
    if place or abs(per_round) != 1 or any(abs(factor) > MOST_ADDITIONS for _, factor in adds):
        return None
    return adds


def _merge(steps: list[BrainfuckStep], command: str, count: int, place: int) -> None:
    """Add to the run that the program is in; a run that comes to nothing is dropped."""
    if steps and steps[-1].command == command:
        before = steps.pop()
        count, place = count + before.count, before.place
    if count:
        steps.append(BrainfuckStep(command, count, place=place))


def _lines(text: str, written: Sequence[int], places: Sequence[int]) -> Sequence[int]:
    """The line of the program that each word comes from, by way of the written text's lines; 0: none."""
    starts = [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]
    found = {number: bisect_right(starts, place) + 1 for number, place in enumerate(places, start=1)}
    return array("I", (found.get(number, 0) for number in written))


def _at(text: str, place: int, message: str, source: str) -> SourceError:
    """An error at a place of the program."""
    before = text[:place].replace("\r\n", "\n").replace("\r", "\n")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return SourceError(message, line=line, column=column, text=text[place : place + 1], source=source)


class _AsqLines:
    """Writes steps as lines of `.asq`; `places` has for each line the place of its step in the program.

    `least_cells` is known before anything is assembled: every statement that is more than a label has three or more.
    """

    def __init__(self, test: str, read: str) -> None:
        self._texts = {"+": "={count} $r", ".": "$t; $r $t; $t (-1)", ",": read, "[": test,
                       "]": "@jump loop{loop}; end{loop}:", "*": "$r"}
        self._lines: list[str] = []
        self.places: list[int] = []
        self.own = self.least_cells = self._place = self._labels = 0
        self._distances: set[int] = set()

    def write(self, step: BrainfuckStep) -> None:
        self._place = step.place
        if step.command == ">":
            self._move(step.count)
        elif step.adds:
            self._add(self._texts["["].format(loop=step.loop))
            self._multiply(step)
        else:
            end = self._label() if step.command == "," else ""
            self._add(self._texts[step.command].format(count=step.count, loop=step.loop, end=end))

    def finish(self, tape: int) -> str:
        stubs = []
        for distance in sorted(self._distances):
            jump = "move" if distance > 0 else "?; @jump move"  # what is set is minus the distance
            stubs.append(f"{_stub(distance)}: $away; ={distance} $away {jump}")
        routine = [*stubs, _MOVE] if stubs else []
        end = ["    @halt", *routine, "@pool", "tape:", f". [{tape}]", ""]
        self.own = len(self.places) + 1  # up to the halt; moves are shared by all lines, and belong to none
        self.places += [self._place] * sum(line.count("\n") + 1 for line in end)
        return "\n".join([*self._lines, *end])

    def _add(self, line: str) -> None:
        self._lines.append("    " + line)
        self.places.append(self._place)
        self.least_cells += INSTRUCTION * sum(not statement.endswith(":") for statement in line.split(";"))

    def _label(self) -> str:
        self._labels += 1
        return f"label{self._labels}"

    def _move(self, distance: int) -> None:
        self._distances.add(distance)
        back = self._label()
        self._add(f"$return; ={back} $return {_stub(distance)}; {back}:")

    def _multiply(self, step: BrainfuckStep) -> None:
        """$more is the value of the cell, $less minus that."""
        self._add("$more; $r $more")
        if any(factor < 0 for _, factor in step.adds):
            self._add("$less; $more $less")
        self._add("$r")
        place = 0
        for distance, factor in step.adds:
            self._move(distance - place)
            self._add("; ".join(["$more $r" if factor > 0 else "$less $r"] * abs(factor)))
            place = distance
        self._move(-place)
        self._add(f"end{step.loop}:")


def _stub(distance: int) -> str:
    return f"right{distance}" if distance > 0 else f"left{-distance}"
