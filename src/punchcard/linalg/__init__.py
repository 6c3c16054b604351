"""Linear algebra on the FLEQ machine. Each call writes a program, runs it on the transformer, and measures the error.

    found = punchcard.linalg.inverse([[4, 1], [2, 3]])
    found.value, found.error

Every function takes the keywords `machine`, `heads`, `precision`, `design`, `engine` and `check`, and returns a `Computed`.
It raises `MatrixError` for a matrix that the algorithm cannot take. If the result has not converged, it raises
`ConvergenceError`, unless you gave the number of iterations.
"""

from punchcard.linalg.equations import inverse, least_squares, solve
from punchcard.linalg.execution import Computed, Krylov, LeadingEigenpair, QRDecomposition
from punchcard.linalg.spectral import arnoldi, lanczos, power_iteration, qr

__all__ = ["Computed", "Krylov", "LeadingEigenpair", "QRDecomposition", "arnoldi", "inverse", "lanczos", "least_squares",
           "power_iteration", "qr", "solve"]
