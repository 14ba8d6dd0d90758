"""Programs as projects hold them: modules that call modules, read constants, log, copy, draw. Compiled they do what they did."""

import gc
import importlib
import logging
import re
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.errors import PlanWarning

X = np.array([0.5, 1.0, 2.0])
PLANNED = [tier for tier in pb.TIERS if tier != "unfused"]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package of some modules and import it; `package(parts="...", model="...")` gives the package."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    count = iter(range(100))

    def write(**modules):
        name = f"written_{tmp_path.name}_{next(count)}".replace("-", "_")
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(textwrap.dedent(text).replace("PACKAGE", name))
        importlib.invalidate_caches()
        for module in modules:
            importlib.import_module(f"{name}.{module}")
        return sys.modules[name]

    yield write
    for name in [name for name in sys.modules if name.startswith("written_")]:
        del sys.modules[name]


def compiled(function, tier="fused", **keywords):
    return pb.compile(pb.value_and_grad(function, **keywords), tier=tier)


def agrees(plan, *args):
    """The plan gives what the function gives now, and is a plan."""
    with pb.tier("unfused"):
        expected = plan.function(*args)
    for ours, theirs in zip(plan(*args), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert plan.summary()["fallbacks"] == []


PARTS = """
    import numpy as np

    RATE = 0.5
    TABLE = np.array([1.0, 2.0, 3.0])
    SETTINGS = {"power": 2, "weights": np.ones(3)}


    def helper(x):
        return np.tanh(x * RATE) * TABLE
"""

WAYS_TO_CALL = {
    "by the package": "import PACKAGE.parts\ndef f(x):\n    return np.sum(PACKAGE.parts.helper(x))",
    "by a name of the module": "import PACKAGE.parts as parts\ndef f(x):\n    return np.sum(parts.helper(x))",
    "by a relative import": "from . import parts\ndef f(x):\n    return np.sum(parts.helper(x) * parts.TABLE)",
    "by an import inside": "def f(x):\n    from .parts import helper\n    return np.sum(helper(x))",
    "by a module inside": "def f(x):\n    import PACKAGE.parts as p\n    return np.sum(p.helper(x) ** p.SETTINGS['power'])",
    "by a package inside": "def f(x):\n    import PACKAGE\n    return np.sum(PACKAGE.parts.helper(x))",
    "by a module handed on": "from . import parts\ndef g(m, x):\n    return m.helper(x)\ndef f(x):\n    return np.sum(g(parts, x))",
    "by a module in a dict": "from . import parts\nALL = {'p': parts}\ndef f(x):\n    return np.sum(ALL['p'].helper(x) * ALL['p'].RATE)",
    "by getattr": "from . import parts\ndef f(x):\n    return np.sum(getattr(parts, 'hel' + 'per')(x))",
    "by a star": "from .parts import *\nfrom . import parts\ndef f(x):\n    return np.sum(parts.helper(x) * parts.RATE * parts.SETTINGS['weights'])",
    "by a class": "from . import parts\nclass M:\n    def apply(self, x):\n        return parts.helper(x) * parts.RATE\nm = M()\ndef f(x):\n    return np.sum(m.apply(x))",
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("tier", PLANNED)
@pytest.mark.parametrize("way", WAYS_TO_CALL)
def test_what_is_looked_up_in_modules_is_compiled_and_its_changes_are_seen(package, way, tier):
    made = package(parts=PARTS, model=f"import numpy as np\n{WAYS_TO_CALL[way]}")
    parts, f = made.parts, made.model.f
    plan = compiled(f, tier)
    helper = parts.helper
    for change in (
        lambda: None,
        lambda: None,
        lambda: setattr(parts, "RATE", 0.25),
        lambda: setattr(parts, "RATE", 0.125),
        lambda: parts.TABLE.__setitem__(0, 7.0),
        lambda: setattr(parts, "TABLE", np.array([3.0, 1.0, 2.0])),
        lambda: setattr(parts, "helper", lambda x: x * parts.RATE),
        lambda: setattr(parts, "helper", helper),
        lambda: parts.SETTINGS.update(power=3),
        lambda: parts.SETTINGS.update(weights=np.zeros(3)),
        lambda: importlib.reload(parts),
    ):
        change()
        for _ in range(3):
            agrees(plan, X)


def test_calls_of_native_plans_stay_native(package):
    made = package(parts=PARTS, model=f"import numpy as np\n{WAYS_TO_CALL['by a relative import']}")
    plan = compiled(made.model.f, "native")
    for _ in range(3):
        agrees(plan, X)
    assert "calls are native" in plan.explain()


CONFIG = """
    from dataclasses import dataclass, field
    from enum import Enum
    from functools import cached_property, lru_cache, partial, wraps
    from typing import Generic, NamedTuple, Optional, TypeVar
    import copy
    import logging
    import threading
    import warnings
    import numpy as np

    T = TypeVar("T")
    Vector = np.ndarray | None
    log = logging.getLogger(__name__)
    _lock = threading.Lock()
    VERBOSE = False


    class Kind(Enum):
        TANH = 1
        SINE = 2


    @dataclass(frozen=True)
    class Config:
        kind: Kind = Kind.TANH
        rate: float = 0.5
        widths: tuple = (1, 2)
        names: list = field(default_factory=lambda: ["a"])


    @dataclass(slots=True)
    class Slotted:
        scale: float
        shift: np.ndarray


    class State(NamedTuple):
        x: np.ndarray
        steps: int


    class Holder(Generic[T]):
        __slots__ = ("value",)

        def __init__(self, value):
            self.value = value


    def traced(function):
        @wraps(function)
        def wrapper(*args, **keywords):
            log.debug("called %s", function.__name__)
            return function(*args, **keywords)

        return wrapper


    @lru_cache(maxsize=None)
    def window(n):
        return np.hanning(n + 2)[1:-1]


    class Model:
        def __init__(self, config, seed=0):
            rng = np.random.default_rng(seed)
            self.config = config
            self.w = rng.normal(size=3)
            self.lock = threading.Lock()
            self.rng = rng

        @property
        def act(self):
            return np.tanh if self.config.kind is Kind.TANH else np.sin

        def save(self, path):
            with open(path, "w") as file:
                print(self.w, file=file)

        @traced
        def __call__(self, x: "Vector", *, noise: Optional[float] = None):
            assert x.ndim == 1, "a vector"
            if VERBOSE:
                print("shape", x.shape)
            if noise is not None:
                x = x + noise * self.rng.normal(size=3)
            with _lock:
                return self.act(self.w * x) * self.config.rate


    CONFIG = Config()
    MODEL = Model(CONFIG)
    SLOTTED = Slotted(2.0, np.array([0.1, 0.2, 0.3]))
    HELD = Holder(np.array([1.0, 0.5, 0.25]))
    scaled = partial(np.multiply, 2.0)
"""

PROGRAMS = {
    "a method of a singleton": "return np.sum(base.MODEL(x))",
    "slots": "return np.sum(x * base.SLOTTED.scale + base.SLOTTED.shift * x * base.HELD.value)",
    "a partial": "return np.sum(base.scaled(x))",
    "a logger": "logging.getLogger(__name__).debug('x is %s', x)\n    base.log.info('sum')\n    return np.sum(x * x)",
    "copies": "y = copy.copy(x)\n    z = copy.deepcopy({'x': x, 'k': base.SLOTTED.scale})\n    return np.sum(y * z['x'] * z['k'] + x.copy())",
    "a cached table": "return np.sum(x * base.window(len(x)))",
    "a named tuple": "s = base.State(x, 2)\n    s = s._replace(x=s.x * 2)\n    return np.sum(s.x * s.steps)",
    "dataclasses made inside": "c = base.Slotted(3.0, x)\n    k = base.Config(rate=0.25)\n    return np.sum(c.shift * c.scale * k.rate) * len(k.names)",
    "errstate": "with np.errstate(divide='ignore', invalid='ignore'):\n        return np.sum(np.where(x > 0, np.log(x), 0.0))",
    "warnings": "with warnings.catch_warnings():\n        warnings.simplefilter('ignore')\n        return np.sum(np.sqrt(x))",
    "try": "try:\n        return np.sum(x * base.MISSING)\n    except AttributeError:\n        return np.sum(x)",
    "a default generator": "return np.sum(x * noisy(x))",
    "a contextmanager": "with base_scope() as k:\n        return np.sum(x * k)",
    "hasattr": "return np.sum(x * (base.EXTRA if hasattr(base, 'EXTRA') else 2.0))",
    "a closure over a config": "return np.sum(step(x))",
    "an enum": "return np.sum(np.tanh(x)) if base.CONFIG.kind is base.Kind.TANH else np.sum(x)",
    "a function of the standard library": "return np.sum(x * statistics.fmean([1.0, 2.0]) * math.prod([1, 2]) * sys.float_info.epsilon)",
}

MODEL = """
    import contextlib, copy, logging, math, statistics, sys, warnings
    import numpy as np
    from PACKAGE import base

    def noisy(x, rng=np.random.default_rng(0), train=False):
        return x + rng.normal(size=x.shape) if train else x

    @contextlib.contextmanager
    def base_scope():
        yield base.CONFIG.rate

    def make(config):
        def step(x):
            return x * config.rate * len(config.widths)
        return step

    step = make(base.CONFIG)

    def f(x):
        {body}
"""


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("tier", PLANNED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_as_projects_hold_them_are_compiled(package, name, tier):
    made = package(base=CONFIG, model=MODEL.replace("{body}", PROGRAMS[name].replace("\n", "\n    ")))
    base = made.base
    plan = compiled(made.model.f, tier)
    for change in (
        lambda: None,
        lambda: setattr(base, "CONFIG", base.Config(rate=0.75, kind=base.Kind.SINE)),
        lambda: setattr(base.MODEL, "config", base.CONFIG),
        lambda: setattr(base.SLOTTED, "scale", 4.0),
        lambda: setattr(base.SLOTTED, "shift", np.ones(3)),
        lambda: setattr(base.HELD, "value", np.ones(3)),
        lambda: setattr(base, "MISSING", 2.0),
        lambda: setattr(base, "EXTRA", 5.0),
        lambda: setattr(base.MODEL, "w", base.MODEL.w * 2),
        lambda: setattr(base, "scaled", lambda x: x * 3),
        lambda: setattr(base.Model, "act", property(lambda _: np.cos)),
    ):
        change()
        for _ in range(3):
            agrees(plan, X)


REFUSED = {
    "a clock": ("return np.sum(x) * time.perf_counter()", "calls time.perf_counter (model.py:"),
    "a clock by name": ("return np.sum(x) * clock()", "calls time.time (model.py:"),
    "a date": ("return np.sum(x) * datetime.datetime.now().second", "calls datetime.now (model.py:"),
    "random numbers": ("return np.sum(x) * random.random()", "draws random numbers"),
    "random numbers of NumPy": ("return np.sum(x) * np.random.normal()", "draws random numbers"),
    "a generator": ("return np.sum(x) * RNG.normal()", "draws random numbers"),
    "a generator without seed": ("return np.sum(x) * np.random.default_rng().normal()", "draws random numbers"),
    "a file": ("with open(__file__) as file:\n        return np.sum(x) * len(file.read())", "reads or writes a file"),
    "an enabled logger": ("log.error('sum %s', np.sum(x))\n    return np.sum(x)", "logs at level ERROR"),
    "printing": ("print('x')\n    return np.sum(x)", "prints"),
    "a warning": ("warnings.warn('careful')\n    return np.sum(x)", "gives a warning"),
    "raised errors": ("with np.errstate(divide='raise'):\n        return np.sum(x)", "errstate(divide='raise')"),
    "errors of warnings": (
        "with warnings.catch_warnings():\n        warnings.simplefilter('error')\n        return np.sum(x)",
        "makes errors",
    ),
    "what others share": ("return np.sum(x) * CONTEXT.get(1.0)", "is a ContextVar"),
    "counting": ("COUNTS.append(1)\n    return np.sum(x) * len(COUNTS)", "changes COUNTS"),
    "counting in a global": ("global CALLS\n    CALLS += 1\n    return np.sum(x) * CALLS", "changes CALLS"),
    "counting in a module": ("state.calls += 1\n    return np.sum(x) * state.calls", "changes "),
}

EFFECTS = """
    import contextvars, datetime, logging, random, time, warnings
    from time import time as clock
    import numpy as np
    from PACKAGE import state

    RNG = np.random.default_rng(0)
    log = logging.getLogger("quiet")
    log.propagate = False
    log.addHandler(logging.NullHandler())
    CONTEXT = contextvars.ContextVar("scale")
    COUNTS = []
    CALLS = 0

    def f(x):
        {body}
"""


@pytest.mark.sample(every=5)
@pytest.mark.filterwarnings("ignore:careful")
@pytest.mark.parametrize("tier", PLANNED)
@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_done_once_stays_on_the_tape_and_is_said(package, name, tier, capsys):
    body, reason = REFUSED[name]
    made = package(state="calls = 0", model=EFFECTS.replace("{body}", body.replace("\n", "\n    ")))
    plan = compiled(made.model.f, tier)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            plan(X)
    (warning,) = [one for one in told if one.category is PlanWarning]
    assert re.match(r"the plan of f \(model.py:\d+\) runs on the tape", str(warning.message))
    assert warning.filename == __file__
    assert reason in plan.summary()["fallbacks"][0]
    assert capsys.readouterr().out == ("x\n" * 3 if name == "printing" else "")


@pytest.mark.parametrize("tier", pb.TIERS)
def test_a_function_that_counts_its_calls_counts_alike_in_every_tier(tier):
    c, history = [0], []

    def counting(x):
        c[0] += 1
        return np.sum(x * c[0])

    def remembering(x):
        history.append(1)
        return np.sum(x * len(history))

    def numbered(x):
        numbered.calls = getattr(numbered, "calls", 0) + 1
        return np.sum(x * numbered.calls * ones)

    class Stateful:
        calls = 0

        def __call__(self, x):
            self.calls += 1
            return np.sum(x * self.calls * ones)

    ones = np.ones(4)
    for function in (counting, remembering, numbered, Stateful()):
        plan = pb.compile(function, tier=tier)
        assert [plan(np.arange(4.0)) for _ in range(5)] == [6.0, 12.0, 18.0, 24.0, 30.0]


@pytest.mark.parametrize("tier", PLANNED)
def test_generators_give_what_they_would_have_given(tier):
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    plan = pb.compile(lambda x: np.sum(x * ours.normal()), tier=tier)
    for _ in range(3):
        assert plan(X) == np.sum(X * theirs.normal())


@pytest.mark.parametrize("tier", PLANNED)
def test_a_logger_writes_again_as_soon_as_its_level_allows(tier, caplog):
    log = logging.getLogger("a.level.of.its.own")

    def f(x):
        log.info("the sum")
        return np.sum(x)

    plan = pb.compile(f, tier=tier)
    logging.getLogger("a.level").setLevel(logging.WARNING)
    for _ in range(3):
        plan(X)
    assert plan.summary()["fallbacks"] == []
    assert caplog.messages == []
    logging.getLogger("a.level").setLevel(logging.INFO)
    plan(X)
    plan(X)
    assert caplog.messages == ["the sum"] * 2
    logging.getLogger("a.level").setLevel(logging.WARNING)
    plan(X)
    assert plan.summary()["fallbacks"] == []
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("tier", PLANNED)
def test_ignored_warnings_are_not_given(tier):
    def f(x):
        with np.errstate(divide="ignore"):
            y = np.log(x)
        return np.where(x > 0, y, 0.0)

    plan = pb.compile(f, tier=tier)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal(plan(np.array([0.0, 1.0])), [0.0, 0.0])
    assert plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("tier", PLANNED)
def test_numbers_that_change_become_inputs(tier):
    rates, settings = [0.1], {"power": 2.0}

    def f(x):
        return np.sum(x * rates[0] * np.float64(2.0) + settings["power"] * x)

    plan = compiled(f, tier)
    for k in range(20):
        rates[0] = 0.1 * k
        settings["power"] = k / 3
        agrees(plan, X)
    recordings = plan.summary()["recordings"]
    assert sum(recordings.values()) == 2
    assert len(list(plan._programs())) == 2


@pytest.mark.parametrize("tier", PLANNED)
def test_numbers_that_are_lengths_or_choose_the_way_stay_guards(tier):
    n, x = 2, np.linspace(0.0, 1.0, 12).reshape(3, 4)

    def f(x):
        y = x
        for _ in range(n):
            y = np.tanh(y)
        return np.sum(np.reshape(y, (-1, 2 * n))) + (np.sum(x[n]) if n < 3 else 0.0)

    plan = compiled(f, tier)
    for steps in (2, 1, 2, 1, 3, 2):
        n = steps
        agrees(plan, x)
        agrees(plan, x)
    assert plan.summary()["recordings"] == {"the first call": 1, "n": 2}


@pytest.mark.parametrize("tier", PLANNED)
def test_what_is_recorded_again_and_again_is_said_and_given_up(tier):
    settings = {"mode": "a0"}

    def f(x):
        return np.sum(x) * (1.0 if settings["mode"] == "a0" else 2.0)

    plan = pb.compile(f, tier=tier)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in range(30):
            settings["mode"] = f"a{k}"
            assert plan(X) == f(X)
    first, second = [str(one.message) for one in told]
    assert "has been recorded 4 times, the latest time because settings['mode'] changes" in first
    assert "runs on the tape" in second
    assert "settings['mode'] changes on each call" in second
    assert sum(plan.summary()["recordings"].values()) < 12


@pytest.mark.parametrize("tier", PLANNED)
def test_a_mode_that_goes_to_and_fro_is_recorded_once_each(tier):
    class Model:
        training = True

    model = Model()

    def f(x):
        return np.sum(np.tanh(x)) if model.training else np.sum(x)

    plan = compiled(f, tier)
    for training in (True, False) * 10:
        model.training = training
        agrees(plan, X)
        agrees(plan, X)
    assert sum(plan.summary()["recordings"].values()) == 2


@pytest.mark.parametrize("tier", PLANNED)
def test_numbers_whose_type_is_asked_for_stay_numbers(tier):
    rate = 0.5

    def scheduled(x):
        return np.sum(x * rate) if isinstance(rate, float) else np.sum(x * rate(x))

    def matched(x):
        match rate:
            case float():
                return np.sum(x * rate)
        return np.sum(x)

    def exact(x):
        return np.sum(x * rate) if type(rate) is float else np.sum(x)

    for function in (scheduled, matched, exact):
        plan = compiled(function, tier)
        for changed in (0.5, 0.25, 0.75):
            rate = changed
            agrees(plan, X)


@pytest.mark.parametrize("tier", PLANNED)
def test_what_is_computed_from_numbers_alone_is_a_number(tier):
    rate, weights = 1.0, {"1.0": 2.0, "2.0": 3.0}
    plan = compiled(lambda x: np.sum(x) * (3.0 if isinstance(rate * 2, float) else 5.0), tier)
    named = compiled(lambda x: np.sum(x) * weights.get(str(rate), 7.0), tier)
    asked = compiled(lambda x: np.sum(x * rate) if np.isscalar(rate) else np.sum(x), tier)
    kept = compiled(lambda x: np.sum(x * rate) if isinstance(x * rate, object) else np.sum(x), tier)
    for changed in (1.0, 2.0, 3.0, 1.0):
        rate = changed
        for one in (plan, named, asked, kept):
            agrees(one, X)
    assert kept.summary()["recordings"] == {"the first call": 1, "rate": 1}


def test_what_runs_when_garbage_is_collected_is_not_done_by_the_function():
    calls = []

    def callback(phase, info):
        calls.append(time.perf_counter())

    def loss(x):
        for _ in range(30):
            x = np.sin(x) + len([[] for _ in range(50)]) * 0.0
        return print if x is None else np.sum(x)

    threshold, collects = gc.get_threshold(), gc.isenabled()
    gc.callbacks.append(callback)
    gc.set_threshold(1)
    gc.enable()
    try:
        plan = pb.compile(loss)
        plan(np.ones(3))
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(callback)
        if not collects:  # a service that was refused in this process left it so
            gc.disable()
    assert calls
    assert plan.summary()["fallbacks"] == []
