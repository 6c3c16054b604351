"""The calculator's language, parsed to a function of Python whose parameters are the variables and the numbers.

    expression = term { (+ | -) term }
    term       = factor { (* | /) factor }
    factor     = { - | + } postfix
    postfix    = atom { % | ^ exponent }
    exponent   = { - | + } atom
    atom       = number | variable | constant | function ( expression { , expression } ) | ( expression )

Nodes of the tree have the columns of the expression itself. x^y is the call power(x, y), and x% is x / 100. Numbers are
parameters, since they are exact fractions, and Python's would be rounded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from punchcard.calculator.exact import CONSTANTS
from punchcard.calculator.functions import CHOICES, FUNCTIONS
from punchcard.errors import ProgramError, SourceError, did_you_mean
from punchcard.python.arrays.intrinsics import Primitive
from punchcard.python.source import FunctionSource

MOST_NESTED = 50
MOST_CHARACTERS = 10_000
MOST_EXPONENT = 64
MOST_DIGITS = 1000
"""Of a number: more than any float64 has, and fewer than Python converts."""
LARGEST_POWER_OF_TEN = 400
"""Beyond the exponents of float64; a larger one would only make large integers."""
DATA, EXPONENT, HUNDRED = "k", "exponent", "hundred"
"""How names of numbers begin. Exponents are never data, nor is the 100 of x / 100, which is the paper's percentage."""
_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TOKEN = re.compile(rf"\s*(?:(?P<number>{_DECIMAL})|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>\*\*|[-+*/%^(),])|(?P<end>$))")
_OPERATORS: Mapping[str, ast.operator] = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div()}
_SIGNS: Mapping[str, ast.unaryop] = {"+": ast.UAdd(), "-": ast.USub()}
_FUNCTIONS = {name: Primitive(name) for name in (*FUNCTIONS, "power")}


@dataclass(frozen=True)
class ExpressionToken:
    """A word of the expression, from `start` to `end`."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ParsedExpression:
    """An expression as a function of Python; the names of its parameters are keys of `variables` and `numbers`.

    operators    for each node the operator or the function's name, where errors point
    """

    text: str
    source: FunctionSource
    variables: dict[str, ExpressionToken]
    numbers: dict[str, tuple[Fraction, ExpressionToken]]
    operators: Mapping[ast.AST, ExpressionToken]

    def of(self, node: ast.AST) -> str:
        """The text that became a node of the tree."""
        return self.text[getattr(node, "col_offset", 0) : getattr(node, "end_col_offset", 1)]

    def error(self, message: str, column: int, text: str = "") -> SourceError:
        return place_error(message, self.text, column, text)


def place_error(message: str, expression: str, column: int, text: str = "") -> SourceError:
    """An error at a column of an expression, which is repeated; a long one is cut."""
    shown = expression if len(expression) <= 60 else expression[:57] + "..."
    return SourceError(message, line=1, column=column, text=text, source=repr(shown))


def number(text: str) -> Fraction | None:
    """A decimal number, exactly, or None if the text is not one."""
    if not re.fullmatch(rf"[+-]?{_DECIMAL}", text.strip()):
        return None
    exponent = re.search(r"[eE]([+-]?[0-9]+)", text)
    if exponent is not None and (len(exponent.group(1)) > 5 or abs(int(exponent.group(1))) > LARGEST_POWER_OF_TEN):
        return None
    if len(text) > MOST_DIGITS:
        raise ProgramError(f"{text[:40]}... has {len(text)} characters: the most is {MOST_DIGITS}")
    return Fraction(text.strip())


def quotient(text: str) -> Fraction | None:
    """A decimal number, or one over another, exactly, or None if the text is neither."""
    parts = [number(part) for part in text.split("/")]
    if None in parts or len(parts) > 2 or (len(parts) == 2 and parts[1] == 0):
        return None
    top, bottom = parts[0], parts[-1] if len(parts) == 2 else Fraction(1)
    return None if top is None or bottom is None else top / bottom


def parse(expression: str, values: Collection[str] = ()) -> ParsedExpression:
    """An expression as a function of Python; `pi` and `e` are numbers unless they are variables that have `values`."""
    if len(expression) > MOST_CHARACTERS:
        raise place_error(f"the expression has {len(expression)} characters: the most is {MOST_CHARACTERS}", expression, 1)
    parser = ExpressionParser(expression, values, _tokens(expression))
    value = parser.expression()
    if parser.ahead.kind != "end":
        raise parser.wrong("an operator, such as + - * / ^ %, or the end")
    used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    numbers = {name: found for name, found in parser.numbers.items() if name in used}
    parameters = [ast.arg(name) for name in (*parser.variables, *sorted(numbers, key=lambda name: name == HUNDRED))]
    body = ast.Return(value, lineno=1, col_offset=0)
    function = ast.FunctionDef("calculation", ast.arguments([], parameters, None, [], [], None, []), [body], [], lineno=1)
    source = FunctionSource.parsed(function, "expression", (expression,), _FUNCTIONS)
    return ParsedExpression(expression, source, parser.variables, numbers, parser.operators)


def _tokens(expression: str) -> list[ExpressionToken]:
    tokens: list[ExpressionToken] = []
    place = 0
    while not tokens or tokens[-1].kind != "end":
        match = _TOKEN.match(expression, place)
        if match is None:
            place += len(expression[place:]) - len(expression[place:].lstrip())
            raise place_error(f"unexpected character {expression[place]!r}", expression, place + 1, expression[place])
        kind, place = match.lastgroup or "", match.end()
        tokens.append(ExpressionToken(kind, match.group(kind), match.start(kind), place))
    end = len(expression.rstrip())
    return [*tokens[:-1], ExpressionToken("end", "", end, end)]


@dataclass
class ExpressionParser:
    """Reads an expression from left to right: a method for each rule of the language."""

    text: str
    values: Collection[str]
    tokens: list[ExpressionToken]
    place: int = 0
    depth: int = 0
    variables: dict[str, ExpressionToken] = field(default_factory=dict)
    numbers: dict[str, tuple[Fraction, ExpressionToken]] = field(default_factory=dict)
    operators: dict[ast.AST, ExpressionToken] = field(default_factory=dict)

    @property
    def ahead(self) -> ExpressionToken:
        return self.tokens[self.place]

    def take(self) -> ExpressionToken:
        self.place += 1
        return self.tokens[self.place - 1]

    def error(self, message: str, token: ExpressionToken) -> SourceError:
        return place_error(message, self.text, token.start + 1, token.text)

    def wrong(self, wanted: str) -> SourceError:
        found = "the expression ends here" if self.ahead.kind == "end" else f"found {self.ahead.text!r}"
        return self.error(f"{found}: expected {wanted}", self.ahead)

    def node(self, node: ast.expr, start: int, operator: ExpressionToken) -> ast.expr:
        """A node of the tree, from a place in the text up to here."""
        node.lineno = node.end_lineno = 1
        node.col_offset, node.end_col_offset = start, self.tokens[self.place - 1].end
        self.operators[node] = operator
        return node

    def expression(self) -> ast.expr:
        return self._operations("+-", self._term)

    def _term(self) -> ast.expr:
        return self._operations("*/", self._factor)

    def _operations(self, signs: str, operand: Callable[[], ast.expr]) -> ast.expr:
        start, found = self.ahead.start, operand()
        while self.ahead.text in _OPERATORS and self.ahead.text in signs:
            operator = self.take()
            right = operand()
            if operator.text == "/" and isinstance(right, ast.Name) and self.numbers.get(right.id, (0,))[0] == 100:
                self.numbers[HUNDRED], right.id = self.numbers[right.id], HUNDRED
            found = self.node(ast.BinOp(found, _OPERATORS[operator.text], right), start, operator)
        return found

    def _factor(self) -> ast.expr:
        return self._signed(self._postfix)

    def _signed(self, operand: Callable[[], ast.expr]) -> ast.expr:
        signs = []
        while self.ahead.text in _SIGNS:
            signs.append(self.take())
            self._check_depth(signs[-1], len(signs))
        found = operand()
        for sign in reversed(signs):
            found = self.node(ast.UnaryOp(_SIGNS[sign.text], found), sign.start, sign)
        return found

    def _check_depth(self, token: ExpressionToken, signs: int = 0) -> None:
        if self.depth + signs > MOST_NESTED:
            raise self.error(f"nested more than {MOST_NESTED} deep", token)

    def _postfix(self) -> ast.expr:
        start, found, powers = self.ahead.start, self._atom(), 0
        while self.ahead.text in ("%", "^", "**"):
            operator = self.take()
            if operator.text == "%":
                self.numbers[HUNDRED] = Fraction(100), operator
                hundred = self.node(ast.Name(HUNDRED, ast.Load()), operator.start, operator)
                found = self.node(ast.BinOp(found, ast.Div(), hundred), start, operator)
                continue
            powers += 1
            if powers > 1:
                raise self.error("two powers in a row: write (x^2)^3 or x^8", operator)
            exponent = self._signed(lambda: self._atom(is_exponent=True))
            found = self._call("power", [found, exponent], start, operator)
        return found

    def _call(self, function: str, operands: list[ast.expr], start: int, operator: ExpressionToken) -> ast.expr:
        name = self.node(ast.Name(function, ast.Load()), start, operator)
        return self.node(ast.Call(name, operands, []), start, operator)

    def _atom(self, *, is_exponent: bool = False) -> ast.expr:
        token = self.ahead
        if token.text == "(":
            return self._parenthesis("")[0]
        if token.kind not in ("number", "name"):
            raise self.wrong("a number, a variable, a function or a parenthesis")
        self.take()
        if token.kind == "number":
            return self._number(token, is_exponent=is_exponent)
        return self._function(token) if self.ahead.text == "(" else self._variable(token)

    def _parenthesis(self, function: str) -> list[ast.expr]:
        """What is in parentheses; several expressions for a function that takes them."""
        opening, several = self.take(), function in CHOICES
        self.depth += 1
        self._check_depth(opening)
        found = [self.expression()]
        while several and self.ahead.text == ",":
            self.take()
            found.append(self.expression())
        if self.ahead.text != ")":
            raise self.wrong(f"an operator{', a comma' * several}, or the ) of the ( at column {opening.start + 1}")
        self.take()
        self.depth -= 1
        return found

    def _number(self, token: ExpressionToken, *, is_exponent: bool) -> ast.expr:
        value = number(token.text)
        if value is None:
            raise self.error(f"{token.text!r} is beyond the floating-point numbers", token)
        if is_exponent and value.denominator == 1 and value > MOST_EXPONENT:
            raise self.error(f"exponent {token.text}: the largest is {MOST_EXPONENT}", token)
        return self._value(value, token, EXPONENT if is_exponent else DATA)

    def _value(self, value: Fraction, token: ExpressionToken, kind: str = DATA) -> ast.expr:
        """A number is a parameter; equal ones are the same."""
        known = {found: name for name, (found, _) in self.numbers.items() if name.startswith(kind)}
        name = known.get(value, f"{kind}{len(known) + 1}")
        self.numbers.setdefault(name, (value, token))
        return self.node(ast.Name(name, ast.Load()), token.start, token)

    def _variable(self, token: ExpressionToken) -> ast.expr:
        if token.text in FUNCTIONS:
            raise self.error(f"{token.text} is a function: write {token.text}(...)", token)
        if token.text in CONSTANTS and token.text not in self.values:
            return self._value(CONSTANTS[token.text], token)
        name = f"{token.text}_"  # no number's name, and no function's, ends so
        self.variables.setdefault(name, token)
        return self.node(ast.Name(name, ast.Load()), token.start, token)

    def _function(self, token: ExpressionToken) -> ast.expr:
        if token.text not in FUNCTIONS:
            raise self.error(f"unknown function {token.text!r}{did_you_mean(token.text, FUNCTIONS)}: there are "
                             f"{', '.join(FUNCTIONS)}; a product is written with *", token)
        operands = self._parenthesis(token.text)
        if token.text in CHOICES and len(operands) < 2:
            raise self.error(f"{token.text} of one number: it takes two or more, separated by commas", token)
        return self._call(token.text, operands, token.start, token)
