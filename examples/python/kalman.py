"""A Kalman filter: position and velocity of a body, from 20 noisy measurements of its position."""

import numpy as np

import punchcard as pc


@pc.program
def kalman(measured, F, Q, noise=0.25):
    x = np.zeros(2)
    P = np.eye(2)
    track = np.zeros((2, len(measured)))
    for t in range(len(measured)):
        x = F @ x
        P = F @ P @ F.T + Q
        gain = P[:, 0] / (P[0, 0] + noise)
        x = x + gain * (measured[t] - x[0])
        P = P - np.outer(gain, P[0])
        track[:, t] = x
    return track


def example():
    random = np.random.default_rng(2)
    measured = 0.1 * np.arange(20) + 0.3 * random.uniform(-1, 1, 20)
    return measured, np.array([[1, 1], [0, 1]], dtype=float), np.array([[0.02, 0.01], [0.01, 0.02]])


if __name__ == "__main__":
    print(kalman.run(*example()))
