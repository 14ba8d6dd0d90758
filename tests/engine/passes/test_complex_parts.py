"""Complex values as pairs of real ones: values, derivatives, special values, loops, and what stays with NumPy."""

import os
from functools import partial

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as pnp
from pullback.backends.native import availability
from pullback.rules import complex_numbers
from pullback.rules.complex_parts import complex_of, fft_parts, irfft_parts, rfft_parts

RNG = np.random.default_rng(11)
N = 12
X, H, V = RNG.normal(size=(3, N))
IMAGE, PHASE = RNG.normal(size=(2, 6, 5))
WAVES = 2 * np.pi * np.fft.rfftfreq(N, 1 / N)
ALL_WAVES = 2 * np.pi * np.fft.fftfreq(N, 1 / N)
DAMPING = 1 / (1 + WAVES**2)

is_native = availability.why_not() is None


def both_parts(z):
    """A real function that sees both parts."""
    return 1.3 * np.real(z) + 0.7 * np.imag(z)


def poisson(f):
    return np.sum(np.fft.irfft(np.fft.rfft(f) * DAMPING, N) ** 2)


def circular_convolution(x, h):
    return np.sum((np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h), N) - 1) ** 2)


def phase_of_an_image(image, phase):
    return np.sum(np.abs(np.fft.ifft2(np.fft.fft2(image) * np.exp(1j * phase))) ** 4)


def power_spectrum(x):
    return np.sum(np.log(np.abs(np.fft.rfft(x)) ** 2))


def spectral_derivative(u):
    for _ in range(20):
        u = u - 1e-3 * u * np.fft.irfft(1j * WAVES * np.fft.rfft(u), N)
    return np.sum(u**2)


def spectral_derivative_by_scan(u):
    def step(u, _):
        after = u - 1e-3 * u * np.fft.irfft(1j * WAVES * np.fft.rfft(u), N)
        return after, np.sum(after**3)

    u, sums = pb.scan(step, u, None, length=20)
    return np.sum(u**2) + np.sum(sums)


def schroedinger(re, im, potential):
    psi = re + 1j * im
    half, whole = np.exp(-0.05j * potential), np.exp(-1e-3j * ALL_WAVES**2)
    for _ in range(9):
        psi = half * np.fft.ifft(whole * np.fft.fft(half * psi))
    return np.sum(np.abs(psi) ** 2 * potential)


def schroedinger_by_scan(re, im, potential):
    whole = np.exp(-1e-3j * ALL_WAVES**2)

    def step(psi, kick):
        psi = np.exp(-0.05j * kick * potential) * np.fft.ifft(whole * np.fft.fft(psi))
        return psi, psi[:3] * kick

    psi, seen = pb.scan(step, re + 1j * im, np.linspace(0.5, 1, 7))
    return np.sum(np.abs(psi) ** 2 * potential) + np.sum(both_parts(seen))


def damped_modes(x):
    modes = np.fft.fft(x, norm="ortho")
    modes = np.where(np.abs(ALL_WAVES) > 20, 0, modes / (1 + 0.1j * ALL_WAVES))
    modes = np.concatenate([modes[:3], modes[3:].conj()]) + np.exp((0.1 - 2j) * x)
    return np.sum(np.real(modes * modes.conj() / (2 + modes)))


def stored_modes(x, h):
    modes = np.zeros_like(np.fft.rfft(x))
    modes[1:4] = np.fft.rfft(h)[1:4] * x[:3]
    modes[0] += 1j * h[0]
    modes[[2, 5]] += h[:2]
    return np.sum(np.abs(modes) ** 2) + np.sum(np.fft.irfft(modes, N) ** 3)


def products_of_matrices(a, b):
    f = np.exp(-2j * np.pi * np.outer(np.arange(5), np.arange(5)) / 5)
    y = (a + 1j * b) @ f
    return np.sum(np.abs(y @ y.conj().T) ** 2) + np.sum(both_parts(np.cumsum(y, axis=1).T.reshape(-1)[::2]))


def filtered_backwards_and_over_axes(a, b):
    spectrum = np.fft.rfftn(a * b[::-1], axes=(1, 0)) * np.fft.rfft2(a, axes=(1, 0))
    return np.sum(np.fft.irfftn(spectrum, s=(5, 6), axes=(1, 0)) ** 2)


PROGRAMS = {
    poisson: (X,),
    circular_convolution: (X, H),
    phase_of_an_image: (IMAGE, PHASE),
    power_spectrum: (X,),
    spectral_derivative: (X,),
    spectral_derivative_by_scan: (X,),
    schroedinger: (X, H, V),
    schroedinger_by_scan: (X, H, V),
    damped_modes: (X,),
    stored_modes: (X, H),
    products_of_matrices: (IMAGE, PHASE),
    filtered_backwards_and_over_axes: (IMAGE, PHASE),
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_with_transforms_agree_in_all_tiers_and_with_differences(program):
    args = PROGRAMS[program]
    gradient = pb.value_and_grad(program, wrt=tuple(range(len(args))))
    value, slopes = gradient(*args)
    pb.testing.check_grads(program, args)
    for tier in ("fused", "stateful", "native"):
        plan = pb.compile(gradient, tier=tier)
        for _ in range(3):
            ours, our_slopes = plan(*args)
            np.testing.assert_allclose(ours, value, rtol=1e-11)
            for mine, theirs in zip(our_slopes, slopes, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.max(np.abs(theirs)))
    if is_native:
        assert plan.summary()["fallbacks"] == []
        assert plan.summary()["arrays"] == 0


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_tangents_second_order_and_batches_are_those_of_the_tape(program):
    args = PROGRAMS[program]
    tangents = tuple(np.cos(x + 1) for x in args)

    def slope(*args):
        return pb.jvp(pb.grad(program), args, tangents)[1]

    plans = [pb.compile(lambda *args: pb.jvp(program, args, tangents)[1]), pb.compile(slope)]
    if program is not spectral_derivative:  # one loop in Python for each of the examples is as well tried by the scan
        plans.append(pb.compile(pb.vmap(pb.grad(program))))
    batches = tuple(np.stack([x, 1.1 * x]) for x in args)
    expected = [
        pb.jvp(program, args, tangents)[1],
        slope(*args),
        np.stack([pb.grad(program)(*(batch[k] for batch in batches)) for k in range(2)]),
    ]
    for plan, given, wanted in zip(plans, (args, args, batches), expected, strict=False):
        np.testing.assert_allclose(plan(*given), wanted, rtol=1e-8, atol=1e-9 * np.max(np.abs(wanted)))


# --- transforms ------------------------------------------------------------------------------------------------------------
NORMS = ("backward", "ortho", "forward")


def transforms():
    """Each transform over each axis of some shapes; norms and dtypes take turns."""
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "irfftn"):
        over_several = name[-1] in "2n"
        for shape in ((3, 8, 5),) if over_several else ((7,), (3, 8, 5)):
            for axes in ({}, {"axes": (-1, 0)}) if over_several else ({"axis": 0}, {"axis": -1}, {"axis": 0, "n": 5}):
                yield name, shape, axes


CASES = [
    (*case, NORMS[number % 3], (np.float64, np.float32)[number // 3 % 2]) for number, case in enumerate(transforms())
]


@pytest.mark.sample(every=9)
@pytest.mark.parametrize(("name", "shape", "axes", "norm", "dtype"), CASES)
def test_transforms_are_numpys(name, shape, axes, norm, dtype):
    function = partial(getattr(np.fft, name), norm=norm, **axes)
    re, im = np.random.default_rng(5).normal(size=(2, *shape)).astype(dtype)
    takes_complex = name not in ("rfft", "rfft2", "ihfft")

    def parts(re, im):
        z = function(re + 1j * im) if takes_complex else function(re - im)
        return np.real(z), np.imag(z)

    def loss(re, im):
        return sum(
            np.sum(part**2 * np.arange(1, part.size + 1).reshape(part.shape) / part.size) for part in parts(re, im)
        )

    tolerance = 1e-12 if dtype is np.float64 else 2e-5
    plan = pb.compile(parts)
    for found, expected in zip(plan(re, im), parts(re, im), strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * (1 + np.max(np.abs(expected))))
    slopes = pb.compile(pb.grad(loss, wrt=(0, 1)))
    for found, expected in zip(slopes(re, im), pb.grad(loss, wrt=(0, 1))(re, im), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=50 * tolerance, atol=50 * tolerance * np.max(np.abs(expected)))
    assert not is_native or plan.summary()["fallbacks"] == slopes.summary()["fallbacks"] == []


def test_transforms_of_arguments_in_any_layout_and_of_whole_numbers():
    z = (RNG.normal(size=(8, 6)) + 1j * RNG.normal(size=(8, 6))).T[::-1, ::2]
    plan = pb.compile(lambda z: (np.fft.fft(z, axis=0), z * 2, np.fft.ifft2(z[::2].T)))
    for _ in range(4):
        for found, expected in zip(plan(z), (np.fft.fft(z, axis=0), z * 2, np.fft.ifft2(z[::2].T)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    whole = np.arange(12).reshape(3, 4)
    for _ in range(2):
        np.testing.assert_allclose(pb.compile(lambda x: np.fft.fft(x))(whole), np.fft.fft(whole), atol=1e-13)


# --- arithmetic -------------------------------------------------------------------------------------------------------------
NUMBERS = (0.0, -0.0, 1.5, -2.5, 1e-12, 3e15, np.inf, -np.inf, np.nan)
GRID = np.array([complex(re, im) for re in NUMBERS for im in NUMBERS])
UNARY = {
    "neg": lambda z: -z,
    "conj": np.conj,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "abs": np.abs,
    "exp": np.exp,
    "power 1": lambda z: z**1,
    "power -1": lambda z: z**-1,
    "real": np.real,
    "imag": np.imag,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "as bool": lambda z: z.astype(bool),
    "by a real number": lambda z: z * 2.5,
    "over a real number": lambda z: z / -4.0,
    "a real number over it": lambda z: 2.0 / z,
    "over a number": lambda z: z / (3 - 4j),
    "over another": lambda z: z / (-0.5 + 4j),
    "over an imaginary number": lambda z: z / 2j,
    "its real part over an imaginary number": lambda z: np.real(z) / 1j,
    "less a number": lambda z: z - 3,
    "by an imaginary number": lambda z: z * 2j,
    "exp of an angle": lambda z: np.exp(1j * np.real(z)),
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "equal": np.equal,
    "not equal": np.not_equal,
    "where": lambda a, b: np.where(np.imag(a) > 0, a, b),
    "by real ones": lambda a, b: a * np.imag(b),
    "over real ones": lambda a, b: a / np.real(b),
    "real ones plus": lambda a, b: np.real(a) + b,
}


def same_numbers(found, expected, tolerance, name=""):
    """Equal up to rounding, with infinities and NaN in the same places of both parts."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(found), part(expected), rtol=tolerance, atol=5e-324, err_msg=name)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("functions", [UNARY, BINARY], ids=["of one", "of two"])
def test_functions_of_special_values_are_numpys(functions, dtype):
    args = (GRID.astype(dtype),)
    if functions is BINARY:
        args = tuple(grid.ravel().astype(dtype) for grid in np.meshgrid(GRID, GRID))
    plan = pb.compile(lambda *args: [function(*args) for function in functions.values()])
    with np.errstate(all="ignore"):
        for name, found in zip(functions, plan(*args), strict=True):
            same_numbers(found, functions[name](*args), 1e-14 if dtype is np.complex128 else 1e-6, name)
    assert not is_native or plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("exponent", [3, 4.0, 7, -1, -2, 0, 0.5, 2 + 1j, 120])
def test_powers_are_numpys(exponent):
    z = (X + 1j * H).astype(np.complex64 if exponent == 7 else complex)
    plan = pb.compile(lambda z: z**exponent)
    np.testing.assert_allclose(plan(z), z**exponent, rtol=1e-6 if exponent == 7 else 1e-13)
    assert not is_native or bool(plan.summary()["fallbacks"]) == (exponent not in (3, 4, 7, -1))


def test_what_numpy_computes_with_a_complex_number_leaves_the_rest_native():
    def function(z):
        return z / 0j, np.real(z * z) + 1, z ** (2 + 1j)

    z = np.array([1 + 2j, -3j, 0, complex(0.0, -0.0)])
    plan = pb.compile(function)
    with np.errstate(all="ignore"):
        for found, expected in zip(plan(z), function(z), strict=True):
            same_numbers(found, expected, 1e-13)
    assert not is_native or sorted(plan.summary()["fallbacks"]) == ["div of complex128", "power of complex128"]


def test_exponentials_at_the_rim_are_those_of_numpy():
    z = np.array(
        [709.9 + 1.5707j, 712 + 1.57079632j, -740 + 0.5j, -744.5 + 3j, 800 + 2j, 1e-310 + 1e-310j, 0.3 + 1e300j]
    )
    with np.errstate(all="ignore"):
        same_numbers(pb.compile(lambda z: np.exp(z))(z), np.exp(z), 1e-13)


def test_reciprocals_of_the_smallest_numbers_are_those_of_numpy():
    z = np.array([5e-324j, -5e-324 + 0j, 1e-310 - 2e-310j, complex(-0.0, 1e-320)])
    with np.errstate(all="ignore"):
        same_numbers(pb.compile(lambda z: np.reciprocal(z))(z), np.reciprocal(z), 1e-13)


# --- loops, branches, numbers -----------------------------------------------------------------------------------------------
def test_a_while_loop_and_branches_over_complex_values():
    def iterate(z):
        z, count = pb.while_loop(
            lambda c: np.max(np.abs(c[0])) > 0.5, lambda c: (c[0] * (0.4 + 0.5j), c[1] + 1), (z, 0)
        )
        return pb.cond(count > 3, lambda z: z * 2j, lambda z: np.conj(z), z)

    z = X + 1j * H
    plan = pb.compile(iterate)
    for scale in (1.0, 0.1):
        np.testing.assert_allclose(plan(scale * z), iterate(scale * z), rtol=1e-13)
    assert not is_native or plan.summary()["fallbacks"] == []


def test_a_loop_with_complex_and_real_carries_and_complex_results():
    def last(x, y):
        def step(carry, x):
            z, total = carry
            return (z * np.exp(1j * x), total + np.real(z)), z

        (z, total), zs = pb.scan(step, (y + 0j, np.zeros(3)), x)
        return np.sum(both_parts(z)) + np.sum(total**2) + np.sum(np.abs(zs[1:]) ** 2)

    args = RNG.normal(size=6), RNG.normal(size=3)
    pb.testing.check_grads(last, args)
    plan = pb.compile(pb.grad(last, wrt=(0, 1)))
    for found, expected in zip(plan(*args), pb.grad(last, wrt=(0, 1))(*args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not is_native or plan.summary()["fallbacks"] == []


def test_complex_python_numbers_and_complex_numbers_returned():
    def function(z, c):
        return np.sum(z * c), c, z[0], z

    z = (X + 1j * H).astype(np.complex64)
    plan = pb.compile(function)
    for c in (2 - 1j, 0.5j):
        for found, expected in zip(plan(z, c), function(z, c), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert plan(z, 1j)[1] == 1j


def test_what_has_no_form_in_parts_is_computed_by_numpy_between_native_programs():
    def function(x):
        z = np.exp(1j * x) + np.sqrt(x + 2j)
        return np.sum(np.abs(np.fft.fft(np.log(z))) ** 2) + np.sum(np.abs(np.linalg.inv(z[:4].reshape(2, 2))))

    plan = pb.compile(pb.value_and_grad(function))
    (value, slope), (expected, expected_slope) = plan(X), pb.value_and_grad(function)(X)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-10)
    fallbacks = " ".join(plan.summary()["fallbacks"])
    if is_native:
        assert "sqrt" in fallbacks
        assert "log" in fallbacks
        assert "mul of complex" not in fallbacks


def test_arrays_of_ours_that_are_stored_into():
    def function(x):
        z = pnp.zeros((3, 4), dtype=complex)
        z[0] = x[:4] * 1j
        z[:, 1] += x[4:7]
        z[1:, 2:] = np.fft.fft2(x[:4].reshape(2, 2))
        return np.sum(np.abs(z) ** 2 * np.arange(12.0).reshape(3, 4))

    plan = pb.compile(pb.grad(function))
    np.testing.assert_allclose(plan(X), pb.grad(function)(X), rtol=1e-12)
    assert not is_native or plan.summary()["fallbacks"] == []


def test_extended_precision_stays_with_numpy():
    z = (X + 1j * H).astype(np.clongdouble)
    assert pb.compile(lambda z: z * z)(z).dtype == np.clongdouble
    assert pb.compile(lambda x: np.fft.rfft(x) * 2j)(X.astype(np.longdouble)).dtype == np.clongdouble


def test_a_loop_with_a_step_that_numpy_has_to_do_is_left_as_it_is():
    def last(x):
        def step(z, _):
            return np.log(2 + z) * 1j, np.real(z)

        z, seen = pb.scan(step, x + 0j, None, length=4)
        return np.sum(np.abs(np.fft.fft(z))) + np.sum(seen)

    plan = pb.compile(pb.value_and_grad(last))
    (value, slope), (expected, expected_slope) = plan(X), pb.value_and_grad(last)(X)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-10)
    assert not is_native or "scan of complex128" in " ".join(plan.summary()["fallbacks"])


def test_gradients_by_complex_arguments_and_results_written_into_arrays():
    z, w = X + 1j * H, V - 1j * X

    def loss(z, w):
        return np.sum(np.abs(np.fft.ifft(np.fft.fft(z) * w)) ** 2)

    gradient = pb.value_and_grad(loss, wrt=(0, 1))
    plan = pb.compile(gradient)
    expected, expected_slopes = gradient(z, w)
    out = (np.empty(()), (np.empty(N, complex), np.empty(N, complex)))
    for _ in range(4):
        value, slopes = plan(z, w)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        plan(z, w, out=out)
        for ours, written, theirs in zip(slopes, out[1], expected_slopes, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(ours, written)
    y, pullback = pb.compile(lambda z: np.fft.fft(z) * w).vjp(z)
    np.testing.assert_allclose(y, np.fft.fft(z) * w, rtol=1e-12)
    np.testing.assert_allclose(pullback(w)[0], pb.vjp(lambda z: np.fft.fft(z) * w, z)[1](w)[0], rtol=1e-12)
    entire = pb.grad(lambda z: np.sum(np.exp(z) * z**3), holomorphic=True)
    np.testing.assert_allclose(pb.compile(entire)(z), entire(z), rtol=1e-12)


def test_a_loop_of_steps_with_transforms_is_one_native_loop():
    plan = pb.compile(pb.grad(spectral_derivative))
    plan(X)
    if is_native:
        assert "scan" in plan.explain()


# --- rules of plans ---------------------------------------------------------------------------------------------------------
def test_the_rules_evaluate_to_what_numpy_gives():
    z = X + 1j * H
    np.testing.assert_array_equal(complex_of(X, H), z)
    assert complex_of(X.astype("f4"), 0.0).dtype == np.complex64
    for found, expected in (
        (fft_parts(X, H, axes=(0,), inverse=False, norm="ortho"), np.fft.fft(z, norm="ortho")),
        (fft_parts(X, axes=(0,), inverse=True, norm="backward"), np.fft.ifft(X)),
        (rfft_parts(X, axis=0, norm="backward"), np.fft.rfft(X)),
    ):
        np.testing.assert_array_equal(found[0] + 1j * found[1], expected)
    back = irfft_parts(X, H, n=22, axis=0, norm="backward")
    np.testing.assert_array_equal(back, np.fft.irfft(z, 22))


@pytest.mark.parametrize("rule", [complex_numbers.real, complex_numbers.imag, complex_numbers.conj])
def test_parts_of_real_arrays_are_not_read_as_if_they_were_complex(rule):
    plan = pb.compile(lambda x: rule(x * 2))
    np.testing.assert_array_equal(plan(X), rule(X * 2))


# --- random programs ---------------------------------------------------------------------------------------------------------
def random_program(seed):
    """A function of two real arrays by random steps on complex ones of shape (4, 6)."""
    rng = np.random.default_rng(seed)
    phase = rng.normal(size=(4, 6))
    unary = [
        lambda z: np.fft.fft(z, axis=int(seed) % 2, norm="ortho"),
        lambda z: np.fft.ifft2(z, norm="ortho"),
        lambda z: np.fft.fftn(np.real(z), norm="ortho"),
        lambda z: np.fft.rfft(np.imag(z) + 1, 10, norm="ortho"),
        lambda z: np.fft.irfft(z[:, :4], 6) + 0.5j,
        lambda z: np.exp(1j * np.abs(z)),
        lambda z: np.exp(0.3 * z / (1 + np.abs(z))),
        lambda z: z.conj() * (0.5 - 1j),
        lambda z: np.roll(z, 2, axis=1) - z[::-1],
        lambda z: z / (2 + 1j + np.abs(z) ** 2),
        lambda z: 1 / (3 + z * z.conj()),
        lambda z: np.where(phase > 0, z, 1j * z),
        lambda z: np.cumsum(z, axis=0) / 4,
        lambda z: np.concatenate([z[:, 3:], np.real(z[:, :3])], axis=1),
        lambda z: np.fft.fftshift(z) * np.exp(1j * phase),
        lambda z: np.square(z) / 3 + np.sum(z, axis=0) / 8,
        lambda z: z[[1, 3, 0, 1]] * 0.7,
        lambda z: np.transpose(z.T.reshape(4, 6)[:, ::-1]).reshape(4, 6),
    ]
    binary = [
        np.add,
        np.subtract,
        lambda a, b: a * b / 2,
        lambda a, b: a / (2 + np.abs(b)),
        lambda a, b: a / (3 - 1j * np.real(b)),
    ]
    steps = [(int(rng.integers(len(unary))), int(rng.integers(len(binary))), int(rng.integers(3))) for _ in range(7)]

    def program(x, y):
        values = [x + 1j * y, x - 0j, 1j * y]
        for one, two, place in steps:
            values.append(binary[two](unary[one](values[-1]), values[place]))
        return sum(np.sum(both_parts(value) ** 2) for value in values[-3:])

    return program


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("seed", range(int(os.environ.get("PULLBACK_RANDOM_PROGRAMS", "8"))))
def test_random_programs_of_complex_steps_agree_with_the_tape(seed):
    program = random_program(seed)
    args = tuple(np.random.default_rng(seed + 1000).normal(size=(2, 4, 6)))
    gradient = pb.value_and_grad(program, wrt=(0, 1))
    value, slopes = gradient(*args)
    plan = pb.compile(gradient, tier="native")
    ours, our_slopes = plan(*args)
    np.testing.assert_allclose(ours, value, rtol=1e-10)
    for mine, theirs in zip(our_slopes, slopes, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9 * np.max(np.abs(theirs)))
    assert not is_native or plan.summary()["fallbacks"] == []
