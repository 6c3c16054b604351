"""Numbers of a fixed count of bits as values, and their renderers: integers, arrays, Python, C, z3 and LLVM."""

from punchcard.words import integers, word

__all__ = ["integers", "word"]
