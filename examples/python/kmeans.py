"""k-means: three centres that are each the mean of the points nearest to them. Points and centres are columns."""

import numpy as np

import punchcard as pc


@pc.program
def kmeans(points, centres, rounds=5):
    ones = np.ones(points.shape[1])
    for _ in range(rounds):
        far = np.outer(np.sum(centres * centres, axis=0), ones) - 2 * centres.T @ points
        least = np.minimum(np.minimum(far[0], far[1]), far[2])
        belongs = 1.0 * (far <= least + 1e-6)
        centres = points @ belongs.T / np.sum(belongs, axis=1)
    return centres


def example():
    random = np.random.default_rng(3)
    points = np.repeat(np.array([[-1, 1, 0], [0, 0.5, -1]]), 3, axis=1) + 0.3 * random.uniform(-1, 1, (2, 9))
    return points, points[:, [0, 4, 8]]


if __name__ == "__main__":
    print(kmeans.run(*example()))
