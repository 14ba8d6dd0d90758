"""Programs put together at random from lines a user might write run alike on the tape and in every kind of plan.

A program is source text, so a failing one can be read and run by hand: its number is in the name of the test, and
`Program(number).source` is its text. What NumPy itself refuses, or takes out of range, is not taken into a program.
"""

import contextlib
import os
import random
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.passes.loops import repetition

#: Programs in the usual run; more are a long run: `PULLBACK_RANDOM_PROGRAMS=2000 pytest -m "" tests/engine/test_random_programs.py`.
PROGRAMS = int(os.environ.get("PULLBACK_RANDOM_PROGRAMS", "40"))

#: Functions that record bodies which a run by hand may leave out, and one that stretches its result into its target then.
SKIPPING = ("pb.while_loop", "pb.cond", "pb.switch", "pb.inplace.matmul")

PLANNED = tuple(tier for tier in pb.TIERS if tier != "unfused")

HEAD = """\
import numpy as np
import pullback as pb


@pb.primitive
def cubed(x):
    return x * x * x


cubed.pulls(x=lambda y_bar, y, x: 3 * y_bar * x * x)


class Holder:
    def __init__(self, weights):
        self.weights = weights
        self.parts = [weights[0], {"last": weights[-1]}]


WEIGHTS = np.linspace(-0.6, 0.7, 12).reshape(3, 4)
HOLDER = Holder(np.linspace(0.9, -0.4, 12).reshape(3, 4))
ROWS = np.array([2, 0, 2, 1])
APART = np.diag([2.0, 4.0, 7.0, 0.0])[:3]


@pb.compile
def CACHED(v):
    return np.tanh(v) * v


def rows_stored(a, b):
    y = np.zeros_like(a)
    y[0] = b[-1]
    for row in range(1, len(a)):
        y[row] = np.sin(y[row - 1]) + a[row]
    return y


def view_stored(a, b):
    y = a * 1.0
    part = y[..., 1:]
    part += b[..., :1]
    y[y > 0.4] = 0.2
    part *= 0.5
    return y


def places_stored(a, b):
    y = pb.numpy.array(a)
    y[[0, 0, -1]] = b[0]
    np.add.at(y, [0, 1, 0], b[-1])
    y.T[0] = 0.3
    return y * np.sum(y)


def substituted(m, b):
    y = np.zeros_like(b)
    for k in range(len(b)):
        y[k] = (b[k] - m[k, :k] @ y[:k]) / (2.0 + m[k, k] * m[k, k])
    return y


def stored_by_masks(a, b):
    y = a + 0.0 * b
    y[b > 0.2] *= 0.5
    y[a < 0.0] = 0.1
    np.copyto(y, b, where=a > 0.7)
    np.putmask(y, b < -0.9, 0.3)
    return y


def stored_by_functions(a, b):
    y = a * 1.0
    np.put_along_axis(y, np.argmax(b, axis=-1)[..., None], 0.25, axis=-1)
    np.fill_diagonal(y, b[0, 0])
    np.multiply(y, b, out=y, where=a > 0.0)
    y.sort(axis=-1)
    y.flat[1] = np.sum(b)
    return y


def stored_in_steps(a, b):
    rows = np.empty_like(a, shape=(len(a) + 2, *a.shape[1:]))
    rows[0], rows[-1] = b[-1], 0.5
    rows[1:-1] = a
    for _ in range(3):
        rows[1:-1] += 0.2 * (rows[2:] - 2 * rows[1:-1] + rows[:-2])
        rows[0] = rows[1]
    return rows


def halving(v):
    return v if np.sum(v * v) < 1.0 else halving(v / 2)


def looped(v):
    while np.sum(v * v) > 1.0:
        v = v * 0.6
    return v


def repeated(step, v, x):
    for _ in range(5):
        v = step(v, x)
    return v


def counted(step, v):
    for k in range(5):
        v = step(v, 0.1 * k)
    return v


def along(step, v, xs):
    kept = []
    for x in xs:
        v = step(v, x)
        kept.append(v)
    return np.stack(kept[1:]) * np.sum(v)


def remembering(step, v, x):
    seen = [v, x]
    for _ in range(5):
        seen.append(step(seen[-1], seen[-2]))
    return np.concatenate([seen[-3], seen[4], *seen[::-2]])


"""

#: Right-hand sides; a, b and c are values that are there, f floats of any shape.
EXPRESSIONS = """\
np.sin({a})|np.tanh({a})|np.exp(-{a} * {a})|{a} + {b}|{a} - {b}|{a} * {b}|{a} / (1.5 + {b} * {b})|-{a}|{a} ** 2|{a} * 0.5|1 - {a}
np.log1p({a} * {a})|np.sqrt(1.0 + {a} * {a})|np.abs({a})|np.maximum({a}, {b})|np.minimum({a}, 0.3)|np.clip({a}, -0.5, 0.6)
np.where({a} > 0.1, {b}, np.sin({a}))|np.where({a} > {b}, {a}, {b})|np.arctan2({a}, 1.5 + {b} * {b})|np.hypot({a}, 1.0 + {b})
{a} @ {b}|{a}.T @ {a}|np.tanh({a} @ {b} + {c})|np.dot({a}, {b})|np.einsum("ij,jk->ik", {a}, {b})|np.einsum("ij->ji", {a})
np.einsum("ij,ij->i", {a}, {b})|np.tensordot({a}, {b}, 1)|np.outer({a}, {b}) / 4|np.matmul({a}, {b})|np.tanh({a} @ WEIGHTS)
np.sum({a}, axis=0)|np.sum({a}, axis=-1, keepdims=True)|np.mean({a})|np.mean({a}, axis=0, keepdims=True)|np.sum({a})
np.max({a}, axis=-1)|np.min({a}, axis=0)|np.prod({a}, axis=0)|np.std(np.sin({a}) + WEIGHTS)|np.var({a}, axis=-1)
np.linalg.norm({a} + 3.0)|{a}.sum(axis=0)|{a}.mean()|{a}.max(axis=0)
{a}.T|{a}.reshape(-1)|np.reshape({a}, (-1, 2))|np.swapaxes({a}, 0, -1)|np.expand_dims({a}, 0)|np.squeeze({a})|{a}[None]|{a}.ravel()
np.broadcast_to({a}, (2, *np.shape({a})))|np.flip({a}, 0)|np.roll({a}, 1, axis=-1)|np.pad({a}, 1)|np.tile({a}, 2)|np.repeat({a}[None], 2, axis=0)
{a}[0]|{a}[-1]|{a}[1:]|{a}[::-1]|{a}[..., 0]|{a}[..., ::2]|{a}[:, 1]|{a}[[0, 1, 0]]|{a}[ROWS]|{a}[ROWS, ROWS]|{a}[:, [2, 0]]|{a}[1, None, 2:]
{a}[-1, -1]|{a}[np.int64(-1)]|{a}.ravel()[-1] * {b}|{a}.reshape(-1, 2)[-1, 0]|np.cumsum({a})[-1]|np.diff({a}, axis=0)[-1, 1:]|np.median({a})|{a}[-1:, None][0, ..., -1]|np.interp({a}, [-1.0, 0.0, 2.0], {b}[..., :3].ravel()[:3])
{a}[np.array([True, False, True])]|{a}[WEIGHTS > 0.0]|np.take({a}[None], [0, 0], axis=0)|np.diag({a})|np.diagonal({a})|np.triu({a})|np.trace({a})
np.concatenate([{a}, {b}])|np.stack([{a}, {b}])|np.concatenate([{a}, {b}], axis=-1)|np.stack([{a}, {b}, {a}], axis=-1)|np.hstack([{a}, {b}])
np.split({a}, 2, axis=-1)[1]|np.array_split({a}, 2)[0]|np.vstack([{a}, {b}])
np.sort({a}, axis=-1)|np.sort({a}, axis=0)[::-1]|np.cumsum({a}, axis=0)|np.cumsum({a})|np.cumprod({a}, axis=-1)|np.maximum.accumulate({a}, axis=-1)|np.diff({a}, axis=0)|np.take_along_axis({a}, np.argsort({a}, axis=-1), axis=-1)
np.quantile({a}, 0.3, axis=0)|np.partition({a}, 1, axis=-1)[..., 1]|{a}[np.argsort({a}[:, 0])]|np.round({a}, 1) * {b}|np.searchsorted(WEIGHTS[0], {a}) * {b}|np.sort({a}, axis=None)[:3]|np.nanmedian(np.where({a} > 0.6, np.nan, {a}), axis=0)
np.linalg.solve({a} @ {a}.T + 3 * np.eye(len({a})), {a})|np.linalg.inv({a} @ {a}.T + 3 * np.eye(len({a})))|np.linalg.slogdet({a} @ {a}.T + np.eye(len({a})))[1]|np.linalg.solve(np.tril({a} @ {a}.T) + 3 * np.eye(len({a})), {a})|np.linalg.solve((2 * np.eye(4) + np.tril(WEIGHTS.T @ WEIGHTS)).T, {a}.T)
np.linalg.cholesky({a} @ np.swapaxes({a}, -1, -2) + 3 * np.eye(np.shape({a})[-2]))|np.linalg.solve(np.linalg.cholesky({a} @ {a}.T + np.eye(len({a}))), {b})|np.linalg.det({a}.T @ {a} + np.eye(4))|sum(np.outer(np.tile(np.ravel({a}), 8), np.ravel({b}) * k) for k in range(5)) / 9|np.linalg.norm({a}, axis=-1)
np.linalg.eigvalsh({a} @ {a}.T + APART[:, :3])|np.linalg.eigh(0.2 * {a}.T @ {a} + np.diag(np.arange(4.0)))[1] ** 2|np.linalg.svdvals(0.3 * {a} + APART)|np.abs(np.linalg.svd(0.3 * {a} + APART, full_matrices=False)[2])|np.linalg.qr(0.3 * {a}.T + APART.T)[1]
np.linalg.qr(0.3 * {a} + APART)[0]|np.linalg.pinv(0.3 * {a} + APART)|np.linalg.lstsq(0.3 * {a}.T + APART.T, {b}.T)[0]|np.linalg.matrix_rank({a}) * {b}|np.linalg.norm(0.3 * {a} + APART, 2)|np.linalg.norm(0.3 * {a} + APART, "nuc")
pb.nn.relu({a})|pb.nn.softplus({a})|pb.nn.gelu({a})|pb.nn.swish({a})|pb.nn.elu({a})|pb.nn.sigmoid({a})|pb.nn.softmax({a}, axis=-1)|pb.nn.logsoftmax({a}, axis=0)|pb.nn.logsumexp({a}, axis=-1)
pb.nn.dense_bias_act({a}, {b}, act="tanh")|pb.nn.dense_bias_act({a}, {b}, {c}, act="softplus")|pb.nn.bias_act("sigmoid", {a}, {b})|pb.nn.dense_bias_act(WEIGHTS, {a}, act=np.sin)
pb.nn.conv({a}[None, None], {b}[:2, :2][None, None])|pb.nn.conv_bias_act({b}[:2, :3][None], {a}[None], act="tanh")|pb.nn.mean_pool({a}[None, None], 2)|pb.nn.max_pool({a}[None, None], (2, 1))
pb.scan(lambda h, x: (np.tanh(h + x), h * x), {a}[0], {a})[1]|pb.scan(lambda h, x: (h * 0.5 + x @ WEIGHTS.T, np.sum(h)), np.zeros(3), {a})[0]|pb.scan(lambda h, x: (np.sin(h + x),) * 2, {b}, {a}, reverse=True)[1]
pb.fori_loop(0, 3, lambda i, h: np.tanh(h + {a} * i), {b})|pb.while_loop(lambda h: np.sum(h * h) > 0.5, lambda h: h * 0.7, {a})|pb.cond(np.sum({a}) > 0.2, lambda v: np.sin(v), lambda v: v * v, {b})
pb.checkpoint(lambda v, w: np.tanh(v * w) + v)({a}, {b})|pb.stop_gradient({a}) * {b}|cubed({a})|pb.vmap(lambda v: np.tanh(v) * np.sum(v))({a})|pb.grad(lambda v: np.sum(np.sin(v) ** 2))({a})
rows_stored({a}, {b})|view_stored({a}, {b})|places_stored({a}, {b})|pb.numpy.updated({a}, 0, {b})|pb.numpy.added({a}, [0, 0], {b})
pb.vmap(lambda v: rows_stored(v, v))({a})|pb.scan(lambda h, x: (view_stored(h, h), x), {a}, {b})[0]|pb.checkpoint(rows_stored)({a}, {b})
{a}[..., :0] @ {b}[:0]|np.concatenate([{a}[:0], {b}, {a}])|np.append({a}[1:1], {b})|np.sum({a}[:0], axis=0) + {b}|np.prod({a}[2:2]) * {b}|substituted({a} @ {a}.T, {b}.T[0])|pb.numpy.updated({a}, slice(1, 1), {b}[:0])
np.max({a}, axis=0, initial=0.2)|np.min({a}[:0], axis=0, initial=0.5) * {b}|np.logaddexp.reduce({a}, axis=-1)|np.logaddexp({a}, {b})|np.add.reduceat({a}, [0, 2], axis=0)|np.lib.stride_tricks.sliding_window_view({a}, 2, axis=-1)|np.einsum("...i,...i->...", {a}, {b})|np.einsum("ij,kj,kl->il", {a}, {b}, {c}, optimize=True)
np.select([{a} > 0.4, {b} < 0.0], [{a} * {b}, np.sin({a})], {b})|np.piecewise({a}, [{a} < 0.0, {a} >= 0.5], [np.sin, np.tanh, lambda v: v * v])|np.kron({a}[:2, :2], {b}[:1])|np.cross({a}[..., :3], {b}[..., :3])|np.trapezoid({a}, axis=0)|np.gradient({a}, axis=-1)|np.convolve({a}.ravel(), {b}.ravel()[:3], "same")|np.vdot({a}, {b})
np.fft.irfft(np.fft.rfft({a}) * (1.0 + 0.5j))|np.abs(np.fft.fft2({a}) * np.exp(1j * {b}) + 4.0)|np.angle({a} + 1j * {b} + 3.0)|np.real(np.exp(1j * {a}) / (2.0 + 1j * {b}))|np.linalg.multi_dot([{a}, {b}.T, {a}])|np.block([[{a}, {b}], [{b}, {a}]])|np.linalg.norm({a} + 2.0, 1, axis=0)|np.triu({a} @ {b}.T, 1)
np.nansum(np.where({a} > 0.5, np.nan, {a}), axis=0)|np.nanmax(np.where({a} > 0.5, np.nan, {b}), axis=-1)|np.percentile({a}, [10, 60], axis=-1)|np.float32(0.5) * {a}.astype("f4") + {b}.astype("f4")|np.unwrap({a} * 3)|np.copysign({a}, {b})|np.fmod({a}, 0.7)|np.heaviside({a}, 0.5) * {b}|np.nan_to_num({a})
stored_by_masks({a}, {b})|stored_by_functions({a}, {b})|stored_in_steps({a}, {b})|np.apply_along_axis(lambda v: np.cumsum(v) * v[0], -1, {a})|{a}[np.triu_indices(3)]|{a}[..., None, [0, 1]]|{a}[[2, 0], :, None][..., 0:1]
pb.scan(lambda h, x: (pb.checkpoint(lambda u, v: np.tanh(u + v) * u)(h, x), h), {a}[0], {a})[1]|pb.checkpoint(lambda v: np.where({a} > v, {a}, v * v))({b})|pb.vmap(pb.checkpoint(lambda v: np.cumsum(v) * np.max(v)))({a})
halving({a})|looped({a})|({a} if np.sum({a}) > 0.3 else {a} * 2)|sum({a}[i] * i for i in range(len({a})))|np.sum(np.stack([row * 0.5 for row in {a}]), axis=0)
{a} * HOLDER.weights|{a} + HOLDER.parts[0]|{a} * HOLDER.parts[1]["last"]|{a} * local|{a} + WEIGHTS[:1]|{a} * np.arange(4)|np.ones_like({a}) * {b}|np.zeros((3, 4)) + {a}|{a} * (np.array([1.0, 2.0, 3.0, 4.0]) / 4)
{a}.astype("f4") * {b}|{a} * np.float32(0.5)|np.real({a} * (1 + 2j) * {b})|np.abs(np.fft.fft({a}) + 3)|np.floor({a} * 3) * {b}|({a} > 0) * {b}|np.isnan({a}) + {b}|np.sign({a}) * {b}|({a} * 5).astype(int) * {b}
pb.inplace.multiply({a} * 1.0, {b})|pb.inplace.add(np.zeros((3, 4)) + {a}, {b})|pb.inplace.tanh({a} + 0.1)|pb.inplace.matmul(np.zeros((3, 3)) + 0 * {a}, {a}, {b})""".replace(
    "\n", "|"
).split("|")

#: Loops, branches and transforms; p and q are bodies in h and x.
LOOPS = """\
pb.scan(lambda {h}, {x}: (np.tanh({p}), {q}), {b}, {a})[1]
pb.scan(lambda {h}, {x}: (np.tanh({p}), {q}), {a}[0], {a})[0]
pb.scan(lambda {h}, {x}: (np.tanh({p}), {q}), {a}[0], {b}, reverse=True)[1]
pb.scan(lambda {h}, {x}: (0.5 * {h} + np.sin({p}), None), np.zeros(4), {a})[0]
pb.scan(lambda {h}, {x}: (np.tanh({p}), {q}), {a}[0], {a}, checkpoint_every=2)[1]
pb.scan(lambda {h}, {x}: (({h}[1], np.sin({h}[0] * {x})), {h}[0]), ({b}, {b}), {a})[1]
pb.fori_loop(0, 3, lambda {x}, {h}: np.tanh({p} + {h}), {a})
pb.while_loop(lambda {h}: np.sum({h} * {h}) > 0.4, lambda {h}: {h} * 0.5 + 0 * (lambda {x}: {p})(1.0), {a})
pb.cond(np.sum({a}) > 0.1, lambda {h}, {x}: {p}, lambda {h}, {x}: {q}, {a}, {b})
repeated(lambda {h}, {x}: np.tanh({p}), {a}, {b})
repeated(lambda {h}, {x}: np.sin({p}) + 0.5 * np.cos({q}), {a}, {b})
counted(lambda {h}, {x}: np.cos({p}) - 0.5 * {h}, {a})
along(lambda {h}, {x}: np.sin({p}), {a}[0], {a})
along(lambda {h}, {x}: np.tanh({p}) + {q}, {b}, np.stack([{a}, {b}, {a}, {a} * {b}]))
remembering(lambda {h}, {x}: 0.5 * {h} + np.sin({p}), {a}, {b})
pb.switch(int(np.sum({a} * {a})) % 2, [lambda {h}, {x}: {p}, lambda {h}, {x}: {q}], {a}, {b})
pb.checkpoint(lambda {h}, {x}: {p})({a}, {b})
pb.vmap(lambda {h}: (lambda {x}: {p})(0.5))({a})
pb.vmap(lambda {h}, {x}: pb.cond(np.sum({h}) > 0.1, lambda {h}, {x}: {p}, lambda {h}, {x}: {q}, {h}, {x}))({a}, {b})
pb.vmap(lambda {h}: pb.switch((np.sum({h}) > 0.1) * 1, [lambda {h}: np.sin({h}), lambda {h}: np.log(np.sum({h})) * {h}], {h}))({a})
pb.vmap(lambda {h}: pb.while_loop(lambda {h}: np.sum({h} * {h}) > 0.4, lambda {h}: {h} * 0.5, {h}))({a})
pb.vmap(lambda {h}, {x}: {p})({a}, {b})
pb.vmap(lambda {h}, {x}: {p}, in_axes=(0, None))({a}, {b})
pb.grad(lambda {h}, {x}: np.sum(np.sin({p})))({a}, {b})
pb.jvp(lambda {h}, {x}: {p}, ({a}, {b}), ({a}, {b}))[1]
pb.vjp(lambda {h}, {x}: {p}, {a}, {b})[1](np.ones_like({a}))[1]
pb.hvp(lambda {h}: (lambda {x}: np.sum(np.sin({p})))(0.5), {a}, {a})
(lambda {h}, {x}: {p})({a}, {b}) * (lambda {h}, {x}: {q})({b}, {a})
pb.nn.dense_bias_act({a}, {b}, act=lambda {h}: (lambda {x}: {p})(0.5))
CACHED({a}) * {b}""".splitlines()

ARGUMENTS = (
    ((3, 4),),
    ((3, 4), (4,)),
    ((3, 4), (4, 3), (3, 1)),
    ((3, 3), (3,)),
    ((4,), ()),
    ((2, 3, 4), (4, 3)),
    ((0, 4), (4,)),
    ((1, 1), (1,)),
)


class Program:
    """A program with a number, and values to call it with."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.shapes = self.random.choice(ARGUMENTS)
        self.single = self.random.random() < 0.2
        self.makers = [self.random.choice(LAYOUTS) for _ in self.shapes]
        self.names = [f"x{position}" for position in range(len(self.shapes))]
        lines = self._lines(self.random.randint(1, 9))
        self.source = f"{HEAD}def make(local):\n    def values({', '.join(self.names)}):\n{lines}\n    return values\n"
        self.namespace = _executed(self.source)
        self.values = self.namespace["make"](np.linspace(0.2, -0.5, 4))
        self.loss = _loss_of(self.values)
        self.calls = [self.arguments(seed) for seed in (0, 1, 2, 0)]

    def arguments(self, seed):
        """Values in other layouts than NumPy would make."""
        rng = np.random.default_rng(seed)
        made = (rng.uniform(-1.2, 1.2, shape) for shape in self.shapes)
        cast = (value.astype("f4") if self.single else value for value in made)
        return [make(value) if value.ndim else value[()] for make, value in zip(self.makers, cast, strict=True)]

    def _lines(self, count):
        lines, names = [], list(self.names)
        for number in range(count):
            for _ in range(60):
                line = f"v{number} = {self._expression(names)}"
                if self._runs([*lines, line], f"v{number}"):
                    lines.append(line)
                    names.append(f"v{number}")
                    break
        returned = self.random.sample(names, self.random.randint(1, min(3, len(names)))) + names[-1:]
        return "".join(f"        {line}\n" for line in lines) + f"        return {', '.join(returned)},"

    def _expression(self, names, depth=0):
        """An expression of these names; loops and branches have expressions of their own as bodies."""
        loops = self.random.random() < 0.15 and depth < 2
        template = self.random.choice(LOOPS if loops else EXPRESSIONS)
        chosen = {key: self.random.choice(names) for key in "abc"}
        if not loops:
            return template.format(**chosen)
        inner = [*(f"{letter}{depth}" for letter in "hx"), self.random.choice(names)]
        bodies = {key: self._expression(inner, depth + 1) for key in "pq"}
        return template.format(**chosen, **bodies, h=f"h{depth}", x=f"x{depth}")

    def _runs(self, lines, name):
        body = "".join(f"        {line}\n" for line in lines)
        text = f"{HEAD}def make(local):\n    def values({', '.join(self.names)}):\n{body}        return {name}\n    return values\n"
        values = _executed(text)["make"](np.linspace(0.2, -0.5, 4))
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error")
                results = [values(*self.arguments(seed)) for seed in range(3)]
        except Exception:  # noqa: BLE001 - NumPy's word on what fits together
            return False
        if "pb." in lines[-1]:
            try:
                pb.trace(values)(*self.arguments(0))
            except pb.errors.ControlFlowError:  # branches of different types, of which a run by hand takes only one
                return False
            except pb.errors.PullbackError:
                pass  # what cannot be recorded runs on the tape
            except Exception:
                if not any(loop in lines[-1] for loop in SKIPPING):
                    raise
                return False  # what does not fit
        return all(
            np.isrealobj(result)
            and np.size(result) < 500
            and np.all(np.isfinite(result))
            and np.all(np.abs(result) < 30)
            for result in results
        )


def _loss_of(values):
    """One number of everything a program returns; no method, for what is in the class of one cannot be recorded."""

    def loss(*args):
        return sum(np.sum(np.sin(value) * (1 + k)) for k, value in enumerate(values(*args)))

    return loss


def _read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def _strided(x):
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan, x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


LAYOUTS = (np.copy, np.copy, np.asfortranarray, _read_only, _strided, lambda x: np.flip(np.flip(x).copy()))


def _executed(source):
    namespace = {"__name__": "program"}
    exec(compile(source, "<random program>", "exec"), namespace)  # noqa: S102 - our own text
    return namespace


def close(ours, theirs, single):
    """Compare trees of results."""
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            close(a, b, single)
        return
    assert np.shape(ours) == np.shape(theirs)
    assert np.result_type(ours) == np.result_type(theirs)
    if single:
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


def snapshot(tree):
    return tuple(map(snapshot, tree)) if isinstance(tree, tuple) else np.array(tree)


def check(number):
    """A program on the tape, and in plans of each kind, call after call."""
    program = Program(number)
    wrt = tuple(range(len(program.shapes)))
    gradient = pb.value_and_grad(program.loss, wrt=wrt)
    if number % 4 == 0:
        check_pullbacks(program)
    if number % 4 == 1:
        check_slope(program, gradient)
    for function in (gradient, program.values):
        try:
            expected = [snapshot(function(*args)) for args in program.calls]
        except pb.errors.PullbackError:  # second derivatives of what has one: refused on the tape as well
            continue
        for tier in PLANNED:
            check_calls(program, pb.compile(function, tier=tier), expected)
        with pb.debug.poisoning():
            plan = pb.compile(function, tier="stateful")
            for args, wanted in zip(program.calls, expected, strict=True):
                close(plan(*args), wanted, program.single)


def check_slope(program, gradient):
    """The gradient against central differences, where the program is smooth enough to tell."""
    if program.single or any(word in program.source[len(HEAD) :] for word in ("stop_gradient", "f4", "float32")):
        return
    args = [np.array(x) for x in program.calls[1]]
    rng = np.random.default_rng(0)
    steps = [rng.normal(size=x.shape) * 1e-5 for x in args]
    with np.errstate(all="ignore"):
        before, now, after = (
            program.loss(*(x + sign * step for x, step in zip(args, steps, strict=True))) for sign in (-1, 0, 1)
        )
    try:
        _, slopes = pb.compile(gradient, tier="stateful")(*args)
    except pb.errors.PullbackError:
        return
    found = sum(np.sum(slope * step) for slope, step in zip(slopes, steps, strict=True))
    if abs(after + before - 2 * now) < 1e-7:  # else a kink or a jump lies between
        np.testing.assert_allclose(found, (after - before) / 2, rtol=1e-3, atol=2e-8)


def check_calls(program, plan, expected):
    """Results are right, those that are held stay as they are, and so do the arguments."""
    held = []
    for args, wanted in zip([*program.calls, *program.calls], [*expected, *expected], strict=True):
        before = tuple(np.array(x) for x in args)
        result = plan(*args)
        close(result, wanted, program.single)
        close(tuple(args), before, program.single)
        if program.random.random() < 0.7:
            held.append((result, snapshot(result)))
        if held and program.random.random() < 0.3:
            held.pop(0)
    for result, copied in held:
        close(result, copied, program.single)


def check_pullbacks(program):
    """Value and pullback, and value and tangent, where pullbacks are called late, often or not at all."""
    try:
        pb.vjp(program.values, *program.calls[0])
    except pb.errors.PullbackError:  # what has no reverse mode is refused on the tape as well
        return
    for tier in PLANNED:
        plan = pb.compile(program.values, tier=tier)
        for once in (False, True):
            waiting = []
            for args in program.calls:
                wanted, expected = pb.vjp(program.values, *args)
                y_bar = tuple(np.cos(value) if np.result_type(value).kind == "f" else value * 0.0 for value in wanted)
                found, pullback = plan.vjp(*args, once=once)
                close(found, snapshot(wanted), program.single)
                waiting.append((pullback, y_bar, snapshot(expected(y_bar))))
                if program.random.random() < 0.4:
                    late, y_bar, cotangents = waiting.pop(0)
                    close(late(y_bar), cotangents, program.single)
            kept = [(pullback(y_bar), cotangents) for pullback, y_bar, cotangents in waiting[::-1]]
            for found, cotangents in kept:
                close(found, cotangents, program.single)
        for args in program.calls:
            tangents = tuple(np.sin(3 * x) for x in args)
            wanted = pb.jvp(program.values, tuple(args), tangents)
            close(tuple(map(tuple, plan.jvp(tuple(args), tangents))), snapshot(wanted), program.single)


@pytest.fixture(autouse=True)
def short_loops(monkeypatch):
    """Loops of a few short steps are made loops of the graph too."""
    monkeypatch.setattr(repetition, "FEWEST_STEPS", 3)
    monkeypatch.setattr(repetition, "FEWEST_NODES_SAVED", 4)


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("number", range(PROGRAMS))
def test_a_random_program_runs_alike_in_every_tier(number):
    check(number)


def test_values_and_gradients_of_random_programs_are_planned():
    for number in range(3):
        program = Program(number)
        for function in (program.loss, program.values):
            plan = pb.compile(function)
            plan(*program.calls[0])
            assert plan.summary()["hash"] is not None, plan.summary()["fallbacks"]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("number", range(0, PROGRAMS, 5))
def test_a_random_program_gives_the_same_bits_on_any_number_of_threads(number, cut_everything):
    program = Program(number)
    gradient = pb.value_and_grad(program.loss, wrt=tuple(range(len(program.shapes))))
    for function in (gradient, program.values):
        plan = pb.compile(function, tier="native")
        found = {}
        with contextlib.suppress(pb.errors.PullbackError):
            for args in program.calls:
                plan(*args)  # what turns out not to be compiled runs on the tape afterwards, with other bits
        for threads in (1, 2, 7):
            with pb.threads(threads), contextlib.suppress(pb.errors.PullbackError):  # refused on the tape as well
                found[threads] = repr_of_bits([plan(*args) for args in program.calls])
        assert len(set(found.values())) <= 1
        assert len(found) in {0, 3}


def repr_of_bits(tree):
    """All numbers of a tree of results, to the last bit."""
    if isinstance(tree, (tuple, list)):
        return tuple(map(repr_of_bits, tree))
    return np.asarray(tree).tobytes()
