"""Machines: sizes and a precision turned into a layout and a model, with punch and read."""
