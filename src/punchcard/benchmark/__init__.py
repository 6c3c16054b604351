"""Measures engines on this computer: steps per second, beside the equation itself and beside ordinary interpreters.

`punchcard bench` prints what `measurements.measure` returns. All ratios are of figures measured alternately, in one run.
"""
