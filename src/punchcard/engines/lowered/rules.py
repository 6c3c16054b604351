"""Tables of rewrite rules. A rule is a function with a name; its docstring is the lemma that makes it right.

`tests/test_rules.py` goes through every table and tries each rule on all values of small inputs: a rule without such a
test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
TABLES: dict[str, Sequence[Callable[..., object]]] = {}
"""The rules of all tables, for the tests."""


class RuleTable(Generic[Given, Result]):
    """Rules that are tried in the order in which they are written; each gives its result, or None where it does not apply.

    The table is the decorator of its rules.
    """

    def __init__(self, name: str) -> None:
        self.rules: list[Callable[Given, Result | None]] = []
        TABLES[name] = self.rules

    def __call__(self, rule: Callable[Given, Result | None]) -> Callable[Given, Result | None]:
        self.rules.append(rule)
        return rule

    def first(self, *given: Given.args, **named: Given.kwargs) -> Result | None:
        """What the first rule gives that applies."""
        for rule in self.rules:
            found = rule(*given, **named)
            if found is not None:
                return found
        return None
