"""Linear algebra on the FLEQ machine: each call writes a program, runs it on the transformer, and measures the result."""

from punchcard.linalg.equations import inverse, least_squares, solve
from punchcard.linalg.execution import Computed, Krylov, LeadingEigenpair, QRDecomposition
from punchcard.linalg.spectral import arnoldi, lanczos, power_iteration, qr

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
