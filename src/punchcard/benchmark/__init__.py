"""How fast this machine's engines are: steps a second, beside the equation itself and beside ordinary interpreters.

`punchcard bench` shows what `measurements.measure` gives. All ratios are of figures measured in turn, in one run.
"""
