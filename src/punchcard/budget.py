"""The memory budget: the limit, and estimates from sizes alone, before anything is built.

    with punchcard.max_memory("16G"):
        punchcard.run(program, memory=1_000_000)

The estimates are of the whole peak, not of the result: a test measures them against real runs. `--max-memory` is the same on
the command line, and the variable PUNCHCARD_MAX_MEMORY everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from punchcard.errors import SizeError

DEFAULT = 4 << 30
"""Twice what the largest card of the examples, the tests and the benchmarks needs."""
OPTION, VARIABLE = "--max-memory", "PUNCHCARD_MAX_MEMORY"
UNITS = "KMGT"
WORTH_RAISING = 1 << 40
"""Beyond this no computer has the memory, so raising the budget is not suggested."""

BUILDING = 1.5
"""Peak of building over the compiled matrices (float64) and the model, measured 0.8 to 1.6: formulas are matrices too."""
COPIES = 5
"""Peak of punching and running over the bytes of a card as a tensor, measured 3 to 7: copies, and what engines prepare."""

PACKED = 7
"""Peak of packing and running over the bytes of a packed card's fields: copies, and what is looked up. Measured 7 to 14 if
all cells are used; pages of cells that were never written to take no memory, and then it is 0 to 4."""

HELD = 14
"""The same over the bytes that a packed card holds something in, for a machine most of whose fields are there for one
column: the rest of them is never written to. Measured 12 and 10 with traps, at 2^22 and 2^24 words."""

KEPT = 8
"""Peak of a run over the bytes that its program wrote, measured 2 without a comparison and 3 with one: they are kept, in the
mark and with the interpreter. Checkpoints and JSON are further copies."""

_chosen: ContextVar[int | None] = ContextVar("punchcard.budget", default=None)


@contextmanager
def max_memory(allowed: int | str) -> Iterator[None]:
    """A context manager that sets the memory limit inside its block. Default: 4 GiB.

        with punchcard.max_memory("16G"):
            machine = punchcard.build(program)

    `allowed` is a number of bytes, or text such as "512M" or "16G". A machine or run that would need more is refused.
    """
    token = _chosen.set(size_in_bytes(allowed, f"max_memory {allowed!r}"))
    try:
        yield
    finally:
        _chosen.reset(token)


def limit() -> int:
    """The bytes that may be used: as chosen, or as the environment says, or the default."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    given = os.environ.get(VARIABLE, "")
    return size_in_bytes(given, f"{VARIABLE}={given}") if given else DEFAULT


def require(needed: int, what: str, *, least: bool = False, instead: str = "take smaller sizes") -> None:
    """Refuse `what` when it needs more bytes than may be used; `least`: these and more, so no budget is suggested."""
    allowed = limit()
    if needed > allowed:
        size = format_bytes(needed).removesuffix(" or more") + " or more" if least else format_bytes(needed)
        fix = f"{instead}; {OPTION} raises the budget"
        if needed < WORTH_RAISING and not least:
            fix = f"{instead}, or allow more with {OPTION} {_enough(needed)}"
        raise SizeError(f"{what} needs about {size} of memory, the budget is {format_bytes(allowed)}: {fix}")


def building(weights: int) -> int:
    """About the bytes at the peak of building a model with so many weights."""
    return weights * round(BUILDING * (8 + 8))


def running(rows: int, columns: int, entry_bytes: int = 8) -> int:
    """About the bytes at the peak of punching a card as a tensor and running it."""
    return rows * columns * COPIES * entry_bytes


def attending(columns: int, entry_bytes: int, cards: int = 1) -> int:
    """About the bytes at the peak of attention as the equation has it: scores, weights and a copy of them, n by n each."""
    return 3 * columns**2 * entry_bytes * cards


def format_bytes(size: int) -> str:
    """Bytes with three digits that count."""
    power = min(max(0, size.bit_length() - 1) // 10, 6)
    if size.bit_length() > 70:
        return "1000 EiB or more"
    return f"{size / (1 << 10 * power):.3g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[power]}"


def _enough(needed: int) -> str:
    """The next whole number of M or G, with some room."""
    unit = 30 if needed >= 1 << 30 else 20
    return f"{(needed + needed // 8 >> unit) + 1}{UNITS[unit // 10 - 1]}"


def size_in_bytes(given: int | str, named: str) -> int:
    """A number of bytes, 1 or more, from a number or text such as "512M". Errors name it as `named`."""
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(?:([KMGT])(?:I?B)?)?\s*", given.upper()) \
        if isinstance(given, str) else None
    found = 0 if match is None else int(float(match[1]) * (1 << 10 * (UNITS.index(match[2]) + 1 if match[2] else 0)))
    if found < 1:
        raise SizeError(f"{named}: write a number of bytes, or a size such as 512M or 16G")
    return found
