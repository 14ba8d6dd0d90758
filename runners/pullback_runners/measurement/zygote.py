"""The zygote: the one fresh process of a group, which the group's workers are forked from. Run as `python -P -m` with this name.

It imports Python's share of a worker, NumPy, the harness and, where all members have the same, the engine; where that is what is
measured, our workloads too. Workloads of others each worker imports by itself. So hash seed, environment and memory layout are drawn once a group, and
what a lucky layout gives to one member it gives to the others. Members whose subjects have an interpreter each have a zygote each.

It reads orders, one JSON object a line, from its standard input. The first names modules that none of its members changes, the
subject that all share, if they do, the packages of the subjects, and the descriptors of its workers, each with `orders`, `answers` and `errors`; the answer is their process ids. Then it obeys `wait` (for a worker's end; answers
whose and how it ended, since who asked may have stopped waiting by then). At the end of input it ends all workers, their forks, what they have left running and itself. None is reaped earlier than asked for, so that an
id is never somebody else's.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn, TextIO

if __name__ == "__main__":
    gc.disable()  # some five hundred objects of what is imported are garbage: looking for them takes a fifth of the time

from pullback_runners.measurement import worker
from pullback_runners.measurement.renewal import adopt_orphans, die_with_parent
from pullback_runners.workloads import known_workloads


def main() -> NoReturn:
    """Fork, then wait for what is asked."""
    die_with_parent()
    adopt_orphans()
    signal.signal(
        signal.SIGCHLD, signal.SIG_DFL
    )  # a caller that ignores it hands that on, and then nobody can be waited for
    orders = worker.take_standard_input()
    first = json.loads(orders.readline())
    channels = first["fork"]
    with contextlib.suppress(Exception):  # each worker meets it again, and answers with the reason
        _import_shared(first)
    gc.freeze()  # or the first collection in each worker copies every page that holds an object
    gc.enable()
    ids = [_forked(channel, channels, orders) for channel in channels]
    _close(channels)
    _answer({"ids": ids})
    ended: dict[int, int] = {}
    for line in orders:
        wanted = json.loads(line)["wait"]
        if wanted not in ended:
            ended[wanted] = os.waitstatus_to_exitcode(os.waitpid(wanted, 0)[1])
        _answer({"ended": wanted, "status": ended[wanted]})
    for each in ids:
        if each not in ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each, signal.SIGKILL)  # with what a workload has started and left running
    with contextlib.suppress(ChildProcessError):  # when none is left
        while True:
            for each in _children():  # those that this process has adopted are in groups of their own
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            os.waitpid(-1, 0)
    os._exit(0)  # as fast as it can: the interpreter's own farewell takes as long as a dozen turns


def _children() -> list[int]:
    """The ids of this process' children; empty where the system does not tell."""
    with contextlib.suppress(OSError):
        return [int(each) for file in Path("/proc/self/task").glob("*/children") for each in file.read_text().split()]
    return []


def _import_shared(first: dict[str, Any]) -> None:
    """Import what all workers would import: most of the time until they can be timed.

    Modules of the subjects, which each worker imports by itself, cannot be found meanwhile: an installed package that needs one
    would bring that which is installed.
    """
    subjects = first.get("subjects", ())
    sys.modules.update(dict.fromkeys(subjects))  # None: not to be imported
    for name in first["modules"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for name in subjects:
        del sys.modules[name]
    if first["subject"] is not None:
        worker.import_subject(first["subject"])
    if not first["engine"]:
        return
    if first["subject"] is not None and "pullback" in first["subject"]["imports"]:
        known_workloads()
    engine_package = importlib.import_module("pullback")
    for name in engine_package.__all__:
        getattr(engine_package, name)  # which imports what it stands for
    if not first["native"]:
        return
    for name in ("pullback.backends.native", "pullback.passes"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)


def _forked(channel: dict[str, int], channels: list[dict[str, int]], orders: TextIO) -> int:
    """Fork a worker that obeys the orders of its channel; return its id."""
    process_id = os.fork()
    if process_id:
        return process_id
    status = 1
    try:
        # Where the kernel shares CPUs among sessions, imports of all members side by side have a share each.
        os.setsid()
        for descriptor, name in enumerate(("orders", "answers", "errors")):
            os.dup2(channel[name], descriptor)
        _close(channels)
        orders.close()  # the zygote's own
        status = worker.main()
    except SystemExit as left:  # a workload's own wish, answered as an interpreter would
        status = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001 - the last words of a process that ends here
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _close(channels: list[dict[str, int]]) -> None:
    for channel in channels:
        for descriptor in channel.values():
            os.close(descriptor)


def _answer(content: dict[str, Any]) -> None:
    os.write(1, json.dumps(content).encode() + b"\n")


if __name__ == "__main__":
    main()
