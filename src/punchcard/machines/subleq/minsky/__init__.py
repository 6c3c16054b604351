"""Minsky machines, translated to SUBLEQ."""
