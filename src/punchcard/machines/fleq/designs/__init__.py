"""The FLEQ machine's three transformers, a file each."""
