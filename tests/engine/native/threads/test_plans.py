"""Plans on several threads, called by several Python threads, across forks and while the limit changes."""

import os
import subprocess
import sys

import pytest

PREAMBLE = """
import os, signal, sys, threading, time, warnings
import numpy as np
import pullback as pb
from pullback.backends.native.threads import counts

warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which is what is tested


def layer(x, w):
    y = np.tanh(x @ w)
    return np.sum(y * y), np.sum(y, axis=0)


x, w = np.random.default_rng(0).normal(size=(400, 64)), np.random.default_rng(1).normal(size=(64, 64)) / 8
plan, other = pb.compile(layer, tier="native"), pb.compile(pb.grad(lambda x, w: layer(x, w)[0]), tier="native")
pb.threads(1)
expected, expected_other = [[np.array(one) for one in plan(x, w)], np.array(other(x, w))]


def check(times):
    for _ in range(times):
        assert all(map(np.array_equal, plan(x, w), expected))
        assert np.array_equal(other(x, w), expected_other)


def fork(child):
    pid = os.fork()
    if pid == 0:
        try:
            child()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def beside(work):  # another thread calls plans until the work is done
    stop, failed = threading.Event(), []

    def keep_calling():
        try:
            while not stop.is_set():
                check(1)
        except BaseException as error:
            failed.append(error)

    callers = [threading.Thread(target=keep_calling) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        work()
    finally:
        stop.set()
        for caller in callers:
            caller.join()
    assert not failed, failed
"""


def runs(program):
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


posix = pytest.mark.skipif(os.name != "posix", reason="there are no such threads here")


@posix
def test_several_python_threads_get_their_results():
    assert runs("pb.threads(3)\nbeside(lambda: check(40))\nprint(counts().shared > 0)") == ["True"]


@posix
def test_the_limit_may_change_at_any_moment():
    runs("""
def change():
    for number in (2, 1, 7, 3, "auto") * 20:
        pb.threads(number)
        time.sleep(0.0005)
beside(change)
""")


@posix
def test_children_forked_while_other_threads_are_inside_of_plans_compute_too():
    runs("""
pb.threads(3)
def child():
    before = counts().threads
    check(5)
    assert counts().threads - before == 2
beside(lambda: [fork(child) for _ in range(5)])
check(5)
""")


@posix
def test_a_child_forked_while_another_thread_prepares_a_plan_prepares_it_too():
    runs("""
from pullback.compiling import plan as plans
inside, over = threading.Event(), threading.Event()
template_of = plans.template_of
def slow(*given):
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        over.wait()
    return template_of(*given)
plans.template_of = slow
late = pb.compile(layer, tier="native")
caller = threading.Thread(target=late, args=(x, w))
caller.start()
assert inside.wait(30)
def child():
    signal.alarm(30)
    assert all(map(np.array_equal, late(x, w), expected))
fork(child)
over.set()
caller.join()
""")


@posix
def test_a_child_of_a_process_that_allowed_one_thread_may_allow_more():
    runs("""
def child():
    with pb.threads(4):
        check(5)
    assert pb.threads() == 1
fork(child)
""")


@posix
def test_signals_are_handled_between_calls():
    runs("""
pb.threads(2)
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(threading.current_thread() is threading.main_thread()))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
check(100)
signal.setitimer(signal.ITIMER_REAL, 0)
assert seen and all(seen)
""")


@pytest.mark.long
@posix
def test_an_exception_in_between_leaves_the_pool_whole():
    runs("""
pb.threads(3)
picks = pb.compile(lambda x, i: np.sum(np.tanh(x @ x.T)[i]), tier="native")
picks(x, np.array([1, 2]))
for _ in range(5):
    try:
        picks(x, np.array([1, 1000]))
    except IndexError:
        check(2)
    else:
        raise SystemExit("an index out of bounds was not refused")
""")


@posix
def test_the_interpreter_ends_while_a_thread_is_inside_of_a_plan():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PREAMBLE + "pb.threads(3)\nthreading.Thread(target=lambda: check(10**9), daemon=True).start()\n"
            "while not counts().shared:\n    time.sleep(0.001)\nprint('end')",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "end\n")
