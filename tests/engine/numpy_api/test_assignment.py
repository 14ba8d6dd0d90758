"""Programs that store into arrays, run as they stand: values are NumPy's, gradients those of differences, in every tier."""

import functools

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as pnp
from pullback.backends.native import availability
from pullback.errors import TracingError

X = np.random.default_rng(0).normal(size=(4, 5))
ROWS = np.array([2, 0, 3])


def one_number(x):
    y = np.zeros_like(x)
    y[0, 1] = x[0, 0] ** 2
    return y


def every_key(x):
    y = np.empty_like(x)
    y[...] = 1.0
    y[1] = x[0]
    y[:, 2] = x[1, 3]
    y[::2, 1:3] = x[::2, :2] * x[1:3, 1:3]
    y[-1] = 3
    y[ROWS] += x[:3]
    y[ROWS, [0, 1, 0]] = x[0, :3]
    y[x > 0.5] = 2.0
    y[x[:, 0] > 0.1] *= 2
    return y


def augmented(x):
    y = x.copy()
    y[1:3] += x[:2]
    y[0] *= x[1]
    y[:, 0] -= 2 * y[:, 1]
    y[2, 2] /= 1.5 + y[0, 0] ** 2
    y[1] **= 2
    y += 1
    y *= x
    return y


def through_views(x):
    y = x * 2
    inner = y[1:-1]
    corner = inner[:, 1:3]
    inner[0] = x[0]
    corner += 10 * x[2:, :2]
    row = y[2]
    row[::2] = 0
    total = np.sum(corner)
    y[2, 1] = total
    return y * np.sum(corner) + np.sum(row)


def through_transposes(x):
    y = pnp.array(x)
    y.T[1] = x[:, 0]
    line = y.reshape(-1)
    line[7:12] *= 3
    y.reshape(2, 2, 5)[1, :, ::2] = x[0, 0]
    np.swapaxes(y, 0, 1)[2:4, 1] += y.ravel()[3]
    for number, row in enumerate(y):
        row[number] = 0.5
    y.flat[3] = x[0, 1]
    return y + line.reshape(4, 5)


def aliases(x):
    y = x + 1
    z = y
    z[0] = 0
    w = y.copy()
    w[1] = 7
    y[2] = x[0]
    u = y + 0
    y[3] = 9
    return y + 10 * z + 100 * w + 1000 * u


def a_view_is_not_a_copy_and_a_number_is_no_view(x):
    y = x * 1
    number = y[0, 0]
    part = y[0]
    copied = y[[0, 1]]
    reshaped_copy = y.T.reshape(-1)
    y[0] = 2 * x[1]
    number += 1
    return part * number + copied[0] + reshaped_copy[:5]


def overlapping(x):
    y = x * 1
    y[1:] = y[:-1]
    y[:, :-1] += y[:, 1:]
    y[:] = y[::-1]
    return y


def overwritten(x):
    y = np.sin(x)
    z = y * y
    y[0] = np.exp(y[0])
    y[0] = y[0] * y[1]
    y[:] = y * z
    return y


def by_function(x):
    y = np.full_like(x, 0.5)
    np.copyto(y, x, where=x > 0)
    np.put(y, [3, 3, 7], x[1, :3])
    np.put_along_axis(y, np.argmax(x, axis=1)[:, None], x[:, :1], axis=1)
    np.add.at(y, ([0, 0, 1], [1, 1, 2]), x[2, :3])
    np.subtract.at(y, [3, 3], x[0])
    np.multiply.at(y, [0, 2], x[1])
    np.fill_diagonal(y, x[0, 4])
    np.place(y, x < -1, [4.0])
    np.putmask(y, x > 1, -x)
    np.multiply(y, 2.0, out=y)
    np.add(y, x, out=y[:], where=x < 0.3)
    y[0].fill(x[3, 3])
    y[1].sort()
    y.put([0], 1.25)
    return y


def a_time_loop(x):
    u = np.zeros_like(x)
    u[0] = x[0]
    u[1] = x[1]
    for t in range(1, 3):
        u[t + 1] = 2 * u[t] - u[t - 1]
        u[t + 1, 1:-1] += 0.1 * (u[t, 2:] - 2 * u[t, 1:-1] + u[t, :-2]) * u[t, 1:-1]
    return u


def element_by_element(x):
    y = np.zeros_like(x[0])
    for i in range(1, 4):
        y[i] = x[0, i - 1] * y[i - 1] + x[1, i + 1]
    return y


def made_of_constants(x):
    a = pnp.zeros((4, 4))
    a[0, 1] = a[1, 0] = x[0, 0]
    a[np.arange(4), np.arange(4)] = 2.0
    a[2:, 2:] += x[2:, 2:4]
    mask = np.zeros_like(x, dtype=bool)
    mask[1:3] = True
    mask[2, 0] = False
    places = np.zeros_like(x[0], dtype=int)
    places[1] = 3
    return np.sum(a @ x) + x[mask] @ x[mask] + x[0][places]


def whole_numbers(x):
    counts = np.zeros_like(x, dtype=int)
    counts[0] = x[0] * 3
    counts[1] += 2
    return counts * x


def rows_of_lists(x):
    y = np.zeros_like(x)
    y[:2] = [x[1], x[0] * 2]
    y[2, :3] = [x[0, 0], 1.0, x[0, 1]]
    return y


def pivoting(x):
    y = x[:, :4] * 1
    for k in range(3):
        p = k + np.argmax(np.abs(y[k:, k]))
        y[[k, p]] = y[[p, k]]
        y[k + 1 :] -= np.outer(y[k + 1 :, k] / y[k, k], y[k])
    return np.triu(y)


def nothing_selected(x):
    y = x * 1
    y[2:2] = 5
    y[np.zeros(x.shape, bool)] = 1
    y[[]] += 1
    np.put(y, [1, 3], x[0, 2:2])
    return y


PROGRAMS = [
    one_number, every_key, augmented, through_views, through_transposes, aliases,
    a_view_is_not_a_copy_and_a_number_is_no_view, overlapping, overwritten, by_function, a_time_loop, element_by_element,
    made_of_constants, whole_numbers, rows_of_lists, nothing_selected, pivoting,
]  # fmt: skip
each_program = pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])


@pytest.mark.sample(every=9)
@each_program
@pytest.mark.parametrize("tier", pb.TIERS)
def test_values_are_numpys_and_gradients_those_of_differences(program, tier):
    weights = np.random.default_rng(1).normal(size=np.shape(program(X.copy())))

    def loss(x):
        return np.sum(weights * program(x))

    plan = pb.compile(pb.value_and_grad(loss), tier=tier)
    x = X.copy()
    for _ in range(2):
        value, gradient = plan(x)
        np.testing.assert_array_equal(x, X)
        np.testing.assert_allclose(value, loss(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(pb.compile(program, tier=tier)(x), program(X.copy()), rtol=1e-12)
    if tier == "unfused":
        pb.testing.check_grads(lambda x: loss(x * 1), (X,))
    else:
        np.testing.assert_allclose(gradient, pb.grad(loss)(X), rtol=1e-11, atol=1e-12)
        if not availability.why_not():
            assert set(plan.summary()["fallbacks"]) <= {"argsort has no native form"}


@each_program
def test_stores_nest_in_transforms(program):
    def value(x):
        return np.sum(np.sin(program(x)))

    def plainly(x):
        return program(x.copy())

    xs = np.stack([X, 0.5 * X, -X])
    if program not in (by_function, made_of_constants):  # positions of masks differ between examples
        np.testing.assert_allclose(pb.vmap(program)(xs), np.stack([plainly(x) for x in xs]), rtol=1e-12)
        np.testing.assert_allclose(
            pb.vmap(pb.grad(value))(xs), np.stack([pb.grad(value)(x) for x in xs]), rtol=1e-10, atol=1e-12
        )
    np.testing.assert_allclose(pb.grad(lambda x: pb.checkpoint(value)(x * 2))(X), pb.grad(lambda x: value(x * 2))(X))
    _, dy = pb.jvp(value, (X,), (np.ones_like(X),))
    np.testing.assert_allclose(dy, np.sum(pb.grad(value)(X)), rtol=1e-10)
    np.testing.assert_allclose(
        pb.hvp(value, X, np.ones_like(X)), pb.jvp(pb.grad(value), (X,), (np.ones_like(X),))[1], rtol=1e-9, atol=1e-11
    )


def stored_into_a_plain_array(x):
    y = np.zeros(5)
    y[:] = x[0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.__setitem__(0, 1.0), r"store into an argument.*x = x\.copy\(\)"),
        (lambda x: x[1:].__setitem__(0, 1.0), "store into an argument"),
        (lambda x: np.copyto(x, 0.0), "store into an argument"),
        (lambda x: pb.scan(lambda c, v: (c.__setitem__(0, v[0]), v), x[0], x), "store into an argument"),
        (lambda x: stored_from_inside(x * 1), "array from around the function"),
        (
            stored_into_a_plain_array,
            r"test_assignment.py, line \d+, in stored_.*pb\.numpy\.zeros, or numpy\.zeros_like",
        ),
        (lambda x: np.add.at(np.zeros(5), 0, x[0, 0]), r"pb\.numpy\.zeros"),
        (lambda x: np.maximum.at(x * 1, [0, 0], x[0]), "twice"),
        (lambda x: (x * 1j).real.__setitem__(0, x[0]), "real"),
        (lambda x: np.fill_diagonal(y := x * 1, y[::-1].T[:4]), r"fill_diagonal with a view of the array.*v\.copy"),
        (lambda x: (y := x * 1).flat.__setitem__(slice(1, None), y.reshape(-1)[:-1]), "flat.*with a view"),
        (lambda x: np.place(y := x * 1, y > 0, y[0]), "place with a view"),
    ],
)
@pytest.mark.parametrize("tier", ["unfused", "native"])
def test_what_no_store_can_do_is_refused_by_name(function, message, tier):
    def total(x):
        function(x)
        return np.sum(x)

    with pytest.raises(TracingError, match=message):
        pb.compile(pb.grad(total), tier=tier)(X.copy())


def stored_from_inside(y):
    def inside(v):
        y[0, 0] = v
        return v * v

    return pb.grad(inside)(y[1, 1])


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda y: y.__setitem__(9, 1.0), IndexError, "out of bounds"),
        (lambda y: y.__setitem__((0, 0, 0), 1.0), IndexError, "too many"),
        (lambda y: y.__setitem__(0, y[:, 0]), ValueError, "could not broadcast"),
        (lambda y: np.broadcast_to(y[0], (3, 5)).__setitem__(0, 1.0), ValueError, "read-only"),
        (lambda y: np.diagonal(y).__setitem__(0, 1.0), ValueError, "read-only"),
        (lambda y: y[0].__iadd__(y), ValueError, "non-broadcastable"),
        (lambda y: y.__iadd__(1j * y), TypeError, "cannot cast"),
    ],
)
def test_errors_are_numpys(function, error, message):
    for y in (X.copy(),):
        with pytest.raises(error):
            function(y)
    with pytest.raises(error, match=message):
        pb.grad(lambda x: np.sum(function(x * 1)))(X)


def test_in_place_operators_on_an_argument_leave_the_callers_array_as_it_is():
    def function(x):
        x += 1
        x *= x
        return np.sum(x)

    x = X.copy()
    assert pb.value_and_grad(function)(x)[0] == pytest.approx(function(X.copy()))
    np.testing.assert_array_equal(x, X)


def test_numbers_are_not_written_to():
    def function(x):
        total = np.sum(x)
        before = total
        total += 1
        return total * before

    assert pb.value_and_grad(function)(X)[0] == pytest.approx(function(X))


def test_a_tape_stores_where_the_array_lies():
    """A loop of stores costs what is stored: with a copy for each of them it would be 200 arrays of 1.6 MB."""
    import tracemalloc

    def function(x):
        u = np.zeros_like(x)
        u[0] = x[0]
        for t in range(len(x) - 1):
            u[t + 1] = np.sin(u[t]) * x[t + 1]
        return np.sum(u)

    x = np.ones((200, 1000))
    gradient = pb.grad(function)
    gradient(x)
    tracemalloc.start()
    gradient(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * x.nbytes


def test_what_is_made_for_stores_is_an_ordinary_array_outside_of_a_trace():
    for made in (pnp.zeros(3), pnp.ones(2), pnp.empty(2), pnp.full(2, 1.0), pnp.array([1.0]), pnp.zeros_like(X)):
        assert type(made) is np.ndarray


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_copy_of_a_plain_array_is_made_by_array_where_it_is_to_hold_traced_values(tier):
    def stepped(rate, start, copy):
        u = copy(start)
        u[1:] = rate * u[:-1]
        u[1:] += rate
        return np.sum(u)

    start = np.arange(3.0)
    with pytest.raises(TracingError, match=r"copy one with pb\.numpy\.array"):
        pb.grad(stepped)(2.0, start, np.copy)
    with pytest.raises(TracingError, match=r"numpy\.add.* is not traced;.* copy one with pb\.numpy\.array"):
        pb.grad(lambda rate: np.add(rate, 1.0, out=np.copy(start)))(2.0)
    with pb.tier(tier):
        assert pb.grad(functools.partial(stepped, copy=pnp.array))(2.0, start) == 3.0
    assert start.tolist() == [0.0, 1.0, 2.0]


def test_arrays_that_hold_plain_values_are_plain_to_everybody():
    def function(x):
        y = pnp.zeros(4)
        y[1] = 2.0
        assert float(y[1]) == 2.0
        assert np.asarray(y).tolist() == [0.0, 2.0, 0.0, 0.0]
        assert y.tolist() == [0.0, 2.0, 0.0, 0.0]
        assert bool((y > 1).any())
        assert np.random.default_rng(0).permutation(np.asarray(y)).sum() == 2.0
        return np.sum(x * y[:3])

    assert pb.grad(function)(np.ones(3)).tolist() == [0.0, 2.0, 0.0]
    assert pb.compile(pb.grad(function))(np.ones(3)).tolist() == [0.0, 2.0, 0.0]


def test_a_reshape_of_an_array_that_is_not_in_c_order_is_refused_beside_a_store():
    def function(x):
        y = x * 1
        line = y.reshape(-1)
        y[0, 0] = 5.0
        return np.sum(line)

    assert pb.grad(function)(X)[0, 0] == 0.0
    with pytest.raises(TracingError, match="C order"):
        pb.grad(function)(np.asfortranarray(X))


NOT_IN_C_ORDER = {
    "copy": lambda x: x.copy(order="F"),
    "copy of a transpose": lambda x: np.copy(x.T),
    "zeros after a transpose": lambda x: np.zeros_like(x.T),
    "elementwise": lambda x: np.exp(x.T) + 1,
    "two operands": lambda x: np.where(x.T > 0, x.T, 0.0),
    "joined": lambda x: np.concatenate([x.T, x.T]),
    "cast": lambda x: x.T.astype(np.float32),
}
IN_C_ORDER = {
    "copy of a transpose": lambda x: x.T.copy(),
    "product": lambda x: x.T @ x,
    "zeros": np.zeros_like,
    "axes of length one": lambda x: np.exp(x[:1].T),
    "flipped": lambda x: np.exp(x[::-1]),
}


def stored_beside_a_reshape(make, order="C"):
    def function(x):
        y = make(x)
        line = y.ravel(order=order)
        line[0] = 100.0
        return np.sum(y * np.arange(y.size).reshape(y.shape)) + y[0, 0]

    return function


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("name", NOT_IN_C_ORDER)
def test_whether_a_reshape_is_a_view_is_refused_where_numpy_keeps_the_order_of_a_transpose(name, tier):
    function = stored_beside_a_reshape(NOT_IN_C_ORDER[name])
    with pytest.raises(TracingError, match="C order"):
        pb.compile(pb.value_and_grad(function), tier=tier)(X)


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("name", IN_C_ORDER)
def test_a_reshape_of_what_numpy_lays_out_in_c_order_is_a_view(name, tier):
    function = stored_beside_a_reshape(IN_C_ORDER[name])
    np.testing.assert_allclose(pb.compile(function, tier=tier)(X), function(X), rtol=1e-12)
