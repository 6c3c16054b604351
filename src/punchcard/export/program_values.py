"""Programs whose first values have names: inputs of a layer, and cells of counterfactual pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from punchcard.errors import ProgramError


@runtime_checkable
class HasValues(Protocol):
    """A program that can be given other first values by name."""

    def with_values(self, values: Mapping[str, object]) -> object:
        """The same program with these values."""
        ...


def require_values(program: object, use: str) -> HasValues:
    """The program, if it has named values that can be changed. `use` is what they are needed for."""
    if not isinstance(program, HasValues):
        raise ProgramError(f"{use}: a {type(program).__name__} has no values by name that could be changed")
    return program
