"""The transformer of equation (TF), and the way from formulas to its weights."""
