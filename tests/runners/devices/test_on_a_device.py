"""Measuring on a GPU without one: a stand-in for PyTorch whose device computes only when it is waited for."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from pullback_runners.agent.client import kinds_on
from pullback_runners.agent.daemon import AgentOptions, run_agent
from pullback_runners.agent.errors import PermanentError
from pullback_runners.errors import UsageError, VariantError
from pullback_runners.measurement import slices
from pullback_runners.measurement.clocks import clock_of
from pullback_runners.measurement.renewing import Renewal
from pullback_runners.measurement.subject import INSTALLED
from pullback_runners.measurement.worker_process import Draw, Surroundings, worker_environment
from pullback_runners.peers import find_peer
from pullback_runners.report import write_report
from pullback_runners.report.markdown import markdown_of
from pullback_runners.report.page import page_of
from pullback_runners.report.terminal_table import report_table
from pullback_runners.runs import list_cases, run_suite
from pullback_runners.variants import open_variant, why_no_form
from pullback_runners.workloads import Case, find_workload

STANDIN = Path(__file__).with_name("standin")
NAME = "touch_large_array[n=100000,form=index,f8,cuda]"
SMALL = Case("touch_large_array", (("n", 10), ("form", "index")), "f8", "cuda")


@pytest.fixture
def standin(monkeypatch):
    """The stand-in, in this process and in those started by it; JAX is kept from looking for a device."""
    monkeypatch.setenv("PYTHONPATH", str(STANDIN), prepend=":")
    if "torch" in sys.modules:
        pytest.skip("PyTorch itself is loaded in this process")
    monkeypatch.syspath_prepend(STANDIN)
    import torch

    assert torch.__version__ == "0.0+standin"
    yield torch
    sys.modules.pop("torch")


def test_a_call_ends_when_its_last_kernel_has_and_results_are_copied_after_it(standin, monkeypatch):
    workload = find_workload(SMALL.workload)
    inputs = workload.draw_inputs(SMALL)
    with open_variant("torch", workload, SMALL, inputs) as prepared:
        assert standin.events[0] == "cuda"
        assert "kernel" in standin.events  # arguments are there before any call
        assert not standin.backends.cudnn.allow_tf32
        prepared.call()
        standin.events.clear()
        clock = SimpleNamespace(
            process_time_ns=lambda: standin.events.append("clock") or 0,
            perf_counter_ns=lambda: standin.events.append("clock") or 0,
        )
        monkeypatch.setattr(slices, "time", clock)
        slices.time_slice(prepared.call, 2)
        call = ["kernel"] * 3 + ["synchronize"]
        assert standin.events == [*call, "clock", "clock", *call, *call, "clock", "clock"]
        result = prepared.call()
        standin.events.clear()
        value, gradients = prepared.differentiated(result)
        assert standin.events == ["copy", "copy"]
    expected, slopes = workload.closed_form(SMALL, inputs)
    assert (value, gradients["p"]) == (expected, slopes["p"])


def test_a_run_on_a_device_has_the_peers_that_are_there_and_no_ratios(standin, tiny_suite, tmp_path):
    report = run_suite("quick", [NAME], device="cuda", commit={"sha": "a" * 40, "title": "t", "dirty": False})
    (case,) = report["cases"]
    assert case["case"]["device"] == "cuda"
    assert [each["variant"] for each in case["variants"]] == ["torch"]
    metrics = case["variants"][0]["metrics"]
    time = metrics["time"]
    assert (time["clock"], len(time["processes"]), len(time["slices"][0])) == ("wall", 2, 4)
    assert (metrics["gpu_allocs"]["value"], metrics["gpu_bytes"]["value"]) == (3, 3 * 512)
    assert case["gradient"]["ok"]
    assert (case["paired"], case["twins"], case["error"]) == ([], None, None)
    absent = report["harness"]["absent"]
    assert absent[0] == "unfused takes part in no case: the engine has no form for cuda"
    assert any(sentence.startswith("jax takes part in no case: ") for sentence in absent)
    assert any(sentence.startswith("torch-compile takes part in no case: ") for sentence in absent)

    console = Console(file=StringIO(), width=200, color_system=None)
    console.print(report_table(report, 200))
    heading, name, row = console.file.getvalue().splitlines()
    assert (heading.split()[-3:], name, row.split()[0]) == (["GPU", "gradient", "error"], NAME, "torch")
    assert "1.50 KiB in 3" in row
    assert "Times and memory on cuda stand alone" in markdown_of(report)
    page = page_of(report, "")
    assert 'id="ratios"' not in page
    assert "Memory of the GPU in one call" in page
    assert "1.50 KiB in 3" in page

    write_report(report, tmp_path / "report.json")
    shown = [sys.executable, "-m", "pyperf", "metadata", tmp_path / "report.json"]
    assert "timer: wall clock" in subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    schemas = pytest.importorskip("pullback_service.reports.schemas", reason="the service's extra is not installed")
    assert schemas.ReportDocument.model_validate(json.loads(json.dumps(report))).cases[0].case.device == "cuda"


def test_variants_without_a_form_are_refused_by_name_and_the_rest_is_measured(standin, tiny_suite):
    told = []
    report = run_suite("quick", [NAME], device="cuda", variants=["torch", "fused", "numpy"], on_refused=told.extend)
    assert report["harness"]["refused"] == told
    assert told == [
        "fused takes part in no case: the engine has no form for cuda",
        "numpy takes part in no case: it is written for the CPU, with no form for cuda",
    ]
    assert [each["variant"] for each in report["cases"][0]["variants"]] == ["torch"]


def test_without_a_device_nothing_is_measured(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # whatever is built in here
    said = r"^--device cuda: no CUDA device is seen by jax or torch: .*; measure where there is one"
    with pytest.raises(UsageError, match=said):
        run_suite("quick", [NAME], device="cuda")
    with pytest.raises(UsageError, match="the engine has no form for cuda"):
        run_suite("quick", [NAME], device="cuda", variants=["fused"])
    with pytest.raises(UsageError, match="no device 'gpu'; known: cpu, cuda"):
        run_suite("quick", [NAME], device="gpu")
    with pytest.raises(UsageError, match="--instructions counts those of a CPU"):
        run_suite("quick", [NAME], device="cuda", with_instructions=True)


def test_an_agent_whose_device_is_not_there_does_not_start(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def options(device):
        return AgentOptions("http://127.0.0.1:1", tmp_path, tmp_path, labels={"device": device})

    with pytest.raises(PermanentError, match="^--label device=cuda: no CUDA device is seen by jax or torch"):
        run_agent(options("cuda"))
    with pytest.raises(PermanentError, match="^--label device=tpu: no device 'tpu'"):
        run_agent(options("tpu"))
    assert (kinds_on("cpu"), kinds_on("cuda")) == (("run", "compare"), ("run",))


def test_cases_of_a_device_have_the_arguments_of_the_cpu():
    (case,) = [case for case, _ in list_cases("quick", [NAME], device="cuda")[0]]
    assert (case.name, case.device) == (NAME, "cuda")
    workload = find_workload(case.workload)
    (on_cpu,) = [each for each in workload.cases("quick") if each.params == case.params]
    here, there = workload.draw_inputs(on_cpu), workload.draw_inputs(case)
    assert all((here[name] == there[name]).all() for name in here)


def test_a_device_decides_clock_platform_and_forks():
    on_cpu = Case(SMALL.workload, SMALL.params, SMALL.dtype)
    assert (clock_of(on_cpu), clock_of(SMALL)) == ("cpu", "wall")
    draw = Draw.of(Surroundings().rng)
    assert [worker_environment(case, INSTALLED, draw)["JAX_PLATFORMS"] for case in (on_cpu, SMALL)] == ["cpu", "cuda"]
    assert worker_environment(SMALL, INSTALLED, draw)["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert Renewal(lambda: pytest.fail("warmed a fork"), forks=False).renew()["renewed"] is False


def test_who_has_a_form_for_a_device():
    names = ("unfused", "native", "numpy", "autograd", "torch", "torch-compile", "jax")
    assert [why_no_form(name, "cuda") is None for name in names] == [False] * 4 + [True] * 3
    assert not any(why_no_form(name, "cpu") for name in names)
    workload = find_workload(SMALL.workload)
    for name in ("fused", "autograd"):
        with (
            pytest.raises(VariantError, match=f"^{name}: .*no form for cuda$") as raised,
            open_variant(name, workload, SMALL, {}),
        ):
            pass
        assert raised.value.kind == "unavailable"
    with pytest.raises(VariantError, match="a pullback apart is taken on cpu only"):
        find_peer("jax").prepare_pullback(workload, SMALL, {})
