"""Digests of workloads: what changes them, and what does not."""

import pytest

from pullback_runners.workloads import find_workload, known_workloads
from pullback_runners.workloads.digest import ANY, digests_of
from pullback_runners.workloads.registry import _workloads, load_workload_file

TEXT = '''
"""Two workloads."""

import numpy as np
from pullback_runners.workloads import grid, workload

SCALE = 2.0  # of everything


def scaled(x):
    return SCALE * x


@workload(wrt="x", quick=grid(n=(4,)))
def first(*, n):
    return lambda x: np.sum(scaled(x) ** 2)


@first.inputs
def _(rng, dtype, *, n):
    return {"x": rng.normal(size=n).astype(dtype)}


@first.peer("mine")
def _(x, *, n):
    return np.sum(scaled(x) ** 2), {"x": 8 * x}


@first.peer("yours")
def _(x, *, n):
    return np.sum(scaled(x) ** 2), {"x": 2 * SCALE**2 * x}


@workload(wrt="x", quick=grid(n=(4,)))
def second(*, n):
    return lambda x: np.sum(x)


@second.inputs
def _(rng, dtype, *, n):
    return {"x": rng.normal(size=n).astype(dtype)}
'''


@pytest.fixture
def digests(tmp_path):
    """Digests of the workload `first`, of a text with one part replaced by another."""

    def of(old="", new="", name="first"):
        assert old in TEXT
        file = tmp_path / "workloads.py"
        file.write_text(TEXT.replace(old, new, 1) if old else TEXT, encoding="utf-8")
        load_workload_file(file)
        return dict(digests_of(find_workload(name)))

    before = {each.name: each for each in known_workloads()}
    yield of
    _workloads.clear()
    _workloads.update(before)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Two workloads", "Three workloads"),
        ("\n\n\ndef scaled", "\n\n\n\ndef scaled"),
        ("import numpy as np\n", "import numpy as np\n\n# as everybody does\n"),
        ("quick=grid(n=(4,))", "quick=grid(n=(4, 8)), standard=grid(n=(99,))"),
        ("lambda x: np.sum(x)", "lambda x: np.mean(x)"),
        ("def second", "def third"),
    ],
)
def test_what_belongs_to_others_or_to_nobody_changes_nothing(digests, old, new):
    if "third" in new:
        new = new + "(*, n):\n    return lambda x: np.max(x)\n\n\n@workload(wrt='x')\ndef second"
    assert digests(old, new) == digests()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("np.sum(scaled(x) ** 2)", "np.sum(scaled(x) ** 4)"),
        ("rng.normal(size=n)", "rng.normal(size=2 * n)"),
        ('wrt="x"', 'wrt=("x",), baseline="mine"'),
    ],
)
def test_another_text_changes_the_digest_of_every_variant(digests, old, new):
    before, after = digests(), digests(old, new)
    assert before.keys() == after.keys() == {ANY, "mine", "yours"}
    assert not any(before[variant] == after[variant] for variant in before)


def test_a_variant_changes_its_own_digest_alone(digests):
    before, after = digests(), digests("8 * x", "SCALE * 4 * x")
    assert {variant for variant in before if before[variant] != after[variant]} == {"mine"}


def test_the_baseline_is_part_of_every_digest(digests, monkeypatch):
    monkeypatch.setitem(globals(), "TEXT", TEXT.replace('wrt="x", quick', 'wrt="x", baseline="yours", quick', 1))
    before, after = digests(), digests("2 * SCALE**2 * x", "8 * x")
    assert not any(before[variant] == after[variant] for variant in before)


def test_workloads_of_one_text_have_digests_of_their_own(digests):
    assert digests()[ANY] != digests(name="second")[ANY]


def test_pullbacks_own_workloads_have_digests():
    found = digests_of(find_workload("poly9_broadcast"))
    assert len(found[ANY]) == 16
    assert found == digests_of(find_workload("poly9_broadcast"))


def test_pages_of_a_file_do_not_move_its_lines(digests, monkeypatch):
    monkeypatch.setitem(globals(), "TEXT", TEXT.replace("\n\n\ndef scaled", "\f\n\f\n\f\ndef scaled", 1))
    before, after = digests(), digests("2 * SCALE**2 * x", "9 * x")
    assert {variant for variant in before if before[variant] != after[variant]} == {"yours"}
