"""What constructs and operators of Python are called in messages, and what operators compute on constants."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

OPERATORS: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow), ast.MatMult: ("@", operator.matmul), ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift), ast.BitAnd: ("&", operator.and_), ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor)}
COMPARISONS: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne)}
SIGNS: Mapping[type[ast.AST], str] = {
    **{kind: sign for kind, (sign, _) in (*OPERATORS.items(), *COMPARISONS.items())},
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not", ast.In: "in", ast.NotIn: "not in", ast.Is: "is",
    ast.IsNot: "is not"}
_NAMES: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda", ast.ListComp: "a list comprehension", ast.GeneratorExp: "a generator", ast.Dict: "a dictionary",
    ast.DictComp: "a dictionary comprehension", ast.Set: "a set", ast.SetComp: "a set comprehension",
    ast.NamedExpr: ":=", ast.JoinedStr: "an f-string", ast.Attribute: "an attribute", ast.Starred: "*", ast.Await: "await",
    ast.Yield: "yield", ast.YieldFrom: "yield", ast.Slice: "a slice", ast.BoolOp: "and/or as a value",
    ast.FunctionDef: "a function in a function", ast.AsyncFunctionDef: "an async function", ast.ClassDef: "class",
    ast.With: "with", ast.AsyncWith: "async with", ast.AsyncFor: "async for", ast.Try: "try", ast.TryStar: "try",
    ast.Raise: "raise", ast.Import: "import", ast.ImportFrom: "import", ast.Delete: "del", ast.Global: "global",
    ast.Nonlocal: "nonlocal", ast.Assert: "assert", ast.Match: "match"}


def name_of(node: ast.AST) -> str:
    """A construct in words: a list comprehension, `with`."""
    return _NAMES.get(type(node), type(node).__name__)
