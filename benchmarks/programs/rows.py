"""The programs, the arguments they get, and the ratio to JAX that is asked of each."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

SEED = 0


@dataclass(frozen=True)
class Row:
    """A program with its sizes, and the least `jax time / our time`."""

    name: str
    module: str
    ratio: float
    sizes: dict[str, Any] = field(default_factory=dict)

    @property
    def program(self) -> ModuleType:
        """The module with `arguments`, `wrt` and `loss`."""
        return importlib.import_module(f"benchmarks.programs.{self.module}")

    def arguments(self) -> tuple[Any, ...]:
        """The same arguments at every call."""
        made: tuple[Any, ...] = self.program.arguments(np.random.default_rng(SEED), **self.sizes)
        return made

    def jax_loss(self, jax_numpy: ModuleType) -> Callable[..., Any]:
        """The program with `jax.numpy` in the place of `numpy`; `jax_loss`, where its module has one, else `loss`."""
        spec = importlib.util.find_spec(self.program.__name__)
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(self.program.__name__)
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.np = jax_numpy  # the name that its functions look up
        if hasattr(module, "erfc"):
            module.erfc = importlib.import_module("jax.scipy.special").erfc
        loss: Callable[..., Any] = getattr(module, "jax_loss", None) or module.loss
        return loss


ROWS = (
    Row("Kalman filter, 50 steps, 4 states", "kalman", 1.5),
    Row("implicit diffusion, 20 solves of 64 x 64", "diffusion", 2),
    Row("Gaussian process, 150 points", "gaussian_process", 1.3, {"points": 150}),
    Row("Gaussian process, 400 points", "gaussian_process", 1.1, {"points": 400}),
    Row("transformer block 4 x 32 x 64, f8", "transformer", 2, {"dtype": "f8"}),
    Row("transformer block 4 x 32 x 64, f4", "transformer", 2, {"dtype": "f4"}),
    Row("20 bodies, Verlet, while", "bodies", 10),
    Row("wave equation by concatenate", "wave", 40),
    Row("wave equation by index assignment", "wave_assigned", 5),
    Row("hidden Markov model, 100 steps", "hidden_markov", 1),
    Row("spline regression", "spline", 1),
    Row("regulator by Riccati recursion", "lqr", 1),
    Row("2000 systems of 3 x 3", "small_solves", 1),
    Row("Ewald sum, 40 charges", "ewald", 1),
    Row("attention masked by assignment", "masked_attention", 1),
    Row("reaction-diffusion, walls by assignment", "boundary", 1),
    Row("ARMA(3, 2) likelihood, 200 steps", "arma", 1),
    Row("entropic transport 80 x 80, 50 rounds", "transport", 2),
    Row("power iteration 60, 30 rounds", "power_iteration", 2),
    Row("orthogonalization 48, 12 rounds", "orthogonalization", 2),
    Row("Chebyshev filter 60 x 8, degree 30", "chebyshev", 2),
    Row("Schroedinger equation by transforms, 256 points, 40 steps", "schroedinger", 1),
    Row("mixture d=10 k=25 n=1000, max exp log", "mixture", 4),
)

CHOSEN = frozenset(("hidden_markov", "spline", "lqr", "small_solves", "ewald", "masked_attention", "boundary", "arma"))
"""Eight programs of which the geometric mean is asked as well."""
CHOSEN_MEAN = 3.0
