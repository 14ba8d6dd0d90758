"""Negative log-likelihood of a linear Gaussian state-space model by the Kalman filter: 50 steps, 4 states, 4 observations.

Differentiated by the transition matrix, the observation matrix and the logarithms of both noise scales.
"""

from typing import Any

import numpy as np

STEPS, STATES = 50, 4


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    transition = 0.9 * np.eye(STATES) + 0.05 * rng.normal(size=(STATES, STATES))
    observation = np.eye(STATES) + 0.1 * rng.normal(size=(STATES, STATES))
    return transition, observation, 0.1 * rng.normal(size=(2, STATES)), rng.normal(size=(STEPS, STATES))


wrt = (0, 1, 2)


def loss(transition: Any, observation: Any, scales: Any, observed: Any) -> Any:
    process_noise, observation_noise = np.diag(np.exp(scales[0])), np.diag(np.exp(scales[1]))
    mean, covariance, total = np.zeros(STATES), np.eye(STATES), 0.0
    for step in range(STEPS):
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + process_noise
        innovation = observed[step] - observation @ mean
        spread = observation @ covariance @ observation.T + observation_noise
        gain = covariance @ observation.T @ np.linalg.inv(spread)
        total = total + innovation @ np.linalg.solve(spread, innovation) + np.linalg.slogdet(spread)[1]
        mean = mean + gain @ innovation
        covariance = covariance - gain @ observation @ covariance
    return 0.5 * total
