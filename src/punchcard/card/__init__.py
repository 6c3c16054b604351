"""The card: names for its rows and columns, and integers as ±1 bits. The room is imported as a whole."""

from punchcard.card import facts, layout

__all__ = ["facts", "layout"]
