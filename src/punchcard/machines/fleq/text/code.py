"""The `.code` section of FLEQ: instructions as they are in the text, before names are resolved.

    target = function(operands)                  a target or an operand is a variable, or one column of it, `A[2]`
    incr_pointer(label.field)                    field is a, b, c, flag or p
    reset_pointer(label.field, operand)          for p the operand is a label
    if flag <= 0 goto label                      alone, or after `;` as a part of one of the above
    goto label                                   likewise
    halt
"""

from __future__ import annotations

from dataclasses import dataclass

from punchcard.machines.fleq.functions import POINTER_FUNCTIONS
from punchcard.machines.fleq.isa import FIELDS, Field, Halt
from punchcard.machines.fleq.text.source import KEYWORDS, take_mark, take_whole
from punchcard.machines.source import Line, Token, unknown

_BRANCH = "a branch is `if flag <= 0 goto label` or `goto label`"
_INSTRUCTION = "an instruction is `target = function(operands)`, a pointer function, a branch or `halt`"
_POINTER = "a pointer is written as `label.field`"


@dataclass(frozen=True)
class PlaceText:
    """A variable, or with `index` one of its columns."""

    name: Token
    index: Token | None = None

    def __str__(self) -> str:
        return self.name.text if self.index is None else f"{self.name.text}[{self.index.text}]"


@dataclass(frozen=True)
class CallText:
    """target = function(operands)."""

    target: PlaceText
    function: Token
    operands: tuple[PlaceText, ...]


@dataclass(frozen=True)
class PointerText:
    """A pointer function: the label of an instruction, a field, and the operand of a reset (for p a label)."""

    label: Token
    field: Token
    name: Field
    value: PlaceText | Token | None


@dataclass(frozen=True)
class BranchText:
    """if flag <= 0 goto target; without a flag, goto target. The target is a label or a number."""

    flag: PlaceText | None
    target: Token


@dataclass(frozen=True)
class Statement:
    """One instruction other than halt."""

    action: CallText | PointerText | None = None
    branch: BranchText | None = None


def take_statement(line: Line) -> Statement | Halt:
    """The instruction that is on the rest of a line."""
    if line.at("if", "goto"):
        branch = _take_branch(line)
        line.finish("the branch")
        return Statement(branch=branch)
    if line.at("halt"):
        line.take()
        line.finish("halt")
        return Halt()
    action = _take_action(line)
    if not line.at(";"):
        line.finish("the instruction")
        return Statement(action)
    line.take()
    if not line.at("if", "goto"):
        raise line.wrong(f"after `;` comes a branch of the same instruction, and {_BRANCH}; comments begin with #")
    branch = _take_branch(line)
    line.finish("the branch")
    return Statement(action, branch)


def _take_action(line: Line) -> CallText | PointerText:
    if line.second_is("("):
        return _take_pointer_function(line)
    if line.ahead.kind == "name" and not (line.second_is("=") or line.second_is("[")):
        raise unknown("instruction", line.ahead, (*KEYWORDS, *POINTER_FUNCTIONS), _INSTRUCTION, line.source)
    target = _take_place(line, "a target")
    take_mark(line, "=", _INSTRUCTION)
    function = line.take_name("a function")
    if function.text in POINTER_FUNCTIONS:
        raise function.error(f"{function.text} has no result: write it without a target", line.source)
    take_mark(line, "(", f"the operands of {function.text} are in parentheses, separated by commas")
    operands: list[PlaceText] = []
    while not line.at(")"):
        if operands:
            take_mark(line, ",", f"operands of {function.text} are separated by commas and end with `)`")
        operands.append(_take_place(line, f"operand {len(operands) + 1} of {function.text}"))
    line.take()
    return CallText(target, function, tuple(operands))


def _take_place(line: Line, what: str) -> PlaceText:
    if line.ahead.kind == "number":
        raise line.wrong(f"{what} is a variable; declare a constant under .data and name it")
    name = line.take_name(what)
    if not line.at("["):
        return PlaceText(name)
    line.take()
    index = take_whole(line, "the number of a column")
    take_mark(line, "]", f"a column is written as `{name.text}[number]`")
    return PlaceText(name, index)


def _take_pointer_function(line: Line) -> PointerText:
    function = line.take()
    if function.text not in POINTER_FUNCTIONS:
        raise unknown("pointer function", function, POINTER_FUNCTIONS,
                      f"there are {' and '.join(POINTER_FUNCTIONS)}, and any other function needs a target, as in "
                      f"`x = {function.text}(...)`", line.source)
    line.take()
    label, field = _take_pointer(line)
    name = next((known for known in FIELDS if known == field.text), None)
    if name is None:
        raise unknown("field", field, FIELDS, f"there are {', '.join(FIELDS)}", line.source)
    value: PlaceText | Token | None = None
    if function.text == "reset_pointer":
        take_mark(line, ",", "reset_pointer takes 2 operands, a pointer and where it shall point")
        value = _take_target(line) if name == "p" else _take_place(line, "operand 2 of reset_pointer")
    take_mark(line, ")", f"{function.text} takes {'1 operand' if value is None else '2 operands'} and ends with `)`")
    return PointerText(label, field, name, value)


def _take_pointer(line: Line) -> tuple[Token, Token]:
    """`label.field`; an instruction's number in place of the label makes one token with its field, `3.a`."""
    token = line.ahead
    if token.kind == "number":
        number, dot, field = token.text.partition(".")
        if not (dot and field and number.isdecimal() and len(number) <= 18):
            raise line.wrong(_POINTER)
        line.take()
        return (Token("number", number, token.line, token.column),
                Token("name", field, token.line, token.column + len(number) + 1))
    label = line.take_name("the label of an instruction")
    take_mark(line, ".", _POINTER)
    return label, line.take_name("a field")


def _take_branch(line: Line) -> BranchText:
    flag = None
    if line.at("if"):
        line.take()
        flag = _take_place(line, "a flag")
        for word in ("<=", "0"):
            take_mark(line, word, _BRANCH)
    take_mark(line, "goto", _BRANCH)
    return BranchText(flag, _take_target(line))


def _take_target(line: Line) -> Token:
    if line.ahead.kind == "number":
        return take_whole(line, "the number of an instruction")
    return line.take_name("the label of an instruction")
