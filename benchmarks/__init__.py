"""Measurements: scripts whose figures stand in docs/, and what tests and reports share of them."""
