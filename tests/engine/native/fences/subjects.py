"""What is run between fences: calls of native plans, with names."""

import itertools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.engine import test_random_programs
from tests.engine.backends.test_interpreter import PROGRAMS
from tests.engine.native.fences.memory import fenced_copy
from tests.engine.passes.loops.test_loop_passes import PASSES

import pullback as pb
from pullback import control, nn, rules, trees
from pullback.core.cases import ALL
from pullback.rules import special
from pullback.transforms import elementwise_maps
from pullback_runners.workloads.registry import known_workloads

assert all((rules, special, control, nn, elementwise_maps))  # importing them fills the table of cases


@dataclass(frozen=True)
class Subject:
    """A plan and what it is called with."""

    name: str
    plan: Any
    args: tuple[Any, ...]

    def run(self):
        """Call the plan, in Python and natively, with arrays that end or begin at closed pages, also those it writes into."""
        result = self.plan(*self.args)
        summary = self.plan.summary()
        assert summary["hash"], summary["fallbacks"]
        for at_end, laid in itertools.product((True, False), (_in_order, _strided)):
            args = _fenced(self.args, laid, at_end=at_end)
            _compare(self.plan(*args), result)
            out = _fenced(result, _in_order, at_end=at_end)
            _compare(self.plan(*args, out=out), result)


def _fenced(tree, laid, *, at_end):
    """A tree with arrays, laid in some way, beside closed pages."""
    leaves, rebuild = trees.flatten(tree)
    return rebuild(iter([fenced_copy(laid(leaf), at_end=at_end) for leaf in leaves]))


def _in_order(x):
    return np.asarray(x, order="C")


def _strided(x):
    """The same array as a view that goes backwards over every other element of another."""
    return np.flip(np.repeat(np.flip(x), 2, axis=-1)[..., ::2]) if np.ndim(x) else np.asarray(x)


def _compare(ours, theirs):
    for one, other in zip(trees.flatten(ours)[0], trees.flatten(theirs)[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@dataclass(frozen=True)
class RandomProgram:
    """One of the random programs, in all tiers and ways of calling."""

    number: int

    @property
    def name(self):
        """Its number."""
        return f"random program {self.number}"

    def run(self):
        """Make it, run it, and compare what is native with what is not."""
        test_random_programs.check(self.number)


def of_rules():
    """Value and gradients of every case of every rule, in both precisions by turns."""
    taken = (case for case in ALL if case.primitive.name != "rnn")  # its parameter is an object; layers come by sizes
    for number, case in enumerate(taken):
        dtype = ("f8", "f4")[number % 2]
        operands = tuple(x.astype(dtype) if x.dtype.kind == "f" else x for x in case.operands())
        params = dict(case.params)
        if "dtype" in params and case.primitive.name != "astype":
            params["dtype"] = np.dtype(dtype)

        def both(*operands, rule=case.primitive, params=params):
            y, pullback = pb.vjp(lambda *xs: rule(*xs, **params), *operands)
            return y, pullback(np.cos(y))

        shapes = [x.shape for x in operands]
        yield Subject(f"{case.primitive.name}{shapes} {params} {dtype}", pb.compile(both), operands)


def of_workloads():
    """Each workload at its smallest size."""
    for workload in known_workloads():
        sizes = [case for suite in workload.grids for case in workload.cases(suite)]
        case = min(
            sizes, key=lambda case: [np.prod([x for x in dict(case.params).values() if isinstance(x, int)]), case.name]
        )
        gradient = workload.differentiated(pb, **dict(case.params))
        yield Subject(case.name, pb.compile(gradient), tuple(workload.draw_inputs(case).values()))


def of_golden_files():
    """The programs of golden files."""
    for name, (function, wrt, args) in PROGRAMS.items():
        yield Subject(name, pb.compile(pb.value_and_grad(function, wrt=wrt)), tuple(args))
    for name, (_, function, args) in PASSES.items():
        yield Subject(name, pb.compile(function), tuple(args))


#: Expressions of x and y of the length n and of the matrices A (n, 3), B (3, n), C (n, n) and images I (2, 2, n + 3, n + 4); k
#: are positions below n, of which one is the last.
OF_EVERY_SIZE = """\
np.tanh(x) * y + 1.5
np.sum(x * y) + np.max(x)
np.exp(-x * x)[::-1] * x[0] - x[-1]
x[1::2] * 2.0 if len(x) > 1 else x
np.sum(A, axis=0) @ B
np.sum(np.sin(C), axis=1) + np.max(C, axis=0)
np.mean(C * x, axis=-1, keepdims=True) * B[0]
A @ B + np.outer(x, y)
B @ C @ A
np.tanh(C @ x + y)
np.matmul(np.stack([A, A]), np.stack([B, B]))
C.T @ (A * 2.0)
pb.nn.dense_bias_act(C, A, x[:, None], act="tanh")
pb.nn.softmax(C, axis=-1) + pb.nn.logsumexp(A, axis=0)[0]
pb.nn.conv(I[:, :, :3, :3] * 0.5, I)
pb.nn.conv(I[:, :, :2, :3], I, pad=1, stride=2)
pb.nn.conv(I[0, 0, :1, :1] * np.ones((32, 16, 3, 3), x.dtype), np.ones((1, 16, 1, 1), x.dtype) * I[:, :1], pad=1)
pb.nn.max_pool(I, 2)
pb.nn.mean_pool(I, (2, 3))
x[k] * y[k[::-1]]
np.take(A, k, axis=0)
np.take_along_axis(C, k[:, None], axis=0)
np.cumsum(C, axis=1) + np.cumsum(x)
np.cumprod(C * 0.1 + 1.0, axis=0)
np.maximum.accumulate(C, axis=0)
np.concatenate([x, y[:1], y]) * 2.0
np.pad(A, ((1, 2), (0, 1))) + 1.0
np.roll(C, 1, axis=1) + np.flip(C, 0)
np.stack([x, y, x], axis=-1)
np.diagonal(C) * np.triu(C)[0]
np.diff(x, append=0.0) * y
np.where(x > y, x, y * y)
np.var(C, axis=0) + np.std(x + 3.0 * np.arange(len(x), dtype=x.dtype))
pb.scan(lambda h, v: (np.tanh(h * 0.5 + v), h), y, C)[1]
pb.scan(lambda h, v: (np.tanh(A @ (B @ h) * 0.1 + v), h[-1]), x, C)[1]
pb.scan(lambda h, v: (0.5 * h + v, h * v), x[0], y)[1]
pb.nn.rnn({"Wi": C, "Wh": C * 0.1, "b": x}, C[:3, None] * y)
pb.nn.lstm({"Wi": np.concatenate([C] * 4), "Wh": np.concatenate([C * 0.1] * 4)}, np.stack([C, C * y]))[0]
pb.nn.gru({"Wi": np.concatenate([C] * 3), "Wh": np.concatenate([C * 0.1] * 3)}, C[:3, None] * y)
pb.while_loop(lambda h: np.sum(h * h) > 0.5, lambda h: h * 0.7, pb.stop_gradient(x)) * y
pb.cond(np.sum(x) > 0.2, lambda v: np.sin(v), lambda v: v * v, C)
pb.switch(k[0] % 2, [lambda v: v @ A, lambda v: A + v[0, 0]], C)
np.transpose(np.stack([A, A * 2.0]), (1, 0, 2)) * 3.0
np.reshape(A, (3, -1)) @ A
x.astype("f4") + y.astype("f8")
np.sum(C**2 + 3.0 * C) + np.sum(x**3)
pb.nn.logitcrossentropy(A, np.abs(A) / 3.0, axis=1)
pb.vmap(lambda v: np.sum(v * x) * v)(C)
np.maximum(np.sqrt(np.abs(x) + 1.0), y) / (1.0 + y * y)
np.fft.irfft(np.fft.rfft(x) * (1.0 + y[0]), len(x)) + np.real(np.fft.fft(x * np.exp(1j * y)))
np.real(np.fft.ifft2(np.fft.fft2(C) * np.fft.fft(A, axis=0)[:, :1])) + np.fft.irfft(np.fft.rfft(C, axis=0), len(C), axis=0)
np.linalg.solve(C * 0.2 + len(C) * np.eye(len(C), dtype=C.dtype), A) + np.linalg.inv(C + len(C) * np.eye(len(C), dtype=C.dtype)) @ A
np.linalg.solve((C * 0.2 + len(x) * np.eye(len(x), dtype=C.dtype)).T, x) + np.linalg.slogdet(C + len(x) * np.eye(len(x), dtype=C.dtype))[1]
np.linalg.solve(np.linalg.cholesky(C @ C.T + np.eye(len(x), dtype=C.dtype)), x)
np.linalg.solve(np.linalg.cholesky(C @ C.T + np.eye(len(C), dtype=C.dtype)).T, A) + np.linalg.solve(np.tril(C) + len(C) * np.eye(len(C), dtype=C.dtype), A)
np.linalg.solve(np.eye(3, dtype=A.dtype) * 3 + A[:, :, None] * A[:, None], A[:, :, None])
np.linalg.cholesky(np.eye(3, dtype=A.dtype) * 3 + A[:, :, None] * A[:, None]) * np.linalg.det(A[:, :, None] * A[:, None])[:, None, None]
np.linalg.inv(np.stack([C, C.T]) + len(C) * np.eye(len(C), dtype=C.dtype)) @ B[0]
np.linalg.norm(C, axis=1) * x
np.linalg.eigh(C + C.T)[0] + np.linalg.eigvalsh(C * 2.0, "U")
(np.linalg.eigh(C + C.T)[1] ** 2) @ A + np.sum(np.linalg.eigvalsh(A[:, :, None] * A[:, None] + np.diag(B[:, 0])))
np.linalg.svdvals(A) * B[0, 0] + np.abs(np.linalg.svd(B, full_matrices=False)[2]) @ x[:, None] if len(x) > 2 else x
np.linalg.qr(A)[0] @ np.linalg.qr(B)[1] @ x
np.abs(np.linalg.qr(np.stack([C, C.T]) + len(C) * np.eye(len(C), dtype=C.dtype))[1]) @ x
np.linalg.pinv(A) @ x + np.linalg.lstsq(B.T, y)[0] * np.linalg.matrix_rank(A) if len(x) > 3 else np.linalg.pinv(C + C.T, hermitian=True) @ y
np.sort(C, axis=0) + np.argsort(A[:, 0]) * np.median(x)
np.take_along_axis(C, np.argsort(-C, axis=1)[:, :2], axis=1) + np.partition(x, len(x) // 2)[len(x) // 2]
np.interp(C, [-0.5, 0.0, 0.7], y[:3] if len(y) > 2 else B[0, :1] * np.ones(3, y.dtype)) + np.round(x, 1)
np.searchsorted(np.sort(x), y, side="right") * x"""

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65)


def of_every_size(sizes_each):
    """Programs of all kinds of kernels, at some sizes each, in both precisions by turns."""
    for number, text in enumerate(OF_EVERY_SIZE.splitlines()):
        for turn in range(sizes_each):
            n = SIZES[(7 * number + turn * len(SIZES) // sizes_each) % len(SIZES)]
            yield of_size(text, n, ("f8", "f4")[(number + turn) % 2])


def of_size(text, n, dtype):
    """Value and gradients of an expression of arrays of a size."""
    rng = np.random.default_rng(n)
    shapes = {"x": n, "y": n, "A": (n, 3), "B": (3, n), "C": (n, n), "I": (2, 2, n + 3, n + 4)}
    read = {
        name: rng.uniform(-1.0, 1.0, shape).astype(dtype)
        for name, shape in shapes.items()
        if re.search(rf"\b{name}\b", text)
    }
    positions = {"k": np.array([n - 1, 0, n // 2, n - 1])} if re.search(r"\bk\b", text) else {}
    names = ", ".join([*read, *positions])
    function = eval(f"lambda {names}: {text}", {"np": np, "pb": pb})  # noqa: S307 - our own text

    def both(*args):
        y, pullback = pb.vjp(lambda *moving: function(*moving, *args[len(read) :]), *args[: len(read)])
        return y, pullback(np.cos(y))

    return Subject(f"{text}, n={n}, {dtype}", pb.compile(both), (*read.values(), *positions.values()))


def of_random_programs():
    """Those of the usual run, and as many more as are asked for there."""
    return map(RandomProgram, range(test_random_programs.PROGRAMS // 4))


GROUPS = {
    "rules": lambda _: of_rules(),
    "workloads": lambda _: of_workloads(),
    "golden": lambda _: of_golden_files(),
    "sizes": of_every_size,
    "random": lambda _: of_random_programs(),
}
GROUPS["all"] = lambda sizes_each: itertools.chain.from_iterable(
    GROUPS[name](sizes_each) for name in GROUPS if name != "all"
)
