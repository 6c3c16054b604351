"""The scratchpad engine: only what can change is computed. See `run`."""

from punchcard.engines.scratchpad.engine import run

__all__ = ["run"]
