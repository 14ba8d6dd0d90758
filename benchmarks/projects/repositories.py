"""Repositories made for a benchmark: a library of one engine, whose commits differ by the work that a gradient takes."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

PROJECT = """
[project]
name = "planted"
[build]
path = ["."]
import = ["planted"]
files = ["planted.py", "requirements.txt"]
{requirements}
[measure]
workloads = ["bench.py"]
"""

WORKLOAD = """
import numpy as np
import planted
from pullback_runners.workloads import grid, workload


@workload(wrt="x", numpy=False, standard=grid(n=({n},), dtype=("{dtype}",)))
def planted_gradient(n):
    "a gradient that takes as many units of work as its commit says"


@planted_gradient.inputs
def _(rng, dtype, n):
    return {{"x": rng.uniform(0.5, 1.5, n).astype(dtype)}}


@planted_gradient.variant("{engine}")
def _(x, *, n):
    return planted.step(x)
"""

NUMPY = """
import numpy as np

UNITS = {units}


def step(x):
    def value_and_gradient():
        gradient = np.zeros_like(x)
        for _ in range(UNITS):
            gradient = gradient + np.cos(x)
        return UNITS * float(np.sum(np.sin(x))), gradient

    return value_and_gradient
"""

JAX = """
import jax

UNITS = {units}


def loss(x):
    return jax.lax.scan(lambda y, _: (jax.numpy.tanh(y) * 1.1, None), x, length=UNITS)[0].sum()


def step(x):
    argument = jax.numpy.asarray(x)
    differentiated = jax.jit(jax.value_and_grad(loss))
    return lambda: differentiated(argument)
"""

TORCH = """
import torch

UNITS = {units}


class Chain(torch.nn.Module):
    def forward(self, y):
        for _ in range(UNITS):
            y = torch.tanh(y) * 1.1
        return y.sum()


def step(x):
    argument, chain = torch.tensor(x, requires_grad=True), Chain()

    def value_and_gradient():
        value = chain(argument)
        return value, torch.autograd.grad(value, (argument,))

    return value_and_gradient
"""


@dataclass(frozen=True)
class Library:
    """A library in one engine, and the size of its argument."""

    engine: str
    source: str
    n: int
    dtype: str


LIBRARIES = {
    each.engine: each
    for each in (
        Library("numpy", NUMPY, 1000, "f8"),
        Library("jax", JAX, 4000, "f4"),
        Library("torch", TORCH, 4000, "f4"),
    )
}


def make_repository(folder: Path, library: Library, units: dict[str, int], requirements: dict[str, str]) -> None:
    """Make a repository with a commit for each name in `units`, tagged by it; `requirements` are the texts of their lock files."""
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    named = 'requirements = ["requirements.txt"]' if requirements else ""
    (folder / "pullback.toml").write_text(PROJECT.format(requirements=named))
    (folder / "bench.py").write_text(WORKLOAD.format(n=library.n, dtype=library.dtype, engine=library.engine))
    for name, number in units.items():
        (folder / "planted.py").write_text(library.source.format(units=number) + f"\n# {name}\n")
        if requirements:
            (folder / "requirements.txt").write_text(requirements[name])
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--message", name)
        _git(folder, "tag", name)


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com")
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True)  # noqa: S603, S607 - our own arguments
