import json
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import psutil

from pullback_runners.machine import (
    Activity,
    ActivityWatch,
    Preflight,
    describe_machine,
    judge_quality,
    take_preflight,
)
from pullback_runners.machine.activity import _Process
from pullback_runners.machine.facts import PEERS, cpu_model_of, fingerprint, gpu_facts
from pullback_runners.peers import PEERS as PEERS_OF_TABLES
from pullback_runners.peers import find_peer

CPUINFO = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
stepping\t: 1
cpu MHz\t\t: {mhz}
bogomips\t: {bogomips}

processor\t: 1
model name\t: AMD EPYC
"""

QUIET = Preflight(
    load_1min=7.0,
    free_disk_bytes=2**36,
    affinity=[0, 1],
    pinned_cpu=1,
)
ALONE = Activity(others_cpus=0.03, steal=0.0)


def test_the_cpu_is_named_the_same_at_every_frequency():
    slow, fast = (cpu_model_of(CPUINFO.format(mhz=mhz, bogomips=mhz * 2)) for mhz in (800.0, 3700.1))
    assert slow == fast == "AMD EPYC (25/17/1)"


def test_a_machine_is_described_twice_alike():
    first, second = describe_machine(), describe_machine()
    assert first == second
    json.dumps(first)
    facts = first["facts"]
    assert {"cpu", "cores", "memory_gib", "kernel", "python", "numpy", "blas", "gpu", "driver"} <= set(facts)
    assert describe_machine("bench-1")["name"] == "bench-1"


def test_peers_that_are_installed_are_told_with_their_versions(tmp_path, monkeypatch):
    packages = {package for name in PEERS_OF_TABLES for package in find_peer(name).packages}
    assert packages - {"numpy"} <= set(PEERS)
    installed = tmp_path / "torch-99.1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 99.1\n")
    without = describe_machine()
    monkeypatch.syspath_prepend(str(tmp_path))
    described = describe_machine()
    assert described["facts"]["torch"] == "99.1"
    assert described["fingerprint"] == without["fingerprint"]


def test_software_splits_no_series_and_hardware_does():
    hardware = {"cpu": "A", "cores": 2}
    assert fingerprint(hardware) == fingerprint(dict(reversed(hardware.items())))
    assert fingerprint(hardware) != fingerprint({**hardware, "cores": 4})


def test_a_preflight_looks_at_the_real_machine():
    seen = take_preflight()
    assert seen.free_disk_bytes > 0
    assert seen.pinned_cpu is None or seen.pinned_cpu in seen.affinity
    json.dumps(seen.document())


def test_a_quiet_machine_is_clean_whatever_its_load_was_a_minute_ago():
    assert judge_quality(QUIET, ALONE, 0.01) == ("clean", [])


def test_each_limit_that_is_passed_is_named_with_what_was_measured():
    for preflight, activity, waiting, sentence in [
        (
            QUIET,
            Activity(1.0, 0.0, "python3, process 41"),
            0.0,
            "other processes used 1.00 CPUs, most of it python3, process 41; the limit is 0.2",
        ),
        (QUIET, Activity(0.0, 0.1), 0.0, "the hypervisor took 10% of the CPU time; the limit is 2%"),
        (QUIET, ALONE, 0.25, "the timed processes waited 25% of the time for their CPU; the limit is 5%"),
        (replace(QUIET, free_disk_bytes=2**20), ALONE, 0.0, "only 1 MiB of disk were free; the limit is 1024"),
        (replace(QUIET, gpu_processes=2), ALONE, 0.0, "2 other processes were computing on the GPU; the limit is 0"),
    ]:
        quality, (passed,) = judge_quality(preflight, activity, waiting)
        assert quality == "contaminated"
        assert passed.sentence == sentence
        assert set(passed.document()) == {"name", "limit", "measured", "sentence"}
        assert passed.measured != passed.limit


def test_what_a_system_does_not_tell_passes_no_limit():
    assert judge_quality(QUIET, Activity(0.0, None), None) == ("clean", [])


def test_what_others_use_is_told_apart_from_what_this_process_and_its_children_use():
    # A process that is not waited for until the watch ended counts as another's.
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        busy = ActivityWatch()
        while psutil.Process(rival.pid).cpu_times().user < 0.7:
            time.sleep(0.05)
        seen = busy.stop()
    finally:
        rival.kill()
        rival.wait()
    machine, begun = psutil.cpu_times(), time.monotonic()
    own = ActivityWatch()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.7: pass"], check=True)
    alone = own.stop()
    wall_s, after = time.monotonic() - begun, psutil.cpu_times()
    kinds = [kind for kind in ("user", "nice", "system", "irq", "softirq") if hasattr(after, kind)]
    all_s = sum(getattr(after, kind) - getattr(machine, kind) for kind in kinds)
    assert seen.others_cpus > 0.3  # more than a third of a CPU, however many share it
    assert seen.busiest is not None
    # Whatever else the machine does, the child's own 0.7 s are not counted as others'.
    assert alone.others_cpus * wall_s < all_s - 0.5


def test_a_thread_of_the_kernel_is_not_named_as_the_busiest(monkeypatch):
    cpu_s = {2: 1.0, 77: 1.0}

    def of_process(pid):
        return SimpleNamespace(memory_info=lambda: SimpleNamespace(vms=0 if pid == 2 else 4096))

    def used():
        return {_Process(pid, 0.0, f"name{pid}"): seconds for pid, seconds in cpu_s.items()}

    monkeypatch.setattr(psutil, "Process", of_process)
    monkeypatch.setattr("pullback_runners.machine.activity._cpu_s_by_process", used)
    watch = ActivityWatch()
    cpu_s[2] += 5
    assert watch.stop().busiest is None
    cpu_s[77] += 1
    assert watch.stop().busiest == "name77, process 77"


def test_processes_on_the_gpu_are_those_the_driver_names(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 41\necho 42\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert take_preflight().gpu_processes == 2
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert take_preflight().gpu_processes is None


def test_a_gpu_is_named_with_its_memory_and_driver(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, 570.86.15'\n")
    tool.chmod(0o755)
    without = describe_machine()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    described = describe_machine()
    assert (described["facts"]["gpu"], described["facts"]["driver"]) == ("NVIDIA H200, 140 GiB", "570.86.15")
    assert described["fingerprint"] != without["fingerprint"]
    tool.write_text(tool.read_text().replace("570.86.15", "580.1"))
    assert describe_machine()["fingerprint"] == described["fingerprint"]


def test_several_gpus_are_counted_by_kind_and_what_is_not_understood_is_none():
    rows = [["A", "40960", "1"], ["B", "8192", "1"], ["A", "40960", "1"]]
    assert gpu_facts(rows) == ("2 x A, 40 GiB; B, 8 GiB", "1")
    assert gpu_facts([["No devices were found"]]) == gpu_facts([]) == gpu_facts(None) == (None, None)
