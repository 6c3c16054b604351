"""From a plan to machine code."""
