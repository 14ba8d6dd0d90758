"""The objectives of GradBench and ADBench, written for JAX."""

from typing import Any

import numpy as np

from pullback_runners.peers.jax.adapter import PEER
from pullback_runners.peers.peer import Form
from pullback_runners.workloads import Inputs
from pullback_runners.workloads.ba import COLUMNS
from pullback_runners.workloads.det import minors
from pullback_runners.workloads.gmm import prior_constant
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal
from pullback_runners.workloads.llsq import points
from pullback_runners.workloads.ode import END


def _mixture(jax: Any, d: int, k: int, n: int, prior_sign: float) -> Any:
    jnp = jax.numpy
    rows, columns = positions_below_diagonal(d)
    constant = prior_constant(d, k, n, gamma=1.0, m=0, prior_sign=prior_sign)

    def posterior(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:  # noqa: E741 - the letter of the formula
        roots = jnp.zeros((k, d, d), x.dtype).at[:, rows, columns].set(l)
        roots = roots.at[:, jnp.arange(d), jnp.arange(d)].set(jnp.exp(q))
        scaled = jnp.einsum("kij,nkj->nki", roots, x[:, None, :] - mu)
        exponents = alpha + jnp.sum(q, axis=1) - 0.5 * jnp.sum(scaled**2, axis=2)
        likelihood = jnp.sum(jax.nn.logsumexp(exponents, axis=1)) - n * jax.nn.logsumexp(alpha)
        return likelihood - prior_sign * 0.5 * jnp.sum(roots**2) + constant

    return posterior


@PEER.form("gmm")
def _(jax: Any, /, *, d: int, k: int, n: int) -> Any:
    return _mixture(jax, d, k, n, 1.0)


@PEER.form("gmm_adbench")
def _(jax: Any, /, *, d: int, k: int, n: int) -> Any:
    return _mixture(jax, d, k, n, -1.0)


@PEER.form("lse")
def _(jax: Any, /, **_: Any) -> Any:
    return jax.nn.logsumexp


@PEER.form("llsq")
def _(jax: Any, /, *, n: int, **_: Any) -> Any:
    jnp = jax.numpy

    def distance(x: Any) -> Any:
        t = jnp.asarray(points(n), x.dtype)
        value, _ = jax.lax.scan(lambda value, c: (value * t + c, None), jnp.zeros(n, x.dtype), x, reverse=True)
        return 0.5 * jnp.sum((jnp.sign(t) - value) ** 2)

    return distance


@PEER.form("kmeans", with_inputs=True)
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Form:
    jnp = jax.numpy

    def cost(centroids: Any, points: Any) -> Any:
        return jnp.sum(jnp.min(jnp.sum((points[:, None, :] - centroids) ** 2, axis=2), axis=1))

    def newton(centroids: Any, points: Any) -> Any:
        def differentiated(centroids: Any) -> Any:
            return jax.value_and_grad(cost)(centroids, points)

        (value, gradient), (_, curvature) = jax.jvp(differentiated, [centroids], [jnp.ones_like(centroids)])
        return value, (gradient / curvature,)

    return Form(cost, inputs, ("centroids",), derivative=newton)


@PEER.form("ba", with_inputs=True)
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Form:
    jnp = jax.numpy

    def errors(row: Any, feature: Any) -> Any:
        r, x = row[:3], row[11:14] - row[3:6]
        angle = jnp.sqrt(jnp.sum(r**2))
        axis = r / angle
        across, along = jnp.cross(axis, x), jnp.dot(axis, x)
        seen = x * jnp.cos(angle) + across * jnp.sin(angle) + axis * along * (1 - jnp.cos(angle))
        flat = seen[:2] / seen[2]
        square = jnp.sum(flat**2)
        return row[-1] * (row[6] * flat * (1 + row[9] * square + row[10] * square**2) + row[7:9] - feature)

    def gathered(cameras: Any, points: Any, weights: Any, of_camera: Any, of_point: Any) -> Any:
        return jnp.concatenate([cameras[of_camera], points[of_point], weights[:, None]], axis=1)

    def jacobian(cameras: Any, points: Any, weights: Any, features: Any, of_camera: Any, of_point: Any) -> Any:
        rows = gathered(cameras, points, weights, of_camera, of_point)
        values = jax.vmap(jax.jacrev(errors))(rows, features)
        assert values.shape[-1] == COLUMNS  # noqa: S101 - an invariant of our own inputs
        return jax.vmap(errors)(rows, features), (values, -2 * weights)

    return Form(errors, inputs, ("cameras", "points", "weights"), derivative=jacobian)


@PEER.form("lstm_lm")
def _(jax: Any, /, *, layers: int, steps: int, units: int) -> Any:
    jnp = jax.numpy

    def loss(main: Any, extra: Any, state: Any, x: Any) -> Any:
        weights, biases = (main[part::2].reshape(layers, 4, units) for part in (0, 1))

        def step(carry: Any, x: Any) -> tuple[Any, Any]:
            y, after = x * extra[0], []
            for w, b, (hidden, cell) in zip(weights, biases, carry, strict=True):
                forget, output = jax.nn.sigmoid(y * w[0] + b[0]), jax.nn.sigmoid(y * w[2] + b[2])
                kept = cell * forget + jax.nn.sigmoid(hidden * w[1] + b[1]) * jnp.tanh(hidden * w[3] + b[3])
                y = output * jnp.tanh(kept)
                after.append((y, kept))
            return after, y

        start = [(state[2 * layer], state[2 * layer + 1]) for layer in range(layers)]
        _, outputs = jax.lax.scan(step, start, x[:-1])
        predicted = outputs * extra[1] + extra[2]
        normalised = predicted - jnp.log(2 + jnp.sum(jnp.exp(predicted), axis=1, keepdims=True))
        return -jnp.sum(x[1:] * normalised) / ((steps - 1) * units)

    return loss


@PEER.form("ode")
def _(jax: Any, /, *, steps: int, **_: Any) -> Any:
    jnp = jax.numpy
    size = END / steps

    def last(x: Any) -> Any:
        def slope(y: Any) -> Any:
            return x * jnp.concatenate([jnp.ones(1, x.dtype), y[:-1]])

        def step(y: Any, _: Any) -> tuple[Any, None]:
            k1 = slope(y)
            k2 = slope(y + size / 2 * k1)
            k3 = slope(y + size / 2 * k2)
            return y + size / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + size * k3)), None

        return jax.lax.scan(step, jnp.zeros_like(x), None, length=steps)[0][-1]

    return last


@PEER.form("det")
def _(jax: Any, /, *, n: int) -> Any:
    def expand(a: Any) -> Any:
        found = a[n - 1]
        for size, (columns, needed) in enumerate(minors(n)[1:], start=2):
            signs = np.where(np.arange(size) % 2, -1, 1)
            found = jax.numpy.sum(signs * a[n - size][columns] * found[needed], axis=1)
        return found[0]

    return expand
