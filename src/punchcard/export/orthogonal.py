"""Orthogonal matrices that hide the basis of a card's rows.

    permuted rows in another order and with other signs. No number is rounded, for any card.
    random   any rotation, each as likely. Its entries are rounded, so the rows come back but for rounding.
    exact    a product of rounds that each mix rows in groups of four by a Hadamard matrix over 2. All entries are multiples
             of 1/8, so R^T R is the identity exactly, and exact sums of a machine stay exact.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from punchcard.transformer.expression import Array

Rotation: TypeAlias = Literal["none", "permuted", "exact", "random"]
ROUNDS = 3
"""After three rounds up to 64 rows are mixed, and entries are multiples of 2^-3."""
MIXING = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2


def rotation(kind: Rotation, width: int, generator: np.random.Generator) -> Array:
    """An orthogonal matrix of this kind."""
    if kind == "none":
        return np.eye(width)
    if kind == "permuted":
        return _shuffled(np.eye(width), generator)
    return _exact(width, generator) if kind == "exact" else _random(width, generator)


def _shuffled(matrix: Array, generator: np.random.Generator) -> Array:
    order, signs = generator.permutation(len(matrix)), generator.choice([-1.0, 1.0], len(matrix))
    found: Array = signs[:, None] * matrix[order] + 0.0
    return found


def _random(width: int, generator: np.random.Generator) -> Array:
    """From a Gaussian matrix by QR; the signs make every rotation as likely as any other."""
    orthogonal, upper = np.linalg.qr(generator.standard_normal((width, width)))
    found: Array = orthogonal * np.sign(np.diag(upper))
    return found


def _exact(width: int, generator: np.random.Generator) -> Array:
    found = np.eye(width)
    for _ in range(ROUNDS):
        found = _shuffled(found, generator)
        for start in range(0, width - 3, 4):  # the last rows, less than four, wait for another round
            found[start : start + 4] = MIXING @ found[start : start + 4]
    return found
