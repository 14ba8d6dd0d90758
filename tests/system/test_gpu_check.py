"""`deploy/gpu_check.py`, emulated: its stages run, its files say what was asked and found, and what is wrong is found."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

import torch

import pullback
from pullback.backends.cuda import loops, program
from pullback.backends.cuda.kernels import kernel_text
from pullback.backends.cuda.kernels.phases import PhaseWriter

TIERS = ("unfused", "fused", "stateful", "native")
X = np.linspace(0.1, 1, 4)
SCRIPT = Path(__file__).parents[2] / "deploy" / "gpu_check.py"


@pytest.fixture
def check(tmp_path, capsys):
    """The script in this process: its exit status, its rows by name, what it printed."""
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(*arguments):
        status = module.main([*arguments, "--here", "--out", str(tmp_path)])
        said = capsys.readouterr().err
        path = tmp_path / "gpu-check.json"
        return status, json.loads(path.read_text()) if path.exists() else None, said

    yield run
    del sys.modules[spec.name]


def test_a_right_machine_passes_every_stage_and_both_files_say_so(check, tmp_path):
    status, document, said = check("--emulated", "--match", "softmax")
    assert status == 0, said
    assert (document["format"], document["version"], document["emulated"]) == ("pullback-gpu-check", 2, True)
    assert list(document["seconds"]) == ["facts", "limits", "right", "quiet", "fast", "memory", "product"]
    verdicts = {row["name"]: row["verdict"] for row in document["rows"]}
    assert verdicts["PyTorch"] == "known"
    assert verdicts["rule cases, unfused"] == verdicts["rule cases, fused"] == "right"
    assert all(
        set(row) == {"stage", "name", "asked", "measured", "limit", "verdict", "command"} for row in document["rows"]
    )
    text = (tmp_path / "gpu-check.md").read_text()
    assert "| rule cases, fused |" in text
    assert "--only right --match 'softmax' --emulated" in text


def test_facts_of_a_device_are_its_clocks_and_who_else_is_there(check, monkeypatch):
    module, devices = sys.modules["gpu_check"], SCRIPT.parents[1] / "tests" / "runners" / "devices"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert module._of_driver()["clocks"].startswith("nvidia-ml-py is not installed")
    spec = importlib.util.spec_from_file_location("pynvml", devices / "standin" / "pynvml.py")
    binding = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(binding)
    monkeypatch.setitem(sys.modules, "pynvml", binding)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("STANDIN_NVML", str(devices / "answers" / "quiet.json"))
    assert module._of_driver() == {"clocks": "1980 MHz, memory 3201 MHz", "others there": "nobody"}
    monkeypatch.setenv("STANDIN_NVML", str(devices / "answers" / "throttled.json"))
    assert ", slow by " in module._of_driver()["clocks"]


def test_limits_are_rates_that_claim_nothing_of_a_device_where_there_is_none(check, tmp_path):
    status, document, said = check("--emulated", "--only", "limits")
    assert status == 0, said
    rates = {row["name"]: row["measured"] for row in document["rows"]}
    assert [*rates] == [
        "copying 1 MiB",
        "reading 1 MiB",
        *(f"product of 64 x 64 in {name}" for name in ("f2", "TF32", "f4", "f8")),
        *(f"an epilogue of 64 x 64 in {name} gains at most" for name in ("f2", "TF32")),
        "a call of one kernel",
    ]
    assert all(float(rate.partition(" ")[0].removesuffix("%")) > 0 for rate in rates.values())
    assert {row["verdict"] for row in document["rows"]} == {"known"}
    assert "kernels on the CPU, no GPU" in (tmp_path / "gpu-check.md").read_text()
    assert not torch.backends.cuda.matmul.allow_tf32


def test_what_an_epilogue_can_gain_is_the_pass_in_the_product_and_the_pass(check, monkeypatch):
    """64 x 64 in f2 are 8 KiB to read and to write, 1/128 of what is copied in a second; a product takes 1/128 s as well."""
    module = sys.modules["gpu_check"]
    times = {"<lambda>": 1.0, "partial": 1 / 128}
    monkeypatch.setattr(
        module, "_seconds", lambda check, work, **_: times.get(getattr(work, "__name__", "partial"), 1.0)
    )
    _, document, _ = check("--emulated", "--only", "limits")
    gains = {row["name"]: row["measured"] for row in document["rows"] if "epilogue" in row["name"]}
    assert [*gains.values()] == ["50.00%", "66.67%"]


def test_special_values_of_kernels_are_checked(check):
    status, document, said = check("--emulated", "--only", "right", "--match", "special f")
    assert status == 0, said
    assert {row["name"] for row in document["rows"]} == {
        f"special values, {tier}" for tier in ("unfused", "fused", "stateful", "native")
    }


def test_loops_and_branches_are_checked_and_one_whose_steps_share_memory_is_found(check, monkeypatch):
    status, document, said = check("--emulated", "--only", "right", "--only", "quiet", "--match", "loop")
    assert status == 0, said
    rows = {row["name"]: row for row in document["rows"]}
    for tier in ("unfused", "fused", "stateful", "native"):
        assert rows[f"loops and branches, {tier}"]["measured"] == "7"
    assert rows["loop of a recurrent network, stateful"]["measured"] == "none"
    assert "a graph of " in rows["loop in a loop, native"]["measured"]
    of = loops._Turns.of
    monkeypatch.setattr(loops._Turns, "of", lambda *given: [of(*given)[0]] * 2)
    status, document, said = check("--emulated", "--only", "right", "--match", "loop backwards")
    assert status == 1
    assert "loop backwards of a pair, fused: asked NumPy's" in said


def test_products_in_the_precision_of_pytorchs_switch_are_found(check, monkeypatch):
    def rounding(multiply, a, b, **out):
        if torch.backends.cuda.matmul.allow_tf32 and a.dtype == torch.float32:
            a = (a.view(torch.int32) & -(1 << 13)).view(torch.float32)  # 10 bits
        return multiply(a, b, **out)

    asked = ("--emulated", "--only", "right", "--match", "products of float32")
    status, document, said = check(*asked)
    assert status == 0, said
    assert [row["verdict"] for row in document["rows"]] == ["right"]
    monkeypatch.setattr("pullback.devices.cuda.rows.into.multiplied", rounding)
    status, document, said = check(*asked)
    assert status == 1
    assert "products of float32 where PyTorch's switch is on: asked full precision" in said
    assert not torch.backends.cuda.matmul.allow_tf32


def test_a_device_whose_assembler_contracts_has_other_bits_than_the_emulator(check, monkeypatch):
    asked = ("--emulated", "--only", "right", "--match", "in the bits")
    status, document, said = check(*asked)
    assert status == 0, said
    assert [row["measured"] for row in document["rows"]] == ["0 elements differ"] * 6
    assert "PULLBACK_FMA" not in os.environ
    own, on_the_device = kernel_text.text_of, {}

    def contracting(module):
        text = module.text()
        is_first = text not in on_the_device
        return on_the_device.setdefault(text, text) if is_first else own(module)

    monkeypatch.setattr(kernel_text, "text_of", contracting)
    status, document, said = check(*asked[:-1], "polynomial of f4 in the bits")
    assert status == 1
    assert {row["verdict"] for row in document["rows"]} == {"wrong"}
    assert "polynomial of f4 in the bits of the emulator: asked the same bits" in said


def test_a_wrong_kernel_is_found_and_named(check, monkeypatch):
    monkeypatch.setattr(PhaseWriter, "_accumulate", lambda *_: None)
    status, document, said = check("--emulated", "--only", "right", "--match", "sum [")
    assert status == 1
    wrong = [row for row in document["rows"] if row["verdict"] == "wrong"]
    assert wrong
    assert not any(row["name"].endswith(", unfused") for row in wrong)
    assert "off by" in said


def test_a_wait_that_is_hidden_is_found_and_looks_at_positions_are_not_taken_for_one(check, monkeypatch):
    status, document, said = check("--emulated", "--only", "quiet", "--match", "_step")
    assert status == 0, said
    rows = {row["name"].partition("[")[0]: row for row in document["rows"] if row["name"].endswith(", fused")}
    assert rows["mlp_step"]["measured"] == "1 look at positions"
    assert rows["lenet_step"]["verdict"] == "right"
    launches = program._launches

    def looking(*arguments):
        launch = launches(*arguments)

        def run(*read):
            made = launch(*read)
            float((made if isinstance(made, torch.Tensor) else made[0]).reshape(-1)[0])
            return made

        return run

    monkeypatch.setattr(program, "_launches", looking)
    status, document, said = check("--emulated", "--only", "quiet", "--match", "mlp_step")
    assert status == 1
    assert "hidden" in said


def test_races_are_run_and_without_a_device_nobody_wins(check, tmp_path):
    status, document, said = check("--emulated", "--only", "fast")
    assert status == 0, said
    assert {row["verdict"] for row in document["rows"]} == {"known"}
    of_memory = [row for row in document["rows"] if row["name"].endswith(", memory")]
    assert all(row["measured"].startswith("native ") and " bytes, torch " in row["measured"] for row in of_memory)
    of_formats = [row for row in document["rows"] if ", formats in " in row["name"]]
    assert [row["name"].rpartition(" ")[2] for row in of_formats] == ["f4", "TF32", "f2"]
    assert all(row["measured"].endswith((": C order is faster", ": channels last is faster")) for row in of_formats)
    of_branches = [row for row in document["rows"] if row["name"].endswith(", branches")]
    assert [row["measured"].partition(" ")[0] for row in of_branches] == ["1", "1", "2", "5"]
    of_sizes = [row for row in document["rows"] if row["name"].endswith(", flat in n")]
    others = (*of_memory, *of_formats, *of_branches, *of_sizes)
    document["rows"] = [row for row in document["rows"] if row not in others]
    names = [row["name"].partition("[")[0] for row in document["rows"]]
    assert len(names) == len(of_memory)
    raced = {
        "dense_bias_act",
        "poly9_powers",
        "mlp_step",
        "gmm",
        "black_scholes",
        "touch_large_array",
        "lstm",
        "conv_bias_act",
    }
    assert raced == set(names)
    assert all(" us, " in row["measured"] and " of torch" in row["measured"] for row in document["rows"])
    assert [row["measured"].count("% of its limit") for row in document["rows"]].count(1) == 4
    assert [row["measured"].count(", the host ") for row in document["rows"]].count(1) == 2
    assert sum(row["asked"].endswith(", with a cold cache") for row in document["rows"]) == 3
    assert sum(row["name"].endswith(" in TF32") for row in document["rows"]) == 1
    assert (
        "4 times the speed of torch, 1.5 times that of the faster of torch-compile and jax"
        in (tmp_path / "gpu-check.md").read_text()
    )


@pytest.mark.parametrize(("ratio", "verdict"), [(0.8, "right"), (1.1, "slow")])
def test_branches_that_take_longer_than_the_serial_order_are_slow(check, monkeypatch, ratio, verdict):
    module = sys.modules["gpu_check"]
    monkeypatch.setattr(module, "_in_turns", lambda calls: {name: [ratio if name == "with" else 1.0] for name in calls})
    monkeypatch.setattr(module, "_awaited", lambda check, queue: queue)
    monkeypatch.setattr(module, "_used", lambda check, make: (make(), SimpleNamespace(peak_bytes=0)))
    on_a_device = SimpleNamespace(device="cpu", emulated=False, add=lambda *row: rows.append(row))
    rows = []
    module._beside_serial(on_a_device, "a case", lambda x: np.tanh(x @ x.T) @ (x.T @ x), (np.eye(3) / 3,))
    ((*_, measured, found, _),) = rows
    assert found == verdict
    assert f"{ratio:.3g} of the time" in measured


def test_branches_with_other_bits_are_wrong(check, monkeypatch):
    module = sys.modules["gpu_check"]
    results = iter([np.eye(3), np.eye(3) + np.spacing(1.0)])

    def used(check, make):
        make()()
        result = next(results)
        return lambda: result, SimpleNamespace(peak_bytes=0)

    monkeypatch.setattr(module, "_used", used)
    rows = []
    with_rows = SimpleNamespace(device="cpu", emulated=True, add=lambda *row: rows.append(row))
    module._beside_serial(with_rows, "a case", lambda x: np.tanh(x @ x.T) @ (x.T @ x), (np.eye(3),))
    ((*_, measured, found, _),) = rows
    assert found == "wrong"
    assert measured.endswith("; other bits")


@pytest.mark.parametrize("chosen_is_faster", [True, False])
def test_the_format_of_convolutions_that_is_chosen_and_not_the_faster_is_slow(check, monkeypatch, chosen_is_faster):
    """Operands in C order are faster in f4 alone, or nowhere but in TF32 and f2."""
    module = sys.modules["gpu_check"]
    rows, race = [], next(race for race in module.RACES if race.workload == "conv_bias_act")
    race = replace(race, size={"n": 1, "channels": 8, "side": 5})

    def seconds(_, work):
        is_last, is_f4 = (
            work.args[2] is torch.channels_last,
            not (torch.backends.cudnn.allow_tf32 or work.args[0].dtype == torch.float16),
        )
        return 1.0 if (is_last != is_f4) is chosen_is_faster else 1.1

    monkeypatch.setattr(module, "_seconds", seconds)
    check = SimpleNamespace(
        emulated=False, device="cpu", begin=lambda _: None, add=lambda *row, limit: rows.append((*row, limit))
    )
    module._formats(check, "conv", race)
    assert [row[4] for row in rows] == ["right" if chosen_is_faster else "slow"] * 3
    assert all(row[6].endswith(" us") for row in rows)
    asked = [row[2].partition(",")[0] for row in rows]
    assert asked == ["C order", "channels last", "channels last"]


def test_memory_of_workloads_is_told_and_a_request_in_a_warm_call_is_found(check, monkeypatch):
    asked = ("--emulated", "--only", "memory", "--match", "poly9_powers")
    status, document, said = check(*asked)
    assert status == 0, said
    rows = {row["name"].rpartition(", ")[2]: row for row in document["rows"][1:]}
    assert [*rows] == ["stateful", "moved", "native"]
    assert {row["verdict"] for row in rows.values()} == {"known"}
    for tier in ("stateful", "native"):
        peaks = [int(part.split()[1].replace(",", "")) for part in rows[tier]["measured"].partition(";")[0].split(", ")]
        assert 0 < peaks[0] < peaks[1]  # PyTorch has an array for each operation
        assert rows[tier]["measured"].endswith("; 0 requests")
    assert rows["moved"]["measured"].endswith(" planned; not counted: kernels run on the CPU")
    writes = program._writes

    def asking(launch):
        run = writes(launch)
        return lambda *pieces: (torch.empty(100), run(*pieces))[1]

    monkeypatch.setattr(program, "_writes", asking)
    status, document, said = check(*asked)
    assert status == 1
    assert ", stateful: asked no more bytes in use than of any other, no request, got " in said
    assert "requests" in said


@pytest.mark.parametrize(
    ("peaks", "verdict"),
    [
        ({"native": 10, "torch": 20, "torch-compile": 10}, "right"),
        ({"native": 11, "torch": 20, "torch-compile": 10}, "slow"),
        ({"native": 11}, "known"),
    ],
)
def test_more_bytes_in_use_than_the_least_of_the_others_are_a_figure_that_is_not_reached(check, peaks, verdict):
    assert sys.modules["gpu_check"]._beside_peaks(SimpleNamespace(emulated=False), peaks)[1] == verdict


def test_memory_of_a_call_on_a_device_is_its_peak_with_what_is_kept_and_its_requests(check, monkeypatch):
    """100 bytes are there before; 40 are kept, and a call has 1000 more in use, in three requests."""
    module, live, stats = sys.modules["gpu_check"], [100], {"allocation.all.allocated": 7}
    peak = [live[0]]

    def call():
        stats["allocation.all.allocated"] += 3
        peak[0] = max(peak[0], live[0] + 1000)

    def make():
        peak[0] = 10**6  # what is used until it is warm does not count
        live[0] += 40
        return call

    cuda = SimpleNamespace(
        synchronize=lambda: None,
        memory_allocated=lambda: live[0],
        reset_peak_memory_stats=lambda: peak.__setitem__(0, live[0]),
        max_memory_allocated=lambda: peak[0],
        memory_stats=lambda: dict(stats),
    )
    monkeypatch.setattr(torch, "cuda", cuda)
    cleared = []
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: cleared.append(live[0]), raising=False)
    assert module._used(SimpleNamespace(emulated=False), make) == (call, module.PoolUse(1040, 3))
    assert cleared == []
    assert module._used(SimpleNamespace(emulated=False), make, is_alone=True) == (call, module.PoolUse(1040, 3))
    assert cleared == [140]


def test_workspaces_of_libraries_are_what_is_in_use_beside_operands_and_result(check, monkeypatch):
    module, rows = sys.modules["gpu_check"], []

    def used(check, make, *, is_alone):
        call = make()
        assert is_alone
        return call, module.PoolUse(call().nbytes + 4096, 2)

    monkeypatch.setattr(module, "_used", used)
    told = SimpleNamespace(
        emulated=False, device="cpu", match="", begin=lambda name: None, add=lambda *row: rows.append(row)
    )
    module._workspaces(told)
    assert [(row[1], row[3], row[4]) for row in rows] == [
        ("workspace of cuBLAS", "4,096 bytes", "known"),
        ("workspace of cuDNN", "4,096 bytes", "known"),
    ]
    status, document, said = check("--emulated", "--only", "memory", "--match", "workspace")
    assert status == 0, said
    assert [row["measured"] for row in document["rows"][1:]] == ["there is no device"] * 2


@pytest.mark.parametrize(
    ("events", "measured", "verdict"),
    [
        ([{"args": {"dram__bytes_read.sum": 70, "dram__bytes_write.sum": "35"}}, {"name": "k"}], "105 of 100", "right"),
        ([{"args": {"dram__bytes_read.sum": 70.0}}, {"args": {"dram__bytes_write.sum": 36}}], "106 of 100", "slow"),
        ([{"name": "k", "args": {"grid": [1]}}], "100 planned; not counted: PyTorch's profiler gives no", "known"),
        (RuntimeError("no\nprivileges"), "100 planned; not counted: no privileges", "known"),
    ],
)
def test_bytes_moved_are_counted_by_the_device_or_the_row_says_why_not(check, monkeypatch, events, measured, verdict):
    module = sys.modules["gpu_check"]

    class Profile:
        def __init__(self, *, activities, experimental_config):
            assert experimental_config is not None

        def __enter__(self):
            return self

        def __exit__(self, *_):
            if isinstance(events, RuntimeError):
                raise events

        def export_chrome_trace(self, path):
            Path(path).write_text(json.dumps({"traceEvents": events}))

    monkeypatch.setattr("torch.profiler.profile", Profile)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    found = module._beside_planned(module._moved_bytes(SimpleNamespace(emulated=False), lambda: None), 100)
    assert found[0].startswith(measured)
    assert found[1] == verdict


@pytest.mark.parametrize(
    ("times", "is_slow"),
    [
        ({"torch": 5.0, "jax": 2.0, "torch-compile": 1.6}, False),
        ({"torch": 3.0, "jax": 2.0}, True),
        ({"torch": 5.0, "jax": 2.0, "torch-compile": 1.4}, True),
        ({"jax": 2.0}, False),
    ],
)
def test_what_is_slower_than_asked_is_slow(check, times, is_slow):
    """Ours takes a second; it is to be four times as fast as PyTorch, and 1.5 times as the best of the others."""
    module = sys.modules["gpu_check"]
    found = module._compared(module.RACES[0], {"native": [1.0] * 3, **{name: [t] * 3 for name, t in times.items()}})
    assert found[1] is is_slow


@pytest.mark.parametrize(
    ("race", "alone", "host", "said", "is_slow"),
    [
        (0, None, 5e-6, "the host 5 us", False),
        (0, None, 7e-6, "the host 7 us", True),
        (2, 0.98, None, "98% of its limit", False),
        (2, 0.96, None, "96% of its limit", True),
    ],
)
def test_what_is_slower_than_what_limits_it_is_slow(check, race, alone, host, said, is_slow):
    module = sys.modules["gpu_check"]
    assert module._compared(module.RACES[race], {"native": [1.0] * 3}, alone, host)[1] is is_slow
    assert said in module._compared(module.RACES[race], {"native": [1.0] * 3}, alone, host)[0]


def test_what_comes_before_a_call_is_not_timed(check):
    module, clock, events = sys.modules["gpu_check"], iter(range(10**6)), []
    module.time = SimpleNamespace(perf_counter=lambda: events.append("clock") or next(clock))
    module._SLICE_S, module._SLICES = 2.0, 1
    times = module._in_turns({"native": lambda: events.append("call")}, lambda: events.append("before"))
    assert times == {"native": [1.0]}
    assert events[:3] == ["call"] * 3
    assert events[3:] == ["before", "clock", "call", "clock"] * 3


def test_pytorch_raises_where_it_waits_on_a_device_and_no_longer(check, monkeypatch):
    module, modes = sys.modules["gpu_check"], []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    with module._no_wait(SimpleNamespace(emulated=True)):
        assert modes == []
    with suppress(RuntimeError), module._no_wait(SimpleNamespace(emulated=False)):
        assert modes == ["error"]
        raise RuntimeError
    assert modes == ["error", "default"]


@pytest.fixture
def clone(tmp_path):
    """Makes a repository of the engine alone, with one commit, whose derivative of products is wrong if so asked."""
    folder = tmp_path / "clone"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(pullback.__file__).parent, folder / "engine" / "pullback", ignore=ignored)
    shutil.copy(SCRIPT.parents[1] / "pullback.toml", folder)

    def committed(*, wrong=False):
        rules = folder / "engine" / "pullback" / "rules" / "elementwise.py"
        text = rules.read_text()
        assert "lambda v, a, b, y: a * v, operator=operator.mul" in text
        if wrong:
            rules.write_text(text.replace("a * v, operator=operator.mul", "1.01 * (a * v), operator=operator.mul"))
        git = ("git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@a.test")
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "engine"]):
            subprocess.run([*git, *arguments], check=True, capture_output=True)
        return folder

    return committed


def test_a_run_and_a_job_of_an_agent_are_done_and_say_what_is_left_to_a_device(check, clone, monkeypatch):
    monkeypatch.setattr(sys.modules["gpu_check"], "__file__", str(clone() / "deploy" / "gpu_check.py"))
    status, document, said = check("--emulated", "--only", "product")
    assert status == 0, said
    case = "touch_large_array[n=100000,form=index,f8,cpu]"
    rows = {row["name"]: row for row in document["rows"]}
    assert [*rows] == [
        f"pullback run, {case}",
        "pullback run on a device",
        f"job of an agent, {case}",
        "job of an agent on a device",
    ]
    for name in ("pullback run", "job of an agent"):
        assert rows[f"{name}, {case}"]["verdict"] == "right"
        assert [part.split()[0] for part in rows[f"{name}, {case}"]["measured"].split(", ")] == [*TIERS]
        assert rows[f"{name} on a device"]["measured"].startswith("left to run where there is one")


def test_an_engine_and_a_commit_with_a_wrong_rule_are_found_where_users_and_agents_measure(check, clone, monkeypatch):
    folder = clone(wrong=True)
    monkeypatch.setattr(sys.modules["gpu_check"], "__file__", str(folder / "deploy" / "gpu_check.py"))
    status, _, said = check("--emulated", "--only", "product", "--match", "job of an agent")
    assert status == 1
    assert "job of an agent, touch_large_array" in said
    assert "gradient of p is off by" in said
    monkeypatch.setenv("PYTHONPATH", str(folder / "engine"), prepend=":")
    status, _, said = check("--emulated", "--only", "product", "--match", "pullback run")
    assert status == 1
    assert "pullback run, touch_large_array" in said
    assert "gradient of p is off by" in said


def test_a_report_that_lacks_a_tier_or_has_other_memory_is_wrong(check):
    module = sys.modules["gpu_check"]
    case = {"workload": "touch_large_array", "params": {"n": 8, "form": "index"}, "dtype": "f8", "device": "cuda"}
    time = {"metrics": {"time": {"processes": [1e-6, 3e-6]}}, "error": None}
    tiers = [{"variant": tier, **time} for tier in TIERS]

    def of_run(**other):
        each = {"case": case, "variants": tiers, "error": None, "gradient": {"ok": True}} | other
        return next(module._of_cases({"cases": [each]}))

    assert of_run() == ("touch_large_array[n=8,form=index,f8,cuda]", ", ".join(f"{t} 2 us" for t in TIERS), True)
    assert of_run(variants=tiers[:3])[1:] == ("of unfused, fused, stateful alone", False)
    assert of_run(gradient={"ok": False})[2] is False
    lost = {"kind": "infra", "message": "the driver has lost it"}
    assert of_run(variants=[*tiers[:3], {**tiers[3], "error": lost}])[1:] == ("the driver has lost it", False)

    def of_job(*more, count=4):
        times = [{"variant": t, "metric": "time", "outcome": "ambiguous", "reference_s": [1e-6]} for t in TIERS[:count]]
        return next(module._of_comparisons({"comparisons": [{"case": case, **one} for one in (*times, *more)]}))

    assert of_job()[1:] == (", ".join(f"{t} 1 us" for t in TIERS), True)
    assert of_job(count=3)[1:] == ("of unfused, fused, stateful alone", False)
    more = {"variant": "native", "metric": "gpu_bytes", "outcome": "more"}
    assert of_job(more)[1:] == ("native: gpu_bytes more", False)


def test_a_run_that_gives_no_report_is_wrong_and_one_that_takes_too_long_is_cut_off(check, monkeypatch):
    module = sys.modules["gpu_check"]
    monkeypatch.setattr(module, "_SHORT", ("no suite", "*"))
    status, document, said = check("--emulated", "--only", "product", "--match", "pullback run")
    assert status == 1
    assert document["rows"][0]["verdict"] == "wrong"
    assert "no suite 'no suite'" in said
    monkeypatch.setattr(module, "_SHORT", ("full", "*"))
    status, document, said = check("--emulated", "--only", "product", "--match", "pullback run", "--minutes", "0.01")
    assert status == 1
    assert (document["rows"][0]["verdict"], document["rows"][0]["measured"]) == (
        "cut off",
        "not finished when time was over",
    )


def _raising(*_):
    raise IndexError("index 7 is out of bounds for axis 0 with size 3")


def test_an_error_of_one_rule_or_of_a_stage_is_a_row_and_what_is_behind_it_runs(check, monkeypatch):
    module = sys.modules["gpu_check"]
    calls = iter([lambda x: x, _raising] * 50)
    broken = module.Subject("rule", "take of a broken device", lambda x: next(calls)(x), (1.0,), "f8")
    monkeypatch.setattr(module, "_rule_cases", lambda: [broken, module.Subject("rule", "take", np.sin, (X,), "f8")])
    monkeypatch.setitem(module.STAGES, "limits", _raising)
    monkeypatch.setattr(module, "_waits", _raising)
    stages = [f"--only={stage}" for stage in ("limits", "right", "quiet")]
    status, document, _ = check("--emulated", *stages, "--match", "take")
    assert status == 1
    rows = {row["name"]: row for row in document["rows"]}
    error = "IndexError: index 7 is out of bounds for axis 0 with size 3"
    assert rows["the stage limits"]["measured"] == f"{error} (test_gpu_check.py:{_raising.__code__.co_firstlineno + 1})"
    assert rows["the stage limits"]["verdict"] == "wrong"
    for tier in TIERS:
        assert (rows[f"take of a broken device, {tier}"]["verdict"], rows[f"rule cases, {tier}"]["measured"]) == (
            "wrong",
            "1",
        )
        assert error in rows[f"take of a broken device, {tier}"]["measured"]
    assert [*document["seconds"]] == ["limits", "right", "quiet"]


def test_a_limit_that_has_no_memory_is_a_row_and_the_others_are_measured(check, monkeypatch):
    ones = torch.ones

    def short(shape, **keywords):
        if keywords["dtype"] is torch.float64:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 128.00 MiB.")
        return ones(shape, **keywords)

    monkeypatch.setattr(torch, "ones", short)
    status, document, said = check("--emulated", "--only", "limits")
    assert status == 1
    verdicts = {row["name"]: row["verdict"] for row in document["rows"]}
    assert verdicts.pop("product of 64 x 64 in f8") == "wrong"
    assert set(verdicts.values()) == {"known"}
    assert "OutOfMemoryError: CUDA out of memory" in said


def test_a_stage_ends_where_the_device_is_lost(check, monkeypatch):
    module = sys.modules["gpu_check"]
    lost = module.Subject("rule", "rule that ends the device", _raising, (X,), "f8")
    monkeypatch.setattr(module, "_rule_cases", lambda: [lost, lost])
    monkeypatch.setattr(module, "_why_wrong", lambda *_: f"CUDA error; {module._UNUSABLE}: start another")
    status, document, _ = check("--emulated", "--only", "right", "--match", "rule that")
    assert status == 1
    assert [row["verdict"] for row in document["rows"]] == ["wrong", "cut off"]
    assert document["rows"][1]["measured"].startswith(
        "LostDeviceError: after rule that ends the device, unfused: CUDA error"
    )


def test_what_is_asked_has_a_limit(check):
    status, document, said = check("--emulated", "--only", "right", "--only", "memory", "--match", "touch_large")
    assert status == 0, said
    limits = {row["name"]: row["limit"] for row in document["rows"] if row["stage"] == "right" or "[" in row["name"]}
    assert limits["workloads, native"] == "1e-09 of the largest element, at least of 1"
    assert all(limit.endswith((" bytes", "of 1")) for limit in limits.values())


def test_races_are_in_single_precision_but_those_that_read_alone_and_one_is_flat(check):
    races = sys.modules["gpu_check"].RACES
    assert {race.workload for race in races if race.dtype == "f8"} == {"poly9_powers"}
    assert [race.workload for race in races if race.flat_from is not None] == ["touch_large_array"]
    status, document, said = check("--emulated", "--only", "fast", "--match", "touch_large")
    assert status == 0, said
    (flat,) = (row for row in document["rows"] if row["name"].endswith(", flat in n"))
    assert flat["asked"] == "at most 1.1 times what n=5 takes"
    assert flat["measured"].endswith(" us")
    assert flat["limit"].endswith(" us")


@pytest.mark.parametrize(
    ("listed", "device", "left", "name"),
    [
        (None, "cuda", None, "cuda"),
        (None, "cuda:1", "1", "cuda"),
        ("GPU-aa,GPU-bb", "cuda:1", "GPU-bb", "cuda"),
        ("GPU-aa", "cuda:1", "GPU-aa", "cuda:1"),
        (None, "cpu", None, "cpu"),
    ],
)
def test_a_device_that_is_named_is_the_only_one_that_is_seen(check, listed, device, left, name, monkeypatch):
    """Peers, commands and NVIDIA's library then mean the same one by "cuda"; what is not there is refused by its name."""
    module = sys.modules["gpu_check"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert module._visible_alone(device, is_set=False) == name
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == listed
    assert module._visible_alone(device, is_set=True) == name
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == left


def test_stages_leave_those_behind_them_their_shares(check):
    module = sys.modules["gpu_check"]
    assert sum(module.SHARES_S.values()) + module.STARTS_S == 8 * 60
    assert module.end_of(480.0, 8, ["fast", "memory", "product"]) == 385.0
    assert module.end_of(60.0, 1, ["product"]) == 60.0


#: A script that is `gpu_check.py` with other stages: each row says which process it comes from.
OTHER_STAGES = """
import importlib.util, os, sys, time
spec = importlib.util.spec_from_file_location("gpu_check", {script!r})
module = sys.modules["gpu_check"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

def stage(name, then=lambda: None):
    def run(check):
        check.add(name, name, "", str(os.getpid()), "known")
        check.begin(f"kernel of {{name}}")
        then()
    return run

module.STAGES = {{name: stage(name) for name in module.STAGES}}
module.STAGES["limits"] = stage("limits", lambda: time.sleep(3600))
module.STAGES["right"] = stage("right", lambda: os._exit(7))
module._is_usable = lambda check: check.rows[-1].name != "quiet"
print("what a library prints")
sys.exit(module.main())
"""


def test_a_stage_that_hangs_or_ends_its_process_is_a_row_and_those_behind_it_run(check, tmp_path, monkeypatch, capsys):
    module, script = sys.modules["gpu_check"], tmp_path / "other.py"
    script.write_text(OTHER_STAGES.format(script=str(SCRIPT)))
    monkeypatch.setattr(module, "_HERE", script)
    monkeypatch.setattr(module, "EMULATED_GRACE_S", 10.0)
    monkeypatch.setitem(module.SHARES_S, "limits", 0)
    assert module.main(["--emulated", "--minutes", "1", "--out", str(tmp_path)]) == 1
    said, document = capsys.readouterr().err, json.loads((tmp_path / "gpu-check.json").read_text())
    assert [*document["seconds"]] == [*module.STAGES]
    rows = {row["name"]: row for row in document["rows"]}
    assert rows["the stage limits"]["verdict"] == "cut off"
    assert rows["the stage limits"]["measured"].endswith(" s after its begin, at kernel of limits")
    assert rows["the stage right"]["verdict"] == "wrong"
    assert rows["the stage right"]["measured"] == "the process ended with exit status 7, at kernel of right"
    processes = [rows[name]["measured"] for name in module.STAGES]
    assert len(dict.fromkeys(processes)) == 4  # facts and limits, right, quiet, which loses the device, and the rest
    assert processes[0] == processes[1] != processes[2] != processes[3] != processes[4] == processes[5] == processes[6]
    assert "cut off: the stage limits: asked its end, got hangs" in said
    assert len(document["rows"]) == 9


def test_a_device_that_is_not_found_again_leaves_rows_of_the_stages_that_are_left(check, tmp_path, monkeypatch, capsys):
    module, script = sys.modules["gpu_check"], tmp_path / "other.py"
    text = OTHER_STAGES.format(script=str(SCRIPT)).replace('check.rows[-1].name != "quiet"', "False")
    script.write_text(
        f"from pathlib import Path\nstarted = Path({str(tmp_path / 'started')!r})\n"
        "if started.exists():\n    raise SystemExit(2)\nstarted.touch()\n" + text
    )
    monkeypatch.setattr(module, "_HERE", script)
    stages = ["--only", "facts", "--only", "quiet", "--only", "product"]
    assert module.main(["--emulated", *stages, "--out", str(tmp_path)]) == 1
    rows = json.loads((tmp_path / "gpu-check.json").read_text())["rows"]
    assert [(row["stage"], row["verdict"]) for row in rows] == [
        ("facts", "known"),
        ("quiet", "cut off"),
        ("product", "cut off"),
    ]
    assert rows[2]["measured"] == "a new process does not find the device: exit status 2"
    capsys.readouterr()
    assert module.main(["--emulated", *stages, "--out", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "none").exists()


#: A script that is started to compile: waits until another of it runs, or for good.
COMPILING = """
import os, sys, time
from pathlib import Path
here, (number, peer) = Path(__file__).parent, sys.argv[2].split(":")
(here / f"{number}-{peer}").write_text(str(os.getpid()))
while peer == "jax" or len(list(here.glob("*-torch-compile"))) < 2:
    time.sleep(0.01)
(here / f"{number}-done").touch()
"""


def test_peers_are_compiled_at_once_in_processes_that_do_not_outlive_the_wait_for_them(check, tmp_path, monkeypatch):
    module, script = sys.modules["gpu_check"], tmp_path / "compiling.py"
    script.write_text(COMPILING)
    monkeypatch.setattr(module, "_HERE", script)
    monkeypatch.setattr(module.os, "cpu_count", lambda: 5)
    tasks = [(1, "torch-compile"), (2, "torch-compile"), (3, "jax")]
    monkeypatch.setattr(module.Compiling, "_tasks", lambda _: tasks)
    compiling = module.Compiling(SimpleNamespace(emulated=False, match=""), "cuda")
    compiling.begin()
    while not {"1-done", "2-done", "3-jax"} <= {path.name for path in tmp_path.iterdir()}:
        time.sleep(0.01)
    compiling.end()
    assert [future.done() for future in compiling._futures] == [True] * 3
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "3-jax").read_text()), 0)
    assert not (tmp_path / "3-done").exists()


def test_what_is_compiled_is_what_is_raced(check, monkeypatch):
    module = sys.modules["gpu_check"]
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    tasks = module.Compiling(SimpleNamespace(emulated=False, match="dense_bias_act[n=4096"), "cuda")._tasks()
    assert tasks == [(2, "torch-compile"), (2, "jax"), (3, "torch-compile")]  # JAX is not told to round
    assert module.Compiling(SimpleNamespace(emulated=True, match=""), "cuda")._tasks() == []
    assert module.main(["--emulated", "--compile", "0:torch"]) == 0


def test_what_is_right_and_slow_has_a_status_of_its_own(check, monkeypatch):
    def slow(one):
        one.add("facts", "a race", "twice the speed", "half", "slow")

    monkeypatch.setitem(sys.modules["gpu_check"].STAGES, "facts", slow)
    status, _, said = check("--emulated", "--only", "facts")
    assert status == 3
    assert "slow: a race: asked twice the speed, got half" in said


def test_time_that_is_over_is_told(check):
    status, document, said = check("--emulated", "--minutes", "0", "--match", "softmax")
    assert status == 1
    assert "cut off" in said
    assert {row["verdict"] for row in document["rows"]} == {"known", "cut off"}


def test_what_matches_nothing_is_told(check):
    status, _, said = check("--emulated", "--match", "no rule of this name")
    assert status == 2
    assert "nothing is called" in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_a_machine_without_a_device_is_told_in_one_sentence(check):
    status, document, said = check()
    assert (status, document) == (2, None)
    assert "cuda is not there" in said
    assert len(said.splitlines()) == 1
