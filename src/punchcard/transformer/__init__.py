"""The transformer of equation (TF), and the way from formulas to its weights. What needs no torch is imported as a whole."""

from punchcard.transformer import build, exactness, expression, precision, relu_steps, softmax, weights

__all__ = ["build", "exactness", "expression", "precision", "relu_steps", "softmax", "weights"]
