"""Assembler of FLEQ: `.fleq` text to a FleqProgram. The disassembler is beside it, in `fleq_text`.

Variables are laid out in the order of their declaration, from memory column 0. Shapes are checked here: operands
against their function's rule, results against their target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from punchcard.arguments import checked
from punchcard.errors import ProgramError
from punchcard.machines.assembler import labelled, take_labels, take_section
from punchcard.machines.fleq.fitted import known_function
from punchcard.machines.fleq.functions import ALIASES, BUILT_IN, KNOWN, POINTER_FUNCTIONS, Function, Shape, ShapeMismatch
from punchcard.machines.fleq.isa import (
    Branch,
    Call,
    FleqProgram,
    Halt,
    Instruction,
    PointerUpdate,
    Step,
    Variable,
    pointers,
    variables_in_order,
)
from punchcard.machines.fleq.text.code import BranchText, CallText, PlaceText, PointerText, Statement, take_statement
from punchcard.machines.fleq.text.source import lines, take_number
from punchcard.machines.fleq.text.value_files import MOST_VALUES
from punchcard.machines.fleq.text.values import Declaration, beyond, take_declaration
from punchcard.machines.fleq.text.writer import disassemble
from punchcard.machines.source import Line, Token, unknown
from punchcard.machines.subleq.isa import NAME

__all__ = ["assemble", "disassemble"]

# Which of its operands an alias hands to mul, and in which order.
_ALIAS_OPERANDS = {"mul_ba": (1, 0), "mul_aa": (0, 0), "mul_bb": (1, 1)}
_TAKEN = (*POINTER_FUNCTIONS, *ALIASES, "file")


@dataclass
class _Listing:
    """A source text, parsed; and once all of it is, what its names mean."""

    source: str
    functions: dict[str, Function]
    declarations: dict[str, Declaration] = field(default_factory=dict)
    statements: list[Statement | Halt] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    range: float | None = None
    lines: list[int] = field(default_factory=list)

    def place(self, place: PlaceText) -> tuple[int, Shape]:
        """The first memory column and the shape of a variable, or of one column of it."""
        name = place.name.text
        if name not in self.variables:
            raise unknown("variable", place.name, self.variables, "declare it under .data", self.source)
        variable = self.variables[name]
        if place.index is None:
            return variable.address, variable.shape
        index = int(place.index.text)
        if index >= variable.shape.columns:
            raise place.index.error(f"'{place}' is beyond {name!r}, which has {variable.shape.columns} "
                                    f"column{'s' * (variable.shape.columns != 1)}, counted from 0", self.source)
        return variable.address + index, Shape(variable.shape.rows, 1)

    def target(self, token: Token) -> int:
        """The number of the instruction that a label or a number names."""
        if token.kind == "name":
            return labelled(token, self.labels, self.source)
        if int(token.text) >= len(self.statements):
            raise token.error(f"no instruction {token.text}: there are {len(self.statements)}, counted from 0", self.source)
        return int(token.text)


@checked
def assemble(
    text: str, source: str = "", functions: Mapping[str, Function] | None = None, folder: str | Path | None = None
) -> FleqProgram:
    """The program of a `.fleq` text.

    `source` names the text in error messages, `functions` are declared functions beyond the built-in ones, by name, and
    `folder` is where `file(...)` looks.
    """
    listing = _Listing(source, _all_functions(functions or {}))
    _parse(text, listing, None if folder is None else Path(folder))
    if not listing.statements:
        where = f"{source}: " if source else ""
        raise ProgramError(f"{where}the program is empty: .code needs at least one instruction")
    if not isinstance(listing.statements[-1], Halt) or len(listing.statements) in listing.labels.values():
        listing.statements.append(Halt())
    declared = listing.declarations.values()
    variables = variables_in_order([(d.name.text, d.shape) for d in declared])
    listing.variables = {variable.name: variable for variable in variables}
    limit = FleqProgram.range if listing.range is None else listing.range
    for declaration in declared:
        value = beyond(declaration, limit)
        if value is not None:
            raise declaration.name.error(f"{value!r} of {declaration.name.text!r} is beyond the range, {limit!r}: declare a "
                                         "larger one with `.range`", source)
    instructions = tuple(_instruction(statement, listing) for statement in listing.statements)
    _check_fields(instructions, listing)
    values = {d.name.text: d.value for d in declared}
    return FleqProgram(instructions, variables, values, listing.functions, tuple(listing.labels.items()), limit,
                       tuple(listing.lines))


def _all_functions(extra: Mapping[str, Function]) -> dict[str, Function]:
    """The built-in functions and those of the user, which need names and arities that the language can write."""
    for name, function in extra.items():
        if name != function.name or not NAME.fullmatch(name):
            raise ProgramError(f"function {name!r}, declared as {function.name!r}: both names are the same, letters, digits "
                               "and _, and start with no digit")
        if name in _TAKEN or BUILT_IN.get(name, function) is not function:
            raise ProgramError(f"function {name!r}: the language has one of this name already")
        if function.arity not in (1, 2):
            raise ProgramError(f"function {name!r} takes {function.arity} operands: an instruction has one or two")
    return {**KNOWN, **extra}


def _parse(text: str, listing: _Listing, folder: Path | None) -> None:
    section, room = None, MOST_VALUES
    for line in lines(text, listing.source):
        if line.ahead.text.lower() == ".range":
            _take_range(line, listing)
        elif line.ahead.kind == "directive":
            section = take_section(line, (".range",))
        elif section == ".data":
            declaration = take_declaration(line, folder, room)
            room -= declaration.value.size
            if declaration.name.text in listing.declarations:
                raise declaration.name.error(f"variable {declaration.name.text!r} is declared twice", listing.source)
            listing.declarations[declaration.name.text] = declaration
        elif section == ".code":
            take_labels(line, listing.labels, len(listing.statements))
            if line.ahead.kind != "end":
                listing.lines.append(line.ahead.line)
                listing.statements.append(take_statement(line))
        else:
            raise line.wrong("a program begins with .data or .code")


def _take_range(line: Line, listing: _Listing) -> None:
    directive = line.take()
    if listing.range is not None:
        raise directive.error("the range is declared twice", listing.source)
    limit, token = take_number(line, "the range")
    if limit <= 0:
        raise token.error(f"range {limit!r}: the range must be positive", listing.source)
    line.finish("the range")
    listing.range = limit


def _instruction(statement: Statement | Halt, listing: _Listing) -> Instruction:
    if isinstance(statement, Halt):
        return statement
    action: Call | PointerUpdate | None = None
    if isinstance(statement.action, CallText):
        action = _call(statement.action, listing)
    elif isinstance(statement.action, PointerText):
        action = _pointer_update(statement.action, listing)
    return Step(action, None if statement.branch is None else _branch(statement.branch, listing))


def _branch(branch: BranchText, listing: _Listing) -> Branch:
    return Branch(None if branch.flag is None else listing.place(branch.flag)[0], listing.target(branch.target))


def _pointer_update(update: PointerText, listing: _Listing) -> PointerUpdate:
    value = listing.target(update.value) if isinstance(update.value, Token) else update.value
    if isinstance(value, PlaceText):
        value, _ = listing.place(value)
    return PointerUpdate(listing.target(update.label), update.name, value)


def _call(call: CallText, listing: _Listing) -> Call:
    function, operands = _function(call, [listing.place(operand) for operand in call.operands], listing)
    c, c_shape = listing.place(call.target)
    try:
        result = function.shape(*(shape for _, shape in operands))
    except ShapeMismatch as error:
        raise call.function.error(f"shapes of {call.function.text}: {error}", listing.source) from None
    if result != c_shape:
        given = " and ".join(str(shape) for _, shape in operands)
        raise call.target.name.error(f"{call.function.text} of {given} is {result}, but '{call.target}' is {c_shape}",
                                     listing.source)
    (a, a_shape), *second = operands
    b, b_shape = second[0] if second else (None, None)
    return Call(function.name, a, b, c, a_shape, b_shape, c_shape)


def _function(
    call: CallText, operands: list[tuple[int, Shape]], listing: _Listing
) -> tuple[Function, list[tuple[int, Shape]]]:
    """The function that a call names, and its operands in that function's order."""
    name = call.function.text
    if name in _ALIAS_OPERANDS:
        order = _ALIAS_OPERANDS[name]
        _check_count(call, max(order) + 1, 2, listing.source)
        return listing.functions["mul"], [operands[i] for i in order]
    if name not in listing.functions:
        try:
            found = known_function(name)
        except ProgramError as error:
            raise call.function.error(str(error), listing.source) from None
        if found is not None:
            listing.functions[name] = found
    if name not in listing.functions:
        known = (*listing.functions, *ALIASES)
        raise unknown("function", call.function, known, f"there are {', '.join(known)}", listing.source)
    function = listing.functions[name]
    _check_count(call, function.arity, function.arity, listing.source)
    return function, operands


def _check_count(call: CallText, least: int, most: int, source: str) -> None:
    given = len(call.operands)
    if not least <= given <= most:
        takes = f"{least} or {most}" if least != most else str(most)
        raise call.function.error(f"{call.function.text} takes {takes} operand{'s' * (most != 1)}: {given} "
                                  f"{'is' if given == 1 else 'are'} given", source)


def _check_fields(instructions: tuple[Instruction, ...], listing: _Listing) -> None:
    """A pointer function changes a pointer that its instruction has."""
    for statement, instruction in zip(listing.statements, instructions, strict=True):
        if not (isinstance(statement, Statement) and isinstance(statement.action, PointerText)):
            continue
        if not (isinstance(instruction, Step) and isinstance(instruction.action, PointerUpdate)):
            continue
        named = instructions[instruction.action.instruction]
        if statement.action.name not in pointers(named):
            raise statement.action.field.error(
                f"instruction {statement.action.label.text!r} has no pointer {statement.action.name!r}: {_about(named)}",
                listing.source)


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
