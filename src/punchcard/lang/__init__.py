"""Source text to Programs and back. No tensors here."""
