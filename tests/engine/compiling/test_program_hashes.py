"""Two plans may be one plan, and two programs."""

import sys

import numpy as np
import pytest

import pullback as pb
from pullback.backends.llvm.elementary import hyperbolic
from pullback.backends.native import availability
from pullback.compiling import program_sources

X = np.linspace(-2, 2, 50)


def hashes(tier, function=lambda x: np.sum(np.tanh(x) ** 2)):
    plan = pb.compile(pb.value_and_grad(function), tier=tier)
    plan(X)
    summary = plan.summary()
    return summary["hash"], summary["program"]


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_the_same_function_is_the_same_program(tier):
    assert hashes(tier) == hashes(tier)
    assert hashes(tier)[1] != hashes(tier, lambda x: np.sum(np.tanh(x) ** 3))[1]


@pytest.mark.skipif(availability.why_not() is not None, reason="no native code here")
def test_another_kernel_of_the_same_plan_is_another_program(monkeypatch):
    plan, program = hashes("native")
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    monkeypatch.setattr(hyperbolic, "_TANH_ABOVE", (*hyperbolic._TANH_ABOVE[:-1], -2e-4))
    other_plan, other_program = hashes("native")
    assert other_plan == plan
    assert other_program != program


@pytest.fixture
def edit(monkeypatch):
    def edited(name, *, of="_digest"):
        digest = getattr(program_sources, of)
        monkeypatch.setattr(program_sources, of, lambda where: digest(where) + " edited" * where.endswith(name))

    return edited


def looping(x):
    return pb.scan(lambda c, row: (c + np.max(row), None), 0.0, np.reshape(x, (5, 10)))[0]


def convolving(x):
    return np.sum(np.tanh(pb.nn.conv(np.ones((3, 2, 2, 2)), np.reshape(x, (1, 2, 5, 5)))))


def test_another_rule_of_the_same_plan_is_another_program(edit):
    plan, program = hashes("stateful")
    edit("reductions")
    other_plan, other_program = hashes("stateful")
    assert other_plan == plan
    assert other_program != program


def test_rules_inside_loops_are_looked_at_too(edit):
    _, program = hashes("stateful", looping)
    edit("reductions")
    assert hashes("stateful", looping)[1] != program


@pytest.mark.parametrize("tier", ["fused", "stateful"])
@pytest.mark.parametrize("module", ["window_products", "sliding", "core.ufunc_buffers"])
def test_modules_that_a_rule_calls_are_looked_at_too(edit, tier, module):
    plan, program = hashes(tier, convolving)
    edit(module)
    other_plan, other_program = hashes(tier, convolving)
    assert other_plan == plan
    assert other_program != program


def test_other_modules_make_no_other_program(edit):
    before = hashes("fused", convolving)
    for module in ("rules.fourier", "passes.pipeline", "transforms.gradients", "numpy_api.tracer"):
        edit(module)
    assert hashes("fused", convolving) == before


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_other_sources_of_what_calls_a_program_make_another_one(edit, tier):
    plan, program = hashes(tier)
    edit("native/entry", of="_digest_of_folder")
    other_plan, other_program = hashes(tier)
    assert other_plan == plan
    assert other_program != program


def test_the_ir_that_is_loaded_counts_among_the_sources_of_a_folder(monkeypatch, tmp_path):
    folder = tmp_path / "pullback" / "backends" / "native" / "threads"
    folder.mkdir(parents=True)
    monkeypatch.setattr(program_sources, "_ROOT", tmp_path)
    digest = program_sources._digest_of_folder.__wrapped__
    found = []
    for text in ("; slow", "; fast"):
        (folder / "pool.ll").write_text(text)
        found.append(digest("backends/native/threads"))
    assert found[0] != found[1]


def gathering(x):
    return np.sum(np.sort(x)[:5]) + np.linalg.det(np.reshape(x[:9], (3, 3)))


def branching(x):
    return pb.cond(np.sum(x) > 0, lambda x: np.prod(x), lambda x: np.sum(x**2), x)


def recurrent(x):
    return np.sum(pb.nn.dense_bias_act(np.ones((4, 10)), np.reshape(x, (10, 5)), np.ones((4, 1)), act="tanh"))


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("function", [looping, convolving, gathering, branching, recurrent])
def test_all_modules_that_a_call_enters_are_looked_at(function, tier):
    plan = pb.compile(pb.value_and_grad(function), tier=tier)
    for _ in range(3):
        plan(X)
    looked_at = set()
    digest, of_folder = program_sources._digest, program_sources._digest_of_folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program_sources, "_digest", lambda module: looked_at.add(module) or digest(module))
        patch.setattr(program_sources, "_digest_of_folder", lambda path: looked_at.add(path) or of_folder(path))
        plan.summary()
    entered = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, *_: entered.add(frame.f_globals.get("__name__", "")))
    try:
        plan(X)
    finally:
        sys.setprofile(before)
    files = {name for name in entered if name.startswith("pullback.")}
    assert {name for name in files if not _is_among(name, looked_at)} == set()


def _is_among(module, looked_at):
    path = module.removeprefix("pullback.").replace(".", "/")
    places = (path, f"{path}.py", f"{path}/__init__.py")
    return module in looked_at or any(place.startswith(one) for place in places for one in looked_at)


def test_a_rule_of_a_module_without_a_file_has_no_digest():
    assert program_sources._digest("no such module") == ""
    assert program_sources._digest("pullback.rules.reductions") != ""
