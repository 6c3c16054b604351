"""What the programs share: one set of functions, so that one machine runs them all, and loops that need no counter."""

from __future__ import annotations

STANDARD_FUNCTIONS = ("add", "sub", "mul", "transpose", "sigmoid", "hadamard", "incr_pointer", "reset_pointer")
"""The functions of a machine on which the linear algebra and the learning programs run without a change to its weights."""
