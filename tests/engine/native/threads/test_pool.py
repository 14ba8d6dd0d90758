import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

import pullback as pb
from pullback.backends.native.linking import load
from pullback.backends.native.threads import counts, pool


def since(before):
    """What the pool did since some counts were read."""
    now = read()
    return {name: now[name] - before[name] for name in now}


def read():
    return {name: getattr(counts(), name) for name, _ in counts()._fields_}


def meet(parties):
    """A block function that waits until so many blocks run at the same moment."""
    barrier = threading.Barrier(parties)
    seen = []

    def block(number):
        barrier.wait(timeout=60)
        seen.append((number, threading.get_ident()))

    return block, seen


@contextlib.contextmanager
def at_work(parallel_for, callers):
    """Threads that have blocks done again and again until the block is left; then all of them were done."""
    stop, wrong = threading.Event(), []

    def keep_working():
        while not stop.is_set():
            done = []
            parallel_for(done.append, 16)
            if sorted(done) != list(range(16)):
                wrong.append(done)

    workers = [threading.Thread(target=keep_working) for _ in range(callers)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert wrong == []


@pytest.mark.parametrize("blocks", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_block_is_done_once(blocks, threads, parallel_for):
    done = []
    with pb.threads(threads):
        parallel_for(done.append, blocks)
    assert sorted(done) == list(range(blocks))


def test_threads_work_at_the_same_moment(parallel_for):
    block, seen = meet(3)
    before = read()
    with pb.threads(3):
        parallel_for(block, 3)
    assert sorted(number for number, _ in seen) == [0, 1, 2]
    assert len({thread for _, thread in seen}) == 3
    assert threading.get_ident() in {thread for _, thread in seen}
    assert since(before)["shared"] == 1
    assert since(before)["joined"] == 2
    assert since(before)["helped"] == 2


def test_one_thread_and_one_block_stay_with_the_caller(parallel_for):
    threads = set()
    before = read()
    with pb.threads(1):
        parallel_for(lambda _: threads.add(threading.get_ident()), 10)
    with pb.threads(8):
        parallel_for(lambda _: threads.add(threading.get_ident()), 1)
    assert threads == {threading.get_ident()}
    assert since(before) == {"shared": 0, "alone": 2, "joined": 0, "threads": 0, "helped": 0}


def test_no_more_threads_join_than_the_limit_says(parallel_for):
    block, _ = meet(4)
    with pb.threads(4):  # there are three others from here on
        parallel_for(block, 4)
    threads = set()

    def slow(_):
        threads.add(threading.get_ident())
        time.sleep(0.001)

    with pb.threads(2):
        parallel_for(slow, 20)
    assert len(threads) <= 2


def test_threads_are_started_once_and_kept(parallel_for):
    for _ in range(2):
        block, _ = meet(3)
        with pb.threads(3):
            parallel_for(block, 3)
    before = read()
    for _ in range(20):
        block, _ = meet(3)
        with pb.threads(3):
            parallel_for(block, 3)
    assert since(before)["threads"] == 0


def test_a_block_that_asks_for_threads_does_its_blocks_itself(parallel_for):
    inner = []

    def block(number):
        parallel_for(lambda part: inner.append((number, part, threading.get_ident())), 5)

    with pb.threads(3):
        parallel_for(block, 6)
    assert sorted(entry[:2] for entry in inner) == [(number, part) for number in range(6) for part in range(5)]
    by_number = {number: {entry[2] for entry in inner if entry[0] == number} for number in range(6)}
    assert all(len(threads) == 1 for threads in by_number.values())


def test_several_callers_at_once_all_get_their_blocks_done(parallel_for):
    done = {caller: [] for caller in range(4)}

    def call(caller):
        for _ in range(50):
            parallel_for(done[caller].append, 8)

    with pb.threads(3):
        callers = [threading.Thread(target=call, args=(caller,)) for caller in done]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert all(sorted(numbers) == sorted(list(range(8)) * 50) for numbers in done.values())


def test_native_blocks_in_quick_succession_lose_nothing(parallel_for, cache_free):
    text = """
    @total = internal global i64 0
    declare void @pullback_parallel_for(ptr, ptr, i64)
    define internal void @block(ptr %context, i64 %number) {
      %old = atomicrmw add ptr %context, i64 %number monotonic
      ret void
    }
    define i64 @run(i64 %turns, i64 %blocks) {
    entry:
      store i64 0, ptr @total
      br label %turn
    turn:
      %k = phi i64 [ 0, %entry ], [ %next, %turn ]
      call void @pullback_parallel_for(ptr @block, ptr @total, i64 %blocks)
      %next = add i64 %k, 1
      %more = icmp slt i64 %next, %turns
      br i1 %more, label %turn, label %end
    end:
      %total = load i64, ptr @total
      ret i64 %total
    }
    """.replace("\n    ", "\n")
    import ctypes

    loaded = load(text)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(loaded.address("run"))
    before = read()
    with pb.threads(4):
        assert run(2000, 9) == 2000 * 36
    assert since(before)["shared"] == 2000


@pytest.fixture
def cache_free(monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", "0")


def test_the_limit_may_change_while_the_pool_is_at_work(parallel_for):
    with pb.threads(2), at_work(parallel_for, callers=2):
        for number in (5, 1, 2, 7, 3) * 20:
            pb.threads(number)
            time.sleep(0.0005)


def test_threads_that_slept_between_calls_come_again(parallel_for):
    for pause_s in (0.0, 2e-5, 1e-4, 1e-3) * 5:  # around the time after which they sleep
        block, seen = meet(3)
        with pb.threads(3):
            parallel_for(block, 3)
        assert len(seen) == 3
        time.sleep(pause_s)


def test_signals_go_to_the_main_thread(parallel_for):
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(threading.get_ident()))
    try:
        block, _ = meet(3)
        with pb.threads(3):
            parallel_for(block, 3)
        os.kill(os.getpid(), signal.SIGUSR1)
        while not handled:
            time.sleep(0)
        assert handled == [threading.main_thread().ident]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_threads_that_nobody_needs_use_no_processor_time(parallel_for):
    block, _ = meet(4)
    with pb.threads(4):
        parallel_for(block, 4)
    before = time.process_time_ns()
    time.sleep(0.05)
    assert time.process_time_ns() - before < 10_000_000  # three that spun would have used 150 ms


def fork(child):
    with warnings.catch_warnings():  # from 3.12 on Python warns of forks beside threads, which is what is tested
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if child() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_has_threads_of_its_own(parallel_for):
    block, _ = meet(3)
    with pb.threads(3):
        parallel_for(block, 3)

        def child():
            before = read()
            block, seen = meet(3)
            parallel_for(block, 3)
            return len({thread for _, thread in seen}) == 3 and since(before)["threads"] == 2

        assert fork(child) == 0
        assert fork(lambda: fork(child) == 0) == 0  # and a child's child
        block, seen = meet(3)
        parallel_for(block, 3)
        assert len(seen) == 3


def test_a_fork_while_the_pool_is_at_work_leaves_parent_and_child_whole(parallel_for, parallel_calls_of_c):
    def works():
        done = []
        parallel_for(done.append, 16)
        return sorted(done) == list(range(16))

    stop = threading.Event()

    def keep_working():
        while not stop.is_set():
            parallel_calls_of_c(16)

    with pb.threads(3):
        worker = threading.Thread(target=keep_working)
        worker.start()
        try:
            assert [fork(works) for _ in range(50)] == [0] * 50
        finally:
            stop.set()
            worker.join()
        assert works()


def test_a_fork_that_python_does_not_know_of_is_noticed(parallel_for):
    import ctypes

    block, _ = meet(2)
    with pb.threads(2):
        parallel_for(block, 2)
        pid = ctypes.PyDLL(None).fork()  # the C library's: no hook of Python's runs
        if pid == 0:
            before = read()
            block, _ = meet(2)
            parallel_for(block, 2)
            os._exit(0 if since(before)["threads"] == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_process_ends_while_threads_sleep():
    program = textwrap.dedent("""
        import ctypes
        import pullback as pb
        from pullback.backends.native.threads import library
        block = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(lambda context, number: None)
        address = library.library().address("pullback_parallel_for")
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
        with pb.threads(4):
            call(ctypes.cast(block, ctypes.c_void_p), None, 100)
        print(library.counts().threads)
    """)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert (result.stdout.strip(), result.stderr) == ("3", "")


def test_without_threads_the_caller_does_everything(cache_free):
    import ctypes

    loaded = load(pool.text(with_threads=False))
    block_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    call = ctypes.CFUNCTYPE(None, block_type, ctypes.c_void_p, ctypes.c_int64)(loaded.address("pullback_parallel_for"))
    done = []
    call(block_type(lambda _, block: done.append(block)), None, 5)
    assert done == [0, 1, 2, 3, 4]
