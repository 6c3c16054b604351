"""Everything for writing your own machine, under one name: the contract, the card, heads and formulas.

    from punchcard.machines import toolkit as kit
"""

from __future__ import annotations

from punchcard.card.encoding import pointer_bits
from punchcard.card.facts import AnyFact, ColumnWords, Fact, Holds
from punchcard.card.layout import Card, Cards, Layout, Pattern, Region, RowBlock, holding
from punchcard.errors import ProgramError, PunchcardError, SourceError
from punchcard.machines.base import AsPrecision, Machine
from punchcard.machines.design import Design, by_name
from punchcard.machines.interpreter import Interpreter, Stepper
from punchcard.machines.kind import Kind, Language, Option, Timing, Workload
from punchcard.machines.meaning import Meaning
from punchcard.machines.result import Result
from punchcard.machines.streams import Read, Write
from punchcard.machines.variation import ChangedProgram, Variation
from punchcard.primitives.bits import sum_bits
from punchcard.primitives.memory import ADDRESS_GAP, clip_where, store_factor, store_gap
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Expression, Rows, gated, relu, rows, stack
from punchcard.transformer.precision import Precision
from punchcard.words.word import Word, all_of, any_of, constant, join

__all__ = [
    "ADDRESS_GAP", "AnyFact", "AsPrecision", "Card", "Cards", "ChangedProgram", "ColumnWords", "Design", "Expression",
    "Fact", "Holds", "Interpreter", "Kind", "Language", "Layout", "Machine", "Meaning", "Option", "Part", "Pattern",
    "Precision", "ProgramError", "PunchcardError", "Read", "Region", "Result", "RowBlock", "Rows", "SourceError", "Stepper",
    "Timing", "Variation", "Word", "Workload", "Write", "all_of", "any_of", "assign", "attend", "by_name", "clear",
    "clip_where", "constant", "gated", "holding", "join", "pointer_bits", "relu", "rows", "stack", "store_factor",
    "store_gap", "sum_bits",
]
