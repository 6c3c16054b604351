"""A network of two layers, trained by gradient descent: forward, backward, update. It learns the exclusive or."""

import numpy as np

import punchcard as pc


@pc.program
def train(points, labels, W, v, rate=0.25, epochs=20):
    for _ in range(epochs):
        for i in range(len(labels)):
            hidden = np.tanh(W @ points[:, i])
            error = v @ hidden - labels[i]
            W -= rate * np.outer(error * v * (1 - hidden**2), points[:, i])
            v -= rate * error * hidden
    return W, v


def example():
    random = np.random.default_rng(5)
    points = np.array([[-1, -1, 1, 1], [-1, 1, -1, 1], [1, 1, 1, 1]], dtype=float)
    return points, np.array([-1.0, 1.0, 1.0, -1.0]), random.uniform(-1, 1, (4, 3)), random.uniform(-1, 1, 4)


if __name__ == "__main__":
    print(train.run(*example()))
