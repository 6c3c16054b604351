"""Named errors, all under one base.

Every message repeats the offending input, states the rule, and suggests a fix where one is known.
The command line prints the message of a `PunchcardError` on one line and exits with status 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class PunchcardError(Exception):
    """Base of every error that punchcard raises on purpose."""


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
    """` (did you mean 'loop'?)`, or nothing when no known name is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


class LoweringError(PunchcardError):
    """A model, or a card, for which no straight-line code can be given; a slower engine runs it."""
