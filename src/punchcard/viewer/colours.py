"""The colours of every picture of a card, as on the page: a cream card, +1 as a punched mark, -1 as a faint dash.

Other numbers are blue above 0 and amber below. Blue and amber stay apart for people who see no difference between red and
green, and one is much darker than the other, so that a print in grey still shows which is which.
"""

from __future__ import annotations

BELOW, ZERO, ABOVE = "#dd9a2e", "#f8f2e2", "#1d5c96"
PAPER, EDGE = ZERO, "#d9cba6"
"""The card, and its edge."""
INK, FAINT, CHANGED = "#2a2733", "#8b8577", "#c2410c"
"""Text and punched marks, lines between blocks and dashes, and what has changed."""
STEPS = 15
"""Shades on each side of 0."""


def shade(value: float) -> str:
    """The colour of a number from -1 to 1, in steps; beyond, it has the full colour."""
    step = max(-STEPS, min(STEPS, round(value * STEPS)))
    if step == 0 and value:
        step = 1 if value > 0 else -1  # a small number is not 0
    end = BELOW if step < 0 else ABOVE
    parts = [(int(ZERO[i:i + 2], 16), int(end[i:i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * abs(step) / STEPS):02x}" for a, b in parts)
