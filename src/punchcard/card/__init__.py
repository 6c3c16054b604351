"""The card: names for its rows and columns, and integers as ±1 bits. Importing it imports all of its modules."""

from punchcard.card import facts, layout

__all__ = ["facts", "layout"]
