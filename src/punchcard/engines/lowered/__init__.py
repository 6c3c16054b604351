"""The lowered engine: straight-line code generated from the weights. See `run`."""

from punchcard.engines.lowered.engine import run

__all__ = ["run"]
