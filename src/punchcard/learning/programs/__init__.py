"""Learning as FLEQ programs, and the same algorithms in NumPy.

They are written with the `Builder`, not in Python (`punchcard.program`): a program is generated from the description of a
network, with as many layers as that says and the instructions of each activation and loss. Training continues from weights
that callers find by name. examples/python has the training of one fixed network as a Python function.
"""
