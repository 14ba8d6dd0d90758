"""Packages put together at random, and changed at random between calls: compiled they do what they do.

The text of a package is in its folder, and the changes made to it are in the message of a failure.
"""

import importlib
import os
import random
import sys

import numpy as np
import pytest

import pullback as pb

#: Packages in the usual run; more are a long run: `PULLBACK_RANDOM_PACKAGES=500 pytest tests/engine/compiling/test_random_packages.py`.
PACKAGES = int(os.environ.get("PULLBACK_RANDOM_PACKAGES", "8"))
CHANGES = 12
X = np.array([0.3, 0.7, 1.1])

LOWER = """\
import copy, logging
from dataclasses import dataclass
from functools import lru_cache, partial
import numpy as np

log = logging.getLogger(__name__)
RATE, COUNT, FLAG, MODE = 0.5, 2, True, "sin"
TABLE = np.array([1.0, 2.0, 3.0])
SETTINGS = {"power": 2.0, "steps": 2, "weights": np.array([0.5, 0.25, 0.125]), "inner": [1.0, np.ones(3)]}


@dataclass
class Config:
    rate: float = 0.25
    width: int = 3
    table: object = None


class Base:
    scale = 2.0

    def apply(self, x):
        return np.tanh(x * self.gain) * self.scale


class Model(Base):
    __slots__ = ("gain", "parts")

    def __init__(self):
        self.gain, self.parts = np.random.default_rng(0).normal(), [np.ones(3), 1.5]

    @property
    def weight(self):
        return self.parts[0] * self.parts[1]


CONFIG, MODEL = Config(table=np.array([0.1, 0.2, 0.3])), Model()


def helper(x):
    return np.sin(x) * RATE


def repeated(x):
    for _ in range(COUNT):
        x = x * 0.5 + 0.1
    return x


@lru_cache
def window(n):
    return np.linspace(0.5, 1.0, n)


halved = partial(np.multiply, 0.5)
"""

#: Terms that a function of the upper module adds up; `{m}` is how it reaches the lower one.
TERMS = """\
{m}.helper(x)
{m}.repeated(x)
x * {m}.RATE
x * {m}.TABLE
x * {m}.SETTINGS["weights"] ** {m}.SETTINGS["power"]
x * {m}.SETTINGS["inner"][0] + {m}.SETTINGS["inner"][1]
x * {m}.CONFIG.rate * {m}.CONFIG.table
np.reshape(x * 2.0, ({m}.CONFIG.width,))
{m}.MODEL.apply(x)
x * {m}.MODEL.weight
{m}.Model().apply(x)
{m}.halved(x)
x * {m}.window(len(x))
copy.copy({m}.CONFIG).rate * copy.deepcopy(x)
(x if {m}.FLAG else x * x)
(np.sin(x) if {m}.MODE == "sin" else np.cos(x))
x * getattr({m}, "MISSING", 1.5)
x * (RATES[0] if {m}.COUNT > 1 else RATES[1])
x * ({m}.CONFIG.rate if isinstance({m}.CONFIG.rate, float) else 0.0)
by_hand({m}, x)
inside(x)
quiet(x)
logged(x)
CLOSED(x)
default(x)""".splitlines()

UPPER = """\
import copy, logging
import numpy as np
import PACKAGE.lower
import PACKAGE.lower as low
from . import lower as beside
from .lower import helper, Model, log

RATES = [0.75, 0.25]
HELD = {"module": beside}


def by_hand(m, x):
    return x * m.RATE + m.helper(x)


def inside(x):
    from .lower import helper as inner, CONFIG
    import PACKAGE.lower as other
    return inner(x) * CONFIG.rate + other.COUNT


def quiet(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0, np.log(x), 0.0)


def logged(x):
    log.debug("x is %s", x)
    if log.isEnabledFor(logging.DEBUG):
        print(x)
    return x * RATES[1]


def default(x, rate=low.RATE, rng=np.random.default_rng(0)):
    return x * rate


def make(config):
    def closed(x):
        return x * config.rate + config.table
    return closed


CLOSED = make(low.CONFIG)


def f(x):
    return np.sum({terms})
"""

#: What may happen between two calls, to the lower module `m` and the upper one `u`; `k` is a number that changes.
HAPPENINGS = (
    lambda m, u, k: setattr(m, "RATE", 0.1 * k),
    lambda m, u, k: setattr(m, "RATE", k),
    lambda m, u, k: setattr(m, "COUNT", k % 4),
    lambda m, u, k: setattr(m, "FLAG", k % 2 == 0),
    lambda m, u, k: setattr(m, "MODE", "sin" if k % 2 else "cos"),
    lambda m, u, k: m.TABLE.__setitem__(k % 3, float(k)),
    lambda m, u, k: setattr(m, "TABLE", np.full(3, 0.1 * k)),
    lambda m, u, k: m.SETTINGS.update(power=float(k % 3)),
    lambda m, u, k: m.SETTINGS.update(weights=np.full(3, 0.2 * k + 0.1)),
    lambda m, u, k: m.SETTINGS["inner"].__setitem__(0, 0.3 * k),
    lambda m, u, k: setattr(m, "SETTINGS", {**m.SETTINGS, f"new{k}": k}),
    lambda m, u, k: setattr(m.CONFIG, "rate", 0.05 * k),
    lambda m, u, k: setattr(m, "CONFIG", m.Config(0.01 * k, 3, np.ones(3) * k)),
    lambda m, u, k: setattr(m.MODEL, "gain", 0.2 * k),
    lambda m, u, k: m.MODEL.parts.__setitem__(k % 2, 0.5 * k),
    lambda m, u, k: setattr(m.Base, "scale", 0.5 * k),
    lambda m, u, k: setattr(m.Model, "apply", lambda self, x: x * self.gain * k),
    lambda m, u, k: setattr(m, "MODEL", m.Model()),
    lambda m, u, k: setattr(m, "helper", lambda x: x * m.RATE * k),
    lambda m, u, k: setattr(m, "halved", lambda x: x / (1 + k)),
    lambda m, u, k: setattr(m, "window", lambda n: np.arange(n) * 0.1 * k),
    lambda m, u, k: setattr(m, "MISSING", 0.1 * k),
    lambda m, u, k: u.RATES.__setitem__(k % 2, 0.2 * k),
    lambda m, u, k: setattr(u, "CLOSED", u.make(m.Config(0.2 * k, 3, np.ones(3)))),
    lambda m, u, k: setattr(u.default, "__defaults__", (0.3 * k, np.random.default_rng(0))),
    lambda m, u, k: m.log.setLevel("INFO" if k % 2 else "WARNING"),
    lambda m, u, k: importlib.reload(m),
    lambda m, u, k: importlib.reload(u),
)


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"random_{tmp_path.name}"

    def write(terms):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "lower.py").write_text(LOWER)
        upper = UPPER.replace("PACKAGE", name).replace("{terms}", " + ".join(terms).replace("PACKAGE", name))
        (folder / "upper.py").write_text(upper)
        importlib.invalidate_caches()
        upper = importlib.import_module(f"{name}.upper")
        return sys.modules[f"{name}.lower"], upper

    yield write
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


@pytest.mark.parametrize("number", range(PACKAGES))
def test_plans_do_what_the_package_does_whatever_changes_in_it(number, written):
    choose = random.Random(number)
    ways = ("PACKAGE.lower", "low", "beside", "HELD['module']")
    terms = [term.format(m=choose.choice(ways)) for term in choose.sample(TERMS, choose.randint(2, 6))]
    m, u = written(terms)
    f = u.f
    plans = {tier: pb.compile(pb.value_and_grad(f), tier=tier) for tier in pb.TIERS}
    done = []
    for step in range(CHANGES):
        if step:
            happening = choose.randrange(len(HAPPENINGS))
            k = choose.randint(0, 7)
            done.append((happening, k))
            HAPPENINGS[happening](m, u, k)
        for _ in range(2):
            value, slope = plans["unfused"](X)
            np.testing.assert_allclose(value, f(X), rtol=1e-12)
            for tier in ("fused", "stateful", "native"):
                ours = plans[tier](X)
                message = f"{tier}: {' + '.join(terms)} after {done}"
                np.testing.assert_allclose(ours[0], value, rtol=1e-10, atol=1e-12, err_msg=message)
                np.testing.assert_allclose(ours[1], slope, rtol=1e-10, atol=1e-12, err_msg=message)
                assert plans[tier].summary()["fallbacks"] == [], message
