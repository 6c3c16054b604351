"""The `.code` section of FLEQ: a line to an instruction, once all variables and labels of the text are known.

    target = function(operands)                  a target or an operand is a variable, or one column of it, `A[2]`
    incr_pointer(label.field)                    field is a, b, c, flag or p
    reset_pointer(label.field, operand)          for p the operand is a label
    if flag <= 0 goto label                      alone, or after `;` as a part of one of the above
    goto label                                   likewise
    halt

Shapes are checked here: operands against their function's rule, results against their target. What counts rounds is in
`counters.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from punchcard.errors import ProgramError
from punchcard.machines.assembler import labelled
from punchcard.machines.fleq.functions import (
    ALIASES,
    POINTER_FUNCTIONS,
    POINTERS,
    Function,
    Shape,
    ShapeMismatch,
    known_function,
)
from punchcard.machines.fleq.isa import Branch, Call, Halt, Instruction, PointerUpdate, Step, Variable, pointers
from punchcard.machines.fleq.text.source import COUNTER_WORDS, KEYWORDS, take_integer
from punchcard.machines.source import Line, Token, unknown

_BRANCH = "a branch is `if flag <= 0 goto label` or `goto label`"
_INSTRUCTION = "an instruction is `target = function(operands)`, a pointer function, a branch, `count`, `restart` or `halt`"
_POINTER = "a pointer is written as `label.field`"
# Which of its operands an alias hands to mul, and in which order.
_ALIAS_OPERANDS = {"mul_ba": (1, 0), "mul_aa": (0, 0), "mul_bb": (1, 1)}


class _Place(NamedTuple):
    """A variable, or one column of it: its name where it is written, its first memory column and its shape."""

    name: Token
    text: str
    address: int
    shape: Shape


@dataclass
class Code:
    """Reads instructions of a text; it has `count` of them, with the halt."""

    functions: dict[str, Function]
    variables: dict[str, Variable]
    labels: dict[str, int]
    count: int
    counters: frozenset[str] = frozenset()
    _updates: list[tuple[PointerUpdate, Token, Token]] = field(default_factory=list)
    """The pointer functions so far, with the label and the field that they name."""

    def take_instruction(self, line: Line) -> Instruction:
        """The instruction that is on the rest of a line."""
        if line.take_if("halt"):
            line.finish("halt")
            return Halt()
        if line.at("if", "goto"):
            step = Step(None, self._take_branch(line))
        else:
            step = Step(self._take_action(line))
            if line.take_if(";"):
                if not line.at("if", "goto"):
                    raise line.wrong(f"after `;` comes a branch of the same instruction, and {_BRANCH}; comments begin "
                                     "with #")
                step = Step(step.action, self._take_branch(line))
        line.finish("the instruction" if step.branch is None else "the branch")
        return step

    def check_updates(self, instructions: Sequence[Instruction]) -> None:
        """A pointer function changes a pointer that its instruction has."""
        for update, label, name in self._updates:
            named = instructions[update.instruction]
            if update.field not in pointers(named):
                raise name.error(f"instruction {label.text!r} has no pointer {update.field!r}: {_about(named)}")

    def _take_action(self, line: Line) -> Call | PointerUpdate:
        if line.second_is("("):
            return self._take_pointer_function(line)
        if line.ahead.kind == "name" and not (line.second_is("=") or line.second_is("[")):
            raise unknown("instruction", line.ahead, (*KEYWORDS, *COUNTER_WORDS, *POINTER_FUNCTIONS), _INSTRUCTION)
        target = self._take_place(line, "a target")
        line.take_mark("=", _INSTRUCTION)
        name = line.take_name("a function")
        if name.text in POINTER_FUNCTIONS:
            raise name.error(f"{name.text} has no result: write it without a target")
        line.take_mark("(", f"the operands of {name.text} are in parentheses, separated by commas")
        operands: list[_Place] = []
        while not line.at(")"):
            if operands:
                line.take_mark(",", f"operands of {name.text} are separated by commas and end with `)`")
            operands.append(self._take_place(line, f"operand {len(operands) + 1} of {name.text}"))
        line.take()
        function, operands = self._function(name, operands)
        shapes = [operand.shape for operand in operands]
        try:
            result = function.shape(*shapes)
        except ShapeMismatch as error:
            raise name.error(f"shapes of {name.text}: {error}") from None
        if result != target.shape:
            given = " and ".join(map(str, shapes))
            raise target.name.error(f"{name.text} of {given} is {result}, but '{target.text}' is {target.shape}")
        return Call.of(function.name, [operand[2:] for operand in operands], target[2:])

    def _function(self, name: Token, operands: list[_Place]) -> tuple[Function, list[_Place]]:
        """The function of this name, and its operands in that function's order."""
        if name.text in _ALIAS_OPERANDS:
            order = _ALIAS_OPERANDS[name.text]
            self._check_count(name, len(operands), max(order) + 1, 2)
            return self.functions["mul"], [operands[i] for i in order]
        if name.text not in self.functions:
            try:
                found = known_function(name.text)
            except ProgramError as error:
                raise name.error(str(error)) from None
            if found is None:
                known = (*self.functions, *ALIASES)
                raise unknown("function", name, known, f"there are {', '.join(known)}")
            self.functions[name.text] = found
        function = self.functions[name.text]
        self._check_count(name, len(operands), function.arity, function.arity)
        return function, operands

    def _check_count(self, name: Token, given: int, least: int, most: int) -> None:
        if not least <= given <= most:
            takes = f"{least} or {most}" if least != most else str(most)
            raise name.error(f"{name.text} takes {takes} operand{'s' * (most != 1)}: {given} "
                             f"{'is' if given == 1 else 'are'} given")

    def _take_place(self, line: Line, what: str) -> _Place:
        if line.ahead.kind == "number":
            raise line.wrong(f"{what} is a variable; declare a constant under .data and name it")
        name = line.take_name(what)
        index = None
        if line.take_if("["):
            index = take_integer(line, "the number of a column")
            line.take_mark("]", f"a column is written as `{name.text}[number]`")
        if name.text in self.counters:
            raise name.error(f"{name.text!r} is a counter, not a variable: `count {name.text} goto label` and `restart "
                             f"{name.text}` use it")
        if name.text not in self.variables:
            raise unknown("variable", name, self.variables, "declare it under .data")
        variable = self.variables[name.text]
        if index is None:
            return _Place(name, name.text, variable.address, variable.shape)
        text, columns = f"{name.text}[{index.text}]", variable.shape.columns
        if int(index.text) >= columns:
            raise index.error(f"'{text}' is beyond {name.text!r}, which has {columns} column{'s' * (columns != 1)}, "
                              "counted from 0")
        return _Place(name, text, variable.address + int(index.text), Shape(variable.shape.rows, 1))

    def _take_pointer_function(self, line: Line) -> PointerUpdate:
        function = line.take()
        if function.text not in POINTER_FUNCTIONS:
            raise unknown("pointer function", function, POINTER_FUNCTIONS,
                          f"there are {' and '.join(POINTER_FUNCTIONS)}, and any other function needs a target, as in "
                          f"`x = {function.text}(...)`")
        line.take()
        label, name = _take_pointer(line)
        changed = next((known for known in POINTERS if known == name.text), None)
        if changed is None:
            raise unknown("field", name, POINTERS, f"there are {', '.join(POINTERS)}")
        value = None
        if function.text == "reset_pointer":
            line.take_mark(",", "reset_pointer takes 2 operands, a pointer and where it shall point")
            value = (self._take_target(line) if changed == "p"
                     else self._take_place(line, "operand 2 of reset_pointer").address)
        line.take_mark(")", f"{function.text} takes {'1 operand' if value is None else '2 operands'} and ends with `)`")
        update = PointerUpdate(self.target(label), changed, value)
        self._updates.append((update, label, name))
        return update

    def _take_branch(self, line: Line) -> Branch:
        flag = None
        if line.take_if("if"):
            flag = self._take_place(line, "a flag").address
            for word in ("<=", "0"):
                line.take_mark(word, _BRANCH)
        line.take_mark("goto", _BRANCH)
        return Branch(flag, self._take_target(line))

    def _take_target(self, line: Line) -> int:
        """The instruction that a label or a number names."""
        return self.target(take_label(line))

    def target(self, token: Token) -> int:
        if token.kind == "name":
            return labelled(token, self.labels)
        if int(token.text) >= self.count:
            raise token.error(f"no instruction {token.text}: there are {self.count}, counted from 0")
        return int(token.text)


def take_label(line: Line) -> Token:
    """A label, or an instruction's number."""
    if line.ahead.kind == "number":
        return take_integer(line, "the number of an instruction")
    return line.take_name("the label of an instruction")


def _take_pointer(line: Line) -> tuple[Token, Token]:
    """`label.field`; an instruction's number in place of the label makes one token with its field, `3.a`."""
    token = line.ahead
    if token.kind == "number":
        number, dot, name = token.text.partition(".")
        if not (dot and name and number.isdecimal() and len(number) <= 18):
            raise line.wrong(_POINTER)
        line.take()
        return (token._replace(kind="number", text=number),
                token._replace(kind="name", text=name, column=token.column + len(number) + 1))
    label = line.take_name("the label of an instruction")
    line.take_mark(".", _POINTER)
    return label, line.take_name("a field")


def _about(instruction: Instruction) -> str:
    """What an instruction is, and which pointers it has."""
    if isinstance(instruction, Halt):
        return "it is a halt"
    what = "it is only a branch"
    if isinstance(instruction.action, Call):
        what = f"{instruction.action.function} takes {'one operand' if instruction.action.b is None else 'two operands'}"
    elif isinstance(instruction.action, PointerUpdate):
        what = "it changes a pointer"
    if instruction.branch is None:
        what += ", without a branch"
    elif instruction.branch.flag is None:
        what += ", with a goto that has no flag" if instruction.action else " without a flag"
    has = ", ".join(pointers(instruction))
    return f"{what}; it has {has or 'none'}"
