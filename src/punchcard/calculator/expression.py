"""The calculator's language, translated to Python's: a function whose parameters are the variables and the numbers.

    expression = term { (+ | -) term }
    term       = factor { (* | /) factor }
    factor     = (- | +) factor | postfix
    postfix    = atom { % | ^ exponent }
    exponent   = [- | +] atom
    atom       = number | variable | constant | function ( expression { , expression } ) | ( expression )

Python's parser reads all of it but the postfix operators, which become calls: x^2% is percentage(power(x, 2)). What
may follow what is checked here, word by word, so that an error points at its column. Numbers are parameters, since
they are exact fractions, and Python's would be rounded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass
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
_ATOM = "a number, a variable, a function or a parenthesis"
_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark>\*\*|[-+*/%^(),])
""", re.VERBOSE)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class ExpressionToken:
    """A word of the expression, from `start` to `end`, or a word of the translation that comes from there."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ParsedExpression:
    """An expression as a function of Python; the names of its parameters are keys of `variables` and `numbers`."""

    text: str
    source: FunctionSource
    variables: dict[str, ExpressionToken]
    numbers: dict[str, tuple[Fraction, ExpressionToken]]
    translation: tuple[ExpressionToken, ...]
    """For every character of the source, what it comes from."""

    def of(self, node: ast.AST) -> str:
        """The text that became a node of the tree."""
        first, last = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 1)
        return self.text[self.translation[first].start : self.translation[last - 1].end]

    def column(self, node: ast.AST) -> int:
        """Where the operator of a node is, or the name of its function."""
        at = int(getattr(node, "col_offset", 0))
        if isinstance(node, ast.BinOp):
            at = int(node.left.end_col_offset or 0)
            while self.translation[at].text == ")":
                at += 1
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in FUNCTIONS:
            at = int(node.end_col_offset or 1) - 1  # power and percentage are written behind their operand
        return self.translation[at].start + 1

    def error(self, message: str, column: int, text: str = "") -> SourceError:
        return place_error(message, self.text, column, text)


def place_error(message: str, expression: str, column: int, text: str = "") -> SourceError:
    """An error at a column of an expression, which is repeated; a long one is cut."""
    shown = expression if len(expression) <= 60 else expression[:57] + "..."
    return SourceError(message, line=1, column=column, text=text, source=repr(shown))


def number(text: str) -> Fraction | None:
    """A decimal number, exactly, or None if the text is not one."""
    if not _NUMBER.fullmatch(text.strip()):
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
    translator = _Translator(expression, values)
    translator.run()
    parameters = [*translator.variables, *translator.numbers]
    head = ExpressionToken("", f"def calculation({','.join([*parameters, HUNDRED])}):return ", 0, 0)
    words = [head, *translator.words]
    source = "".join(word.text for word in words)
    try:
        function = ast.parse(source).body[0]
    except (RecursionError, MemoryError):
        raise place_error("too many operators in a row: compute it in parts", expression, 1) from None
    assert isinstance(function, ast.FunctionDef)
    numbers = dict(translator.numbers)
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name):
            value, token = numbers.get(node.right.id, (0, None))
            if value == 100 and token is not None:
                node.right.id = HUNDRED
                numbers[HUNDRED] = Fraction(100), token
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    function.args.args = [argument for argument in function.args.args if argument.arg in used]
    return ParsedExpression(
        expression, FunctionSource.parsed(function, "expression", (source,), _FUNCTIONS), translator.variables,
        {name: found for name, found in numbers.items() if name in used},
        tuple(word for word in words for _ in word.text))


_FUNCTIONS = {name: Primitive(name) for name in (*FUNCTIONS, "power", "percentage")}


@dataclass
class _Postfix:
    """An atom with the operators behind it: where it begins, and whether the next atom is its exponent."""

    start: int
    powers: int = 0
    caret: ExpressionToken | None = None


@dataclass
class _Parenthesis:
    opening: ExpressionToken
    function: ExpressionToken | None
    around: _Postfix
    operands: int = 1


class _Translator:
    """Reads an expression from left to right; `words` are those of the translation."""

    def __init__(self, expression: str, values: Collection[str]) -> None:
        self.expression, self.values = expression, values
        if len(expression) > MOST_CHARACTERS:
            raise self._error(f"the expression has {len(expression)} characters: the most is {MOST_CHARACTERS}", 0)
        self.words: list[ExpressionToken] = []
        self.variables: dict[str, ExpressionToken] = {}
        self.numbers: dict[str, tuple[Fraction, ExpressionToken]] = {}
        self.postfix = _Postfix(0)
        self.open: list[_Parenthesis] = []
        self.signs = 0

    def run(self) -> None:
        tokens = self._tokens()
        ends = False
        for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
            ends = self._operator(token) if ends else self._operand(token, calls=after.text == "(")

    def _tokens(self) -> list[ExpressionToken]:
        tokens, place = [], 0
        while place < len(self.expression):
            match = _TOKEN.match(self.expression, place)
            if match is None:
                raise self._error(f"unexpected character {self.expression[place]!r}", place, self.expression[place])
            if match.lastgroup != "space":
                tokens.append(ExpressionToken(match.lastgroup or "", match.group(), place, match.end()))
            place = match.end()
        end = len(self.expression.rstrip())
        return [*tokens, ExpressionToken("end", "", end, end)]

    def _error(self, message: str, place: int, text: str = "") -> SourceError:
        return place_error(message, self.expression, place + 1, text)

    def _wrong(self, token: ExpressionToken, wanted: str) -> SourceError:
        found = "the expression ends here" if token.kind == "end" else f"found {token.text!r}"
        return self._error(f"{found}: expected {wanted}", token.start, token.text)

    def _write(self, text: str, token: ExpressionToken) -> None:
        self.words.append(ExpressionToken(token.kind, text, token.start, token.end))

    # What may begin an operand; each method gives whether the operand is complete

    def _operand(self, token: ExpressionToken, *, calls: bool) -> bool:
        called = bool(self.words) and self.words[-1].kind == "function"
        if token.text in ("-", "+") and not called:
            self._write(token.text, token)
            self.signs += 1
            self._check_depth(token)
            return False
        if self.postfix.caret is None and not called:
            self.postfix = _Postfix(len(self.words))
        if token.text == "(":
            self._open(token, self.words[-1] if called else None)
            return False
        if token.kind == "number":
            self._number(token)
        elif token.kind == "name" and calls:
            self._function(token)
            return False
        elif token.kind == "name":
            self._variable(token)
        else:
            raise self._wrong(token, _ATOM)
        return self._complete()

    def _complete(self) -> bool:
        """An atom ends here; behind an exponent its power does."""
        if self.postfix.caret is not None:
            self._write(")", self.postfix.caret)
            self.postfix.caret = None
        self.signs = 0
        return True

    def _check_depth(self, token: ExpressionToken) -> None:
        if len(self.open) + self.signs > MOST_NESTED:
            raise self._error(f"nested more than {MOST_NESTED} deep", token.start, token.text)

    def _open(self, token: ExpressionToken, function: ExpressionToken | None) -> None:
        self.open.append(_Parenthesis(token, function, self.postfix))
        self._check_depth(token)
        self._write("(", token)
        self.postfix, self.signs = _Postfix(len(self.words)), 0

    def _number(self, token: ExpressionToken) -> None:
        value = number(token.text)
        if value is None:
            raise self._error(f"{token.text!r} is beyond the floating-point numbers", token.start, token.text)
        if self.postfix.caret is not None and value.denominator == 1 and value > MOST_EXPONENT:
            raise self._error(f"exponent {token.text}: the largest is {MOST_EXPONENT}", token.start, token.text)
        self._value(value, token, DATA if self.postfix.caret is None else EXPONENT)

    def _value(self, value: Fraction, token: ExpressionToken, kind: str = DATA) -> None:
        """A number is a parameter; equal ones are the same."""
        known = {found: name for name, (found, _) in self.numbers.items() if name.startswith(kind)}
        name = known.get(value, f"{kind}{len(known) + 1}")
        self.numbers.setdefault(name, (value, token))
        self._write(name, token)

    def _variable(self, token: ExpressionToken) -> None:
        if token.text in FUNCTIONS:
            raise self._error(f"{token.text} is a function: write {token.text}(...)", token.start, token.text)
        if token.text in CONSTANTS and token.text not in self.values:
            self._value(CONSTANTS[token.text](), token)
            return
        name = f"{token.text}_"  # no word of Python, and no number's name, ends so
        self.variables.setdefault(name, token)
        self._write(name, token)

    def _function(self, token: ExpressionToken) -> None:
        if token.text not in FUNCTIONS:
            raise self._error(f"unknown function {token.text!r}{did_you_mean(token.text, FUNCTIONS)}: there are "
                              f"{', '.join(FUNCTIONS)}; a product is written with *", token.start, token.text)
        self.words.append(ExpressionToken("function", token.text, token.start, token.end))

    # What may follow an operand; each method gives whether another operator may follow

    def _operator(self, token: ExpressionToken) -> bool:
        inside = self.open[-1] if self.open else None
        several = inside is not None and inside.function is not None and inside.function.text in CHOICES
        if token.text in ("+", "-", "*", "/"):
            self._write(token.text, token)
            return False
        if token.text == "%":
            self._wrap("percentage")
            self._write(")", token)
            return True
        if token.text in ("^", "**"):
            self._power(token)
            return False
        if token.text == "," and several and inside is not None:
            inside.operands += 1
            self._write(",", token)
            return False
        if token.text == ")" and inside is not None:
            return self._close(token, inside)
        if token.kind == "end" and inside is None:
            return False
        raise self._wrong(token, "an operator, such as + - * / ^ %, or the end" if inside is None else
                          f"an operator{', a comma' * several}, or the ) of the ( at column {inside.opening.start + 1}")

    def _wrap(self, function: str) -> None:
        """A call around the operand before an operator."""
        start = self.postfix.start
        first = self.words[start].start
        self.words.insert(start, ExpressionToken("", f"{function}(", first, first))

    def _power(self, token: ExpressionToken) -> None:
        self.postfix.powers += 1
        if self.postfix.powers > 1:
            raise self._error("two powers in a row: write (x^2)^3 or x^8", token.start, token.text)
        self._wrap("power")
        self._write(",", token)
        self.postfix.caret = token

    def _close(self, token: ExpressionToken, inside: _Parenthesis) -> bool:
        function = inside.function
        if function is not None and function.text in CHOICES and inside.operands < 2:
            raise self._error(f"{function.text} of one number: it takes two or more, separated by commas", function.start,
                              function.text)
        self._write(")", token)
        self.open.pop()
        self.postfix = inside.around
        return self._complete()
