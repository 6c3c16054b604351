"""Named errors, all under one base.

Every message repeats the offending input, states the rule, and suggests a fix where one is known.
The text of a `PunchcardError` is one line of sensible length, however long the input is that it repeats; `args` has the
message as it was given. The command line prints it and exits with status 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice

LONGEST_NAME = 255
MOST_COMPARED = 1000

MOST_WRITTEN_BITS = 2048
"""Of a longer integer a message has the number of bits: Python may be set to write 640 digits at most."""
LONGEST = 1000
"""Characters of a message; of a longer one, which repeats a long input, the middle is left out."""


def one_line(message: str) -> str:
    """A message in one line of sensible length, without characters that would change the terminal."""
    return _cut(printable(" ".join(line.strip("\t") for line in _cut(message).splitlines())))


def printable(text: str, *, keep: str = "", instead: str | None = None) -> str:
    r"""Text from outside (names, paths, lines of a source) as a terminal may show it.

    Characters that would change the terminal, hide or reorder others, or cannot be encoded, are written as Python writes
    them, such as \x1b; or as `instead`, to keep the width. Those in `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] if instead is None else instead for c in text)


def _cut(message: str) -> str:
    gap = " ... "
    kept = LONGEST - len(gap)
    return message if len(message) <= LONGEST else f"{message[: kept // 2]}{gap}{message[-(kept - kept // 2) :]}"


class PunchcardError(Exception):
    """Base class of all errors that punchcard raises. The message is one line."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class ArgumentError(PunchcardError, TypeError):
    """A call got an argument of the wrong type, or an unknown argument."""


class LayoutError(PunchcardError):
    """A card's rows or columns were declared or used in a way that does not fit."""


class OverlapError(LayoutError):
    """Two row blocks, or two column regions, claim the same place."""


class UnknownNameError(LayoutError):
    """A row block or column region that the layout does not have."""


class SizeError(LayoutError):
    """Something has another size than its place on the card, or a machine's size is impossible."""


class EncodingError(PunchcardError):
    """A value that does not fit its bits, or an entry of the card that is not a ±1 bit."""


class FormulaError(PunchcardError):
    """A formula that one transformer layer cannot compute, or whose shapes disagree."""


class FitError(PunchcardError):
    """A function or range that cannot be turned into a sum of sigmoids."""


class PrecisionError(PunchcardError):
    """A number format that cannot hold the machine's arithmetic exactly."""


class WeightsError(PunchcardError):
    """Weights that are not finite, or not in the model's number format: what they compute is unknown."""


class ProgramError(PunchcardError):
    """A program that is wrong in itself, or that does not fit its machine."""


class MatrixError(PunchcardError):
    """A matrix that an algorithm does not take: its shape, or a property that it lacks."""


class SingularMatrixError(MatrixError):
    """A matrix without an inverse, or columns that depend on each other, as far as the number format can tell."""


class ConvergenceError(PunchcardError):
    """An iteration that does not converge, or has not yet."""


class TableError(PunchcardError):
    """A table of numbers that cannot be read, or that lacks a column."""


class StorageError(PunchcardError):
    """A saved machine or model that cannot be read back, or a file that cannot be written."""


class CircuitError(PunchcardError):
    """A circuit that does not explain a model."""


class DisguiseError(PunchcardError):
    """A disguise of a model that changes what the model computes."""


class FusionError(PunchcardError):
    """A language model, tokenizer or folder that a program cannot be fused with."""


class ProofError(PunchcardError):
    """A machine cannot be proven: a package is missing, or what it declares does not make a claim."""


class WorkerError(PunchcardError):
    """Workers that cannot be started, or one that did not end its call."""


class SweepError(PunchcardError):
    """A sweep that cannot be made, or cannot continue."""


class CompilerError(PunchcardError):
    """There is no C compiler, or it does not compile a plain interpreter to measure against."""


class SourceError(ProgramError):
    """An error at a place of a source text: line, column, the offending text and the rule."""

    def __init__(self, message: str, *, line: int, column: int, text: str, source: str = "") -> None:
        self.message = message
        self.line = line
        self.column = column
        self.text = text
        where = f"line {line}, column {column}"
        super().__init__(f"{source}: {where}: {message}" if source else f"{where}: {message}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'loop'?)`, or nothing when no known name is near. Of very many names only the first are compared."""
    near = get_close_matches(name[:LONGEST_NAME], list(islice(known, MOST_COMPARED)), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def shortened(value: object, most: int = 40) -> str:
    """The value as a message repeats it: its repr, of which a long one is cut. What is cut off is not made."""
    if isinstance(value, str):
        return repr(value) if len(value) <= most else repr(value[:most] + "...")
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > most:
            return text[:most] + "..."
    return text


def _pieces(value: object) -> Iterator[str]:
    """The repr of a value, one piece after the other: a list may hold itself many times over."""
    if type(value) in (list, tuple) and isinstance(value, list | tuple):
        yield "[" if isinstance(value, list) else "("
        for at, item in enumerate(value):
            yield ", " if at else ""
            yield from _pieces(item)
        yield "]" if isinstance(value, list) else ",)" if len(value) == 1 else ")"
    elif isinstance(value, int) and value.bit_length() > MOST_WRITTEN_BITS:
        yield f"an integer of {value.bit_length():,} bits"
    else:
        try:
            yield repr(value)
        except Exception:  # whatever the class of a caller does
            yield f"a {type(value).__name__}"


class LoweringError(PunchcardError):
    """A model, or a card, for which no straight-line code can be given; a slower engine runs it."""
