"""A set of models whose mechanism is known, to score methods of interpretability on. See docs/ground-truth-set.md."""
