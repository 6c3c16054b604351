"""Measured behaviour: machines in lockstep with their oracles."""
