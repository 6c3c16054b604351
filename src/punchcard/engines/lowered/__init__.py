"""The lowered engine: straight-line code generated from the weights."""

from punchcard.engines.lowered.engine import Lowered

__all__ = ["Lowered"]
