"""Error correction (step 6 of the SUBLEQ proof): noisy entries near -1, 0, 1 become exactly those."""

from __future__ import annotations

from punchcard.transformer.expression import Expression, relu

TOLERANCE = 0.25
"""The noise that is removed. A power of two keeps 1 / (1 - 2 tolerance) exact."""


def correct(bits: Expression, tolerance: float = TOLERANCE) -> Expression:
    """(relu(b + 1 - e) - relu(b + e) + relu(b - e) - relu(b - 1 + e)) / (1 - 2 e) - 1, for noise up to e.

    b near    -1    0    1
    first      0    1    1     (relu(b + 1 - e) - relu(b + e)) / (1 - 2 e)
    second     0    0    1     (relu(b - e) - relu(b - 1 + e)) / (1 - 2 e)
    Flat around each of the three, so that noise does not pass. Four units a row, and two for the residual.
    """
    e = tolerance
    first = relu(bits + (1 - e)) - relu(bits + e)
    second = relu(bits - e) - relu(bits - (1 - e))
    return (1 / (1 - 2 * e)) * (first + second) - 1
