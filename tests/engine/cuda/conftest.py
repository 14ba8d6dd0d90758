"""Where nothing is native here, kernels cannot be tried on the CPU; tests/engine/native/test_availability.py says so."""

import pytest

from pullback.backends.native import availability

if not availability.is_available():
    of_kernels = ("any_order", "around", "assembled", "driver", "moving", "nests", "places", "rows", "traffic")
    collect_ignore = [f"test_{name}.py" for name in of_kernels]


@pytest.fixture(scope="session")
def nests_of_plans():
    """Some nests of case tables, workloads, golden files and expressions; all with PULLBACK_EVERY_KERNEL=1."""
    from tests.engine.cuda import nests

    return list(nests.of_plans())
