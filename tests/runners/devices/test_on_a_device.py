"""Measuring on a GPU without one: a stand-in for PyTorch whose device computes only when it is waited for, and one for NVIDIA's library."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from html import unescape
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from pullback_runners import comparison_runs, suites
from pullback_runners.agent.daemon import AgentOptions, run_agent
from pullback_runners.agent.errors import PermanentError
from pullback_runners.comparison_runs import compare_commits
from pullback_runners.errors import DeviceMemoryError, UsageError, VariantError
from pullback_runners.machine.device_lock import device_lock
from pullback_runners.machine.nvml import Clocks
from pullback_runners.measurement import call_times, comparison, slices, zygote_process
from pullback_runners.measurement.call_times import time_beside
from pullback_runners.measurement.clocks import clock_of
from pullback_runners.measurement.device import measured_device
from pullback_runners.measurement.examination import Examination
from pullback_runners.measurement.libraries import device_libraries
from pullback_runners.measurement.lockstep import MOST_REPEATS, Timing, _take_turn
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.renewal import Renewal
from pullback_runners.measurement.subject import INSTALLED
from pullback_runners.measurement.worker_process import RandomDraws, WorkerSettings, worker_environment
from pullback_runners.peers import QueuedCall, find_peer
from pullback_runners.projects.environments import OWN
from pullback_runners.projects.subjects import BuiltCommit
from pullback_runners.report import write_report
from pullback_runners.report.markdown import markdown_of
from pullback_runners.report.page import page_of
from pullback_runners.report.terminal_table import footnotes, report_table
from pullback_runners.runs import list_cases, run_suite
from pullback_runners.suites import Suite, find_suite
from pullback_runners.variants import open_variant, why_no_form
from pullback_runners.workloads import Case, find_workload

STANDIN = Path(__file__).with_name("standin")
NAME = "touch_large_array[n=100000,form=index,f8,cuda]"
SMALLER = "touch_large_array[n=1000,form=index,f8,cuda]"
SMALL = Case("touch_large_array", (("n", 10), ("form", "index")), "f8", "cuda")
H200 = "GPU-11111111-aaaa-4aaa-8aaa-111111111111"
CALL = ["kernel"] * 3 + ["synchronize"]


@pytest.fixture
def standin(monkeypatch, nvml_answers):
    """The stand-ins, in this process and in those started by it; JAX is kept from looking for a device."""
    monkeypatch.setenv("PYTHONPATH", str(STANDIN), prepend=":")
    if "torch" in sys.modules:
        pytest.skip("PyTorch itself is loaded in this process")
    monkeypatch.syspath_prepend(STANDIN)
    import torch

    assert torch.__version__ == "0.0+standin"
    yield torch
    sys.modules.pop("torch")


@pytest.fixture
def measured(standin, tiny_suite):
    """The report of a run of the one peer that the stand-in is enough for."""

    def measured(**what):
        return run_suite("quick", [NAME], device="cuda", variants=["torch"], baseline="none", **what)

    return measured


@contextmanager
def clocks(standin, monkeypatch, module):
    """Each reading of a clock of a module as an event."""

    def read():
        standin.events.append("clock")
        return 0

    names = ("process_time_ns", "perf_counter_ns", "perf_counter")
    with monkeypatch.context() as patch:
        patch.setattr(module, "time", SimpleNamespace(**dict.fromkeys(names, read)))
        standin.events.clear()
        yield standin.events


def test_a_call_ends_when_its_last_kernel_has_and_results_are_copied_after_it(standin, monkeypatch):
    workload = find_workload(SMALL.workload)
    inputs = workload.draw_inputs(SMALL)
    with open_variant("torch", workload, SMALL, inputs) as prepared:
        assert standin.events[0] == "cuda"
        assert "kernel" in standin.events  # arguments are there before any call
        assert not standin.backends.cudnn.allow_tf32
        prepared.call()
        with clocks(standin, monkeypatch, slices) as events:
            slices.time_slice(prepared.call, 2)
            assert events == [*CALL, "clock", "clock", *CALL, *CALL, "clock", "clock"]
        result = prepared.call()
        standin.events.clear()
        value, gradients = prepared.differentiated(result)
        assert standin.events == ["copy", "copy"]
    expected, slopes = workload.closed_form(SMALL, inputs)
    assert (value, gradients["p"]) == (expected, slopes["p"])


def test_times_beside_the_walls_stop_where_they_say_and_the_cache_is_overwritten_outside_of_the_clock(
    standin, monkeypatch
):
    workload = find_workload(SMALL.workload)
    with open_variant("torch", workload, SMALL, workload.draw_inputs(SMALL)) as prepared:
        with clocks(standin, monkeypatch, call_times) as events:
            time_beside(prepared.call, 1)
            host = ["event", "clock", *["kernel"] * 3, "clock", "event", "synchronize"]
            cold = ["write 2000", "synchronize", "clock", *CALL, "clock"]
            assert events == [*CALL, *host, *cold]
        taken = time_beside(prepared.call, 2)
    assert taken.device_time == pytest.approx(3e-6)  # three kernels of a microsecond, whatever the host did meanwhile
    assert 0 < taken.host_time < 3e-3
    assert 0 < taken.time_cold < 3e-3


def test_without_events_the_devices_own_time_is_not_known():
    calls = []
    call = QueuedCall(lambda: calls.append("queued"), lambda _: calls.append("awaited"), lambda: calls.append("cold"))
    taken = time_beside(call, 20)
    assert taken.device_time is None
    assert taken.host_time > 0
    assert calls == ["queued", "awaited"] * 21 + ["cold", "queued", "awaited"] * call_times.MOST_COLD_CALLS


@pytest.mark.long
def test_a_run_on_a_device_has_the_peers_that_are_there(measured, tmp_path):
    report = measured(commit={"sha": "a" * 40, "title": "t", "dirty": False})
    (case,) = report["cases"]
    assert case["case"]["device"] == "cuda"
    assert [each["variant"] for each in case["variants"]] == ["torch"]
    metrics = case["variants"][0]["metrics"]
    time = metrics["time"]
    assert (time["clock"], len(time["processes"]), len(time["slices"][0])) == ("wall", 2, 4)
    assert (metrics["gpu_allocs"]["value"], metrics["gpu_bytes"]["value"]) == (3, 3 * 512)
    assert case["gradient"]["ok"]
    assert (case["paired"], case["twins"], case["error"]) == ([], None, None)

    assert (time["throttled"], metrics["device_time"]["processes"]) == ([[], []], pytest.approx([3e-6, 3e-6]))
    assert time["clocks"] == [{"sm_mhz": [1980, 1980], "memory_mhz": [3201, 3201], "reasons": []}] * 2
    assert all(len(metrics[name]["processes"]) == 2 for name in ("host_time", "time_cold"))
    environment = case["variants"][0]["environment"]
    assert next(iter(environment.items())) == ("driver", "570.86.15")
    versions = ", ".join(f"{name} {version}" for name, version in environment.items())
    methods = {name: metric["method"] for name, metric in metrics.items()}
    assert (methods["time"], methods["device_time"]) == (f"wall, {versions}", f"events, {versions}")
    assert methods["gpu_bytes"] == f"pool, {versions}"
    assert report["harness"]["device"]["uuid"] == H200
    assert not {"gpu_processes", "throttled"} & {limit["name"] for limit in report["harness"]["limits"]}

    console = Console(file=StringIO(), width=200, color_system=None)
    console.print(report_table(report, 200))
    heading, name, row = console.file.getvalue().splitlines()
    assert (heading.split()[-3:], name, row.split()[0]) == (["GPU", "gradient", "error"], NAME, "torch")
    assert heading.split()[1:7] == ["time", "a", "call", "device", "host", "cold"]
    assert "3.00 µs" in row
    assert "1.50 KiB in 3" in row
    assert "Times and memory on cuda have no ratios" in markdown_of(report)
    assert "| variant | time a call | device | host | cold | time against" in markdown_of(report)
    page = page_of(report, "")
    assert 'id="ratios"' not in page
    assert "Memory of the GPU in one call" in page
    assert "1.50 KiB in 3" in page
    assert '<td data-label="device" class=""><span>3.00 µs</span></td>' in page

    write_report(report, tmp_path / "report.json")
    shown = [sys.executable, "-m", "pyperf", "metadata", tmp_path / "report.json"]
    assert "timer: wall clock" in subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    schemas = pytest.importorskip("pullback_service.reports.schemas", reason="the service's extra is not installed")
    assert schemas.ReportDocument.model_validate(json.loads(json.dumps(report))).cases[0].case.device == "cuda"


def test_a_time_of_the_device_that_cannot_be_is_doubtful_in_report_terminal_and_page(measured, monkeypatch):
    monkeypatch.setenv("STANDIN_KERNEL_MS", "1e3")  # a second, in calls that take microseconds
    report = measured()
    error = report["cases"][0]["variants"][0]["error"]
    assert error["kind"] == "doubtful"
    assert re.search(
        r"stated [0-9.]+ s of calls in answers that took [0-9.]+ s by the coordinator's clock", error["message"]
    )
    terminal = "\n".join(map(str, footnotes(report)))
    for shown in (terminal, markdown_of(report), unescape(page_of(report, ""))):
        assert "its clock is wrong" in shown


def test_older_reports_of_a_device_are_shown_as_they_were(measured):
    report = measured()
    metrics = report["cases"][0]["variants"][0]["metrics"]
    for name in ("device_time", "host_time", "time_cold"):
        del metrics[name]
    console = Console(file=StringIO(), width=200, color_system=None)
    console.print(report_table(report, 200))
    assert "cold" not in console.file.getvalue() + markdown_of(report) + page_of(report, "").partition("<script>")[0]


@pytest.mark.long
def test_throttled_slices_are_repeated_ten_times_and_then_kept_and_marked(measured, standin, nvml_answers):
    nvml_answers("throttled")
    report = measured()
    time = report["cases"][0]["variants"][0]["metrics"]["time"]
    assert [len(each) for each in time["slices"]] == [4, 4]
    assert time["throttled"] == [[0, 1, 2, 3]] * 2
    assert time["clocks"][0]["reasons"] == ["hardware thermal slowdown", "power cap", "software thermal slowdown"]
    (limit,) = [each for each in report["harness"]["limits"] if each["name"] == "throttled"]
    assert (limit["limit"], limit["measured"]) == (0.05, 1.0)
    assert limit["sentence"] == f"NVIDIA H200 ({H200}) was throttled in 100% of the slices; the limit is 5%"
    assert report["harness"]["quality"] == "contaminated"


@pytest.mark.parametrize(("slow", "turns", "marked"), [(0, 1, []), (1, 2, []), (10, 11, []), (11, 11, [0])])
def test_a_slice_is_repeated_until_the_device_is_not_throttled_any_more(slow, turns, marked):
    asked = []
    worker = SimpleNamespace(
        ask=lambda order, _form: (
            asked.append(order) or {"cpu_ns": 1, "wall_ns": len(asked), "waited_ns": 0, "late_ns": 0}
        )
    )
    looks = []

    def clocks():
        looks.append(len(looks))
        return Clocks(1980, 3201, ("power cap",) if len(looks) <= 2 * slow else ())

    timing = Timing(1)
    _take_turn(worker, timing, SimpleNamespace(clocks=clocks))
    assert (len(asked), timing.throttled) == (turns, marked)
    assert timing.wall_s == [turns / 1e9]  # the last one counts, and no other
    assert timing.repeats == (0 if marked else MOST_REPEATS)
    assert len(timing.clocks) == 2


def test_processes_of_others_make_a_busy_run_and_are_named_with_when_they_were_there(measured, nvml_answers):
    # Ours are known by their ids: who is listed beside one of them is another's.
    nvml_answers("quiet", processes=[[], ["self", 2**22 + 1], [], [2**22 + 2]])
    report = measured()
    (limit,) = [each for each in report["harness"]["limits"] if each["name"] == "gpu_processes"]
    unnamed = "a process without a name here, process"
    assert limit["measured"] == 2
    assert f"{unnamed} {2**22 + 1} (between); {unnamed} {2**22 + 2} (after); the limit is 0" in limit["sentence"]
    assert report["harness"]["quality"] == "contaminated"


def test_where_no_process_of_ours_is_known_nobody_beside_them_is_accused(measured, nvml_answers):
    nvml_answers("quiet", processes=[[], [2**22 + 1], [2**22 + 1], []])
    assert "gpu_processes" not in {limit["name"] for limit in measured()["harness"]["limits"]}


def test_a_device_that_is_lost_ends_the_run_with_a_sentence_and_blames_no_variant(measured, nvml_answers):
    nvml_answers("quiet", reasons=[0] * 8 + [{"error": 15}])
    with pytest.raises(UsageError, match=r"^--device cuda: the driver has lost NVIDIA H200 .*GPU is lost"):
        measured()
    nvml_answers("quiet", xids=[79])
    with pytest.raises(UsageError, match=r"^--device cuda: the driver has lost NVIDIA H200 .*Xid 79"):
        measured(timeout_s=0.01)  # every variant fails


def test_a_run_holds_its_device_and_shows_it_alone_to_its_processes(standin, nvml_answers, monkeypatch):
    nvml_answers("two")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    l4 = "GPU-55555555-eeee-4eee-8eee-555555555555"
    with measured_device("cuda") as device:
        assert (device.device.uuid, os.environ["CUDA_VISIBLE_DEVICES"]) == (l4, l4)
        assert worker_environment(SMALL, INSTALLED, RandomDraws(1, 1))["CUDA_VISIBLE_DEVICES"] == l4
        said = f"^--device cuda: device {l4} is held by process {os.getpid()} "
        with pytest.raises(UsageError, match=said), measured_device("cuda"):
            pass
        with device_lock(H200):  # the other one is free
            pass
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    with device_lock(l4), measured_device("cuda", is_held=True):
        pass
    with measured_device("cpu") as device:
        assert device is None


def compared_on(device, case=SMALL, variant="fused"):
    """A comparison of the installed engine with itself, made on a device by the quick suite."""
    members = [Member(variant, INSTALLED, role) for role in ("reference", "candidate")]
    compared = comparison.Comparison(case, *members, with_twin=True)
    comparison.compare_members(compared, find_suite("quick"), WorkerSettings(device=device), lambda *_: None)
    return compared


@pytest.fixture
def timed(monkeypatch):
    """Names of the members that would have been timed."""
    names = []

    def collect_groups(groups, case, members, *_, **__):
        names.extend(each.name for each in members())

    monkeypatch.setattr(comparison, "collect_groups", collect_groups)
    return names


@pytest.mark.parametrize(("free", "with_twin"), [(9000, True), (8999, False), (6000, False), (5999, None)])
def test_members_of_a_comparison_are_examined_alone_and_have_room_together_with_or_without_the_twin(
    standin, nvml_answers, monkeypatch, timed, free, with_twin
):
    examined = []

    def examine(case, members, settings, draw):
        (member,) = members
        examined.append(member.name)
        device_memory = {"held": 3000, "free": 10_000 - 1000 * len(examined)}
        return {member.name: Examination({}, {}, {"peak_bytes": 2000}, device_memory=device_memory)}, {}

    monkeypatch.setattr(comparison, "examine", examine)
    nvml_answers("quiet", free=free)
    said = r"need 6,000 bytes together \(reference 3,000 with a plan of 2,000, candidate 3,000 with a plan of 2,000\)"
    refused = pytest.raises(DeviceMemoryError, match=said) if with_twin is None else nullcontext()
    with measured_device("cuda") as device, refused:
        compared_on(device)
    both = ["reference", "candidate"]
    assert examined == [*both, "reference twin"]
    assert timed == {True: examined, False: both, None: []}[with_twin]


@pytest.mark.long
def test_members_that_are_examined_apart_do_not_differ_by_hash_seed_and_stack_position(standin, monkeypatch, timed):
    draws = []

    def environment(case, subject, draw, **what):
        draws.append(draw)
        return worker_environment(case, subject, draw, **what)

    monkeypatch.setattr(zygote_process, "worker_environment", environment)
    (case,) = [case for case, _ in list_cases("quick", [NAME], device="cuda")[0]]
    with measured_device("cuda") as device:
        compared = compared_on(device, case, "torch")
    assert list(compared.examinations) == timed == ["reference", "candidate", "reference twin"]
    assert draws == draws[:1] * 3


@pytest.fixture
def compare(standin, tmp_path, monkeypatch):
    """Compares the installed engine with itself by two sizes, in a suite with a twin."""
    tiny = Suite("standard", groups=2, most_groups=2, slices=4, may_say_same=True)
    monkeypatch.setitem(suites.SUITES, "standard", tiny)
    built = BuiltCommit({"sha": "a" * 40, "title": "t", "dirty": False}, INSTALLED, OWN, tmp_path)

    def compare(**what):
        return compare_commits(built, built, "standard", [SMALLER, NAME], device="cuda", variants=["torch"], **what)

    return compare


def test_a_size_without_room_is_refused_alone_and_the_other_is_compared(compare, nvml_answers):
    # Each process holds 500 MB: there is no room for two of the first, and for two of the other but not for its twin.
    free, told = {SMALLER: 900_000_000, NAME: 1_400_000_000}, []

    def play(step):
        if step.phase == "examine":
            nvml_answers("quiet", free=free[step.case])

    report = compare(on_progress=play, on_refused=told.extend)
    (refused,) = told
    assert refused.startswith(
        f"{SMALLER} torch: the processes that take turns on NVIDIA H200 ({H200}) need 1,000,000,000"
    )
    assert (report["harness"]["refused"], report["harness"]["complete"]) == ([refused], True)
    assert [each["case"]["params"]["n"] for each in report["cases"]] == [100_000]
    assert {row["case"]["params"]["n"] for row in report["comparisons"]} == {100_000}
    (time,) = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert (time["n"], time["twin_log_ratios"]) == (2, [])


@pytest.mark.parametrize("may_pass", [False, True])
def test_where_no_size_has_room_the_comparison_ends_with_the_one_that_may_have_it_later(compare, monkeypatch, may_pass):
    errors = iter([DeviceMemoryError("the first", may_pass=False), DeviceMemoryError("the second", may_pass=may_pass)])

    def compare_members(*_):
        raise next(errors)

    monkeypatch.setattr(comparison_runs, "compare_members", compare_members)
    with pytest.raises(DeviceMemoryError, match="the second" if may_pass else "the first") as raised:
        compare()
    assert raised.value.may_pass is may_pass


@pytest.mark.long
def test_variants_without_a_form_are_refused_by_name_and_the_rest_is_measured(standin, tiny_suite):
    told = []
    names = ["torch", "autograd", "numpy"]
    report = run_suite("quick", [NAME], device="cuda", variants=names, baseline="none", on_refused=told.extend)
    assert report["harness"]["refused"] == told
    assert told == ["autograd and numpy take part in no case: it is written for the CPU, with no form for cuda"]
    assert [each["variant"] for each in report["cases"][0]["variants"]] == ["torch"]


def test_without_a_device_nothing_is_measured(nvml_answers, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", H200)  # whatever is built in here
    said = r"^--device cuda: no CUDA device is seen by jax or torch: .*; measure where there is one"
    with pytest.raises(UsageError, match=said):
        run_suite("quick", [NAME], device="cuda")
    with pytest.raises(UsageError, match="it is written for the CPU, with no form for cuda"):
        run_suite("quick", [NAME], device="cuda", variants=["numpy"], baseline="none")
    with pytest.raises(UsageError, match="no device 'gpu'; known: cpu, cuda"):
        run_suite("quick", [NAME], device="gpu")
    with pytest.raises(UsageError, match="--instructions counts those of a CPU"):
        run_suite("quick", [NAME], device="cuda", with_instructions=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(
        UsageError, match="^--device cuda: CUDA_VISIBLE_DEVICES= names no device; there are NVIDIA H200"
    ):
        run_suite("quick", [NAME], device="cuda")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(UsageError, match="^--device cuda: nvidia-ml-py is not installed"):
        run_suite("quick", [NAME], device="cuda")


def test_an_agent_whose_device_is_not_there_does_not_start(nvml_answers, monkeypatch, tmp_path):
    def options(device):
        return AgentOptions("http://127.0.0.1:1", tmp_path, tmp_path, labels={"device": device})

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", H200)
    with pytest.raises(PermanentError, match="^--label device=cuda: no CUDA device is seen by jax or torch"):
        run_agent(options("cuda"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(PermanentError, match="^--label device=cuda: CUDA_VISIBLE_DEVICES=7 names no device"):
        run_agent(options("cuda"))
    with pytest.raises(PermanentError, match="^--label device=tpu: no device 'tpu'"):
        run_agent(options("tpu"))


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
    draw = RandomDraws.of(WorkerSettings().rng)
    assert [worker_environment(case, INSTALLED, draw)["JAX_PLATFORMS"] for case in (on_cpu, SMALL)] == ["cpu", "cuda"]
    assert worker_environment(SMALL, INSTALLED, draw)["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert Renewal(lambda: pytest.fail("warmed a fork"), forks=False).renew([])["renewed"] is False


def test_who_has_a_form_for_a_device():
    names = ("unfused", "native", "numpy", "autograd", "torch", "torch-compile", "jax")
    assert [why_no_form(name, "cuda") is None for name in names] == [True] * 2 + [False] * 2 + [True] * 3
    assert not any(why_no_form(name, "cpu") for name in names)
    workload = find_workload(SMALL.workload)
    with (
        pytest.raises(VariantError, match="^autograd: .*no form for cuda$") as raised,
        open_variant("autograd", workload, SMALL, {}),
    ):
        pass
    assert raised.value.kind == "unavailable"
    with pytest.raises(VariantError, match="a pullback apart is taken on cpu only"):
        find_peer("jax").prepare_pullback(workload, SMALL, {})


@pytest.fixture
def engine(standin, monkeypatch):
    """An engine whose arrays on a device are the stand-in's tensors: what a tier asks of any engine there."""
    find_workload(SMALL.workload)  # which is loaded by the engine that is installed

    def value_and_grad(function, wrt):
        def differentiated(p, c):
            value = c[1] * p
            return value, standin.autograd.grad(value, [p])

        return differentiated

    def put(tree, device):
        standin.events.append(f"put on {device}")
        p, c = map(standin.as_tensor, tree)
        p.requires_grad_()
        return p, c

    def fetch(tree):
        value, (gradient,) = tree
        return value.cpu().numpy(), (gradient.cpu().numpy(),)

    engine = ModuleType("pullback")
    engine.__dict__.update(
        TIERS=("unfused",), tier=lambda _: nullcontext(), value_and_grad=value_and_grad, put=put, fetch=fetch
    )
    monkeypatch.setitem(sys.modules, "pullback", engine)
    return engine


def test_a_tier_has_its_arguments_on_the_device_before_its_calls_and_waits_in_each(engine, standin, monkeypatch):
    workload = find_workload(SMALL.workload)
    inputs = workload.draw_inputs(SMALL)
    with open_variant("unfused", workload, SMALL, inputs) as prepared:
        assert standin.events.count("put on cuda") == 1
        prepared.call()
        with clocks(standin, monkeypatch, slices) as events:
            slices.time_slice(prepared.call, 1)
            assert events == [*CALL, "clock", "clock", *CALL, "clock", "clock"]
        assert time_beside(prepared.call, 1).device_time == pytest.approx(3e-6)
        value, gradients = prepared.differentiated(prepared.call())
    expected, slopes = workload.closed_form(SMALL, inputs)
    assert (value, gradients["p"]) == (expected, slopes["p"])
    del engine.put
    with (
        pytest.raises(VariantError, match="^this engine has no arrays on cuda$") as raised,
        open_variant("unfused", workload, SMALL, inputs),
    ):
        pass
    assert raised.value.kind == "unavailable"


def test_another_version_of_a_library_is_another_environment(tmp_path, monkeypatch):
    def install(name, version):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert device_libraries() == {}
    for name in ("nvidia-cublas-cu12", "nvidia_cudnn_cu12", "nvidia-cuda-runtime", "torch", "jax", "nvidia-nccl-cu12"):
        install(name, "9.1")
    wanted = dict.fromkeys(["CUDA", "cuBLAS", "cuDNN", "torch", "jax"], "9.1")
    assert device_libraries() == wanted
    install("nvidia-cudnn-cu13", "9.9")
    assert device_libraries() == {**wanted, "cuDNN": "9.1 and 9.9"}


def test_graphs_are_asked_of_torch_compile_on_a_device_alone(standin, monkeypatch):
    asked = []

    def compile_(function, **how):
        asked.append(how)
        return function

    monkeypatch.setattr(standin, "compile", compile_, raising=False)
    steps = SimpleNamespace(cudagraph_mark_step_begin=lambda: standin.events.append("step"))
    monkeypatch.setattr(standin, "compiler", steps, raising=False)
    peer = find_peer("torch-compile")
    form = SimpleNamespace(loss=np.add)
    assert peer.loss(form, "cpu")(1, 2) == peer.loss(form, "cuda")(1, 2) == 3
    assert asked == [
        {"fullgraph": True, "dynamic": False},
        {"fullgraph": True, "dynamic": False, "mode": "reduce-overhead"},
    ]
    assert standin.events.count("step") == 1
