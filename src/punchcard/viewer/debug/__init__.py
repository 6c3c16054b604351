"""`punchcard debug`: a run in a terminal, step by step. `debugger.py` is what it does, `app.py` its screen."""
