"""PageRank by power iteration: where somebody ends who follows links, and now and then goes anywhere."""

import numpy as np

import punchcard as pc


@pc.program
def pagerank(links, damping=0.85, rounds=40):
    n = len(links)
    rank = np.ones(n) / n
    for _ in range(rounds):
        rank = damping * (links @ rank) + (1 - damping) / n
    return rank


def example():
    links = np.array([[0, 0, 1, 0, 0], [1, 0, 0, 0, 1], [1, 1, 0, 1, 0], [0, 1, 0, 0, 1], [0, 0, 0, 1, 0]], dtype=float)
    return (links / links.sum(axis=0),)


if __name__ == "__main__":
    print(pagerank.run(*example()))
