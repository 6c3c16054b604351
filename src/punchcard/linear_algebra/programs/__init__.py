"""Numerical linear algebra as FLEQ programs: the two of the paper's section 8, corrected, and those it only names.

They are written with the `Builder`, not in Python (`punchcard.program`). What both give is as long: the inverse has 5
instructions a round either way. But these are made before their scale is known: the interpreter runs them first, on
matrices with entries up to 1e60, and what it finds scales the matrix. A Python function is refused where values leave 1e12.
Callers read variables by the paper's names, and the functions are those of a standard machine: one machine runs all.
"""
