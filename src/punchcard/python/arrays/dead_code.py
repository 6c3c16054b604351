"""Operations that no result and no branch needs are dropped before the run in NumPy, so that they do not count for
the range.
"""

from __future__ import annotations

from collections.abc import Iterable

from punchcard.python.arrays.ir import (
    CodeRegion,
    If,
    Loop,
    Moves,
    Op,
    Operand,
    Ref,
    Register,
    Statement,
    tests,
    walk,
)


def drop_dead_code(code: list[Statement], results: Iterable[Register]) -> None:
    """Drop from the code, in place, what is not needed."""
    needed = set(results)
    makers: dict[Register, list[Operand]] = {}
    for statement in walk(code):
        if isinstance(statement, Op):
            makers.setdefault(statement.target, []).extend(statement.operands)
        elif isinstance(statement, Moves):
            for target, value in statement.pairs:
                makers.setdefault(target, []).append(value)
        elif isinstance(statement, If):
            needed |= {test.flag.register for test in tests(statement.condition) if isinstance(test.flag, Ref)}
        elif isinstance(statement, Loop) and isinstance(statement.count, Ref):
            needed.add(statement.count.register)
    left = list(needed)
    while left:
        for operand in makers.get(left.pop(), ()):
            if isinstance(operand, Ref) and operand.register not in needed:
                needed.add(operand.register)
                left.append(operand.register)
    _drop(code, needed)


def _drop(code: list[Statement], needed: set[Register]) -> None:
    kept: list[Statement] = []
    for statement in code:
        if isinstance(statement, Op) and statement.target not in needed:
            continue
        if isinstance(statement, Moves):
            statement.pairs = [(target, value) for target, value in statement.pairs if target in needed]
            if not statement.pairs:
                continue
        elif isinstance(statement, If):
            for test in tests(statement.condition):
                _drop(test.work, needed)
            _drop(statement.then, needed)
            _drop(statement.other, needed)
        elif isinstance(statement, Loop):
            if statement.index is not None and statement.index not in needed:
                statement.index = None
            _drop(statement.before, needed)
            _drop(statement.body, needed)
        elif isinstance(statement, CodeRegion):
            _drop(statement.body, needed)
        kept.append(statement)
    code[:] = kept
