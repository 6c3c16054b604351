"""SUBLEQ with one memory for code and data, input and output."""
