import pytest

from pullback_runners.errors import VariantError
from pullback_runners.measurement import oracle_process
from pullback_runners.measurement.oracle_process import OracleProcess
from pullback_runners.measurement.oracles import keep_gradient
from pullback_runners.measurement.worker_process import KeptGradient
from pullback_runners.runs import list_cases
from pullback_runners.workloads import find_workload

CASE = list_cases("quick", ["poly9_broadcast*"])[0][0][0]


def gradient_in(path, factor):
    """The file of the right gradient, or of one that is so many times as large."""
    workload = find_workload(CASE.workload)
    value, gradients = workload.closed_form(CASE, workload.draw_inputs(CASE))
    keep_gradient((value, {name: factor * gradient for name, gradient in gradients.items()}), path)
    return path


def test_an_answer_that_comes_too_late_is_not_taken_for_that_of_the_next_gradient(tmp_path, monkeypatch):
    with OracleProcess(tmp_path) as oracle:
        monkeypatch.setattr(oracle_process, "_TIMEOUT_S", 0.0)
        with pytest.raises(VariantError, match="no answer in 0 s"):
            oracle.check(KeptGradient(CASE, gradient_in(tmp_path / "wrong.npy", 2)))
        monkeypatch.setattr(oracle_process, "_TIMEOUT_S", 60.0)
        assert oracle.check(KeptGradient(CASE, gradient_in(tmp_path / "right.npy", 1)))["ok"]


@pytest.mark.parametrize("answer", [b"{}\n", b"[]\n", b'{"checked": {}}\n', b'{"checked": {"ok": false}}\n'])
def test_an_answer_of_another_form_is_no_check(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(oracle_process, "_line", lambda _: answer)
    with (
        OracleProcess(tmp_path) as oracle,
        pytest.raises(VariantError, match="cannot be checked outside of it") as refused,
    ):
        oracle.check(KeptGradient(CASE, gradient_in(tmp_path / "right.npy", 1)))
    assert refused.value.kind == "doubtful"
