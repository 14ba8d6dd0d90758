import os
import subprocess
import sys
import textwrap
import threading

import pytest

from pullback.backends.native.linking import load


def test_a_loaded_program_runs(cache, adding, call):
    assert call(load(adding(3)), "add", 4) == 7


def test_functions_that_are_internal_or_absent_are_not_found(cache):
    loaded = load(
        "define internal i64 @hidden() {\n  ret i64 1\n}\n"
        "define i64 @seen() {\n  %x = call i64 @hidden()\n  ret i64 %x\n}\n"
    )
    assert loaded.address("seen")
    for name in ("hidden", "absent"):
        with pytest.raises(KeyError, match=f"no function '{name}'"):
            loaded.address(name)


def test_programs_with_functions_of_one_name_do_not_meet(cache, adding, call):
    programs = [load(adding(amount)) for amount in range(5)]
    assert [call(program, "add", 10) for program in programs] == [10, 11, 12, 13, 14]


def test_constants_and_variables_of_a_program_are_its_own(cache, call):
    counting = """
    @step = internal constant i64 5
    @count = internal global i64 0
    define i64 @next() {
      %old = load i64, ptr @count
      %step = load i64, ptr @step
      %new = add i64 %old, %step
      store i64 %new, ptr @count
      ret i64 %new
    }
    """.replace("\n    ", "\n")
    first, second = load(counting), load(counting)
    assert [call(first, "next"), call(first, "next"), call(second, "next")] == [5, 10, 5]


def test_a_text_that_is_no_ir_is_refused(cache):
    with pytest.raises(ValueError, match="not LLVM IR"):
        load("define i64 @f( {")


def test_a_text_that_breaks_the_rules_of_ir_is_refused(cache):
    with pytest.raises(ValueError, match="not LLVM IR"):
        load("define i64 @f() {\n  br label %next\nnext:\n  br label %entry\nentry:\n  ret i64 %x\n}")


def test_an_unknown_symbol_is_refused_by_name(cache):
    with pytest.raises(ValueError, match="'launch_missiles', which is no symbol that programs are given"):
        load("declare void @launch_missiles()\ndefine void @f() {\n  call void @launch_missiles()\n  ret void\n}\n")


def test_several_threads_load_at_once(cache, adding, call):
    results = {}

    def work(worker):
        for turn in range(4):
            amount = 10 * worker + turn
            results[amount] = call(load(adding(amount)), "add", 1)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {10 * worker + turn: 10 * worker + turn + 1 for worker in range(4) for turn in range(4)}


@pytest.mark.long
def test_many_programs_come_and_go_without_growing_the_process():
    program = textwrap.dedent("""
        import gc
        from pullback.backends.native.linking import load

        def anonymous_kib():
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

        def mappings():
            with open("/proc/self/maps") as maps:
                return sum(1 for _ in maps)

        def turn(amount):
            load(f"define i64 @add(i64 %x) {{\\n  %y = add i64 %x, {amount}\\n  ret i64 %y\\n}}\\n").address("add")

        for amount in range(50):
            turn(amount)
        gc.collect()
        before, mapped = anonymous_kib(), mappings()
        for amount in range(400):
            turn(1000 + amount)
        gc.collect()
        print(anonymous_kib() - before, mappings() - mapped)
    """)
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    environment = {**os.environ, "PULLBACK_CACHE": "0"}
    output = subprocess.check_output([sys.executable, "-c", program], text=True, env=environment)
    grown_kib, more_mappings = map(int, output.split())
    # Programs that stayed would take 12 KiB each, 4800 in all. A heap also grows by steps of fragmentation, up to 300 KiB
    # over the first few hundred programs and then no further, so that less than a quarter of what a leak takes says none.
    assert grown_kib < 1200
    assert more_mappings < 10


def test_a_forked_child_runs_and_loads_programs(cache, adding, call):
    loaded = load(adding(3))
    stop = threading.Event()

    def keep_compiling():
        amount = 0
        while not stop.is_set():
            amount += 1
            load(adding(1000 + amount))

    worker = threading.Thread(target=keep_compiling)
    worker.start()
    try:
        for turn in range(5):
            child = _fork_quietly()
            if child == 0:
                fine = call(loaded, "add", 4) == 7 and call(load(adding(-1 - turn)), "add", turn) == -1
                os._exit(0 if fine else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        worker.join()


def _fork_quietly():
    import warnings

    with warnings.catch_warnings():  # from 3.12 on Python warns of forks beside threads, which is what is tested
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
