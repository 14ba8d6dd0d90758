"""A `libcuda` of ours: functions of C that record what they are called with, run kernels by the emulator, and capture them.

What is put on a stream that is captured becomes a node of a graph, with a copy of its parameters, and runs when the graph is
launched; others put what is no kernel there with `put`. Streams that are captured refuse what CUDA refuses. A stream that waits for an
event of one that is captured is captured with it. Nodes of a graph run in an order that is drawn, each behind those that it follows.
"""

import ctypes
import random
import re
import struct
import zlib
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint64, c_void_p

from pullback.backends.cuda.driver import FUNCTIONS, KernelNode

CONTEXT, MODULE = 0xC0, 0xA000

#: What a cubin of ours begins with: the mark of ELF, the device that it is for, the bytes of the PTX that follows and their checksum.
CUBIN = struct.Struct("<4sIII")

#: Codes of errors that the driver has names and sentences for.
NAMES = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    200: ("CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    201: ("CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
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

    def __init__(self, run=None, capability=(9, 0), cuda=12040):
        self.capability, self.cuda = capability, cuda
        self.links = {}
        """By handle where an error is to be said, the PTX, and the cubin that its caller may read until it is destroyed."""
        self.assembled = []
        """The PTX that was made machine code of."""
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
            if name in self.failing:
                if name in ("cuLinkAddData_v2", "cuLinkComplete"):
                    self._say_in_log(arguments[0])
                return self.failing[name]
            return own(*arguments) or 0

        return call

    def _init(self, flags):
        assert flags == 0

    def _driver_get_version(self, out):
        _put(out, c_int, self.cuda)

    def _device_get(self, out, number):
        _put(out, c_int, 10 + number)

    def _device_get_attribute(self, out, attribute, device):
        assert device >= 10, "a number where a device is to be"
        _put(out, c_int, {75: self.capability[0], 76: self.capability[1]}[attribute])

    def _device_primary_ctx_retain(self, out, device):
        _put(out, c_void_p, CONTEXT + device)

    def _ctx_get_current(self, out):
        _put(out, c_void_p, self.contexts[-1])

    def _ctx_push_current_v2(self, context):
        self.contexts.append(context)

    def _ctx_pop_current_v2(self, out):
        _put(out, c_void_p, self.contexts.pop())

    def _link_create_v2(self, count, options, values, out):
        if not self.contexts[-1]:
            return 201
        numbers = (c_int * count).from_address(options)
        given = dict(zip(numbers, (c_uint64 * count).from_address(values), strict=True))
        self.links[self._handle(0x60000)] = [(given[5], given[6]), [], None]
        _put(out, c_void_p, 0x60000 + self._handles)
        return 0

    def _link_add_data_v2(self, link, kind, data, nbytes, name, count, options, values):
        _, texts, cubin = self.links[link]
        text = ctypes.string_at(data, nbytes)
        if kind != 1 or not text.endswith(b"\0") or cubin is not None or count:
            return 1
        if not text.lstrip().startswith((b".version", b"//")):
            return 218
        texts.append(text[:-1])
        return 0

    def _link_complete(self, link, out, nbytes):
        (text,) = self.links[link][1]
        self.assembled.append(text.decode())
        made = ctypes.create_string_buffer(self.cubin(text), CUBIN.size + len(text))
        self.links[link][2] = made
        _put(out, c_void_p, ctypes.addressof(made))
        _put(nbytes, c_uint64, len(made))

    def _link_destroy(self, link):
        made = self.links.pop(link)[2]
        if made is not None:  # whoever still reads it reads garbage
            ctypes.memset(made, 0xFF, len(made))

    def cubin(self, ptx):
        """The machine code of PTX for the device."""
        return CUBIN.pack(b"\x7fELF", self._device(), len(ptx), zlib.crc32(ptx)) + ptx

    def _device(self):
        return 10 * self.capability[0] + self.capability[1]

    def _say_in_log(self, link):
        address, nbytes = self.links[link][0]
        said = self.log.encode()[: nbytes - 1] + b"\0"
        ctypes.memmove(address, said, len(said))

    def _module_load_data_ex(self, out, image, count, options, values):
        if not self.contexts[-1]:
            return 201
        assert count == 0
        mark, device, nbytes, checksum = CUBIN.unpack(ctypes.string_at(image, CUBIN.size))
        if mark != b"\x7fELF":
            return 200
        if (
            device // 10 != self.capability[0] or device > self._device()
        ):  # newer ones of a generation run what is for older ones
            return 209
        ptx = ctypes.string_at(image + CUBIN.size, nbytes)
        if zlib.crc32(ptx) != checksum:
            return 200
        self.ptx.append(ptx.decode())
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
