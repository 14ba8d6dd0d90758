"""Groups of real processes, sound and failing."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pullback_runners.errors import VariantError
from pullback_runners.measurement.affinity import off_the_measured_cpu
from pullback_runners.measurement.examination import examine
from pullback_runners.measurement.lockstep import (
    FEWEST_ROUNDS,
    GroupProcesses,
    Timing,
    _rotations,
    calls_a_slice,
    paired_slices,
    run_group,
)
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.subject import INSTALLED
from pullback_runners.measurement.worker_process import (
    RandomDraws,
    StoppedError,
    WorkerSettings,
    blas_threads,
    start_worker,
    worker_environment,
)
from pullback_runners.measurement.zygote_process import Zygote
from pullback_runners.workloads import Case

RNG = random.Random(1)


def group_of(case, variants, path, *, slices=4, timeout_s=30.0, cpu=None, stop=lambda: False):
    settings = WorkerSettings([path], cpu, timeout_s, stop, RNG)
    return run_group(GroupProcesses(case, [Member(variant) for variant in variants], settings), slices)


def test_turns_rotate_so_that_two_members_go_abba():
    assert list(_rotations(["a", "b"], 4)) == [["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]]
    assert list(_rotations(["a", "b", "c"], 3)) == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]


def test_a_group_times_every_variant_in_every_round(faulty_workloads, sound_case):
    cpu = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    group = group_of(sound_case, ["unfused", "right", "prints"], faulty_workloads, slices=6, cpu=cpu)
    assert group.failures == {}
    assert list(group.timings) == ["unfused", "right", "prints"]
    for timing in group.timings.values():
        assert timing.calls >= 1
        assert 0 < timing.timer_s < 1e-3
        assert len(timing.cpu_s) == len(timing.wall_s) == 6
        assert all(0 < cpu_s < 1 for cpu_s in timing.cpu_s)
        assert len(timing.waited_s) == 6
        assert all(waited_s is None or waited_s >= 0 for waited_s in timing.waited_s)


def test_the_faster_of_two_is_measured_as_faster(faulty_workloads, sound_case):
    timings = group_of(sound_case, ["unfused", "right"], faulty_workloads).timings
    assert min(timings["unfused"].cpu_s) > min(timings["right"].cpu_s)


REFUSED = {
    "zeros": ("gradient", "off by 1 of its size; 1e-10 is accepted; unfused agrees with the oracle, zeros does not"),
    "nan": ("gradient", "NaN"),
    "off-by-a-thousandth": ("gradient", "off by 0.001"),
    "one-element-off": ("gradient", "off by"),
    "single-precision": ("gradient", "float32"),
    "scribbles": ("gradient", "argument x was not restored"),
    "raises": ("exception", "ArithmeticError: no gradient today ({file}, line 82, in the variant raises of sound)"),
    "raises-when-called": (
        "exception",
        "no gradient in a call ({file}, line 134, in the variant raises-when-called of sound)",
    ),
    "crashes": ("crash", "SIGSEGV"),
    "native": ("unavailable", "native"),
    "nobody": ("unavailable", "nobody"),
}


def test_what_cannot_be_measured_is_refused_before_anything_is_timed(faulty_workloads, sound_case, monkeypatch):
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    settings = WorkerSettings(workload_files=[faulty_workloads])
    found, failures = examine(sound_case, [Member(name) for name in ("right", *REFUSED)], settings)
    assert list(found) == ["right"]
    assert {name: error.kind for name, error in failures.items()} == {name: kind for name, (kind, _) in REFUSED.items()}
    for name, (_, said) in REFUSED.items():
        assert said.format(file=faulty_workloads) in failures[name].message


def test_who_reads_standard_input_is_at_its_end(faulty_workloads, sound_case):
    settings = WorkerSettings([faulty_workloads], timeout_s=30.0)
    found, failures = examine(sound_case, [Member("reads")], settings)
    assert (list(found), failures) == (["reads"], {})
    worker = start_worker("examine", sound_case, Member("reads"), settings)
    try:
        assert "gradient" in worker.answer()
    finally:
        worker.end()


def test_a_crash_comes_with_the_last_words(faulty_workloads, sound_case):
    _, failures = examine(sound_case, [Member("crashes")], WorkerSettings([faulty_workloads]))
    assert "last words" in failures["crashes"].message


def test_a_variant_that_hangs_or_dies_leaves_its_group_and_the_others_go_on(faulty_workloads, sound_case):
    variants = ["unfused", "hangs", "crashes-later", "falls-silent", "zeros"]
    group = group_of(sound_case, variants, faulty_workloads, slices=40, timeout_s=15.0)
    assert {variant: error.kind for variant, error in group.failures.items()} == {
        "hangs": "timeout",
        "crashes-later": "crash",
        "falls-silent": "crash",
        "zeros": "gradient",
    }
    assert list(group.timings) == ["unfused"]
    assert len(group.timings["unfused"].cpu_s) == 40
    assert "exit status 3" in group.failures["crashes-later"].message
    assert "closed its descriptors and went on" in group.failures["falls-silent"].message


BABBLING = """
import os, sys, time
os.write(1, ANSWERS)
if b"ids" not in ANSWERS:
    time.sleep(600)
os._exit(0)
"""


def zygote_that_writes(answers, sound_case, folder, monkeypatch, **settings):
    (folder / "babbling.py").write_text(BABBLING.replace("ANSWERS", repr(answers)))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    members = [Member("right"), Member("right", role="twin")]
    return Zygote(sound_case, members, WorkerSettings(modules=["babbling"], **settings))


@pytest.mark.parametrize(
    "answers",
    [
        b'{"ids": [4194001, 4194002]}\nx\ny\n',
        b'{"ids": [4194001, 4194002]}\n{"ended": [], "status": 0}\n',
        b'{"ids": [4194001, 4194002]}\n{"ended": 4194001, "status": "none"}\n',
        b'{"ids": [4194001, 4194002]}\n{"ended": 5, "status": 0}\n',
        b'{"ids": ["a", "b"]}\n',
        b'{"ids": [4194001]}\n',
        b'{"ids": [4194001, 0]}\n',
        b'{"ids": {}}\n',
    ],
)
def test_what_a_zygote_writes_beside_answers_fails_each_of_its_workers(sound_case, tmp_path, monkeypatch, answers):
    zygote = zygote_that_writes(answers, sound_case, tmp_path, monkeypatch)
    try:
        for worker in zygote.workers.values():
            with pytest.raises(
                VariantError, match="the process that forks workers wrote a .*, and was killed"
            ) as error:
                worker.answer()
            assert error.value.kind == "doubtful"
            worker._process.kill()
    finally:
        zygote.end()


def test_a_zygote_that_never_forks_is_a_timeout_of_each_of_its_workers(sound_case, tmp_path, monkeypatch):
    monkeypatch.setattr("pullback_runners.measurement.zygote_process.FAREWELL_S", 0.1)
    zygote = zygote_that_writes(b"", sound_case, tmp_path, monkeypatch, timeout_s=0.5)
    try:
        for worker in zygote.workers.values():
            with pytest.raises(VariantError, match=r"no answer in 0\.5 s"):
                worker.answer()
    finally:
        zygote.end()


def test_an_answer_that_came_too_late_is_no_answer_about_another_worker(faulty_workloads, sound_case):
    zygote = Zygote(sound_case, [Member("right"), Member("right", role="twin")], WorkerSettings([faulty_workloads]))
    try:
        first, second = (zygote.process_id(place, 30.0) for place in (0, 1))
        with pytest.raises(subprocess.TimeoutExpired):
            zygote.exit_status(0, 0.05)
        os.kill(first, signal.SIGTERM)
        os.kill(second, signal.SIGKILL)
        assert zygote.exit_status(1, 30.0) == -signal.SIGKILL
        assert zygote.exit_status(0, 30.0) == -signal.SIGTERM
    finally:
        zygote.end()


def test_no_process_outlives_its_group(faulty_workloads, sound_case):
    group_of(sound_case, ["unfused", "crashes"], faulty_workloads)
    with pytest.raises(StoppedError):
        group_of(sound_case, ["unfused", "hangs"], faulty_workloads, stop=lambda: True)
    assert [each for each in psutil.Process().children() if "pullback_runners" in " ".join(each.cmdline())] == []


@pytest.mark.skipif(sys.platform != "linux", reason="a parent's death is announced by Linux only")
def test_workers_die_with_the_process_that_started_them(faulty_workloads):
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from pullback_runners.workloads import Case\n"
        "from pullback_runners.measurement.member import Member\n"
        "from pullback_runners.measurement.lockstep import GroupProcesses\n"
        "from pullback_runners.measurement.worker_process import WorkerSettings\n"
        "case = Case('sound', (('n', 8),), 'f8')\n"
        "settings = WorkerSettings(workload_files=[Path(sys.argv[1])])\n"
        "lineup = GroupProcesses(case, [Member('hangs')], settings)\n"
        "print(lineup.workers['hangs']._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(faulty_workloads)], stdout=subprocess.PIPE, text=True
    ) as coordinator:
        worker = psutil.Process(int(coordinator.stdout.readline()))
        inside, deadline = str(Path(sys.executable).resolve()), time.monotonic() + 60
        while all(file.path != inside for file in worker.open_files()):  # there it reads no more orders
            assert time.monotonic() < deadline
            time.sleep(0.02)
        coordinator.kill()
    worker_ended = psutil.wait_procs([worker], timeout=10)[1] == []
    assert worker_ended


def test_twins_are_two_processes_of_one_program(faulty_workloads, sound_case):
    members = [Member("right"), Member("right", role="twin")]
    group = run_group(GroupProcesses(sound_case, members, WorkerSettings([faulty_workloads])), 4)
    assert list(group.timings) == ["right", "twin"]
    assert group.timings["right"].cpu_s != group.timings["twin"].cpu_s


def timing_of(cpu_s, waited_s):
    return Timing(10, list(cpu_s), [2 * each for each in cpu_s], list(waited_s))


def test_rounds_in_which_one_waited_are_left_out_of_both(sound_case):
    one = timing_of([1e-4, 2e-4, 3e-4, 4e-4], [0.0, 1e-3, 0.0, 0.0])
    other = timing_of([5e-4, 6e-4, 7e-4, 8e-4], [0.0, 0.0, 2e-4, 5e-3])
    assert (one.disturbed(), other.disturbed()) == ([1], [3])
    assert paired_slices(sound_case, [one, other]) == [[1e-4, 3e-4], [5e-4, 7e-4]]


def test_where_most_rounds_are_disturbed_all_count(sound_case):
    one = timing_of([1e-4, 2e-4, 3e-4], [1.0, 1.0, 0.0])
    assert paired_slices(sound_case, [one, one]) == [[1e-4, 2e-4, 3e-4]] * 2


def test_a_kernel_that_does_not_say_leaves_nothing_out(sound_case):
    one = timing_of([1e-4, 2e-4], [None, None])
    assert one.disturbed() == []
    assert paired_slices(sound_case, [one]) == [[1e-4, 2e-4]]


def test_what_all_members_import_is_imported_before_they_are_forked():
    """Or each of them imports it again, which takes a second each and most of the time of a quick run."""
    program = (
        "import sys\n"
        "from pullback_runners.measurement import worker, zygote\n"
        "from pullback_runners.workloads import choose_cases\n"
        "from pullback_runners.variants import TIERS, open_variant\n"
        "from pullback_runners.measurement.subject import INSTALLED\n"
        "zygote._import_shared({'modules': [], 'subject': INSTALLED.document(), 'engine': True, 'native': True})\n"
        "before = set(sys.modules)\n"
        "case = choose_cases('quick', ['dense_bias_act*'], [], 'cpu').cases[0]\n"
        "for tier in TIERS:\n"
        "    order = {'workload_files': [], 'case': case.document(), 'variant': tier}\n"
        "    with worker._checked_variant(order): pass\n"
        "print(*sorted(name for name in set(sys.modules) - before if name.startswith('pullback')))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU can be chosen here")
def test_a_lineup_keeps_off_the_measured_cpu_until_its_turns(faulty_workloads, sound_case):
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    with off_the_measured_cpu(cpu):
        lineup = GroupProcesses(sound_case, [Member("right")], WorkerSettings([faulty_workloads], cpu))
    assert os.sched_getaffinity(0) == allowed
    try:
        (worker,) = lineup.workers.values()
        assert os.sched_getaffinity(worker._process.pid) == ((allowed - {cpu}) or allowed)
        worker.answer()
        worker.ask({"do": "warm", "cpus": [cpu]})
        assert os.sched_getaffinity(worker._process.pid) == {cpu}
    finally:
        lineup.end()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU can be chosen here")
def test_the_following_lineup_starts_on_all_cpus_once_the_turns_are_over(faulty_workloads, sound_case):
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    settings = WorkerSettings([faulty_workloads], cpu)
    first = GroupProcesses(sound_case, [Member("right")], settings)
    with off_the_measured_cpu(cpu):
        following = GroupProcesses(sound_case, [Member("right")], settings)
        try:
            run_group(first, 1, start_following=lambda: following)
            (worker,) = following.workers.values()
            assert os.sched_getaffinity(worker._process.pid) == allowed
        finally:
            following.end()


@pytest.mark.skipif(sys.platform != "linux", reason="threads can be counted on Linux only")
def test_all_threads_of_a_worker_take_its_turns_on_the_measured_cpu(faulty_workloads, sound_case):
    cpu = max(os.sched_getaffinity(0))
    lineup = GroupProcesses(sound_case, [Member("threaded")], WorkerSettings([faulty_workloads], cpu))
    try:
        (worker,) = lineup.workers.values()
        worker.answer()
        worker.ask({"do": "warm", "cpus": [cpu]})
        threads = [each.id for each in psutil.Process(worker._process.pid).threads()]
        assert len(threads) > 1
        assert [os.sched_getaffinity(thread) for thread in threads] == [{cpu}] * len(threads)
    finally:
        lineup.end()


@pytest.mark.parametrize(
    ("filling", "calls"),
    [
        ({"a": 10.0, "b": 14.0, "c": 8.0}, {"a": 10, "b": 10, "c": 10}),
        (
            {"a": 10.0, "b": 100.0, "c": 11.0},
            {"a": 10, "b": 100, "c": 10},
        ),  # a tenth of the time a call: calls of its own
        ({"b": 100.0, "c": 11.0}, {"b": 100, "c": 11}),  # the first has failed, the next one leads
        (
            {"a": 1.4, "b": 1.6, "c": 1.7},
            {"a": 2, "b": 2, "c": 2},
        ),  # one call and two are as far apart as a call is long
        ({"a": 1.08, "b": 2.4, "c": 1.2}, {"a": 1, "b": 1, "c": 1}),
        ({"a": 1.6, "b": 0.02}, {"a": 2, "b": 1}),
        ({}, {}),
    ],
)
def test_members_about_as_fast_as_the_first_make_equally_many_calls(filling, calls):
    assert calls_a_slice(filling, ["a", "b", "c"]) == calls


class Starting:
    """A lineup that is ready when it has been asked so many times."""

    def __init__(self, asked):
        self.asked = asked

    def is_ready(self):
        self.asked -= 1
        return self.asked < 0

    def start_on(self, cpus):
        pass


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("asked", "rounds"), [(0, FEWEST_ROUNDS), (30, FEWEST_ROUNDS + 30), (1000, 100)])
def test_turns_go_on_while_the_next_group_starts(faulty_workloads, sound_case, asked, rounds):
    lineup = GroupProcesses(
        sound_case, [Member("right"), Member("right", role="twin")], WorkerSettings([faulty_workloads])
    )
    assert run_group(lineup, slices=100, most_s=0.0, start_following=lambda: Starting(asked)).rounds() == rounds


def test_a_lineup_is_ready_when_all_of_its_processes_are_or_have_failed(faulty_workloads, sound_case):
    lineup = GroupProcesses(sound_case, [Member("right"), Member("raises")], WorkerSettings([faulty_workloads]))
    try:
        assert not lineup.is_ready()
        lineup.workers["right"].answer()
        with pytest.raises(VariantError):
            lineup.workers["raises"].answer()
        lineup.workers["right"].order({"do": "warm", "cpus": []})
        lineup.workers["right"].answer()
        assert not lineup.workers["right"].has_answer()
        deadline = time.monotonic() + 10
        while not lineup.workers["raises"].has_answer():  # its end, which comes behind its answer
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        lineup.end()


def test_turns_end_when_the_time_of_a_group_is_up_with_as_many_of_each(faulty_workloads, sound_case):
    lineup = GroupProcesses(
        sound_case, [Member("right"), Member("right", role="twin")], WorkerSettings([faulty_workloads])
    )
    group = run_group(lineup, slices=1000, most_s=0.0)
    assert [len(timing.cpu_s) for timing in group.timings.values()] == [FEWEST_ROUNDS, FEWEST_ROUNDS]


def test_turns_end_at_the_deadline_after_one_of_each(faulty_workloads, sound_case):
    lineup = GroupProcesses(
        sound_case, [Member("right"), Member("right", role="twin")], WorkerSettings([faulty_workloads])
    )
    assert run_group(lineup, slices=1000, deadline=time.monotonic()).rounds() == 1


def forks_of(worker):
    return [fork.pid for fork in psutil.Process(worker._process.pid).children()]


def wait_for_forks(worker, before=()):
    """The fork that takes turns and the one after it, in the order of their making, once the first of those before has been waited for."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        forks = sorted(psutil.Process(worker._process.pid).children(), key=psutil.Process.create_time)
        if len(forks) == 2 and forks[0].pid not in before[:1]:
            return [fork.pid for fork in forks]
        time.sleep(0.01)
    raise AssertionError(f"the forks are {forks}")


@pytest.mark.skipif(sys.platform != "linux", reason="threads can be counted on Linux only")
def test_renewed_a_worker_goes_on_in_another_fork_of_itself(faulty_workloads, sound_case):
    lineup = GroupProcesses(sound_case, [Member("right"), Member("threaded")], WorkerSettings([faulty_workloads]))
    try:
        worker, threaded = lineup.workers["right"], lineup.workers["threaded"]
        seen = []
        worker.answer()
        for _ in range(2):
            worker.ask({"do": "renew", "apart": []})
            assert worker.ask({"do": "turn", "calls": 3})["cpu_ns"] > 0
            seen.append(wait_for_forks(worker, *seen[-1:]))
        (first, second), (next_one, third) = seen
        assert second == next_one  # forked before its turns
        assert len({first, second, third}) == 3
        threaded.answer()
        assert threaded.ask({"do": "renew", "apart": []})["renewed"] is False
        assert forks_of(threaded) == []
    finally:
        lineup.end()
    assert not any(map(psutil.pid_exists, {*seen[0], *seen[1]}))


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="no CPU can be chosen here"
)
def test_the_next_fork_waits_on_another_cpu_than_the_measured_one(faulty_workloads, sound_case):
    measured, *others = sorted(os.sched_getaffinity(0))
    lineup = GroupProcesses(sound_case, [Member("right")], WorkerSettings([faulty_workloads]))
    try:
        worker = lineup.workers["right"]
        worker.answer()
        worker.ask({"do": "warm", "cpus": [measured]})
        forks = ()
        for _ in range(2):
            worker.ask({"do": "renew", "apart": others})
            turns, following = forks = wait_for_forks(worker, forks)
            assert os.sched_getaffinity(turns) == {measured}
            assert os.sched_getaffinity(following) == os.sched_getaffinity(worker._process.pid) == set(others)
    finally:
        lineup.end()


def test_a_lineup_has_one_hash_seed_and_the_next_one_another(faulty_workloads, sound_case):
    members = [Member("right"), Member("right", role="twin")]
    seeds = []
    for _ in range(2):
        lineup = GroupProcesses(sound_case, members, WorkerSettings([faulty_workloads]))
        try:
            found = {psutil.Process(w._process.pid).environ()["PYTHONHASHSEED"] for w in lineup.workers.values()}
        finally:
            lineup.end()
        assert len(found) == 1
        seeds += found
    assert seeds[0] != seeds[1]


def ask_for_a_minute(worker):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        worker.ask({"do": "warm", "cpus": []})


@pytest.mark.skipif(sys.platform != "linux", reason="a parent's death is announced by Linux only")
def test_workers_whose_zygote_dies_have_crashed(faulty_workloads, sound_case):
    lineup = GroupProcesses(sound_case, [Member("right")], WorkerSettings([faulty_workloads]))
    try:
        worker = lineup.workers["right"]
        worker.answer()
        os.kill(lineup._zygote._zygotes[0]._process.pid, signal.SIGKILL)
        with pytest.raises(VariantError, match="the process that forks workers ended early") as crash:
            ask_for_a_minute(worker)  # it may answer once more before the kernel tells it
        assert crash.value.kind == "crash"
    finally:
        lineup.end()


def test_a_case_says_how_many_blas_threads_it_has(sound_case):
    assert blas_threads(sound_case) == 1
    assert blas_threads(Case("sound", (("n", 8), ("threads", 2)), "f8")) == 2


def test_members_have_as_many_threads_as_the_case_says_whatever_the_runner_may_use(sound_case, monkeypatch):
    monkeypatch.setenv("PULLBACK_NUM_THREADS", "5")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    for case, threads in ((sound_case, "1"), (Case("sound", (("n", 8), ("threads", 2)), "f8"), "2")):
        environment = worker_environment(case, INSTALLED, RandomDraws.of(random.Random(1)))
        assert {environment[name] for name in ("PULLBACK_NUM_THREADS", "OPENBLAS_NUM_THREADS")} == {threads}
