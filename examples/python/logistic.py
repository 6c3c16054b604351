"""Logistic regression by stochastic gradient descent, a point at a time. Points are columns."""

import numpy as np

import punchcard as pc


@pc.program
def logistic(points, labels, rate=0.5, epochs=10):
    weights = np.zeros(len(points))
    for _ in range(epochs):
        for i in range(len(labels)):
            error = pc.arrays.sigmoid(weights @ points[:, i]) - labels[i]
            weights -= rate * error * points[:, i]
    return weights


def example():
    random = np.random.default_rng(4)
    points = random.uniform(-1, 1, (3, 12))
    points[2] = 1.0
    return points, 1.0 * (points[0] - 0.5 * points[1] > 0)


if __name__ == "__main__":
    print(logistic.run(*example()))
