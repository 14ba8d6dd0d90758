"""Every adapter on every workload it has, at small sizes, against the closed form; a peer that is not installed is skipped."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from pullback_runners.errors import UsageError, VariantError
from pullback_runners.measurement.gradient_check import check_gradient
from pullback_runners.peers import PEERS as NAMES
from pullback_runners.peers import FormsPeer, find_peer
from pullback_runners.variants import open_variant
from pullback_runners.workloads import Case, find_workload

PEERS = [find_peer(name) for name in NAMES]
RECURRENT = [
    {"steps": 4, "batch": 3, "hidden": 5, "form": "blocked", "bias": "with"},
    {"steps": 4, "batch": 3, "hidden": 5, "form": "separate", "bias": "without"},
]
SMALL = {
    "dense_bias_act": [{"n": 5, "act": act} for act in ("tanh", "relu", "sigmoid", "softplus", "gelu", "identity")],
    "bias_act": [{"n": 5, "act": act} for act in ("tanh", "gelu")],
    "conv_bias_act": [
        {"n": 2, "channels": 3, "side": 6, "act": "relu"},
        {"n": 2, "channels": 3, "side": 7, "act": "gelu", "axes": 1, "stride": 2},
    ],
    "touch_large_array": [{"n": 10, "form": "projection"}],
    "scalar_reads": [{"n": 10}],
    "constant_matrix": [{"n": 6, "batch": 3}],
    "poly9_broadcast": [{"n": 33}],
    "poly9_powers": [{"n": 33}],
    "mul_restore": [{"m": 4, "k": 6, "n": 3}],
    "gemm_restore": [{"m": 4, "k": 6, "n": 3, "trans_a": a, "trans_b": b} for a, b in ("NT", "TN")],
    "recursive_mul": [{"n": 4, "depth": 3}],
    "mlp_step": [{"inputs": 7, "hidden": 6, "classes": 4, "batch": 5}],
    "lenet_step": [{"batch": 2}],
    "generator_only": [{"latent": 3, "hidden": 6, "data": 7, "batch": 5}],
    "attention_head": [{"batch": 2, "length": 5, "model": 4, "size": 3}],
    "gmm_likelihood": [{"d": 3, "k": 4, "n": 20}],
    "gmm": [{"d": 3, "k": 4, "n": 20}],
    "gmm_adbench": [{"d": 3, "k": 4, "n": 20}],
    "lse": [{"n": 20}],
    "llsq": [{"n": 16, "m": 5}],
    "kmeans": [{"k": 3, "n": 30, "d": 2}],
    "ba": [{"n": 2, "m": 3, "p": 5}],
    "lstm_lm": [{"layers": 2, "steps": 4, "units": 3}],
    "ode": [{"n": 4, "steps": 3}],
    "det": [{"n": 4}],
    "black_scholes": [{"n": 20}],
    "logistic_regression": [{"n": 20, "features": 3}],
    "lotka_volterra": [{"steps": 5}],
    "rnn": [{"steps": 4, "batch": 3, "hidden": 5}, *RECURRENT],
    "lstm": [{"steps": 4, "batch": 3, "hidden": 5}, *RECURRENT],
    "gru": RECURRENT,
}
COMPILED_BY_TORCH = ("dense_bias_act", "gmm_likelihood")
"""A compilation takes seconds, and the losses are those of the eager adapter."""

TURNS = [
    pytest.param(peer, case := Case(name, tuple(params.items()), dtype), id=f"{peer.name}-{case.name}")
    for peer in PEERS
    for name, sizes in SMALL.items()
    for params in (sizes if peer.name != "torch-compile" else sizes[:1])  # it gives up after some variants of one line
    for dtype in ("f4", "f8")
    if peer.offers(find_workload(name)) and (peer.name != "torch-compile" or name in COMPILED_BY_TORCH)
]


@pytest.fixture(autouse=True)
def quiet():
    """What other engines warn about is theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def installed(peer):
    reason = peer.available()
    if reason is not None:
        pytest.skip(f"{peer.name}: {reason}")
    return peer


@pytest.mark.parametrize(("peer", "case"), TURNS)
def test_a_peer_computes_the_value_and_gradients_of_the_closed_form(peer, case):
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    prepared = installed(peer).prepare(workload, case, inputs)
    expected = workload.closed_form(case, inputs)
    for _ in range(2):
        check = check_gradient(prepared.differentiated(prepared.call()), expected, inputs, case.dtype)
        assert check.ok, check.complaint


@pytest.mark.parametrize("name", ["autograd", "jax", "torch"])
@pytest.mark.parametrize("form", ["index", "projection"])
def test_a_pullback_apart_takes_and_gives_python_numbers(name, form):
    peer = installed(find_peer(name))
    workload = find_workload("touch_large_array")
    case = Case(workload.name, (("n", 10), ("form", form)), "f8")
    inputs = workload.draw_inputs(case)
    value, gradients = workload.closed_form(case, inputs)
    prepared = peer.prepare_pullback(workload, case, {**inputs, "p": float(inputs["p"])})
    result = prepared.call()
    assert type(result) is float
    found, slopes = prepared.differentiated(result)
    np.testing.assert_allclose([found, slopes["p"]], [value, gradients["p"]], rtol=1e-14)


def test_an_absent_peer_says_what_is_missing_and_refuses_to_prepare():
    class Absent(FormsPeer):
        name = "absent"
        packages = ("no_such_engine",)
        engine = bind = bind_pullback = None

    peer = Absent()
    peer.form("poly9_powers")(None)
    workload = find_workload("poly9_powers")
    case = Case(workload.name, (("n", 3),), "f8")
    assert peer.available() == "no_such_engine not installed"
    with pytest.raises(VariantError, match="absent: no_such_engine not installed; install the extra") as raised:
        peer.prepare(workload, case, workload.draw_inputs(case))
    assert raised.value.kind == "unavailable"


def test_a_workload_that_is_not_written_for_a_peer_is_unavailable():
    workload = find_workload("mul_fresh")
    case = Case(workload.name, (("m", 2), ("k", 2), ("n", 2)), "f8")
    inputs = workload.draw_inputs(case)
    for peer in PEERS:
        if not peer.offers(workload):
            with pytest.raises(VariantError, match=r"mul_fresh"):
                peer.prepare(workload, case, inputs)
        with pytest.raises(VariantError):
            peer.prepare_pullback(workload, case, inputs)


def test_an_unknown_peer_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match=r"'jaxx'.*jax, torch"):
        find_peer("jaxx")
    workload = find_workload("mul_fresh")
    case = Case(workload.name, (("m", 2), ("k", 2), ("n", 2)), "f8")
    with pytest.raises(VariantError, match="'jaxx', it has numpy$"), open_variant("jaxx", workload, case, {}):
        pass


def test_peers_do_not_import_their_engines_to_be_listed():
    program = (
        "import sys; from pullback_runners.peers import PEERS, find_peer; [find_peer(name).available() for name in PEERS]; "
        "print(sorted({'jax', 'torch', 'autograd', 'numba'} & set(sys.modules)))"
    )
    listed = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert listed.stdout.strip() == "[]"
