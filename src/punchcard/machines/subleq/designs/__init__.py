"""The SUBLEQ machine's three transformers, a file each."""
