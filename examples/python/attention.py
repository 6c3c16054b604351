"""A transformer inside a transformer: the softmax attention of a small one, with its residual. Tokens are columns."""

import numpy as np

import punchcard as pc


@pc.program
def attention(X, K, Q, V):
    scores = (K @ X).T @ (Q @ X)
    weights = np.exp(scores)
    weights = weights / np.sum(weights, axis=0)
    return X + V @ X @ weights


def example():
    random = np.random.default_rng(6)
    return tuple(random.uniform(-1, 1, shape) for shape in ((3, 4), (2, 3), (2, 3), (3, 3)))


if __name__ == "__main__":
    print(attention.run(*example()))
