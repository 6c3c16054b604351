"""Proofs: for every card on which a machine's facts hold, one loop of its weights is its step. See docs/proof.md.

The solver is z3, an extra of the package; nothing here is imported before a proof is made.
"""
