"""The rows of the table: what is computed, by whom, what ratio is asked for, and what the mathematics needs at least.

The operations counted are those of the formulas, products and sums alike, activations and reductions left out; bytes are those
that must be read from memory once. Both are for the fraction of the machine's limit, which therefore errs low.
"""

from dataclasses import dataclass, field
from typing import Literal

from pullback_runners.workloads import Case

Kind = Literal["gradient", "pullback"]
"""Value and all gradients, or the pullback alone of a function that has been run."""

OURS = "pullback"


@dataclass(frozen=True)
class RatioTarget:
    """The least ratio, time of the fastest of these participants over our time."""

    against: tuple[str, ...]
    ratio: float


@dataclass(frozen=True)
class Work:
    """The least that one call needs of a resource; `resource` names a limit that is measured beside the row."""

    resource: Literal["fma f4", "fma f8", "read"]
    amount: float


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    case: Case
    asks: tuple[RatioTarget, ...]
    peers: tuple[str, ...]
    """Participants that are measured with ours where they are installed; only some of them are asked about."""
    work: Work | None = None
    kind: Kind = "gradient"
    keep: bool = False
    """True if results are kept alive ("fresh"); else each is dropped before the next call."""
    own_others: dict[str, Case] = field(default_factory=dict)
    """Our engine on other cases, by the name it has in `asks`: how time grows, what a choice costs."""


def _case(workload: str, dtype: str, **params: int | str) -> Case:
    return Case(workload, tuple(params.items()), dtype)


def _dense(n: int, dtype: str, asks: tuple[RatioTarget, ...], *, keep: bool = False) -> Row:
    return Row(
        f"dense n={n} {dtype}{' fresh' if keep else ''}",
        _case("dense_bias_act", dtype, n=n, act="tanh"),
        asks,
        ("numpy", "autograd", "jax", "torch", "torch-compile"),
        Work(_fma(dtype), 6 * n**3),
        keep=keep,
    )


def _fma(dtype: str) -> Literal["fma f4", "fma f8"]:
    return "fma f4" if dtype == "f4" else "fma f8"


def _touch(form: str, n: int) -> Row:
    larger = n > 1_000
    others = {"pullback at 1e3": _touch_case(form, 1_000)} if larger else {}
    # Time at n over time at 1e3 is at most 1.1.
    growth = (RatioTarget(("pullback at 1e3",), 1 / 1.1),) if larger else ()
    return Row(
        f"touch {form} n={n:.0e}".replace("e+0", "e"),
        _touch_case(form, n),
        (RatioTarget(("jax",), 80), *growth),
        ("autograd", "jax", "torch"),
        kind="pullback",
        own_others=others,
    )


def _touch_case(form: str, n: int) -> Case:
    return _case("touch_large_array", "f8", n=n, form=form)


def _poly9(n: int, asks: tuple[RatioTarget, ...], *, horner: bool = False) -> Row:
    # Nine products and sums for the value, a square and a sum for the slope. A million numbers are no longer in a cache.
    work = Work("read", 8 * n) if n > 1_000_000 else Work("fma f8", 20 * n)
    return Row(
        f"poly9{' Horner' if horner else ''} n={n:.0e}".replace("e+0", "e"),
        _case("poly9_broadcast" if horner else "poly9_powers", "f8", n=n),
        asks,
        ("numpy", "autograd", "jax", "torch", "torch-compile", "numba"),
        work,
    )


def _recurrent(workload: str, hidden: int, batch: int, asks: tuple[RatioTarget, ...]) -> Row:
    gates = 4 if workload == "lstm" else 1
    # With x and with h forward, the same two for the weights, and one for h in reverse: x is a constant.
    return Row(
        f"{workload} T=50 {hidden}/{batch}",
        _case(workload, "f4", steps=50, batch=batch, hidden=hidden),
        asks,
        ("numpy", "autograd", "jax", "torch"),
        Work("fma f4", 50 * 5 * 2 * batch * gates * hidden**2),
    )


def _conv(n: int, channels: int, side: int, asks: tuple[RatioTarget, ...]) -> Row:
    return Row(
        f"conv {n}x{channels}x{side}x{side}",
        _case("conv_bias_act", "f4", n=n, channels=channels, side=side, act="relu"),
        asks,
        ("numpy", "jax", "torch", "torch-compile"),
        # Taps on the padding are no operations: along an axis all of them but two.
        Work("fma f4", 3 * 2 * n * channels**2 * (3 * side - 2) ** 2),
    )


_BEST = ("jax", "torch", "numpy")
_MUL = {"m": 16, "k": 32, "n": 8}
_MLP_PRODUCTS = 128 * (3 * 512 * 512 + 3 * 512 * 10 + 2 * 784 * 512)  # the cotangent of x is not asked for

ROWS: tuple[Row, ...] = (
    _dense(32, "f4", (RatioTarget(("jax",), 8), RatioTarget(("torch",), 35)), keep=True),
    _dense(100, "f4", (RatioTarget(("jax",), 1.8),)),
    _dense(100, "f8", (RatioTarget(("jax",), 1.8),)),
    _dense(512, "f4", (RatioTarget(_BEST, 1.0),)),
    _dense(512, "f8", (RatioTarget(_BEST, 1.0),)),
    _dense(2048, "f4", (RatioTarget(_BEST, 1.0),)),
    *(_touch(form, n) for form in ("index", "projection") for n in (1_000, 100_000, 10_000_000)),
    _poly9(1_000, (RatioTarget(("jax",), 60),)),
    _poly9(100_000, (RatioTarget(("jax",), 8),)),
    _poly9(10_000_000, (RatioTarget(("jax",), 10), RatioTarget(("torch-compile",), 1.8))),
    *(_poly9(n, (), horner=True) for n in (1_000, 100_000, 10_000_000)),
    Row(
        "mul_restore 16x32x8",
        _case("mul_restore", "f8", **_MUL),
        # The cost of overwriting and restoring: at most 1.25 times the same gradient of a product into a new array.
        (RatioTarget(("numba",), 2), RatioTarget(("pullback into a new array",), 1 / 1.25)),
        ("numpy", "autograd", "jax", "torch", "torch-compile", "numba"),
        Work("fma f8", 3 * 2 * 16 * 32 * 8),
        own_others={"pullback into a new array": _case("mul_fresh", "f8", **_MUL)},
    ),
    _recurrent("lstm", 32, 1, (RatioTarget(("jax", "torch"), 8),)),
    _recurrent("lstm", 128, 32, (RatioTarget(("jax", "torch"), 1.4),)),
    _recurrent("lstm", 512, 32, (RatioTarget(("jax", "torch"), 1.25),)),
    _recurrent("rnn", 64, 32, (RatioTarget(("jax",), 1.5),)),
    _conv(8, 16, 32, (RatioTarget(("torch",), 1.8),)),
    _conv(32, 64, 56, (RatioTarget(("torch",), 1.4),)),
    Row(
        "mlp 784-512-512-10 B=128",
        _case("mlp_step", "f4", inputs=784, hidden=512, classes=10, batch=128),
        (RatioTarget(("jax", "torch"), 1.0),),
        ("numpy", "autograd", "jax", "torch", "torch-compile"),
        Work("fma f4", 2 * _MLP_PRODUCTS),
    ),
    Row(
        "gmm d=10 k=25 n=1000",
        _case("gmm_likelihood", "f8", d=10, k=25, n=1000),
        (RatioTarget(("jax",), 4),),
        ("numpy", "autograd", "jax", "torch", "torch-compile"),
        # A triangular product with every point and component: forward, of the root and of the points in reverse.
        Work("fma f8", 3 * 2 * 1000 * 25 * 55),
    ),
    Row(
        "lotka-volterra 1000 steps",
        _case("lotka_volterra", "f8", steps=1000),
        (RatioTarget(("jax",), 40),),
        ("numpy", "jax", "torch"),
        # Some 60 operations a step forward, twice as many in reverse, one after the other: far below the peak by nature.
        Work("fma f8", 1000 * 180),
    ),
)


def selected(texts: list[str], rows: tuple[Row, ...] = ROWS) -> list[Row]:
    """Rows whose name has any of the texts in it; all of them without texts."""
    return [row for row in rows if not texts or any(text.lower() in row.name.lower() for text in texts)]
