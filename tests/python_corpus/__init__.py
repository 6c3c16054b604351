"""Programs that the tests compile and compare with NumPy and CPython."""
