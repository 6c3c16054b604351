"""The scratchpad engine: only what can change is computed."""

from punchcard.engines.scratchpad.engine import Scratchpad

__all__ = ["Scratchpad"]
