"""Expressions over words of a fixed number of bits, and their renderers: integers, arrays, Python, C, z3 and LLVM."""

from punchcard.words import renderer, word

__all__ = ["renderer", "word"]
