"""Nonlinear Schroedinger equation on a circle, 256 points, 40 steps by splitting: a phase in space, a phase in frequency.

A wave packet is sent through a potential; the loss is its distance from where it should have gone. Differentiated by the
potential and by the amplitude of the packet.
"""

from typing import Any

import numpy as np

POINTS, STEPS, STEP = 256, 40, 0.01
PLACES = np.linspace(-10, 10, POINTS, endpoint=False)
FREQUENCIES = 2 * np.pi * np.fft.fftfreq(POINTS, PLACES[1] - PLACES[0])


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return 0.5 * PLACES**2 + 0.1 * rng.normal(size=POINTS), np.exp(-((PLACES - 1) ** 2) / 2)


wrt = (0, 1)


def loss(potential: Any, amplitude: Any) -> Any:
    psi = amplitude * np.exp(2j * PLACES)
    drift = np.exp(-0.5j * STEP * FREQUENCIES**2)
    for _ in range(STEPS):
        density = np.abs(psi) ** 2
        psi = psi * np.exp(-1j * STEP * (potential + density))
        psi = np.fft.ifft(drift * np.fft.fft(psi))
    wanted = np.exp(-((PLACES - 2) ** 2) / 2)
    return np.sum((np.abs(psi) ** 2 - wanted) ** 2)
