"""Ridge regression: the weights that fit X w = y best, with a price on their size. The inverse is Newton's iteration."""

import numpy as np

import punchcard as pc


@pc.program
def ridge(X, y, price=0.5, rounds=14):
    A = X.T @ X + price * np.eye(X.shape[1])
    inverse = np.eye(len(A)) / A.trace()
    for _ in range(rounds):
        inverse = inverse @ (2 * np.eye(len(A)) - A @ inverse)
    return inverse @ (X.T @ y)


def example():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (6, 3))
    return X, X @ [0.5, -0.25, 1.0] + 0.1 * random.uniform(-1, 1, 6)


if __name__ == "__main__":
    print(ridge.run(*example()))
