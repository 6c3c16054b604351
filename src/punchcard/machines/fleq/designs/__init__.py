"""The FLEQ machine's two transformers, a file each."""
