import gc
import tomllib
from pathlib import Path

import pytest

import pullback
from pullback.tiers import current_tier
from pullback_runners.errors import VariantError
from pullback_runners.variants import kind_of, open_variant
from pullback_runners.variants.tiers import OLDEST_NUMPY
from pullback_runners.workloads import find_workload, select_cases

(CASE,) = select_cases("quick", ["poly9_broadcast"])
WORKLOAD = find_workload("poly9_broadcast")


def opened(variant):
    return open_variant(variant, WORKLOAD, CASE, WORKLOAD.draw_inputs(CASE))


@pytest.mark.parametrize("tier", pullback.TIERS)
def test_a_tier_is_in_force_while_its_variant_is_open_and_no_longer(tier):
    with opened(tier) as prepared:
        gc.collect()
        assert current_tier() == tier
        _, gradients = prepared.differentiated(prepared.call())
        assert list(gradients) == ["c2"]
    assert current_tier() == "unfused"


def test_the_fused_tier_runs_a_plan_and_says_what_it_is():
    with opened("fused") as prepared:
        plan = prepared.plan()
    assert plan["arrays"] is not None
    assert plan["fallbacks"] == []


@pytest.mark.parametrize(
    ("variant", "said"), [("stateful", "it offers unfused"), ("native", "switches"), ("theano", "it has numpy")]
)
def test_what_an_engine_does_not_offer_and_an_unknown_peer_say_what_there_is(monkeypatch, variant, said):
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    if variant == "stateful":
        monkeypatch.setattr("pullback.TIERS", ("unfused", "fused"))
    with pytest.raises(VariantError, match=said) as raised, opened(variant):
        pass
    assert raised.value.kind == "unavailable"


def test_a_tier_is_unavailable_where_numpy_is_older_than_the_engine_needs(monkeypatch):
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    oldest = ".".join(map(str, OLDEST_NUMPY))
    assert f"numpy>={oldest}" in project["dependencies"]
    monkeypatch.setattr("numpy.__version__", "1.26.4")
    with pytest.raises(VariantError) as raised, opened("unfused"):
        pass
    assert raised.value.kind == "unavailable"
    assert raised.value.message == (
        f"Pullback's engine needs NumPy {oldest} or newer; the environment of this commit has 1.26.4"
    )


def test_a_name_is_a_tier_or_a_peer():
    assert [kind_of(name) for name in ("unfused", "native", "numpy")] == ["tier", "tier", "peer"]
