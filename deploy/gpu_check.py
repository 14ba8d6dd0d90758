"""One command for a machine with a GPU: what of Pullback is right there.

    python deploy/gpu_check.py                    # everything, at most 8 minutes, into gpu-check.json and gpu-check.md
    python deploy/gpu_check.py --only right --match softmax
    python deploy/gpu_check.py --emulated         # without a GPU: kernels run on the CPU, by the same text

It needs Pullback and PyTorch: `pip install 'pullback[gpu]'`, or in a checkout `pip install '.[gpu]'`. Stages, in this order, so that
what is cut off by --minutes matters least; the files are written after each:

    facts     the device, its driver, versions, who else holds memory there
    limits    rates of copying, reading and products of matrices, and what one call of one kernel takes: what other figures are compared with
    right     every case of every rule, value and gradient, every workload of the suite quick, and loops and branches, in the four tiers,
              against NumPy, twice with the same bits, in the tier stateful with dead memory made useless, in the tier native by a CUDA graph
              where it can be; NaN, infinities and the smallest numbers through our kernels; programs of kernels alone in the bits of the emulator, with PULLBACK_FMA=0
    quiet     warm calls of plans of these workloads and of loops: nothing waits for the device but looks at positions, nothing is copied to it or from it;
              in the tier stateful nothing is asked of PyTorch's pool but for steps that the summary names, and in the tier
              native nothing is asked of PyTorch where the summary names no reason
    fast      workloads in the tier native beside PyTorch, torch.compile and JAX, those that are installed, in turns, some with a cold cache; and beside
              what limits them: the host's time of a call, the products of a layer alone, reading alone. Graphs with branches beside those without. What is asked are figures of an H100 or H200. A row
              beside has the most bytes in use in a call of each. Without a GPU the sizes are small, and no verdict is given
    memory    workloads of the suite quick in the tiers that keep memory: the most bytes in use in a warm call beside PyTorch's, what is asked of its pool,
              and the bytes that a call moves, by counters of the device where PyTorch's profiler may read them, beside those that were planned
    product   `pullback run` on the device, in the tiers, and the job of an agent there that compares the commit of this clone with itself.
              Without a GPU both are short and measure on the CPU, and a row says what is left to run on a device

Each stage has a share of the minutes, and what those before it left of theirs. Stages run in a process beside this one, which writes down each row as it comes: a stage that hangs
is ended, and it and what it did last are a row; so is an error of any kind, and the stages behind it run. While `right` and `quiet` run, other processes compile the peers of
`fast` into caches on disk.

Exit status: 0 all is right, 1 something is wrong or was cut off, 3 all is right and something is slow or takes more memory than is asked, 2 there is no
device, or the command line is wrong.
"""

import argparse
import gc
import json
import operator
import os
import platform
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import pullback as pb
from pullback import trees
from pullback.core.cases import ALL, Case
from pullback.errors import PullbackError
from pullback.tiers import KEEPING

FORMAT, VERSION = "pullback-gpu-check", 2  # 2: rows have a limit
TIERS = ("unfused", "fused", "stateful", "native")

#: Calls before one is looked at: in the tier native the third captures.
_WARM = {"native": 3}

#: Errors that are let pass, in units of the largest element: sums are in other orders, functions of other libraries.
TOLERANCE = {"f8": 1e-9, "f4": 2e-4}

#: A part of the sentences about what a device does not do yet, which documents name.
_NOT_YET = "which is not done on"

#: Of elementary functions, by element: a few units in the last place, and what two of them do to each other.
ULPS = 64


@dataclass(frozen=True)
class Row:
    """One thing that was asked: what came out, and how to ask it alone."""

    stage: str
    name: str
    asked: str
    measured: str
    limit: str
    """The bound of the figure: an error that is let pass, the time of what a call cannot do without, the bytes of another engine."""
    verdict: str
    """"right", "wrong", "slow" of a figure that is not reached, "refused" of what documents say is not done on a device yet, "known" of a fact, or "cut off"."""
    command: str


@dataclass
class Check:
    """A run of the checks: its device, when it ends, and the rows that it has so far."""

    device: str
    emulated: bool
    match: str
    ends_at: float
    rows: list[Row] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    options: str = ""
    """Options that the command of a row needs, besides its stage and its match."""
    tell: Callable[[dict[str, Any]], None] = lambda _: None
    """Told of each row, and of what is begun."""

    def add(
        self, stage: str, name: str, asked: str, measured: str, verdict: str, match: str = "", *, limit: str = ""
    ) -> None:
        """Note a row."""
        command = f"python deploy/gpu_check.py --only {stage}" + (f" --match '{match}'" if match else "") + self.options
        self.rows.append(row := Row(stage, name, asked, measured, limit, verdict, command))
        self.tell({"row": asdict(row)})

    def begin(self, what: str) -> None:
        """Say what is done next: if it hangs, this is what hung."""
        self.tell({"does": what})

    def is_over(self) -> bool:
        """True if there is no time left."""
        return time.monotonic() > self.ends_at


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


# --- facts ------------------------------------------------------------------------------------------------------------
def facts(check: Check) -> None:
    """The device, its driver, and versions."""
    import torch  # noqa: PLC0415 - whether it is there is told before

    known = {"PyTorch": torch.__version__, "NumPy": np.__version__, "Python": platform.python_version()}
    if check.emulated:
        known["device"] = f"none: kernels run on the CPU ({platform.machine()})"
    else:
        from pullback.backends.cuda.driver import driver  # noqa: PLC0415 - a library that only machines with a GPU have

        properties = torch.cuda.get_device_properties(check.device)
        free, total = torch.cuda.mem_get_info(check.device)
        known |= {
            "device": properties.name,
            "compute capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": str(properties.multi_processor_count),
            "driver knows CUDA": ".".join(map(str, driver().version())),
            "PyTorch's CUDA": str(torch.version.cuda),
            "memory": f"{total / 2**30:.1f} GiB, {free / 2**30:.1f} free before anything was computed",
            "devices that are visible": os.environ.get("CUDA_VISIBLE_DEVICES", "all"),
        } | _of_driver()
    for name, value in known.items():
        check.add("facts", name, "", value, "known")


def _of_driver() -> dict[str, str]:
    """The clocks of the first device that is visible, and who else computes there, where NVIDIA's library tells."""
    try:
        from pullback_runners.machine.nvml import DeviceError, nvml  # noqa: PLC0415 - where runners are installed
    except ImportError:
        return {}
    try:
        with nvml() as library:
            device = library.named(os.environ.get("CUDA_VISIBLE_DEVICES"))
            clocks, listed = library.clocks(device), library.processes(device)
    except DeviceError as reason:
        return {"clocks": str(reason)}
    known = {"": clocks.sm_mhz, "memory ": clocks.memory_mhz}
    told = [f"{name}{mhz} MHz" for name, mhz in known.items() if mhz is not None]
    told += [f"slow by {' and '.join(clocks.throttled)}"] * bool(clocks.throttled)
    others = [str(each) for each in listed if each.pid != os.getpid()]
    return {"clocks": ", ".join(told), "others there": ", ".join(others) or "nobody"}


# --- limits -----------------------------------------------------------------------------------------------------------
#: By name, PyTorch's dtype and whether products may round to TF32.
_PRODUCTS = {"f2": ("float16", False), "TF32": ("float32", True), "f4": ("float32", False), "f8": ("float64", False)}


def limits(check: Check) -> None:
    """Rates of the device, and the time of one call."""
    import torch  # noqa: PLC0415 - whether it is there is told before

    nbytes, n = (2**20, 64) if check.emulated else (2**28, 4096)
    seconds: dict[str, float] = {}

    def ones(*shape: int, dtype: str = "float32") -> Any:
        return torch.ones(shape, dtype=getattr(torch, dtype), device=check.device)

    def copying() -> str:
        x, y = ones(nbytes // 4), ones(nbytes // 4)
        seconds["copying"] = _seconds(check, lambda: y.copy_(x))
        return f"{2e-9 * nbytes / seconds['copying']:.4g} GB/s"

    def reading() -> str:
        x, total = ones(nbytes // 4), torch.empty((), device=check.device)
        return f"{1e-9 * nbytes / _seconds(check, lambda: torch.sum(x, dim=0, out=total)):.4g} GB/s"

    def multiplying(name: str) -> str:
        dtype, rounds = _PRODUCTS[name]
        a, c = ones(n, n, dtype=dtype), ones(n, n, dtype=dtype)
        with _tf32(allowed=rounds):
            seconds[name] = _seconds(check, partial(torch.mm, a, a, out=c))
        return f"{2e-12 * n**3 / seconds[name]:.4g} TFLOP/s"

    def finishing(name: str) -> str:
        """The part of a product and a pass over its result that the pass takes, read and written once."""
        passing = seconds["copying"] * n * n * np.dtype(_PRODUCTS[name][0]).itemsize / nbytes
        return f"{passing / (passing + seconds[name]):.2%}"

    def calling() -> str:
        plan = pb.compile(lambda x: np.tanh(x) * x, tier="stateful")
        (small,) = pb.put((np.ones(16),), check.device)
        behind, before = (_seconds(check, lambda: plan(small), of_host=of_host) for of_host in (False, True))
        return f"{1e6 * behind:.4g} us, the host {1e6 * before:.4g} us"

    works: dict[str, Callable[[], str]] = {
        f"copying {nbytes >> 20} MiB": copying,
        f"reading {nbytes >> 20} MiB": reading,
        **{f"product of {n} x {n} in {name}": partial(multiplying, name) for name in _PRODUCTS},
        **{f"an epilogue of {n} x {n} in {name} gains at most": partial(finishing, name) for name in ("f2", "TF32")},
        "a call of one kernel": calling,
    }
    for name, work in works.items():
        if check.is_over():
            check.add("limits", name, "a rate", "time was over", "cut off")
            return
        check.begin(name)
        try:
            check.add("limits", name, "", work(), "known")
        except Exception as error:  # noqa: BLE001 - memory that is not there, or what a library says; the next may work
            check.add("limits", name, "a rate", _said(error), "wrong")


@contextmanager
def _tf32(*, allowed: bool) -> Iterator[None]:
    """Let products round to TF32, or not."""
    import torch  # noqa: PLC0415 - as above

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _seconds(check: Check, work: Callable[[], Any], *, of_host: bool = False) -> float:
    """The least time that one of several calls took, of five tries: of the device, or of the host until the last returns."""
    import torch  # noqa: PLC0415 - as above

    calls, times = (2 if check.emulated else 20), []
    for _ in range(5):
        for _ in range(2):
            work()
        if check.emulated or of_host:
            if not check.emulated:
                torch.cuda.synchronize(check.device)
            begin = time.perf_counter()
            for _ in range(calls):
                work()
            times.append((time.perf_counter() - begin) / calls)
            continue
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.device(check.device):
            first.record()
            for _ in range(calls):
                work()
            last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) / 1000 / calls)
    return min(times)


# --- right ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Subject:
    """A function that gives values and derivatives, and its arguments."""

    kind: str
    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    dtype: str


def right(check: Check) -> None:
    """Values and gradients in every tier, and special values."""
    for kind, subjects in (
        ("rule cases", _rule_cases()),
        ("workloads", _workloads()),
        ("loops and branches", [*_loops(), *_looking()]),
        ("special values", _special()),
    ):
        chosen = [subject for subject in subjects if check.match in subject.name]
        for tier in TIERS:
            _hold(check, kind, chosen, tier)
    if check.match in _PRECISE:
        _precisions(check)
    for subject in _of_kernels():
        if check.match in subject.name:
            if check.is_over():
                check.add("right", subject.name, "the same bits", "time was over", "cut off", subject.name)
            else:
                _in_bits(check, subject)


def _of_kernels() -> Iterator[Subject]:
    """Programs of our kernels alone: PyTorch's functions have other bits on a CPU."""

    def polynomial(x: Any, y: Any) -> Any:
        total = x * 0
        for k in range(9):
            total = total * x + (k - 4) * y
        return np.sum(total)

    def elementary(x: Any, y: Any) -> Any:
        return np.sum(np.tanh(x * y + 0.5) * np.exp(-x * x) + np.sin(y) * np.log1p(x * x) - y / np.sqrt(1 + x * x))

    def softmax_of_rows(x: Any, y: Any) -> Any:
        return np.sum(pb.nn.softmax(x * y, axis=1) * y * y)

    rng = np.random.default_rng(4)
    for dtype in ("f4", "f8"):
        inputs = tuple(rng.normal(size=(300, 200)).astype(dtype) for _ in range(2))
        for loss in (polynomial, elementary, softmax_of_rows):
            name = f"{loss.__name__.replace('_', ' ')} of {dtype} in the bits of the emulator"
            yield Subject("bits", name, pb.value_and_grad(loss, wrt=(0, 1)), inputs, dtype)


def _in_bits(check: Check, subject: Subject) -> None:
    """A program on the device and by the emulator, where products and sums are rounded one by one."""
    check.begin(subject.name)
    before = os.environ.get("PULLBACK_FMA")
    os.environ["PULLBACK_FMA"] = "0"
    try:
        ours, theirs = (
            trees.flatten(pb.fetch(pb.compile(subject.function, tier="stateful")(*pb.put(subject.args, device))))[0]
            for device in (check.device, "cpu")
        )
        differ = [np.count_nonzero(np.not_equal(*map(np.asarray, pair))) for pair in zip(ours, theirs, strict=True)]
        measured = f"{sum(differ)} elements differ"
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is wrong
        measured = _said(error)
    finally:
        os.environ.pop("PULLBACK_FMA")
        if before is not None:
            os.environ["PULLBACK_FMA"] = before
    verdict = "right" if measured == "0 elements differ" else "wrong"
    check.add("right", subject.name, "the same bits", measured, verdict, subject.name)
    if _UNUSABLE in measured:
        raise LostDeviceError(f"after {subject.name}: {measured}")


#: The name of the row of what precision products have.
_PRECISE = "products of float32 where PyTorch's switch is on"


def _precisions(check: Check) -> None:
    """The errors of products of float32, of full precision and in TF32, while PyTorch's own switch allows TF32."""
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=(256, 256)).astype(np.float32) for _ in range(2))
    here, arguments, errors = a.astype(float) @ b.astype(float), pb.put((a, b), check.device), []
    with _tf32(allowed=True):
        for name in ("float32", "tf32"):
            with pb.precision(name):
                ours = pb.fetch(pb.compile(lambda a, b: a @ b, tier="stateful")(*arguments))
            errors.append(float(np.max(np.abs(ours - here)) / np.max(np.abs(here))))
    measured = f"off by {errors[0]:.2g} of the largest, in TF32 {errors[1]:.2g}"
    verdict = "right" if errors[0] < 2e-6 else "wrong"  # TF32 is off by some 2e-4
    asked = "full precision unless TF32 is asked for"
    check.add("right", _PRECISE, asked, measured, verdict, _PRECISE, limit="2e-06 of the largest")


#: A part of the sentence about an error after which a process cannot use its device.
_UNUSABLE = "this process cannot use the device any more"


class LostDeviceError(RuntimeError):
    """Raised where a stage cannot go on in this process."""


def _let_pass(subject: Subject) -> str:
    """The errors that are let pass, in words."""
    if subject.kind == "special":
        return f"{ULPS} units in the last place"
    return f"{TOLERANCE[subject.dtype]:g} of the largest element, at least of 1"


def _hold(check: Check, kind: str, subjects: Sequence[Subject], tier: str) -> None:
    verdicts: Counter[str] = Counter()
    for subject in subjects:
        if check.is_over():
            done = f"{verdicts['right']}, then time was over"
            check.add("right", f"{kind}, {tier}", f"{len(subjects)} agree", done, "cut off", check.match)
            return
        check.begin(f"{subject.name}, {tier}")
        wrong = _why_wrong(check, subject, tier)
        verdict = "right" if wrong is None else "refused" if _NOT_YET in wrong else "wrong"
        verdicts[verdict] += 1
        if wrong is not None:
            asked = "NumPy's, twice with the same bits"
            check.add("right", f"{subject.name}, {tier}", asked, wrong, verdict, subject.name, limit=_let_pass(subject))
            if _UNUSABLE in wrong:
                raise LostDeviceError(f"after {subject.name}, {tier}: {wrong}")
    if subjects:
        refused = f", {verdicts['refused']} refused" if verdicts["refused"] else ""
        verdict = "wrong" if verdicts["wrong"] else "right"
        measured = f"{verdicts['right']}{refused}"
        limit = " or ".join(dict.fromkeys(map(_let_pass, subjects)))
        check.add("right", f"{kind}, {tier}", f"{len(subjects)} agree", measured, verdict, check.match, limit=limit)


def _why_wrong(check: Check, subject: Subject, tier: str) -> str | None:
    """The difference between what a device and NumPy give, in words; None if there is none."""
    try:
        with pb.tier("unfused"), np.errstate(all="ignore"):
            here = trees.flatten(subject.function(*subject.args))[0]
        plan = None if tier == "unfused" else pb.compile(subject.function, tier=tier)
        function = plan or subject.function
        arguments = pb.put(subject.args, check.device)
        poisoned = pb.debug.poisoning() if tier == "stateful" else nullcontext()
        with pb.tier("unfused"), poisoned, np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.errors.PlanWarning)  # it is in the summary as well
            first, second = (
                trees.flatten(pb.fetch(made))[0]
                for made in [function(*arguments) for _ in range(2 + _WARM.get(tier, 0))][-2:]
            )
        if plan is not None and plan.summary()["hash"] is None:
            reasons = "; ".join(plan.summary()["fallbacks"])
            return None if "no program on a device yet" in reasons else f"runs on the tape: {reasons}"
    except Exception as error:  # noqa: BLE001 - whatever a rule raises is what is wrong with it
        return _said(error)
    for number, (theirs, ours, again) in enumerate(zip(here, first, second, strict=True)):
        theirs, ours, again = map(np.asarray, (theirs, ours, again))  # noqa: PLW2901
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            return f"result {number} is {ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
        if ours.tobytes() != again.tobytes():
            return f"result {number} has other bits the second time"
        if (difference := _difference(subject, ours, theirs)) is not None:
            return f"result {number} {difference}"
    return None


def _difference(subject: Subject, ours: Any, theirs: Any) -> str | None:
    if ours.dtype.kind not in "fc":
        return None if np.array_equal(ours, theirs) else "differs"
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return "is not finite elsewhere, or otherwise"
    if subject.kind == "special":
        bound = ULPS * np.spacing(np.abs(theirs))
    else:
        bound = TOLERANCE[subject.dtype] * max(1.0, float(np.max(np.abs(theirs[finite]), initial=0)))
    with np.errstate(all="ignore"):
        error = np.where(finite, np.abs(ours - theirs) / bound, 0)
    return None if np.max(error, initial=0) <= 1 else f"is off by {np.max(error):.3g} times what is let pass"


def _rule_cases() -> Iterator[Subject]:
    """Value and gradient of every case of every rule."""
    from pullback import control, nn, rules  # noqa: PLC0415 - importing them fills the table
    from pullback.rules import special  # noqa: PLC0415 - as these
    from pullback.transforms import elementwise_maps  # noqa: PLC0415 - as these

    assert all((control, nn, rules, special, elementwise_maps))  # noqa: S101
    for case in ALL:
        operands = case.operands()
        weights = np.random.default_rng(1).normal(size=np.shape(case.primitive(*operands, **dict(case.params))))
        moving = tuple(place for place, x in enumerate(operands, 1) if x.dtype.kind == "f")
        name = f"{case.primitive.name} {','.join(str(list(x.shape)) for x in operands)} {case.because}".strip()
        yield Subject("rule", name, pb.value_and_grad(_loss_of(case), wrt=moving), (weights, *operands), "f8")


def _loss_of(case: Case) -> Callable[..., Any]:
    """A number of the result of a rule."""
    rule, params = case.primitive, dict(case.params)
    return lambda weights, *operands: np.sum(weights * rule(*operands, **params))


def _workloads() -> Iterator[Subject]:
    """Every workload of the suite quick that is a function of NumPy."""
    try:
        from pullback_runners.workloads.registry import known_workloads  # noqa: PLC0415 - where runners are installed
    except ImportError:
        return
    for workload in known_workloads():
        for case in workload.cases("quick") if workload.has_numpy else ():
            function = workload.differentiated(pb, **dict(case.params))
            yield Subject("workload", case.name, function, tuple(workload.draw_inputs(case).values()), case.dtype)


def _of_steps(loss: Callable[..., Any]) -> Subject:
    """Value and gradients of a function of a matrix, a state, and a row for each of ten steps of 24 bytes."""
    rng = np.random.default_rng(2)
    inputs = (0.5 * rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(10, 3)))
    name = loss.__name__.strip("_").replace("_", " ")
    return Subject("loop", name, pb.value_and_grad(loss, wrt=(0, 1, 2)), inputs, "f8")


def _loops() -> Iterator[Subject]:
    """Loops whose steps look at nothing."""

    def loop_of_a_recurrent_network(w: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = np.tanh(w @ h + x)
            return h, np.sum(h)

        h, sums = pb.scan(step, h, xs)
        return np.sum(h) + np.sum(sums * sums)

    def loop_backwards_of_a_pair(w: Any, h: Any, xs: Any) -> Any:
        (a, b), rows = pb.scan(lambda c, x: ((c[1] + x, c[0] * 0.9), c[0]), (h, w[0]), xs, reverse=True)
        return np.sum(a * 2 - b) + np.sum(rows * rows)

    def loop_at_the_number_of_its_step(w: Any, h: Any, xs: Any) -> Any:
        return np.sum(pb.fori_loop(0, 10, lambda k, c: np.sin(c) + xs[k] * w[k % 3], h))

    def loop_in_a_loop(w: Any, h: Any, xs: Any) -> Any:
        def inner(c: Any, x: Any) -> Any:
            return pb.scan(lambda d, y: (np.tanh(d + y * x), None), c, w)[0]

        return np.sum(pb.scan(lambda c, x: (inner(c, x), None), h, xs)[0])

    losses = (
        loop_of_a_recurrent_network,
        loop_backwards_of_a_pair,
        loop_at_the_number_of_its_step,
        loop_in_a_loop,
    )
    yield from map(_of_steps, losses)


def _looking() -> Iterator[Subject]:
    """Branches and loops that a value chooses, and a body that is computed again."""

    def branch_in_a_loop(w: Any, h: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            roots = lambda c, x: np.sqrt(np.sum(x)) * c  # noqa: E731
            return pb.cond(np.sum(x) > 0, roots, lambda c, x: c - np.exp(x), c, x), None

        return np.sum(pb.scan(step, h, xs)[0] ** 2) + np.sum(w)

    def branch_of_three(w: Any, h: Any, xs: Any) -> Any:
        return np.sum(pb.switch(np.argmax(h), [np.sin, np.cos, lambda c: c * w[1]], h) ** 2) + np.sum(xs)

    def loop_of_segments(w: Any, h: Any, xs: Any) -> Any:
        return np.sum(pb.scan(lambda c, x: (np.sin(w @ c) + x, None), h, xs, checkpoint_every=3)[0])

    yield from map(_of_steps, (branch_in_a_loop, branch_of_three, loop_of_segments))
    root = lambda a: pb.while_loop(lambda x: np.max(np.abs(x * x - a)) > 1e-12, lambda x: 0.5 * (x + a / x), a)  # noqa: E731
    yield Subject("loop", "loop as long as a condition holds", root, (np.array([2.0, 3.0, 4.0]),), "f8")


#: Functions whose special values are tried, of one operand and of two.
_OF_ONE = [
    "negative",
    "sign",
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "tanh",
    "sinh",
    "cosh",
    "sin",
    "cos",
    "tan",
    "arctan",
    "abs",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "square",
    "cbrt",
    "reciprocal",
]
_OF_TWO = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "copysign",
    "less",
    "greater_equal",
    "equal",
]


def _special() -> Iterator[Subject]:
    """NaN, infinities, zeros of both signs, the smallest numbers, large angles."""
    for dtype, least in (("f8", 5e-324), ("f4", 1e-45)):
        line = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.5, 1e30, -1e7, least, -100 * least, 1e-3], dtype)
        a, b = (grid.ravel() for grid in np.meshgrid(line, line))
        for name in _OF_ONE:
            yield Subject("special", f"{name} of special {dtype}", getattr(np, name), (line,), dtype)
        for name in _OF_TWO:
            yield Subject("special", f"{name} of special {dtype}", getattr(np, name), (a, b), dtype)


# --- quiet ------------------------------------------------------------------------------------------------------------
#: PyTorch's operations that give the host a number, or copy between it and a device.
_WAITS = ("_local_scalar_dense", "_to_copy")


def quiet(check: Check) -> None:
    """Waits, transfers and requests for memory of warm calls."""
    for tier in TIERS[1:]:
        for subject in (*_workloads(), *_loops()):
            if check.match not in subject.name:
                continue
            asked = "no wait but for positions, no transfer" + (", no request" if tier in KEEPING else "")
            if check.is_over():
                check.add("quiet", f"workloads, {tier}", asked, "time was over", "cut off", check.match)
                return
            check.begin(f"{subject.name}, {tier}")
            measured, verdict = _waits(check, subject, tier)
            check.add("quiet", f"{subject.name}, {tier}", asked, measured, verdict, subject.name, limit="0 hidden")


def _waits(check: Check, subject: Subject, tier: str) -> tuple[str, str]:
    """The waits of a warm call, in words, and the verdict."""
    try:
        plan = pb.compile(subject.function, tier=tier)
        arguments = pb.put(subject.args, check.device)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.errors.PlanWarning)  # it is in the summary as well
            for _ in range(_WARM.get(tier, 2)):
                plan(*arguments)
            seen, requests = _operations(lambda: plan(*arguments))
            if not any(seen[name] for name in _WAITS):
                with _no_wait(check):
                    plan(*arguments)
    except Exception as error:  # noqa: BLE001 - as in the stage before
        return _said(error), "wrong"
    summary = plan.summary()
    fallbacks, transient = summary["fallbacks"], summary["transient"]
    if fallbacks:  # on the tape, or on the host between two steps: the summary says so, and so do we
        return "; ".join(fallbacks), "refused"
    looks = (
        seen["aminmax"] + summary["looks"]
    )  # by PyTorch's calls two numbers each; by nests one, at the end of a call
    numbers, copies = (seen[name] for name in _WAITS)
    told = 2 * seen["aminmax"] + summary["looks"]
    hidden = max(0, numbers - told) + copies
    said = [f"{looks} {'look' if looks == 1 else 'looks'} at positions" if looks else "none"]
    said += [f"{hidden} hidden"] * bool(hidden)
    if tier in KEEPING and requests:
        said.append(f"{requests} requests" + (f" of {', '.join(transient)}" if transient else ""))
    if tier == "native":
        graph = summary["graph"]
        said.append(f"a graph of {graph['nodes']} nodes")
        is_wrong = seen.total() > summary["looks"] or bool(hidden) or not graph["sets"]
    else:
        is_wrong = bool(hidden) or (tier in KEEPING and requests > 0 and not transient)
    return ", ".join(said), "wrong" if is_wrong else "right"


@contextmanager
def _no_wait(check: Check) -> Iterator[None]:
    """Make PyTorch raise where it waits for a GPU."""
    import torch  # noqa: PLC0415 - whether it is there is told before

    if check.emulated:
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _operations(call: Callable[[], Any]) -> tuple[Counter[str], int]:
    """The operations of PyTorch that a call asks for, by name, and how many give memory that none of their operands lies in."""
    from torch import Tensor  # noqa: PLC0415 - whether it is there is told before
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415 - as above
    from torch.utils._pytree import tree_leaves  # noqa: PLC0415 - as above

    seen: Counter[str] = Counter()
    requests = 0

    def memory(tree: Any) -> set[int]:
        return {leaf.untyped_storage().data_ptr() for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)}

    class OperationRecorder(TorchDispatchMode):  # type: ignore[misc] # of a module that is not everywhere
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal requests
            del types
            made = function(*args, **(kwargs or {}))
            name = function.overloadpacket.__name__
            is_copy_in_place = name == "_to_copy" and made.device == args[0].device  # to another dtype
            seen["astype" if is_copy_in_place else name] += 1
            requests += not memory(made) <= memory((args, kwargs))
            return made

    with OperationRecorder():
        call()
    return seen, requests


# --- fast -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Race:
    """A workload at one size, and the times of others that ours is to be of them at least."""

    workload: str
    size: dict[str, Any]
    small: dict[str, Any]
    """The size without a GPU."""
    dtype: str
    of_torch: float | None
    """Of PyTorch, each operation by itself."""
    of_best: float | None
    """Of the faster of `torch.compile` and JAX."""
    host_us: float | None = None
    """The most microseconds until a call of ours returns."""
    share: float | None = None
    """The least part of the time of a call that what limits it takes alone: a layer's three products, or reading the array."""
    is_cold: bool = False
    """True if the device's cache is overwritten before each call."""
    is_tf32: bool = False
    """True if products may round to TF32, ours and PyTorch's."""
    flat_from: int | None = None
    """A smaller size at which a call takes as long: what is large is not gone through."""


_DENSE, _SMALL_DENSE = {"n": 4096, "act": "tanh"}, {"n": 6, "act": "tanh"}
_LSTM, _SMALL_LSTM = {"steps": 50, "form": "blocked", "bias": "with"}, {"steps": 2, "batch": 2, "hidden": 3}
_CONV, _SMALL_CONV = {"n": 32, "channels": 64, "side": 56}, {"n": 1, "channels": 2, "side": 5}
_CONVOLVED = {"act": "relu", "axes": 2, "stride": 1}
_READ = {"form": "index"}
_MLP = {"inputs": 784, "hidden": 512, "classes": 10, "batch": 128}
_SMALL_MLP = {"inputs": 4, "hidden": 3, "classes": 3, "batch": 2}

#: Figures of an H100 or H200, in single precision as such.
RACES = (
    Race("dense_bias_act", {"n": 32, "act": "tanh"}, {"n": 4, "act": "tanh"}, "f4", 4, 1.5, host_us=6),
    Race("dense_bias_act", {"n": 100, "act": "tanh"}, {"n": 5, "act": "tanh"}, "f4", 4, 1.5, host_us=6),
    Race("dense_bias_act", _DENSE, _SMALL_DENSE, "f4", 1, 0.99, share=0.97),
    Race("dense_bias_act", _DENSE, _SMALL_DENSE, "f4", 1.05, 1, share=0.9, is_tf32=True),
    Race("poly9_powers", {"n": 100_000}, {"n": 20}, "f8", 8, 1.5, is_cold=True),
    Race("poly9_powers", {"n": 10_000_000}, {"n": 30}, "f8", 20, 1.2, share=0.8, is_cold=True),
    Race("poly9_powers", {"n": 100_000_000}, {"n": 40}, "f8", 20, 1.2, share=0.9, is_cold=True),
    Race("touch_large_array", _READ | {"n": 10_000_000}, _READ | {"n": 50}, "f4", 3, 1.5, flat_from=100_000),
    Race("mlp_step", _MLP, _SMALL_MLP, "f4", 2.5, 1.2),
    Race("gmm", {"d": 10, "k": 25, "n": 1000}, {"d": 2, "k": 3, "n": 5}, "f4", 5, 1.2),
    Race("black_scholes", {"n": 100_000}, {"n": 10}, "f4", 8, 1.2),
    Race("lstm", {"batch": 64, "hidden": 512} | _LSTM, _LSTM | _SMALL_LSTM, "f4", 1, 1.5),
    Race("lstm", {"batch": 1, "hidden": 32} | _LSTM, _LSTM | _SMALL_LSTM, "f4", 1, 1.5),
    Race("conv_bias_act", _CONV | _CONVOLVED, _SMALL_CONV | _CONVOLVED, "f4", 1.15, 1),
)

#: The most that a call takes of its time at the smaller size, where it is to be flat.
FLAT = 1.1

#: Workloads whose graphs have branches, with their sizes on a GPU and without one.
BRANCHED: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("dense_bias_act", {"n": 100, "act": "tanh"}, {"n": 5, "act": "tanh"}),
    ("dense_bias_act", {"n": 1024, "act": "tanh"}, {"n": 6, "act": "tanh"}),
    ("mlp_step", _MLP, _SMALL_MLP),
    (
        "attention_head",
        {"batch": 8, "length": 128, "model": 256, "size": 64},
        {"batch": 2, "length": 3, "model": 4, "size": 2},
    ),
)

#: Slices of each variant, which take their turns, and the least seconds of one.
_SLICES, _SLICE_S = 7, 0.01

_COMPILED = ("torch-compile", "jax")


def fast(check: Check) -> None:
    """Times of our tier native beside those of other engines that are installed, in turns."""
    if find_spec("pullback_runners") is None:
        check.add("fast", "workloads", "times of other engines", "pullback-runners is not installed", "known")
        return
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the device's memory
    for race in RACES:
        case = _case_of(race, check.device)
        if check.match not in case.name:
            continue
        name = f"{case.name}{' in TF32' * race.is_tf32}"
        if check.is_over():
            check.add("fast", name, _asked_of(race), "time was over", "cut off", case.name)
            continue
        check.begin(name)
        try:
            _race(check, race, case, name)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises; the next race may be run
            check.add("fast", name, _asked_of(race), _said(error), "wrong", case.name)
            continue
        if race.workload == "conv_bias_act":
            _formats(check, case.name, race)
    _branches(check)


def _branches(check: Check) -> None:
    """Graphs with branches beside those without."""
    from pullback_runners.workloads import Case, find_workload  # noqa: PLC0415 - where runners are installed

    for workload_name, *sizes in BRANCHED:
        size = sizes[check.emulated]
        case, workload = Case(workload_name, tuple(size.items()), "f4", check.device), find_workload(workload_name)
        if check.match not in case.name or check.is_over():
            continue
        check.begin(f"{case.name}, branches")
        try:
            inputs = tuple(workload.draw_inputs(case).values())
            _beside_serial(check, case.name, workload.differentiated(pb, **size), inputs)
        except Exception as error:  # noqa: BLE001 - as of races
            check.add("fast", f"{case.name}, branches", _BRANCHES_ASKED, _said(error), "wrong", case.name)


_BRANCHES_ASKED = "the bits of the serial order, and no longer than it"


def _beside_serial(check: Check, name: str, function: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """The times of a graph with branches and of the same without, in turns, and whether they compute the same bits."""
    from pullback.backends.cuda.branches import one_after_the_other  # noqa: PLC0415 - where the engine is installed

    arguments = pb.put(inputs, check.device)
    plan, serial = (pb.compile(function, tier="native") for _ in range(2))
    call, used = _used(check, lambda: lambda: plan(*arguments))
    with one_after_the_other():
        call_serial, used_serial = _used(check, lambda: lambda: serial(*arguments))
    ours, theirs = (trees.flatten(pb.fetch(each()))[0] for each in (call, call_serial))
    times = _in_turns({"with": _awaited(check, call), "without": _awaited(check, call_serial)})
    ratio = statistics.median(map(operator.truediv, times["with"], times["without"]))
    count = plan.summary()["graph"]["branches"]
    measured = (
        f"{count} branches {1e6 * statistics.median(times['with']):.4g} us, none {1e6 * statistics.median(times['without']):.4g} us: "
        f"{ratio:.3g} of the time; {used.peak_bytes:,} and {used_serial.peak_bytes:,} bytes"
    )
    is_same = all(
        np.asarray(one).tobytes() == np.asarray(other).tobytes() for one, other in zip(ours, theirs, strict=True)
    )
    verdict = "known" if check.emulated else "slow" if ratio > 1.02 else "right"
    if not is_same:
        measured, verdict = f"{measured}; other bits", "wrong"
    check.add("fast", f"{name}, branches", _BRANCHES_ASKED, measured, verdict, name)


def _case_of(race: Race, device: str) -> Any:
    """The case of a race, which is small on the CPU."""
    from pullback_runners.workloads import Case  # noqa: PLC0415 - where runners are installed

    size = race.small if device == "cpu" else race.size
    return Case(race.workload, tuple(size.items()), race.dtype, device)


def _race(check: Check, race: Race, case: Any, name: str) -> None:
    """The rows of a race."""
    from pullback_runners.errors import VariantError  # noqa: PLC0415 - where runners are installed
    from pullback_runners.peers import find_peer  # noqa: PLC0415 - as above
    from pullback_runners.workloads import find_workload  # noqa: PLC0415 - as above

    workload, size, absent = find_workload(race.workload), dict(case.params), list[str]()
    inputs = workload.draw_inputs(case)
    with pb.precision("tf32" if race.is_tf32 else "float32"), _tf32(allowed=race.is_tf32):
        of_ours = partial(_queued, check, workload.differentiated(pb, **size), tuple(inputs.values()))
        call, used = _used(check, of_ours)
        calls, peaks = {"native": _awaited(check, call)}, {"native": used.peak_bytes}
        for peer in _peers_of(race, check.device):
            check.begin(f"{name}, {peer}")
            try:
                calls[peer], used = _used(check, _prepared(find_peer(peer), workload, case, inputs))
                peaks |= {} if peer == "jax" else {peer: used.peak_bytes}
            except VariantError as reason:
                absent.append(f"no {peer} ({reason})")
        times = _in_turns(calls, _overwriting(check) if race.is_cold else None)
        alone = _limited(check, race, size["n"]) if race.share is not None else None
        host = _seconds(check, call, of_host=True) if race.host_us is not None else None
    measured, is_slow = _compared(race, times, alone, host)
    verdict = "known" if check.emulated else "slow" if is_slow else "right"
    limit = "" if alone is None else f"{_us(alone)}, of what it cannot do without"
    check.add("fast", name, _asked_of(race), "; ".join([measured, *absent]), verdict, case.name, limit=limit)
    measured, verdict = _beside_peaks(check, peaks)
    said = "; ".join([measured, *[_JAX_PEAK] * ("jax" in calls), *absent])
    check.add("fast", f"{name}, memory", _LEAST, said, verdict, case.name, limit=_least_of_others(peaks))
    if race.flat_from is not None:
        _flat(check, race, case.name, statistics.median(times["native"]))


def _flat(check: Check, race: Race, name: str, seconds: float) -> None:
    """Our time beside that at a smaller size, which is to be as long."""
    from pullback_runners.workloads import Case, find_workload  # noqa: PLC0415 - where runners are installed

    workload, size = find_workload(race.workload), {**race.size, "n": 5 if check.emulated else race.flat_from}
    inputs = workload.draw_inputs(Case(race.workload, tuple(size.items()), race.dtype, check.device))
    call = _awaited(check, _queued(check, workload.differentiated(pb, **size), tuple(inputs.values())))
    most = FLAT * statistics.median(_in_turns({"native": call})["native"])
    verdict = "known" if check.emulated else "slow" if seconds > most else "right"
    asked = f"at most {FLAT:g} times what n={size['n']} takes"
    check.add("fast", f"{name}, flat in n", asked, _us(seconds), verdict, name, limit=_us(most))


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:.4g} us"


def _peers_of(race: Race, device: str) -> tuple[str, ...]:
    """The engines that a race is run against; JAX is told to be exact."""
    if device == "cpu":
        return ("torch",)
    return ("torch", *(peer for peer in _COMPILED if not (race.is_tf32 and peer == "jax")))


def compile_peer(race: Race, peer: str, device: str) -> int:
    """Compile one peer of a race, into the caches on disk that the stage `fast` finds its program in."""
    from pullback_runners.peers import find_peer  # noqa: PLC0415 - where runners are installed
    from pullback_runners.workloads import find_workload  # noqa: PLC0415 - as above

    workload, case = find_workload(race.workload), _case_of(race, device)
    with _tf32(allowed=race.is_tf32):
        _prepared(find_peer(peer), workload, case, workload.draw_inputs(case))()()
    return 0


def _formats(check: Check, name: str, race: Race) -> None:
    """The times of a convolution and its two gradients in both memory formats, operands and results being in C order."""
    import torch  # noqa: PLC0415 - whether it is there is told before

    from pullback.devices.cuda.rows.products import memory_format  # noqa: PLC0415 - it needs PyTorch

    n, channels, side = ((race.small if check.emulated else race.size)[key] for key in ("n", "channels", "side"))
    in_words = {torch.contiguous_format: "C order", torch.channels_last: "channels last"}

    def convolved(x: Any, w: Any, order: Any) -> None:
        x_in, w_in = (each.contiguous(memory_format=order) for each in (x, w))
        y = torch.nn.functional.conv2d(x_in, w_in, padding=1).contiguous()
        none, mask = [0, 0], [True, True, False]
        gradients = torch.ops.aten.convolution_backward(
            y, x_in, w_in, None, [1, 1], [1, 1], [1, 1], False, none, 1, mask
        )
        for gradient in gradients[:2]:
            gradient.contiguous()

    for dtype in ("f4", "TF32", "f2"):
        kind, rounds = _PRODUCTS[dtype]
        x = torch.ones((n, channels, side, side), dtype=getattr(torch, kind), device=check.device)
        w = torch.ones((channels, channels, 3, 3), dtype=x.dtype, device=check.device)
        flags = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=rounds)
        check.begin(f"{name}, formats in {dtype}")
        with pb.precision("tf32" if rounds else "float32"), flags:
            chosen = memory_format(x.dtype, w.shape, 1)
            asked = f"{in_words[chosen]}, which is chosen, to be the faster format"
            try:
                times = {order: _seconds(check, partial(convolved, x, w, order)) for order in in_words}
            except Exception as error:  # noqa: BLE001 - as above
                check.add("fast", f"{name}, formats in {dtype}", asked, _said(error), "wrong", name)
                continue
        other = next(order for order in in_words if order is not chosen)
        measured = ", ".join(f"{in_words[order]} {1e6 * seconds:.4g} us" for order, seconds in times.items())
        faster = in_words[min(times, key=times.__getitem__)]
        verdict = "known" if check.emulated else "slow" if times[chosen] > 1.02 * times[other] else "right"
        measured, limit = f"{measured}: {faster} is faster", _us(1.02 * times[other])
        check.add("fast", f"{name}, formats in {dtype}", asked, measured, verdict, name, limit=limit)


def _asked_of(race: Race) -> str:
    asked = [f"{race.of_torch:g} times the speed of torch"] * (race.of_torch is not None)
    asked += [f"{race.of_best:g} times that of the faster of {' and '.join(_COMPILED)}"] * (race.of_best is not None)
    if race.host_us is not None:
        asked.append(f"the host {race.host_us} us at most")
    if race.share is not None:
        asked.append(f"{race.share:.0%} of its limit")
    return ", ".join(asked) + ", with a cold cache" * race.is_cold


def _queued(check: Check, function: Callable[..., Any], inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """A call of our plan that returns when it is queued."""
    plan, arguments = pb.compile(function, tier="native"), pb.put(inputs, check.device)
    for _ in range(_WARM["native"]):
        plan(*arguments)
    return lambda: plan(*arguments)


def _awaited(check: Check, queue: Callable[[], Any]) -> Callable[[], Any]:
    """The same that returns when the result is there."""
    import torch  # noqa: PLC0415 - whether it is there is told before

    def call() -> None:
        queue()
        torch.cuda.synchronize(check.device)

    return queue if check.emulated else call


def _overwriting(check: Check) -> Callable[[], Any]:
    """Writes twice as much as the device's cache holds, and waits."""
    import torch  # noqa: PLC0415 - as above

    if check.emulated:
        return lambda: None
    nbytes = 2 * torch.cuda.get_device_properties(check.device).L2_cache_size
    return _awaited(check, torch.empty(nbytes, dtype=torch.uint8, device=check.device).zero_)


def _limited(check: Check, race: Race, n: int) -> float:
    """The seconds of what limits a workload alone: the three products of a layer, or reading the array."""
    import torch  # noqa: PLC0415 - as above

    dtype = {"f4": torch.float32, "f8": torch.float64}[race.dtype]
    if race.workload == "dense_bias_act":
        a = torch.ones((n, n), dtype=dtype, device=check.device)
        return 3 * _seconds(check, partial(torch.mm, a, a, out=torch.empty_like(a)))
    x, total = torch.ones(n, dtype=dtype, device=check.device), torch.empty((), dtype=dtype, device=check.device)
    return _seconds(check, lambda: torch.sum(x, dim=0, out=total))


def _in_turns(calls: dict[str, Callable[[], Any]], before: Callable[[], Any] | None = None) -> dict[str, list[float]]:
    """By name the seconds of a call in each of several slices, which take turns; `before` each call something that is not timed."""

    def slice_of(call: Callable[[], Any], count: int) -> float:
        if before is None:
            begin = time.perf_counter()
            for _ in range(count):
                call()
            return time.perf_counter() - begin
        taken = 0.0
        for _ in range(count):
            before()
            begin = time.perf_counter()
            call()
            taken += time.perf_counter() - begin
        return taken

    counts = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        counts[name] = max(1, round(_SLICE_S / max(slice_of(call, 1), 1e-9)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_SLICES):
        for name, call in calls.items():
            times[name].append(slice_of(call, counts[name]) / counts[name])
    return times


def _compared(
    race: Race, times: dict[str, list[float]], alone: float | None = None, host: float | None = None
) -> tuple[str, bool]:
    """Ratios in words, and True if one is below what is asked.

    `alone` are the seconds of what limits a call, `host` those until it returns.
    """
    ours = times["native"]
    ratios = {name: statistics.median(map(operator.truediv, times[name], ours)) for name in times if name != "native"}
    said = [f"{1e6 * statistics.median(ours):.4g} us"] + [f"{ratio:.3g} of {name}" for name, ratio in ratios.items()]
    best = min((ratios[name] for name in _COMPILED if name in ratios), default=None)
    pairs = [(ratios.get("torch"), race.of_torch), (best, race.of_best)]
    if alone is not None:
        share = alone / statistics.median(ours)
        said.append(f"{share:.0%} of its limit")
        pairs.append((share, race.share))
    if host is not None and race.host_us is not None:
        said.append(f"the host {1e6 * host:.4g} us")
        pairs.append((race.host_us / (1e6 * host), 1))
    return ", ".join(said), any(ratio < least for ratio, least in pairs if ratio is not None and least is not None)


# --- memory -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PoolUse:
    """The memory of PyTorch's pool that a warm call uses."""

    peak_bytes: int
    """In use at most, with the arguments and what is kept between calls."""
    requests: int


_LEAST = "no more bytes in use than of any other"
_JAX_PEAK = "jax does not say its peak of one call"

#: The bytes moved that are let pass, in those that were planned.
MOST_MOVED = 1.05


def memory(check: Check) -> None:
    """Memory in use, requests, and bytes moved."""
    try:
        from pullback_runners.peers import find_peer  # noqa: PLC0415 - where runners are installed
        from pullback_runners.workloads.registry import known_workloads  # noqa: PLC0415 - as above
    except ImportError:
        check.add("memory", "workloads", "memory of other engines", "pullback-runners is not installed", "known")
        return
    check.add(
        "memory", "of jax and torch-compile", "", f"{_JAX_PEAK}; torch-compile is measured in the stage fast", "known"
    )
    _workspaces(check)
    for workload in known_workloads():
        for case in workload.cases("quick", check.device) if workload.has_numpy else ():
            if check.match not in case.name:
                continue
            if check.is_over():
                check.add("memory", case.name, f"{_LEAST}, no request", "time was over", "cut off", case.name)
                return
            inputs, absent = workload.draw_inputs(case), list[str]()
            peaks: dict[str, int] = {}
            check.begin(f"{case.name}, torch")
            try:
                prepared = _prepared(find_peer("torch"), workload, case, inputs)
                peaks["torch"] = _used(check, prepared, is_alone=True)[1].peak_bytes
            except Exception as reason:  # noqa: BLE001 - ours is measured all the same
                absent.append(f"no torch ({' '.join(str(reason).split())})")
            function = workload.differentiated(pb, **dict(case.params))
            for tier in ("stateful", "native"):
                _memory_of(check, case.name, (function, tuple(inputs.values())), tier, peaks, absent)


def _workspaces(check: Check) -> None:
    """Memory that libraries take for themselves, which is in the bytes in use of whoever calls them."""
    import torch  # noqa: PLC0415 - as above
    from torch.nn import functional  # noqa: PLC0415 - as above

    rows = {
        "workspace of cuBLAS": (torch.mm, (512, 512), (512, 512)),
        "workspace of cuDNN": (partial(functional.conv2d, padding=1), (32, 64, 56, 56), (64, 64, 3, 3)),
    }
    for name, (call, *shapes) in rows.items():
        if check.match not in name:
            continue
        asked = "bytes beside operands and result, on one stream"
        if check.emulated:
            check.add("memory", name, asked, "there is no device", "known", name)
            continue
        check.begin(name)
        try:
            operands = [torch.ones(shape, device=check.device) for shape in shapes]
            warm, used = _used(check, partial(partial, call, *operands), is_alone=True)
            measured = f"{used.peak_bytes - warm().nbytes:,} bytes"
            check.add("memory", name, asked, measured, "known", name)
        except Exception as error:  # noqa: BLE001 - as in the stage `right`
            check.add("memory", name, asked, _said(error), "wrong", name)


def _memory_of(
    check: Check,
    name: str,
    subject: tuple[Callable[..., Any], tuple[Any, ...]],
    tier: str,
    peaks: dict[str, int],
    absent: Sequence[str],
) -> None:
    """The rows of a workload in a tier."""
    asked, limit = f"{_LEAST}, no request", _least_of_others({tier: 0, **peaks})
    check.begin(f"{name}, {tier}")
    try:
        plan = pb.compile(subject[0], tier=tier)
        call, used = _used(check, partial(_planned, check, plan, subject[1]), is_alone=True)
        summary = plan.summary()
        if summary["fallbacks"]:
            check.add("memory", f"{name}, {tier}", asked, "; ".join(summary["fallbacks"]), "refused", name)
            return
        measured, verdict = _beside_peaks(check, {tier: used.peak_bytes, **peaks})
        transient = summary["transient"]
        requests = f"{used.requests} requests" + (f" of {', '.join(transient)}" if transient else "")
        if used.requests:
            verdict = "wrong" if not transient else "slow" if verdict == "right" else verdict
        said = "; ".join([measured, requests, *absent])
        check.add("memory", f"{name}, {tier}", asked, said, verdict, name, limit=limit)
        if tier == "stateful":  # of a graph the profiler sees one launch
            moved, planned = _moved_bytes(check, call), summary["moved_bytes"]
            asked = f"{MOST_MOVED} of the bytes that were planned"
            measured, verdict = _beside_planned(moved, planned)
            limit = f"{MOST_MOVED * planned:,.0f} bytes"
            check.add("memory", f"{name}, moved", asked, measured, verdict, name, limit=limit)
    except Exception as error:  # noqa: BLE001 - as in the stage `right`
        check.add("memory", f"{name}, {tier}", asked, _said(error), "wrong", name)


def _planned(check: Check, plan: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    arguments = pb.put(args, check.device)
    return lambda: plan(*arguments)


def _prepared(peer: Any, workload: Any, case: Any, inputs: Any) -> Callable[[], Callable[[], Any]]:
    """Makes the call of another engine."""

    def make() -> Callable[[], Any]:
        call: Callable[[], Any] = peer.prepare(workload, case, inputs).call
        return call

    return make


def _used(
    check: Check, make: Callable[[], Callable[[], Any]], *, is_alone: bool = False
) -> tuple[Callable[[], Any], PoolUse]:
    """The call that `make` makes, and the memory that it uses when it is warm.

    `is_alone`: no other call is in use, so that the workspaces of cuBLAS may be let go before. PyTorch keeps one for each stream:
    else only the first call there has it in its bytes.
    """
    import torch  # noqa: PLC0415 - whether it is there is told before

    def warmed() -> Callable[[], Any]:
        call = make()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.errors.PlanWarning)  # it is in the summary as well
            for _ in range(_WARM["native"] + 1):
                call()
        return call

    gc.collect()
    if check.emulated:
        return _used_of_host(warmed)
    of_device = torch.cuda
    of_device.synchronize()
    if is_alone:
        torch._C._cuda_clearCublasWorkspaces()  # noqa: SLF001 - PyTorch has no public name for it
    before = of_device.memory_allocated()
    call = warmed()
    of_device.synchronize()
    of_device.reset_peak_memory_stats()
    asked = of_device.memory_stats()["allocation.all.allocated"]
    call()
    of_device.synchronize()
    requests = of_device.memory_stats()["allocation.all.allocated"] - asked
    return call, PoolUse(of_device.max_memory_allocated() - before, requests)


def _used_of_host(warmed: Callable[[], Callable[[], Any]]) -> tuple[Callable[[], Any], PoolUse]:
    """The same of PyTorch's memory of the host, which its profiler sees."""
    from torch.profiler import ProfilerActivity, profile, record_function  # noqa: PLC0415 - as above

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        call = warmed()
        with record_function("gpu_check"):
            call()
    events = sorted(seen.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    live = peak = requests = 0
    is_last = False
    for event in events:
        if event.name() == "gpu_check":
            is_last, peak = True, live
        elif event.name() == "[memory]":
            live += event.nbytes()
            requests += is_last and event.nbytes() > 0
            peak = max(peak, live)
    return call, PoolUse(peak, requests)


def _beside_peaks(check: Check, peaks: dict[str, int]) -> tuple[str, str]:
    """The bytes in use of the first and of others in words, and the verdict."""
    (ours, *_), theirs = peaks.values(), [*peaks.values()][1:]
    measured = ", ".join(f"{name} {nbytes:,} bytes" for name, nbytes in peaks.items())
    verdict = "known" if check.emulated or not theirs else "slow" if ours > min(theirs) else "right"
    return measured, verdict


def _least_of_others(peaks: dict[str, int]) -> str:
    """The least bytes of others than the first, in words."""
    others = [*peaks.values()][1:]
    return f"{min(others):,} bytes" if others else ""


_COUNTERS = ("dram__bytes_read.sum", "dram__bytes_write.sum")


def _moved_bytes(check: Check, call: Callable[[], Any]) -> float | str:
    """The bytes that a call reads and writes in the device's memory, by its counters; in words why they cannot be read."""
    if check.emulated:
        return "kernels run on the CPU"
    import torch  # noqa: PLC0415 - as above
    from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile  # noqa: PLC0415 - as above

    counted = _ExperimentalConfig(profiler_metrics=[*_COUNTERS], profiler_measure_per_kernel=False)
    try:
        with profile(activities=[ProfilerActivity.CUDA], experimental_config=counted) as seen:
            call()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory(prefix="pullback-") as folder:
            seen.export_chrome_trace(path := str(Path(folder) / "trace.json"))
            events = json.loads(Path(path).read_text())["traceEvents"]
    except RuntimeError as error:
        return " ".join(str(error).split())
    told = [event.get("args", {}) for event in events]
    found = [float(each[counter]) for each in told for counter in _COUNTERS if counter in each]
    return (
        sum(found)
        if found
        else "PyTorch's profiler gives no counters: it has none built in, or the driver keeps them to administrators"
    )


def _beside_planned(moved: float | str, planned: int) -> tuple[str, str]:
    """The bytes moved in words, and the verdict."""
    if isinstance(moved, str):
        return f"{planned:,} planned; not counted: {moved}", "known"
    return f"{moved:,.0f} of {planned:,} planned", "slow" if moved > MOST_MOVED * planned else "right"


# --- product ----------------------------------------------------------------------------------------------------------
_RUN, _JOB = "pullback run", "job of an agent"

#: What is measured where it is to be short.
_SHORT = ("trial", "touch_large_array*index*")


def product(check: Check) -> None:
    """The command that a user runs, and a job of an agent."""
    if find_spec("pullback_cli") is None or find_spec("pullback_runners") is None:
        check.add("product", "commands", "a report", "pullback-cli and pullback-runners are not installed", "known")
        return
    if not check.emulated:
        import torch  # noqa: PLC0415 - whether it is there is told before

        with suppress(RuntimeError):  # after an error of a kernel; what is measured now is so in other processes
            torch.cuda.empty_cache()
    _measured(check, _RUN, _report_of_run, _of_cases)
    _measured(check, _JOB, _report_of_job, _of_comparisons)


def _measured(
    check: Check, name: str, work: Callable[[Check], Any], cases: Callable[[Any], Iterator[tuple[str, str, bool]]]
) -> None:
    """A row for each case of a report."""
    from pullback_runners.agent.errors import AgentError  # noqa: PLC0415 - where runners are installed

    if check.match not in name:
        return
    asked = "right gradients, a time for each tier" + (", no other memory" if name == _JOB else "")
    if check.is_over():
        check.add("product", name, asked, "time was over", "cut off", name)
        return
    check.begin(name)
    try:
        report = work(check)
    except Exception as error:  # noqa: BLE001 - the other of both may work
        said = " ".join(str(error).split()) if isinstance(error, RuntimeError | AgentError) else _said(error)
        check.add("product", name, asked, said, "cut off" if check.is_over() else "wrong", name)
        return
    if report is None:
        check.add("product", name, asked, f"{_clone()} is no clone with a commit", "known", name)
        return
    for case, measured, is_right in list(cases(report)) or [("no case", "nothing was measured", False)]:
        check.add("product", f"{name}, {case}", asked, measured, "right" if is_right else "wrong", name)
    if check.emulated:
        check.add("product", f"{name} on a device", "", _LEFT, "known")


_LEFT = (
    "left to run where there is one: its lock, its driver's clocks and processes, times by events, memory of its pool"
)


def _report_of_run(check: Check) -> dict[str, Any]:
    """The report of a run of the tiers, the peers having raced before; RuntimeError says why there is none."""
    suite, cases = _SHORT if check.emulated else ("quick", "*")
    what = [f"--suite={suite}", f"--case={cases}", f"--device={check.device}", *(f"--variant={tier}" for tier in TIERS)]
    command = [sys.executable, "-P", "-m", "pullback_cli", "run", *what, "--json", "--quiet"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as run:  # noqa: S603 - our own command
        try:
            out, said = run.communicate(timeout=max(1.0, check.ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            run.terminate()
            run.communicate()
            raise RuntimeError("not finished when time was over") from None
    if run.returncode not in (0, 1):  # 1: a case failed, which the report says
        raise RuntimeError(said.strip() or f"exit status {run.returncode}")
    report: dict[str, Any] = json.loads(out)
    return report


def _clone() -> Path:
    """The folder that this file lies in as its repository has it."""
    return Path(__file__).resolve().parents[1]


def _report_of_job(check: Check) -> Any:
    """The report of an agent's job that compares the latest commit with itself; None without a clone."""
    from pullback_runners.agent.claims import Claim, Job, Lease  # noqa: PLC0415 - where runners are installed
    from pullback_runners.agent.device import AgentDevice  # noqa: PLC0415 - as above
    from pullback_runners.agent.job_folder import JobFolder  # noqa: PLC0415 - as above
    from pullback_runners.agent.measurement import measure  # noqa: PLC0415 - as above
    from pullback_runners.git import git, is_clone  # noqa: PLC0415 - as above

    if not is_clone(_clone()):
        return None
    sha = git(_clone(), "rev-parse", "HEAD").stdout.decode().strip()
    commit: dict[str, Any] = {
        "sha": sha,
        "parents": [],
        "branch": None,
        "author": None,
        "authored_at": None,
        "title": "",
    }
    suite, cases = _SHORT
    left = max(1.0, check.ends_at - time.monotonic())
    job = Job("pullback", commit, suite, (cases,), left, commit, variants=TIERS)
    claim, key = Claim(job, Lease("1", 1, "", 15.0)), "00000000-0000-4000-8000-000000000001"
    with (
        tempfile.TemporaryDirectory(prefix="pullback-") as folder,
        nullcontext() if check.emulated else AgentDevice.found(check.device).held() as held,
    ):
        made = JobFolder.create(Path(folder) / "jobs", claim.lease, key)
        report = measure(
            *(claim, _clone(), made, key),
            cache=Path(folder) / "cache",
            device=check.device,
            cpus=frozenset(),
            tell=lambda _: None,
            stops=(lambda: None) if held is None else held.watching(lambda: None),
        )
        return report if held is None else held.marked(report)


def _of_cases(report: Any) -> Iterator[tuple[str, str, bool]]:
    """Of each case of a report its name, its times, and whether all is there and right."""
    for each in report["cases"]:
        made = {one["variant"]: one for one in each["variants"]}
        errors = [each["error"], *(one["error"] for one in made.values())]
        why = "; ".join(dict.fromkeys(error["message"] for error in errors if error is not None))
        if why or list(made) != list(TIERS) or not each["gradient"]["ok"]:
            yield _name_of(each["case"]), why or f"of {', '.join(made)} alone", False
            continue
        times = (f"{tier} {_of(made[tier]['metrics']['time']['processes'])}" for tier in TIERS)
        yield _name_of(each["case"]), ", ".join(times), True


def _of_comparisons(report: Any) -> Iterator[tuple[str, str, bool]]:
    """Of each case of an agent's report its name, its times, and whether all is there, and memory that of the same commit."""
    for case in {_name_of(each["case"]): None for each in report["comparisons"]}:
        those = [each for each in report["comparisons"] if _name_of(each["case"]) == case]
        times = {each["variant"]: each for each in those if each["metric"] == "time"}
        errors = (each["error"]["message"] for each in those if each["outcome"] == "failed")
        other = (f"{one['variant']}: {one['metric']} {one['outcome']}" for one in those if one["outcome"] in _CHANGED)
        why = "; ".join(dict.fromkeys([*errors, *other]))
        if why or list(times) != list(TIERS):
            yield case, why or f"of {', '.join(times)} alone", False
            continue
        yield case, ", ".join(f"{tier} {_of(times[tier]['reference_s'])}" for tier in TIERS), True


#: Outcomes of what is counted, which a commit has never against itself. Of times they are rare, not impossible.
_CHANGED = ("more", "less")


def _of(seconds: Sequence[float]) -> str:
    return f"{1e6 * statistics.median(seconds):.4g} us"


def _name_of(case: dict[str, Any]) -> str:
    from pullback_runners.workloads import Case  # noqa: PLC0415 - where runners are installed

    return Case(case["workload"], tuple(case["params"].items()), case["dtype"], case["device"]).name


STAGES: dict[str, Callable[[Check], None]] = {
    "facts": facts,
    "limits": limits,
    "right": right,
    "quiet": quiet,
    "fast": fast,
    "memory": memory,
    "product": product,
}

# --- stages, in a process of their own --------------------------------------------------------------------------------
#: The seconds of eight minutes that each stage may take, and more where those before it took less.
SHARES_S = {"facts": 5, "limits": 25, "right": 100, "quiet": 30, "fast": 200, "memory": 35, "product": 60}

#: The rest of eight minutes, in which the first process starts.
STARTS_S = 25

#: Seconds after its end in which a stage that goes by the clock is over; one that is not hangs.
GRACE_S, EMULATED_GRACE_S = 90.0, 900.0

#: The most seconds in which that process finds its device.
STARTING_S = 300.0

#: The most processes that compile peers at once, and the most seconds that `fast` waits for them.
MOST_COMPILING, COMPILING_S = 8, 120.0

_HERE = Path(__file__).resolve()


def end_of(check_ends_at: float, minutes: float, left: Sequence[str]) -> float:
    """When the first of the stages that are left ends, if those behind it are to have their shares."""
    return check_ends_at - sum(SHARES_S[name] for name in left[1:]) * minutes / 8


def run_stage(check: Check, name: str) -> None:
    """Run a stage; whatever it raises is a row."""
    started = time.monotonic()
    try:
        STAGES[name](check)
    except Exception as error:  # noqa: BLE001 - the stages behind it are to run
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{_said(error)} ({Path(where.filename).name}:{where.lineno})"
        verdict = "cut off" if isinstance(error, LostDeviceError) else "wrong"
        check.add(name, f"the stage {name}", "its end", told, verdict)
    check.seconds[name] = time.monotonic() - started


def run_stages(check: Check, names: Sequence[str], minutes: float, save: Callable[[], None]) -> None:
    """Run stages in this process; save after each."""
    ends_at = check.ends_at
    for place, name in enumerate(names):
        check.ends_at = end_of(ends_at, minutes, names[place:])
        run_stage(check, name)
        save()


def serve_stages(check: Check, names: Sequence[str]) -> None:
    """Run stages when they are asked for by a line with the seconds of each, in the process beside `supervise`; until the device is lost."""
    check.tell = lambda message: print(_MARK + json.dumps(message), flush=True)
    check.tell({"is_ready": True})
    for name, line in zip(names, sys.stdin, strict=False):
        check.ends_at = time.monotonic() + float(line)
        run_stage(check, name)
        check.tell({"seconds": check.seconds[name], "is_usable": _is_usable(check)})
        if not _is_usable(check):
            return


def _is_usable(check: Check) -> bool:
    """False after an error after which the process cannot use its device any more."""
    if check.emulated:
        return True
    import torch  # noqa: PLC0415 - as above

    try:
        torch.cuda.synchronize(check.device)
    except RuntimeError:
        return False
    return True


#: The most seconds that a process which was killed is waited for.
_ENDING_S = 10.0

#: What a line that is meant for `supervise` begins with; libraries print what they like.
_MARK = "gpu_check: "


class NotStartedError(RuntimeError):
    """Raised where the process of the stages does not come to the first: it has been said why."""


class _Stages:
    """A process that serves stages."""

    def __init__(self, arguments: Sequence[str]) -> None:
        command = [sys.executable, str(_HERE), "--serve", *arguments]
        pipe, new_group = subprocess.PIPE, os.name == "posix"
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=pipe, stdout=pipe, text=True, start_new_session=new_group
        )
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._is_over = False

    def _read(self) -> None:
        for line in self._process.stdout or ():
            _, mark, message = line.partition(_MARK)  # a library may have written before it, without a line's end
            if mark:
                with suppress(ValueError):  # or behind it
                    self._messages.put(json.loads(message))
        self._messages.put(None)

    def is_ready(self) -> bool:
        """True once it has found its device; False if it ends before, and has said why, or looks for too long."""
        with suppress(queue.Empty):
            return self.next(time.monotonic() + STARTING_S) is not None
        print(f"gpu_check: the device does not answer within {STARTING_S:.0f} s", file=sys.stderr)
        return False

    def begin(self, seconds: float) -> None:
        """Let it run the next stage."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()

    def next(self, until: float) -> dict[str, Any] | None:
        """The next message; None if the process has ended, `queue.Empty` if none came until then."""
        return self._messages.get(timeout=max(0.0, until - time.monotonic()))

    def end(self) -> str:
        """End it with all that it has started; gives how it ended, in words. One that waits inside of the driver may be left behind."""
        if not self._is_over:
            self._is_over = True
            with suppress(ProcessLookupError):
                if os.name == "posix":
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_S)
            self._reader.join(_ENDING_S)
            if not self._reader.is_alive():
                for pipe in filter(None, (self._process.stdin, self._process.stdout)):
                    with suppress(OSError):  # a line that it does not read any more
                        pipe.close()
        return f"exit status {self._process.returncode}"


def supervise(check: Check, names: Sequence[str], minutes: float, device: str, save: Callable[[], None]) -> None:
    """Run stages in a process of their own, and those behind one that hangs or ends it in another; save after each."""
    arguments = ["--match", check.match, "--device", device, *["--emulated"] * check.emulated]
    left, compiling = list(names), Compiling(check, device)
    try:
        while left:
            started = time.monotonic()
            served = _Stages([*arguments, *(f"--only={name}" for name in left)])
            try:
                if not served.is_ready():
                    if not check.seconds:
                        raise NotStartedError
                    _leave_out(check, left, served.end())
                    save()
                    return
                # No stage has less time because PyTorch was slow to load.
                check.ends_at += max(0.0, time.monotonic() - started - STARTS_S * minutes / 8)
                goes_on = True
                while left and goes_on:
                    goes_on = _supervise_one(check, served, left, minutes, compiling)
                    save()
            finally:
                served.end()
    finally:
        compiling.end()


def _leave_out(check: Check, names: Sequence[str], how: str) -> None:
    """Rows of stages that no process can run any more."""
    for name in names:
        check.seconds[name] = 0.0
        check.add(name, f"the stage {name}", "its end", f"a new process does not find the device: {how}", "cut off")


def _supervise_one(check: Check, served: _Stages, left: list[str], minutes: float, compiling: "Compiling") -> bool:
    """Run the first of the stages that are left; True if the process can run the next."""
    name = left[0]
    if "fast" in left and name not in ("facts", "limits"):  # whose figures nobody is to disturb
        compiling.begin()
    if name == "fast":
        compiling.end(min(time.monotonic() + COMPILING_S, check.ends_at))
    del left[0]
    ends_at, started = end_of(check.ends_at, minutes, [name, *left]), time.monotonic()
    served.begin(max(0.0, ends_at - started))
    does = "nothing yet"
    hangs_at = max(ends_at, started) + (EMULATED_GRACE_S if check.emulated else GRACE_S)
    while True:
        try:
            message = served.next(hangs_at)
        except queue.Empty:
            served.end()
            told, verdict = f"hangs: ended {time.monotonic() - started:.0f} s after its begin, at {does}", "cut off"
            break
        if message is None:
            told, verdict = f"the process ended with {served.end()}, at {does}", "wrong"
            break
        does = message.get("does", does)
        if "row" in message:
            check.rows.append(Row(**message["row"]))
        if "seconds" in message:
            check.seconds[name] = message["seconds"]
            return bool(message["is_usable"])
    check.seconds[name] = time.monotonic() - started
    check.add(name, f"the stage {name}", "its end", told, verdict)
    return False


class Compiling:
    """Processes that compile the peers of `fast`, several at once, into caches on disk, while other stages run."""

    def __init__(self, check: Check, device: str) -> None:
        self._check = check
        self._device = device
        self._futures: list[Future[None]] = []
        self._is_over = False
        self._pool: ThreadPoolExecutor | None = None

    def begin(self) -> None:
        """Start, if that has not been done."""
        if self._pool is not None:
            return
        self._pool = ThreadPoolExecutor(min(MOST_COMPILING, max(1, (os.cpu_count() or 1) - 2)))
        self._futures = [self._pool.submit(self._compile, number, peer) for number, peer in self._tasks()]

    def _tasks(self) -> list[tuple[int, str]]:
        """By race the peers that have something to compile, and are there."""
        there = [
            peer for peer, package in (("torch-compile", "triton"), ("jax", "jax")) if find_spec(package) is not None
        ]
        if self._check.emulated or find_spec("pullback_runners") is None:
            return []
        return [
            (number, peer)
            for number, race in enumerate(RACES)
            if self._check.match in _case_of(race, "cuda").name
            for peer in _peers_of(race, "cuda")
            if peer in there
        ]

    def _compile(self, number: int, peer: str) -> None:
        if self._is_over:
            return
        command = [sys.executable, str(_HERE), "--compile", f"{number}:{peer}", "--device", self._device]
        quiet = subprocess.DEVNULL
        new_group = os.name == "posix"  # with the compilers that it starts
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=new_group
        )
        while process.poll() is None and not self._is_over:
            time.sleep(0.1)
        with suppress(ProcessLookupError):
            if new_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        with suppress(subprocess.TimeoutExpired):  # one that waits inside of the driver is left behind
            process.wait(_ENDING_S)

    def end(self, until: float = 0.0) -> None:
        """Wait for them until then, and end those that are left: nobody is to disturb what is timed."""
        if self._pool is None:
            return
        wait(self._futures, timeout=max(0.0, until - time.monotonic()))
        self._is_over = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(self._futures, timeout=2 * _ENDING_S)


def _cached_in(folder: str) -> dict[str, str]:
    """The variables by which compilers of peers share caches in a folder."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        "TRITON_CACHE_DIR": f"{folder}/triton",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


# --- files ------------------------------------------------------------------------------------------------------------
def written(check: Check, begun: datetime, out: Path) -> None:
    """Write both files."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "begun_at": begun.isoformat(timespec="seconds"),
        "device": check.device,
        "emulated": check.emulated,
        "seconds": {name: round(seconds, 1) for name, seconds in check.seconds.items()},
        "rows": [asdict(row) for row in check.rows],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu-check.json").write_text(json.dumps(document, indent=1) + "\n")
    (out / "gpu-check.md").write_text(markdown(check, begun))


def markdown(check: Check, begun: datetime) -> str:
    """The same for readers."""
    where = "kernels on the CPU, no GPU" if check.emulated else check.device
    lines = [f"# GPU check of {begun:%Y-%m-%d %H:%M} UTC: {where}", ""]
    for stage, seconds in check.seconds.items():
        lines += [
            f"## {stage} ({seconds:.0f} s)",
            "",
            "| | asked | measured | limit | verdict | alone |",
            "|---|---|---|---|---|---|",
        ]
        for row in check.rows:
            if row.stage == stage:
                alone = f"`{row.command}`" if row.asked else ""
                cells = (row.name, row.asked, row.measured, row.limit, row.verdict, alone)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _visible_alone(device: str, *, is_set: bool) -> str:
    """The name of a device that is the only one to be seen here, by us, by peers and by processes that are started, once that is set."""
    name, _, number = device.partition(":")
    if name != "cuda" or not number.isdigit():
        return device
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    visible = listed.split(",") if listed else [str(each) for each in range(int(number) + 1)]
    if int(number) >= len(visible):
        return device  # which is then refused
    if is_set:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[int(number)]
    return "cuda"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulated", action="store_true", help="without a GPU: kernels run on the CPU")
    parser.add_argument("--device", default="cuda", help='another GPU, such as "cuda:1"')
    parser.add_argument("--only", action="append", choices=[*STAGES], help="these stages alone")
    parser.add_argument("--match", default="", help="of what is asked, what has this text in its name")
    parser.add_argument("--minutes", type=float, default=8, help="end after so many minutes (8)")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder of both files (this one)")
    here = "run the stages in this process, for a debugger: one that hangs is not ended"
    parser.add_argument("--here", action="store_true", help=here)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compile", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stages; gives the exit status."""
    asked = _parser().parse_args(arguments)
    begun, names = datetime.now(UTC), asked.only or [*STAGES]
    options = " --emulated" * asked.emulated + f" --device {asked.device}" * (asked.device != "cuda")
    device = (
        "cpu"
        if asked.emulated
        else _visible_alone(asked.device, is_set=bool(asked.here or asked.serve or asked.compile))
    )
    check = Check(device, asked.emulated, asked.match, time.monotonic() + 60 * asked.minutes, options=options)
    try:
        if asked.compile:
            number, _, peer = asked.compile.partition(":")
            return compile_peer(RACES[int(number)], peer, device)
        if asked.serve or asked.here:
            with pb.device(device):
                pass
        if asked.serve:
            serve_stages(check, names)
            return 0

        def save() -> None:
            written(check, begun, asked.out)
            name, seconds = [*check.seconds.items()][-1]
            print(f"{name}: {seconds:.0f} s", file=sys.stderr)

        if asked.here:
            run_stages(check, names, asked.minutes, save)
        else:
            with tempfile.TemporaryDirectory(prefix="pullback-", ignore_cleanup_errors=True) as folder:
                os.environ.update(_cached_in(folder))
                supervise(check, names, asked.minutes, asked.device, save)
    except PullbackError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    except NotStartedError:
        return 2
    return _status(check, asked)


def _status(check: Check, asked: argparse.Namespace) -> int:
    """The exit status, and what is not right in words."""
    if asked.match and not any(row.asked for row in check.rows) and set(check.seconds) - {"facts"}:
        print(
            f"gpu_check: nothing is called {asked.match!r}; names are in the rows of a run without --match",
            file=sys.stderr,
        )
        return 2
    bad = [row for row in check.rows if row.verdict in ("wrong", "cut off")]
    for row in bad:
        print(f"{row.verdict}: {row.name}: asked {row.asked}, got {row.measured}", file=sys.stderr)
    count = sum(row.verdict == "right" for row in check.rows)
    print(f"{count} rows right, {len(bad)} not; {asked.out / 'gpu-check.md'} says which", file=sys.stderr)
    if bad:
        return 1
    slow = [row for row in check.rows if row.verdict == "slow"]
    for row in slow:
        print(f"slow: {row.name}: asked {row.asked}, got {row.measured}", file=sys.stderr)
    return 3 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
