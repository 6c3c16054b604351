"""Learning as FLEQ programs, and the same algorithms in NumPy."""
