"""The transformer of equation (TF), and the compiler from formulas to its weights."""

from punchcard.transformer import build, exactness, expression, precision, relu_steps, softmax, weights

__all__ = ["build", "exactness", "expression", "precision", "relu_steps", "softmax", "weights"]
