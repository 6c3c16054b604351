"""Linear algebra on the FLEQ machine: each call writes a program, runs it on the transformer, and measures the result."""

from punchcard.linear_algebra.equations import inverse, least_squares, solve
from punchcard.linear_algebra.execution import Computed, Krylov, LeadingEigenpair, QRDecomposition
from punchcard.linear_algebra.spectral import arnoldi, lanczos, power_iteration, qr

__all__ = [
    "Computed",
    "Krylov",
    "LeadingEigenpair",
    "QRDecomposition",
    "arnoldi",
    "inverse",
    "lanczos",
    "least_squares",
    "power_iteration",
    "qr",
    "solve",
]
