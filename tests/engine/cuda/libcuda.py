"""A `libcuda` of ours: functions of C that record what they are called with, run kernels by the emulator, and capture them.

What is put on a stream that is captured becomes a node of a graph, with a copy of its parameters, and runs when the graph is
launched; others put what is no kernel there with `put`. Streams that are captured refuse what CUDA refuses. A stream that waits for an
event of one that is captured is captured with it. Nodes of a graph run in an order that is drawn, each behind those that it follows.
"""

import ctypes
import random
import re
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint64, c_void_p

from pullback.backends.cuda.driver import FUNCTIONS, KernelNode

CONTEXT, MODULE = 0xC0, 0xA000

#: Codes of errors that the driver has names and sentences for.
NAMES = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    222: ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain"),
    900: ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"),
    901: ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"),
    902: ("CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"),
    903: ("CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"),
    904: ("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"),
    905: ("CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
}


class _Capture:
    """The graph that is captured from one stream on, and the streams that take part."""

    def __init__(self, origin):
        self.origin = origin
        self.is_valid = True
        self.nodes = {}
        """By handle what to run, and the nodes that it follows."""
        self.last = {origin: frozenset()}
        """By stream the nodes that the next one there follows."""
        self.unjoined = set()
        """Streams with a begin or work that nothing waits for."""


class Library:
    """Has the symbols of `libcuda` as functions of C.

    `failing` has, by name, the code that a function fails with. `run(name, blocks, threads, addresses)` runs a kernel.
    """

    def __init__(self, run=None):
        self.calls = []
        self.failing = {}
        self.log = ""
        self.ptx = []
        self.entries = []
        self.loaded = set()
        self.contexts = [0]
        self.streams = []
        self.capturing = {}
        """By stream the capture that it takes part in."""
        self.events = {}
        """By event the capture, the stream and the nodes that it stands for; None where nothing was captured."""
        self.graphs, self.executables = {}, {}
        """By handle the nodes that are alive, as what to run or as kernels with their parameters, and the nodes that each follows."""
        self.draw = random.Random(0).choice
        """Chooses of the nodes that may run the one that runs."""
        self._handles = 0
        self._modules = []
        self._run = run
        self.perform = self._perform
        self._said = []
        for name, arguments in FUNCTIONS.items():
            setattr(self, name, CFUNCTYPE(c_int, *arguments)(self._function(name)))

    def _function(self, name):
        own = getattr(self, re.sub("([A-Z])", r"_\1", name[2:]).lower())

        def call(*arguments):
            self.calls.append(name)
            if name in self.failing and name != "cuModuleLoadDataEx":
                return self.failing[name]
            return own(*arguments) or 0

        return call

    def _init(self, flags):
        assert flags == 0

    def _driver_get_version(self, out):
        _put(out, c_int, 12040)

    def _device_get(self, out, number):
        _put(out, c_int, 10 + number)

    def _device_primary_ctx_retain(self, out, device):
        _put(out, c_void_p, CONTEXT + device)

    def _ctx_get_current(self, out):
        _put(out, c_void_p, self.contexts[-1])

    def _ctx_push_current_v2(self, context):
        self.contexts.append(context)

    def _ctx_pop_current_v2(self, out):
        _put(out, c_void_p, self.contexts.pop())

    def _module_load_data_ex(self, out, text, count, options, values):
        assert self.contexts[-1], "no context is current"
        numbers = list((c_int * count).from_address(options))
        given = dict(zip(numbers, (c_uint64 * count).from_address(values), strict=True))
        if "cuModuleLoadDataEx" in self.failing:
            said = self.log.encode()[: given[6] - 1] + b"\0"
            ctypes.memmove(given[5], said, len(said))
            return self.failing["cuModuleLoadDataEx"]
        self.ptx.append(ctypes.string_at(text).decode())
        self.loaded.add(MODULE + len(self.ptx))
        _put(out, c_void_p, MODULE + len(self.ptx))
        return 0

    def _module_unload(self, module):
        self.loaded.remove(module)

    def _module_get_function(self, out, module, name):
        assert module in self.loaded
        name = name.decode()
        assert f".entry {name}(" in self.ptx[module - MODULE - 1]
        self.entries.append(name)
        self._modules.append(module)
        _put(out, c_void_p, 0xF000 + len(self.entries) - 1)

    def _func_get_attribute(self, out, attribute, function):
        _put(out, c_int, {3: 0, 4: 40 + function - 0xF000}[attribute])

    def _launch_kernel(self, function, bx, by, bz, tx, ty, tz, shared, stream, parameters, extra):
        assert self.contexts[-1], "no context is current"
        assert (by, bz, ty, tz, shared, extra) == (1, 1, 1, 1, 0, None)
        kernel = self._kernel(function, bx, tx, parameters)
        self.launched = {**kernel, "stream": stream}
        return self.put(stream or 0, kernel)

    def _kernel(self, function, blocks, threads, parameters):
        number = function - 0xF000
        assert self._modules[number] in self.loaded, "the module of a kernel is gone"
        places = (c_void_p * self._parameters(number)).from_address(parameters)
        addresses = [c_uint64.from_address(place).value for place in places]
        return {
            "number": number,
            "name": self.entries[number],
            "blocks": blocks,
            "threads": threads,
            "addresses": addresses,
        }

    def put(self, stream, work):
        """Put a kernel, or a function, on a stream."""
        if stream not in self.capturing:
            self.perform(work)
            return 0
        capture = self.capturing[stream]
        if not capture.is_valid:
            return 901
        node = self._handle(0x10000)
        capture.nodes[node] = (work, capture.last[stream])
        capture.last[stream] = frozenset([node])
        if stream != capture.origin:
            capture.unjoined.add(stream)
        return 0

    def refused(self, stream):
        """The error of what cannot be captured, which ends the capture; 0 where nothing is captured."""
        if stream not in self.capturing:
            return 0
        return self._invalid(stream, 900)

    def _invalid(self, stream, code):
        self.capturing[stream].is_valid = False
        return code

    def _perform(self, work):
        if not isinstance(work, dict):
            work()
        elif self._run is not None:
            self._run(work["name"], work["blocks"], work["threads"], work["addresses"])

    def _handle(self, base):
        self._handles += 1
        return base + self._handles

    def _stream_create(self, out, flags):
        assert self.contexts[-1], "no context is current"
        assert flags == 1, "a stream that waits for the legacy one"
        self.streams.append(self._handle(0x20000))
        _put(out, c_void_p, self.streams[-1])

    def _stream_begin_capture_v2(self, stream, mode):
        assert mode == 1, "others' calls would end the capture"
        if not stream or stream in self.capturing:  # the legacy stream
            return 900
        self.capturing[stream] = _Capture(stream)
        return 0

    def _event_create(self, out, flags):
        assert self.contexts[-1], "no context is current"
        assert flags == 2, "an event that takes the time"
        self.events[self._handle(0x50000)] = None
        _put(out, c_void_p, 0x50000 + self._handles)

    def _event_record(self, event, stream):
        capture = self.capturing.get(stream or 0)
        assert event in self.events
        self.events[event] = None if capture is None else (capture, stream, capture.last[stream])
        return 0 if capture is None or capture.is_valid else 901

    def _stream_wait_event(self, stream, event, flags):
        assert flags == 0
        stream, seen, own = stream or 0, self.events[event], self.capturing.get(stream or 0)
        if seen is None:  # everything before has run by then, but a capture knows nothing of it
            return 0 if own is None else self._invalid(stream, 905)
        capture, other, nodes = seen
        if not capture.is_valid or capture not in self.capturing.values():
            return 901
        if own is not None and own is not capture:
            return self._invalid(stream, 902)
        if not stream:
            return self._invalid(other, 900)
        self.capturing[stream] = capture
        capture.last[stream] = capture.last.get(stream, frozenset()) | nodes
        if stream != capture.origin:
            capture.unjoined.add(stream)
        if capture.last[other] == nodes:
            capture.unjoined.discard(other)
        return 0

    def _stream_get_capture_info_v2(self, stream, status, number, graph, nodes, count):
        capture = self.capturing.get(stream)
        _put(status, c_int, 0 if capture is None else 1 if capture.is_valid else 2)
        last = sorted(capture.last[stream]) if capture is not None and capture.is_valid else []
        self._last = (c_void_p * max(len(last), 1))(*last)
        _put(nodes, c_void_p, ctypes.addressof(self._last))
        _put(count, c_uint64, len(last))

    def _stream_end_capture(self, stream, out):
        capture = self.capturing[stream]
        _put(out, c_void_p, None)
        if stream != capture.origin:
            return self._invalid(stream, 903)
        for one in capture.last:
            del self.capturing[one]
        if not capture.is_valid:
            return 901
        if capture.unjoined:
            return 904
        self.graphs[self._handle(0x30000)] = capture.nodes
        _put(out, c_void_p, 0x30000 + self._handles)
        return 0

    def _graph_get_nodes(self, graph, nodes, count):
        assert nodes is None
        _put(count, c_uint64, len(self.graphs[graph]))

    def _graph_instantiate_with_flags(self, out, graph, flags):
        assert flags == 0
        nodes = {node: dict(work) if isinstance(work, dict) else work for node, (work, _) in self.graphs[graph].items()}
        self.executables[self._handle(0x40000)] = (graph, nodes)
        _put(out, c_void_p, 0x40000 + self._handles)

    def _graph_exec_kernel_node_set_params(self, executable, node, params):
        given = KernelNode.from_address(params)
        graph, nodes = self.executables[executable]
        assert node in self.graphs[graph], "the graph of the node is gone"
        ones = given.grid_y, given.grid_z, given.block_y, given.block_z, given.shared_bytes, given.extra
        assert ones == (1, 1, 1, 1, 0, None)
        nodes[node] = self._kernel(given.function, given.grid_x, given.block_x, given.parameters)

    def _graph_launch(self, executable, stream):
        assert self.contexts[-1], "no context is current"
        self.launched_on = stream
        graph, works = self.executables[executable]
        left = {node: set(before) for node, (_, before) in self.graphs[graph].items()}
        while left:
            node = self.draw([node for node, before in left.items() if before.isdisjoint(left)])
            del left[node]
            if failed := self.put(stream or 0, works[node]):
                return failed
        return 0

    def _graph_exec_destroy(self, executable):
        del self.executables[executable]

    def _graph_destroy(self, graph):
        del self.graphs[graph]

    def _parameters(self, number):
        """The number of parameters of a kernel, as its PTX has it."""
        ptx = self.ptx[self._modules[number] - MODULE - 1]
        return ptx.partition(f".entry {self.entries[number]}(")[2].partition(")")[0].count(".param .u64")

    def _get_error_name(self, code, out):
        return self._say(code, out, 0)

    def _get_error_string(self, code, out):
        return self._say(code, out, 1)

    def _say(self, code, out, which):
        if code not in NAMES:
            return 1
        said = c_char_p(NAMES[code][which].encode())
        self._said.append(said)
        ctypes.cast(out, POINTER(c_char_p))[0] = said
        return 0


def _put(out, type_, value):
    type_.from_address(out).value = value
