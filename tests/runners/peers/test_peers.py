"""Every adapter on every workload it has, at small sizes, against the closed form; a peer that is not installed is skipped."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

from pullback_runners.errors import UsageError, VariantError
from pullback_runners.measurement.gradient_check import check_gradient
from pullback_runners.peers import PEERS as NAMES
from pullback_runners.peers import FormsPeer, devices, find_peer
from pullback_runners.variants import open_variant
from pullback_runners.workloads import Case, find_workload, known_workloads

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
    "mul_fresh": [{"m": 4, "k": 6, "n": 3}],
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


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_form_is_compared_with_the_oracle(peer):
    for name in sorted({workload.name for workload in known_workloads() if peer.offers(workload)} - set(SMALL)):
        pytest.fail(
            f"nothing compares the form of {name} for {peer.name} with the oracle: add {name} to SMALL in this file, with sizes "
            "that take milliseconds"
        )


@pytest.mark.parametrize("peer", [peer for peer in PEERS if isinstance(peer, FormsPeer)], ids=lambda peer: peer.name)
def test_every_form_is_one_of_a_workload(peer):
    unknown = set(peer._forms) - {workload.name for workload in known_workloads()}
    assert not unknown, f"{peer.name} has forms of {', '.join(sorted(unknown))}, which no file of workloads/ declares"


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(("peer", "case"), TURNS)
def test_a_peer_computes_the_value_and_gradients_of_the_closed_form(peer, case):
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    prepared = installed(peer).prepare(workload, case, inputs)
    expected = workload.closed_form(case, inputs)
    for _ in range(2):
        check = check_gradient(prepared.differentiated(prepared.call()), expected, inputs, case.dtype)
        assert check.ok, check.complaint


ON_A_DEVICE = [turn for turn in TURNS if turn.values[0].name == "torch" and turn.values[1].dtype == "f8"]


@pytest.mark.parametrize(("peer", "case"), ON_A_DEVICE)
def test_pytorch_has_all_on_the_device_and_waits_for_it(peer, case, monkeypatch):
    """PyTorch's device `meta` has shapes and no numbers: what is elsewhere would be refused, and copied it cannot be."""
    torch = installed(peer).engine()
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(None))
    monkeypatch.setattr(type(peer), "why_not_on", lambda *_: None)
    workload = find_workload(case.workload)
    prepared = peer.prepare(workload, replace(case, device="meta"), workload.draw_inputs(case))
    value, gradients = prepared.call()
    assert len(waited) == 1
    assert {tensor.device.type for tensor in (value, *gradients)} == {"meta"}
    with pytest.raises(NotImplementedError, match="meta"):
        prepared.differentiated((value, gradients))


@pytest.mark.parametrize("name", ["lstm", "det", "llsq", "gmm_likelihood", "mlp_step"])
def test_pytorch_by_the_way_of_a_device_computes_the_gradients_of_the_closed_form(name, monkeypatch):
    peer = installed(find_peer("torch"))
    waited = []
    monkeypatch.setattr(peer.engine().cuda, "synchronize", lambda: waited.append(None))
    monkeypatch.setattr(type(peer), "why_not_on", lambda *_: None)
    workload = find_workload(name)
    case = Case(name, tuple(SMALL[name][0].items()), "f4")
    inputs = workload.draw_inputs(case)
    prepared = peer.prepare(
        workload, replace(case, device="cpu:0"), inputs
    )  # another word for the CPU, no other device
    check = check_gradient(prepared.differentiated(prepared.call()), workload.closed_form(case, inputs), inputs, "f4")
    assert check.ok, check.complaint
    assert len(waited) == 1


def test_peers_that_see_no_device_say_why():
    for name, word in (("torch", "torch"), ("torch-compile", "torch"), ("jax", "jax: ")):
        peer = installed(find_peer(name))
        reason = peer.why_not_on("cuda")
        assert reason is None or reason.startswith(word)
        assert peer.why_not_on("cpu") is None
    assert find_peer("autograd").why_not_on("cuda") == "autograd computes on cpu only"


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


@pytest.mark.parametrize("written", ["", "no device\n", "[]\n", "{}\n"])
def test_an_engine_that_ends_the_search_for_a_device_by_itself_sees_none(monkeypatch, written):
    done = subprocess.CompletedProcess([], 0, stdout=written, stderr="")
    monkeypatch.setattr(devices.subprocess, "run", lambda *_, **__: done)
    assert "the probe gave no answer" in devices.why_no_device("cuda")
