"""The card: names for its rows and columns, and integers as ±1 bits."""
