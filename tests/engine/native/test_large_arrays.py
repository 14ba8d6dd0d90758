"""Parts of large arrays, in a process of their own: where a plan reads outside of an array, large ones find no page there."""

import subprocess
import sys

import pytest

#: Functions of an array of 64 MB and of a number, one a line.
FUNCTIONS = """\
x[-1]
x[N - 1]
x[np.int64(-1)]
x[np.array(-1)]
x[-1,]
x[..., -1]
x[-1, ...]
x[None, -1]
x[-1, None]
x[-1:]
x[::-1][0]
x[N - 2 :: 2]
x[-3:][1]
x[5:-5:7][-1]
x[[0, -1]]
x[np.array([N - 1, 3, N - 1])]
x[np.array([], int)]
x[MASK]
x.reshape(M, -1)[M - 3, 7]
x.reshape(M, -1)[M - 3][7]
x.reshape(M, -1)[-1, -1]
x.reshape(M, -1).T[-1, -1]
x.reshape(M, -1)[-1]
x.reshape(M, -1)[:, -1][-1]
x.reshape(M, -1)[-2:, ::-3][0, 5]
x.reshape(M, -1)[[-1, 2], [5, -1]]
x.reshape(M, 2, -1)[-1, ..., -1][1]
np.broadcast_to(x, (3, N))[2, -1]
np.take(x, -1)
np.take(x, [N - 1, 0])
x.ravel()[-1]
(x * c)[-1]
np.sin(x[-1]) + x[0] * c
np.diff(x)[-1]
np.cumsum(x)[-1]
pb.scan(lambda h, v: (0.5 * h + np.sum(v), h), c, x.reshape(64, -1))[1][-1]
pb.scan(lambda h, v: (0.5 * h + v, h), x[:M] * 1.0, x.reshape(-1, M))[1][-1, -1]
np.max(x) + x[-1]
np.roll(x, 1)[0]
np.concatenate([x[-2:], x[:2]])[1]
np.interp(c, GRID, x)
np.split(x, 4)[3][-1]
np.flip(x)[0]
np.median(x)"""

CHILD = """\
import sys
import numpy as np
import pullback as pb

N, M = 8_000_000, 2000
x, c = np.linspace(-1.0, 1.0, N), 0.25
GRID = np.linspace(0.0, 1.0, N)
MASK = np.zeros(N, bool)
MASK[[3, -1]] = True
for text in sys.stdin.read().splitlines():
    print(text, flush=True)
    function = eval(f"lambda x, c: {text}")
    wanted = function(x, c)
    np.testing.assert_allclose(pb.compile(function)(x, c), wanted, rtol=1e-9)
    loss = lambda x, c: np.sum(function(x, c) ** 2)
    value, (slope, _) = pb.compile(pb.value_and_grad(loss, wrt=("x", "c")))(x, c)
    np.testing.assert_allclose(value, np.sum(wanted ** 2), rtol=1e-9)
    assert np.isclose(slope[-1], pb.grad(loss)(x, c)[-1], rtol=1e-9)
print("done")
"""


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("part", range(5))
def test_a_part_of_a_large_array_is_read_inside_of_it(part):
    lines = FUNCTIONS.splitlines()[part::5]
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input="\n".join(lines), capture_output=True, text=True, check=False, timeout=300
    )
    said = child.stdout.splitlines()
    assert said[-1:] == ["done"], f"{said[-1:]} ended with {child.returncode}: {child.stderr[-2000:]}"
