"""Proofs that one loop of a machine's weights is one step, for every card with the machine's facts. See docs/proof.md.

The solver is z3, an extra of the package; nothing here is imported before a proof is made.
"""
