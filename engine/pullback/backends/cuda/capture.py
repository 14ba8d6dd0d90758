"""The tier `native` on a device: a program that keeps its memory, captured as a CUDA graph and launched by one call.

    replayed = ReplayedProgram(prepare, work, graphs, ...)
    replayed(frame, *values)

A program is in two parts. `prepare` is what the host does: numbers and arrays of the host are put into kept memory, and guards
are checked. `work` is everything that the device does. The first two runs in a frame do both as the tier `stateful` does; then
`work` is captured, and from then on launched.

A graph has addresses in it. Where an array of a call lies elsewhere, the nodes of our kernels are given its address. What
functions of PyTorch read or write by address has to be where it was, so for each set of those addresses there is a graph,
`SETS_TRIED` in a frame at most. The last of them works on copies: what such functions read is copied in before it is
launched, and what they give is copied out. Arrays that are not in C order, or not aligned, are always copied in.

Products that a program has in groups (`branches.py`) are branches of the graph: captured on streams beside that of the lane, each of which
waits for it before the product, and is waited for behind the group.

Whatever cannot be captured (a look at a value, a step on the host) leaves the tier: `reasons` says why, and runs go step by step.
"""

import ctypes
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from pullback.backends.cuda.branches import MOST_BRANCHES
from pullback.backends.cuda.driver import Driver
from pullback.backends.cuda.entrance import Entrance, EntranceFrame, Launch
from pullback.backends.cuda.state import memory_count
from pullback.backends.gc_pause import collecting_later
from pullback.backends.interpreter import GuardFailure
from pullback.devices.cuda.eager import DEVICE, DeviceArray
from pullback.devices.cuda.failures import line_of
from pullback.errors import DeviceError

#: Graphs of one frame, as many as frames are tried for the tier `native` of the host.
SETS_TRIED = 8

#: Runs before a program is captured: libraries load what they need in them.
WARM_RUNS = 2

#: Runs without a capture after the device had no memory for one; twice as many after each further time.
RUNS_BETWEEN_CAPTURES = 8

#: Bytes that the beginning of an array is a multiple of, where kernels read it.
ALIGNMENT = 16


class Graph(Protocol):
    """A captured piece of work, which can be launched."""

    nodes: int
    branches: int
    """Products that run beside others."""
    streams: int
    """Streams that it was captured on, each of which has a workspace of cuBLAS's."""

    def branch(self, number: int) -> AbstractContextManager[None]:
        """Capture what the block does as a branch, which begins behind all that was captured before, and runs beside what follows."""

    def join(self) -> None:
        """Let what follows wait for all branches."""

    def launch(self, launch: Any, addresses: list[int]) -> Any:
        """Capture the kernels of a nest; gives what `move` takes."""

    def move(self, captured: Any, addresses: list[int]) -> None:
        """Give kernels other addresses."""

    def replay(self) -> None:
        """Run it on the stream that is current."""

    def launching(self) -> Launch | None:
        """A launch on that stream without Python; None where it cannot be launched so."""


_NO_MEMORY = ("out of memory", "STATUS_ALLOC_FAILED")
"""Words of PyTorch and the driver, and of cuBLAS and cuDNN, where memory lacks."""


class Graphs(Protocol):
    """Captures work."""

    def may_capture(self) -> bool:
        """False where somebody else captures what is done here."""

    def capture(self, graph_is: Callable[[Graph], None], work: Callable[[], None]) -> Graph:
        """The graph of work, which does not run; `graph_is` is told of it before."""


# --- by the driver ----------------------------------------------------------------------------------------------------
class Lane:
    """A stream of our own that graphs are captured on, and the pool that PyTorch takes memory of meanwhile.

    PyTorch keeps the workspaces of cuBLAS by thread and stream, and clears those of a stream with a graph of its own; so two
    graphs may have one workspace only if they run one after the other, and nobody else may have the stream. There is a lane
    for each thread and stream that graphs are launched on, like the frames of kept memory.
    """

    def __init__(self, driver: Driver, context: int, device: torch.device) -> None:
        with driver.current(context):
            self.stream, *self.beside = (driver.stream() for _ in range(MOST_BRANCHES))
            self.event = driver.event()
        self._device = device
        with torch.cuda.device(device):  # a pool is of the device that is current
            self._pool = torch.cuda.MemPool()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make the stream current, and give what PyTorch asks for from the pool, on whatever stream."""
        with self.on(self.stream), torch.cuda.use_mem_pool(self._pool, self._device):
            yield

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """Make one of its streams current."""
        made: AbstractContextManager[Any] = torch.cuda.stream(torch.cuda.ExternalStream(stream, device=self._device))
        return made


class CaptureLane(Protocol):
    """A lane."""

    stream: int
    beside: list[int]
    """Streams of branches."""
    event: int

    def entered(self) -> AbstractContextManager[None]:
        """Make the stream current, and give what is asked for from the pool."""

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """Make one of its streams current."""


class _BorrowedLane:
    """A lane of one thread and its graphs. When these are gone it is free for another thread on the same stream.

    Streams are not destroyed: PyTorch keeps the workspaces of one for good, and would give them to a new stream at its address, whose
    graphs would work in memory of a pool that is gone. On the same stream a graph runs behind those of the thread before.
    """

    def __init__(self, lane: CaptureLane, free: list[CaptureLane]) -> None:
        self.stream, self.beside, self.event = lane.stream, lane.beside, lane.event
        self.entered, self.on = lane.entered, lane.on
        self._lane = lane
        self._free = free

    def __del__(self) -> None:
        self._free.append(self._lane)


class DriverCapture:
    """Captures by the driver, on a lane for each thread and stream, which `stream` gives."""

    def __init__(
        self,
        driver: Driver,
        context: int,
        stream: Callable[[], int],
        lane: Callable[[], CaptureLane],
        is_capturing: Callable[[], bool],
    ) -> None:
        self._driver = driver
        self._context = context
        self._stream = stream
        self._lane = lane
        self._is_capturing = is_capturing
        self._lanes = threading.local()
        self._free: defaultdict[int, list[CaptureLane]] = defaultdict(list)
        """By stream the lanes of threads that are gone."""

    def may_capture(self) -> bool:
        """True unless the stream that is current is captured already."""
        return not self._is_capturing()

    def capture(self, graph_is: Callable[[Graph], None], work: Callable[[], None]) -> Graph:
        """The graph of work."""
        lane = self._lane_of(self._stream())
        graph = _DriversGraph(self._driver, self._context, self._stream, self._is_capturing, lane)
        graph_is(graph)
        with self._driver.current(self._context), lane.entered():  # before: PyTorch looks for a graph of its own else
            self._driver.begin_capture(lane.stream)
            try:
                work()
            except BaseException:
                with suppress(DeviceError):  # of the capture that has failed; what failed is the error
                    self._driver.destroy_graph(self._driver.end_capture(lane.stream))
                raise
            graph.ends()
        return graph

    def _lane_of(self, stream: int) -> _BorrowedLane:
        lanes = self._lanes.__dict__
        if str(stream) not in lanes:
            free = self._free[stream]
            try:
                lane = free.pop()
            except IndexError:
                lane = self._lane()
            lanes[str(stream)] = _BorrowedLane(lane, free)
        borrowed: _BorrowedLane = lanes[str(stream)]
        return borrowed


class _DriversGraph:
    """A graph of the driver's; it lives as long as this."""

    def __init__(
        self,
        driver: Driver,
        context: int,
        stream: Callable[[], int],
        is_capturing: Callable[[], bool],
        lane: _BorrowedLane,
    ) -> None:
        self._driver = driver
        self._context = context
        self._stream = stream
        self._is_capturing = is_capturing
        self._lane = lane  # its pool has what the graph uses
        self._graph = self._executable = self.nodes = self.branches = 0
        self.streams = 1
        self._unjoined: list[int] = []
        """Streams of branches that nothing waits for yet."""

    def ends(self) -> None:
        """The capture is over."""
        self._graph = self._driver.end_capture(self._lane.stream)
        self.nodes = self._driver.count_nodes(self._graph)
        self._executable = self._driver.instantiate(self._graph)

    @contextmanager
    def branch(self, number: int) -> Iterator[None]:
        """Capture on a stream beside that of the lane, from where that is."""
        stream = self._lane.beside[number - 1]
        self._driver.follow(stream, self._lane.stream, self._lane.event)
        self._unjoined.append(stream)
        self.branches, self.streams = self.branches + 1, max(self.streams, number + 1)
        with self._lane.on(stream):
            yield

    def join(self) -> None:
        """Let the stream of the lane wait for those of branches."""
        for stream in self._unjoined:
            self._driver.follow(self._lane.stream, stream, self._lane.event)
        self._unjoined.clear()

    def launch(self, launch: Any, addresses: list[int]) -> Any:
        """Capture the kernels of a nest."""
        return launch, launch.captured(addresses)

    def move(self, captured: Any, addresses: list[int]) -> None:
        """Give their nodes other addresses."""
        launch, nodes = captured
        launch.move(self._executable, nodes, addresses)

    def replay(self) -> None:
        """Launch it."""
        with self._driver.current(self._context):
            self._driver.launch_graph(self._executable, self._stream())

    def launching(self) -> Launch:
        """The words of a launch here, and what is asked before."""
        stream = self._stream()
        launch, current = self._driver.addresses()
        asked = ((self._stream, stream), (self._is_capturing, False))
        return Launch((launch, self._executable, stream, current, self._context), asked)

    def __del__(self) -> None:
        """Let go of it, but not while Python ends: the driver may be gone by then."""
        if sys.is_finalizing():
            return
        with suppress(DeviceError), self._driver.current(self._context):  # after an error the driver refuses this too
            if self._executable:
                self._driver.destroy_executable(self._executable)
            if self._graph:
                self._driver.destroy_graph(self._graph)


# --- in memory of the host --------------------------------------------------------------------------------------------
#: Operations of PyTorch that give the host what only the device knows.
_LOOKS = frozenset({"_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "unique_dim", "_unique2"})


class HostCapture:
    """Captures without a GPU: operations of PyTorch and launches of the emulator are noted, with addresses, and done again."""

    def may_capture(self) -> bool:
        """True: nobody captures here."""
        return True

    def capture(self, graph_is: Callable[[Graph], None], work: Callable[[], None]) -> Graph:
        """The graph of work, which is done, too."""
        graph = _OperationList()
        graph_is(graph)
        with graph:
            work()
        return graph


class _OperationList(TorchDispatchMode):  # type: ignore[misc] # PyTorch's types are not looked into
    """A list of what to do."""

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[list[Any]] = []
        self._is_done = True
        """True until it is run for the first time: what was prepared for that run may be overwritten by now, as a run may do."""
        self._pool: dict[int, Tensor] = {}
        """By address, memory that was asked for while capturing."""
        self.branches, self.streams = 0, 1

    @property
    def nodes(self) -> int:
        """The number of steps."""
        return len(self._steps)

    @contextmanager
    def branch(self, number: int) -> Iterator[None]:
        """Only count it: the steps of a list run one after the other."""
        self.branches, self.streams = self.branches + 1, max(self.streams, number + 1)
        yield

    def join(self) -> None:
        """Do nothing: what follows comes after."""

    def launch(self, launch: Any, addresses: list[int]) -> Any:
        """Note the kernels of a nest."""
        launch(addresses)
        self._steps.append([launch, addresses])
        return self._steps[-1]

    def move(self, captured: Any, addresses: list[int]) -> None:
        """Give them other addresses."""
        captured[1] = addresses

    def replay(self) -> None:
        """Do it again, unseen by PyTorch as on a device; not the first time, since capturing did it."""
        if self._is_done:
            self._is_done = False
            return
        with _disable_current_modes():
            for function, given in self._steps:
                function(given)

    def launching(self) -> None:
        """None: it is Python that does it again."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs, name = kwargs or {}, function.overloadpacket.__name__
        if name in _LOOKS:
            raise DeviceError(f"{name} waits for the device, which cannot be done while it is captured")
        before = {_memory(x) for x in _tensors((args, kwargs)) if name != "lift_fresh"}  # which gives numbers a tensor
        made = function(*args, **kwargs)
        results = _tensors(made)
        self._pool.update((_memory(x), x) for x in results if _memory(x) not in before)
        aliases = [one.alias_info for one in function._schema.returns]  # noqa: SLF001 - there is no other way to know
        if name in ("_unsafe_view", "lift_fresh") or any(one is not None and not one.is_write for one in aliases):
            return made
        fresh = [] if any(one is not None for one in aliases) else results
        given, named = tree_map(self._by_address, args), tree_map(self._by_address, kwargs)

        def repeat(_: None) -> None:
            again = _tensors(function(*given, **named))
            for there, value in zip(fresh, again, strict=True) if fresh else ():
                there.copy_(value)

        if "empty" not in name:
            self._steps.append([repeat, None])
        return made

    def _by_address(self, x: Any) -> Any:
        """An operand as a graph has it: memory that it was not captured with is an address to it, and may be anybody's later."""
        if not _is_tensor(x) or not x.numel() or _memory(x) in self._pool:
            return x
        count = 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
        there = (ctypes.c_char * (count * x.itemsize)).from_address(x.data_ptr())
        seen = torch.frombuffer(there, dtype=x.dtype, count=count).as_strided(x.shape, x.stride())
        seen = seen.conj() if x.is_conj() else seen
        return torch._neg_view(seen) if x.is_neg() else seen  # noqa: SLF001 - as PyTorch's own


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def _tensors(tree: Any) -> list[Tensor]:
    return [x for x in tree_leaves(tree) if _is_tensor(x)]


def _memory(x: Tensor) -> int:
    return int(x.untyped_storage().data_ptr())


# --- sets ---------------------------------------------------------------------------------------------------------------
_forks = 0


def _after_fork_in_child() -> None:
    global _forks  # noqa: PLW0603 - what was captured before is not of this process
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

_here = threading.local()


def recording(launch: Callable[[Sequence[int]], None], owners: Sequence[str]) -> Callable[..., None]:
    """The call of a nest, all of whose pieces are given; `owners` are the names of the memory that they lie in."""

    def run(*pieces: Tensor) -> None:
        addresses = [piece.data_ptr() for piece in pieces]
        captured: Set | None = getattr(_here, "captured", None)
        if captured is None:
            launch(addresses)
        else:
            captured.note(launch, addresses, owners)

    return run


def branch(number: int) -> AbstractContextManager[None]:
    """A block whose product is a branch of the graph where one is captured, and that is done in its turn elsewhere."""
    captured: Set | None = getattr(_here, "captured", None)
    return nullcontext() if captured is None else captured.graph.branch(number)


def join() -> None:
    """Let what follows wait for all branches, where a graph is captured."""
    captured: Set | None = getattr(_here, "captured", None)
    if captured is not None:
        captured.graph.join()


class Set:
    """A graph, and where the arguments of its work were when it was captured or moved last."""

    def __init__(self, names: Sequence[str], addresses: list[int]) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self.addresses = addresses
        self.graph: Graph
        self._launches: list[tuple[Any, list[tuple[int | None, int]]]] = []
        """Of each nest what was captured, and for each piece its argument and the bytes before it, or None and its address."""

    def note(self, launch: Any, addresses: list[int], owners: Sequence[str]) -> None:
        """Capture a nest."""
        numbers = [self._numbers.get(owner) for owner in owners]
        places = [
            (number, address if number is None else address - self.addresses[number])
            for number, address in zip(numbers, addresses, strict=True)
        ]
        self._launches.append((self.graph.launch(launch, addresses), places))

    def move(self, addresses: list[int]) -> int:
        """Make the graph work on arguments that are elsewhere; gives how many nests were told."""
        moved = {number for number, old in enumerate(self.addresses) if old != addresses[number]}
        told = [one for one in self._launches if not moved.isdisjoint(number for number, _ in one[1])] if moved else []
        for captured, places in told:
            self.graph.move(captured, [at if number is None else addresses[number] + at for number, at in places])
        self.addresses = addresses
        return len(told)


class Sets:
    """The graphs of one frame, and the copies that some of them work on; lies behind the tensors of the frame."""

    def __init__(self) -> None:
        self.runs = 0
        self.forks = _forks
        self.sets: list[Set] = []
        self.copies: dict[str, Tensor] = {}
        self.entered: EntranceFrame | None = None
        self.entrances = 0
        self.failures = 0
        """Captures in a row that the device had no memory for."""
        self.pause = 0
        """Runs until the next one."""

    def leave(self) -> None:
        """Send calls that would launch one of the graphs natively through Python."""
        if self.entered is not None:
            self.entered.leave()


class ReplayedProgram:
    """A program of two parts that is captured; called with the tensors of a frame and the values of its inputs."""

    def __init__(
        self,
        prepare: Callable[..., Any],
        work: Callable[..., None],
        graphs: Graphs,
        *,
        inputs: Sequence[tuple[str, int]],
        count: int,
        results: Sequence[tuple[str, int] | None],
        fixed: Collection[str],
        is_whole: bool = False,
    ) -> None:
        """`inputs` are the arrays on the device by name and position, of `count` values.

        `results` have for each output its name and its place in the frame, or None where `prepare` gives it; `fixed` are the
        names of arguments and results that functions of PyTorch work on. One that `is_whole` has nothing to prepare.
        """
        self._is_whole = is_whole
        self._prepare = prepare
        self._work = work
        self._graphs = graphs
        self._inputs = tuple(inputs)
        self._count = count
        self._results = tuple(results)
        self._outputs = [one for one in self._results if one is not None]
        self._names = [name for name, _ in (*self._inputs, *self._outputs)]
        self._fixed = [number for number, name in enumerate(self._names) if name in fixed]
        self.reasons: tuple[str, ...] = ()
        """The reason why it always runs step by step; at most one."""
        self._delay: tuple[str, ...] = ()
        """The reason why a frame does so for some runs; at most one."""
        self.counts = {"nodes": 0, "branches": 0, "streams": 1, "sets": 0, "copies": 0, "moved": 0}
        """Of the latest call: nodes of the graph, products in it that run beside others and its streams, graphs of the frame, arrays copied in or out, nests that were told where arrays lie."""

    def __call__(self, frame: list[Any], *values: Any) -> Any:
        """One run: the outputs, or what a guard saw that it should not."""
        *arrays, sets = frame
        _here.steady = None
        told = self._prepare(arrays, *values)
        if type(told) is GuardFailure:
            return told
        tensors = [values[position].tensor for _, position in self._inputs]
        if self.reasons or sets.runs < WARM_RUNS or not self._graphs.may_capture():
            sets.runs += 1
            self._run(arrays, tensors)
        else:
            one = self._replay(arrays, sets, tensors)
            if one is not None and self._is_whole:
                _here.steady = self, frame, one, tensors
        given = iter(told)
        return tuple(next(given) if one is None else DeviceArray(DEVICE, arrays[one[1]]) for one in self._results)

    @property
    def told(self) -> tuple[str, ...]:
        """The reason why runs go step by step; at most one."""
        return self.reasons or self._delay

    def _run(self, arrays: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
        given: list[Any] = [None] * self._count
        for (_, position), tensor in zip(self._inputs, tensors, strict=True):
            given[position] = DeviceArray(DEVICE, tensor)
        self._work(arrays, *given)

    def _replay(self, arrays: list[Tensor], sets: Sets, tensors: Sequence[Tensor]) -> Set | None:
        """Launch a graph; gives it if that was all."""
        if sets.forks != _forks:
            raise DeviceError(
                "this plan was captured as a CUDA graph before the process was forked, which ends with the fork; "
                "start processes with the method spawn, or compile the plan in the child"
            )
        pieces = [
            tensor if is_in_order(tensor) else _copied(sets, name, tensor)
            for (name, _), tensor in zip(self._inputs, tensors, strict=True)
        ]
        copies = sum(piece is not tensor for piece, tensor in zip(pieces, tensors, strict=True))
        pieces += [arrays[place] for _, place in self._outputs]
        inputs, one = len(tensors), self._fitting(sets, pieces)
        copied_out = []
        if one is None and len(sets.sets) >= SETS_TRIED - 1:
            for number in self._fixed:
                if number >= inputs:
                    copied_out.append((pieces[number], _like(sets, self._names[number], pieces[number])))
                    pieces[number] = copied_out[-1][1]
                elif pieces[number] is tensors[number]:
                    copies += 1
                    pieces[number] = _copied(sets, self._names[number], tensors[number])
            one = self._fitting(sets, pieces)
        moved = 0
        if one is None:
            one = self._captured(arrays, sets, pieces)
            if one is None:
                self._run(arrays, tensors)
                return None
        else:
            try:
                moved = one.move([piece.data_ptr() for piece in pieces])
            except DeviceError:
                sets.sets.remove(one)  # a part of it was moved
                raise
        one.graph.replay()
        for there, copy in copied_out:
            there.copy_(copy)
        copies += len(copied_out)
        graph = one.graph
        self.counts = {
            "nodes": graph.nodes,
            "branches": graph.branches,
            "streams": graph.streams,
            "sets": len(sets.sets),
            "copies": copies,
            "moved": moved,
        }
        return None if moved or copies else one

    def entrance(self) -> Entrance | None:
        """The way of calls like the latest one of this thread without Python; None where it did more than launch."""
        steady, _here.steady = getattr(_here, "steady", None), None
        if steady is None or steady[0] is not self or memory_count is None:
            return None
        _, frame, one, tensors = steady
        launch = one.graph.launching()
        places = [place for _, place in self._outputs]
        return None if launch is None else Entrance(self, launch, tensors, frame, places, one.graph)

    def _fitting(self, sets: Sets, pieces: Sequence[Tensor]) -> Set | None:
        """The set that was captured with these addresses where they are fixed."""
        fixed = [(number, pieces[number].data_ptr()) for number in self._fixed]
        return next(
            (one for one in sets.sets if all(one.addresses[number] == address for number, address in fixed)), None
        )

    def _captured(self, arrays: Sequence[Tensor], sets: Sets, pieces: Sequence[Tensor]) -> Set | None:
        """A new set; None where it cannot be, and the reason is noted if it stays."""
        if sets.pause:
            sets.pause -= 1
            return None
        one = Set(self._names, [piece.data_ptr() for piece in pieces])
        inputs, there = len(self._inputs), list(arrays)
        for (_, place), piece in zip(self._outputs, pieces[inputs:], strict=True):
            there[place] = piece
        _here.captured = one
        try:
            with collecting_later():  # what it lets go of may not be let go of while something is captured
                self._graphs.capture(
                    lambda graph: setattr(one, "graph", graph), lambda: self._run(there, pieces[:inputs])
                )
        except RuntimeError as error:
            if any(words in str(error) for words in _NO_MEMORY):  # others may free some
                sets.pause = RUNS_BETWEEN_CAPTURES << sets.failures
                sets.failures += 1
                self._delay = (
                    f"runs step by step until it is captured again, {sets.pause} runs later: {_first_line(error)}",
                )
                return None
            line = line_of(error.__traceback__)
            where = f" ({line})" if line else ""
            self.reasons = (f"runs step by step, not as a CUDA graph: {_first_line(error)}{where}",)
            return None
        finally:
            _here.captured = None
        sets.failures, self._delay = 0, ()
        sets.sets.append(one)
        return one


def is_in_order(x: Tensor) -> bool:
    """True for an array in C order whose elements are what they say, and whose beginning is aligned."""
    return x.is_contiguous() and not x.is_conj() and not x.is_neg() and not x.data_ptr() % ALIGNMENT


def _like(sets: Sets, name: str, x: Tensor) -> Tensor:
    """The copy of this name, which is made the first time."""
    if name not in sets.copies:
        with torch.inference_mode(mode=False):
            sets.copies[name] = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return sets.copies[name]


def _copied(sets: Sets, name: str, x: Tensor) -> Tensor:
    return _like(sets, name, x).copy_(x)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
