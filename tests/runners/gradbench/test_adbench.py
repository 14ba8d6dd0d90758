"""ADBench's own expected values of bundle adjustment and of the mixture of Gaussians, to 1e-11 where it asks for 1e-8."""

import json
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback_runners.workloads.ba import jacobian_blocks, joined, residuals
from pullback_runners.workloads.gmm import log_posterior

DATA = Path(__file__).parents[2] / "data" / "adbench"


def lines(name):
    return [np.array([float(x) for x in line.split()]) for line in (DATA / name).read_text().splitlines()]


def expected(name):
    return json.loads((DATA / name).read_text())


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("tier", pb.TIERS)
def test_bundle_adjustment(tier):
    sizes, camera, point, weight, feature = lines("ba_input.txt")
    n, m, p = sizes.astype(int)
    arguments = (
        np.tile(camera, (n, 1)), np.tile(point, (m, 1)), np.full(p, weight[0]), np.tile(feature, (p, 1)),
        np.arange(p) % n, np.arange(p) % m,
    )  # fmt: skip
    values = pb.compile(jacobian_blocks(pb), tier=tier) if tier != "unfused" else jacobian_blocks(pb)
    blocks, weighting = values(*arguments)
    errors, kept = residuals(*arguments)
    golden = expected("ba_expected.json")
    np.testing.assert_allclose(np.ravel(errors), golden["expected_reproj_err"], rtol=1e-11)
    np.testing.assert_allclose(kept, golden["expected_weight_err"], rtol=1e-11)
    found = np.concatenate([np.ravel(joined(blocks, p)), weighting])
    np.testing.assert_allclose(found, golden["expected_J_values"], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_mixture_of_gaussians(tier):
    given = lines("gmm_input.txt")
    d, k, n = given[0].astype(int)
    alpha, given = np.concatenate(given[1 : 1 + k]), given[1 + k :]
    mu, roots, x, (gamma, m) = np.stack(given[:k]), np.stack(given[k : 2 * k]), np.stack(given[2 * k : -1]), given[-1]
    function = log_posterior(int(d), int(k), int(n), gamma=float(gamma), m=int(m), prior_sign=-1.0)
    differentiate = pb.value_and_grad(function, wrt=("alpha", "mu", "q", "l"))
    plan = pb.compile(differentiate, tier=tier) if tier != "unfused" else differentiate
    value, (alpha_bar, mu_bar, q_bar, l_bar) = plan(alpha, mu, roots[:, :d], roots[:, d:], x)
    golden = expected("gmm_expected.json")
    assert value == pytest.approx(golden["expected_objective"], rel=1e-11)
    found = np.concatenate([alpha_bar, np.ravel(mu_bar), np.ravel(np.concatenate([q_bar, l_bar], axis=1))])
    np.testing.assert_allclose(found, golden["expected_gradient"], rtol=1e-11)
