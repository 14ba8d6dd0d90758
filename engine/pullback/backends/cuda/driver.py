"""NVIDIA's driver, by the functions of `libcuda` that kernels and graphs of them take.

PTX becomes machine code (a *cubin*) in the driver, which assembles it for the device that is there. Everything happens in the primary context of a
device, which is the one that PyTorch computes in, and on the stream that a launch names. A call that fails is a `DeviceError`
of one sentence; of sticky errors, after which the driver refuses every further call, it says so.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from pullback.devices.cuda.failures import STICKY, sticky_error
from pullback.errors import DeviceError

#: Threads of a block, bytes of shared memory that a block has without asking, and blocks of a grid: limits of all devices from 8.0 on.
MOST_THREADS = 1024
MOST_SHARED_BYTES = 48 * 1024
MOST_BLOCKS = 2**31 - 1

_LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")

_INT, _UNSIGNED, _POINTER = ctypes.c_int, ctypes.c_uint, ctypes.c_void_p

#: The functions, with the types of their arguments; each gives an error code. `_v2` is the name of the newer of two forms.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (_UNSIGNED,),
    "cuDriverGetVersion": (_POINTER,),
    "cuDeviceGet": (_POINTER, _INT),
    "cuDeviceGetAttribute": (_POINTER, _INT, _INT),
    "cuDevicePrimaryCtxRetain": (_POINTER, _INT),
    "cuCtxGetCurrent": (_POINTER,),
    "cuCtxPushCurrent_v2": (_POINTER,),
    "cuCtxPopCurrent_v2": (_POINTER,),
    "cuLinkCreate_v2": (_UNSIGNED, _POINTER, _POINTER, _POINTER),
    "cuLinkAddData_v2": (
        _POINTER, _INT, _POINTER, ctypes.c_size_t, ctypes.c_char_p, _UNSIGNED, _POINTER, _POINTER
    ),
    "cuLinkComplete": (_POINTER, _POINTER, _POINTER),
    "cuLinkDestroy": (_POINTER,),
    "cuModuleLoadDataEx": (_POINTER, _POINTER, _UNSIGNED, _POINTER, _POINTER),
    "cuModuleUnload": (_POINTER,),
    "cuModuleGetFunction": (_POINTER, _POINTER, ctypes.c_char_p),
    "cuFuncGetAttribute": (_POINTER, _INT, _POINTER),
    "cuLaunchKernel": (_POINTER, *([_UNSIGNED] * 7), _POINTER, _POINTER, _POINTER),
    "cuStreamCreate": (_POINTER, _UNSIGNED),
    "cuStreamWaitEvent": (_POINTER, _POINTER, _UNSIGNED),
    "cuEventCreate": (_POINTER, _UNSIGNED),
    "cuEventRecord": (_POINTER, _POINTER),
    "cuStreamBeginCapture_v2": (_POINTER, _INT),
    "cuStreamGetCaptureInfo_v2": (_POINTER,) * 6,
    "cuStreamEndCapture": (_POINTER, _POINTER),
    "cuGraphGetNodes": (_POINTER, _POINTER, _POINTER),
    "cuGraphInstantiateWithFlags": (_POINTER, _POINTER, ctypes.c_uint64),
    "cuGraphExecKernelNodeSetParams": (_POINTER, _POINTER, _POINTER),
    "cuGraphLaunch": (_POINTER, _POINTER),
    "cuGraphExecDestroy": (_POINTER,),
    "cuGraphDestroy": (_POINTER,),
    "cuGetErrorName": (_INT, _POINTER),
    "cuGetErrorString": (_INT, _POINTER),
}  # fmt: skip

#: By error code, the remedy.
_REMEDIES = {
    2: "free arrays, or use a smaller size",
    3: "a process that was forked from one that used the device cannot use it; start it with the method spawn",
    100: "there is no device; run on the host with pb.fetch",
    209: "this device is of no kind that kernels are written for",
    218: "the driver does not read the PTX; please report it",
    222: "the driver is too old for the PTX; install a newer one",
    701: "a kernel takes more registers than the device has; please report it",
}

#: Attributes of a kernel: bytes of its stack, its registers.
_STACK_BYTES, _REGISTERS = 3, 4

#: Attributes of a device: its compute capability.
_MAJOR, _MINOR = 75, 76

# Options of assembling: where the driver says what is wrong with PTX, and how many bytes it may say. None changes the code.
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6
_LOG_BYTES = 4096

#: The kind of input of cuLinkAddData: PTX, with its zero at the end.
_PTX = 1

#: The release of the driver, which the number of the newest CUDA does not tell; Linux alone has the file.
_RELEASE = Path("/proc/driver/nvidia/version")

#: A stream that does not wait for the legacy one; capturing on which only this thread's calls are held to what captures allow.
_NON_BLOCKING, _THREAD_LOCAL = 1, 1

#: An event without a time.
_DISABLE_TIMING = 2


class KernelNode(ctypes.Structure):
    """The launch of a node of a graph: `CUDA_KERNEL_NODE_PARAMS_v1`."""

    _fields_ = (
        ("function", _POINTER),
        *((f"{what}_{axis}", _UNSIGNED) for what in ("grid", "block") for axis in "xyz"),
        ("shared_bytes", _UNSIGNED),
        ("parameters", _POINTER),
        ("extra", _POINTER),
    )


class Driver:
    """A loaded `libcuda`."""

    def __init__(self, library: Any) -> None:
        self._functions = {}
        self._contexts: dict[int, int] = {}
        for name, arguments in FUNCTIONS.items():
            function = getattr(library, name, None)
            if function is None:  # of a driver older than graphs are
                continue
            function.argtypes, function.restype = arguments, _INT
            self._functions[name] = function
        self._call("cuInit", 0)

    def version(self) -> tuple[int, int]:
        """The newest CUDA that the driver knows."""
        number = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10

    def context(self, device: int) -> int:
        """The primary context of a device, held until the process ends."""
        if device not in self._contexts:
            number, context = ctypes.c_int(), ctypes.c_void_p()
            self._call("cuDeviceGet", ctypes.byref(number), device)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
            self._contexts[device] = context.value or 0
        return self._contexts[device]

    @contextmanager
    def current(self, context: int) -> Iterator[None]:
        """Make a context that of this thread, if it is not, and put back what was there."""
        before = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(before))
        if before.value == context:
            yield
            return
        self._call("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def assembler(self, device: int) -> str:
        """All that the machine code of a device depends on besides its PTX: architecture, CUDA and release of the driver."""
        number, attribute = ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(number), device)
        architecture = []
        for name in (_MAJOR, _MINOR):
            self._call("cuDeviceGetAttribute", ctypes.byref(attribute), name, number)
            architecture.append(attribute.value)
        try:
            release = _RELEASE.read_text(errors="replace")
        except OSError:
            release = ""
        return repr((*architecture, *self.version(), release))

    def assemble(self, context: int, ptx: str) -> bytes:
        """The machine code of PTX for the device of a context."""
        log = ctypes.create_string_buffer(_LOG_BYTES)  # it and the options are read until the link is destroyed
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        link, code, nbytes = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        text = ptx.encode()
        with self.current(context):
            self._call("cuLinkCreate_v2", 2, options, values, ctypes.byref(link))
            try:
                self._call("cuLinkAddData_v2", link, _PTX, text, len(text) + 1, b"kernels", 0, None, None, log=log)
                self._call("cuLinkComplete", link, ctypes.byref(code), ctypes.byref(nbytes), log=log)
                return ctypes.string_at(code.value or 0, nbytes.value)  # the driver's own goes with the link
            finally:
                self._call("cuLinkDestroy", link)

    def load(self, context: int, cubin: bytes) -> int:
        """A module of machine code."""
        module = ctypes.c_void_p()
        with self.current(context):
            self._call("cuModuleLoadDataEx", ctypes.byref(module), cubin, 0, None, None)
        return module.value or 0

    def unload(self, context: int, module: int) -> None:
        """Let go of a module."""
        with self.current(context):
            self._call("cuModuleUnload", module)

    def function(self, module: int, name: str) -> int:
        """A kernel of a module."""
        found = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        return found.value or 0

    def resources(self, function: int) -> tuple[int, int]:
        """Registers and bytes of stack of a thread of a kernel."""
        number = ctypes.c_int()
        found = []
        for attribute in (_REGISTERS, _STACK_BYTES):
            self._call("cuFuncGetAttribute", ctypes.byref(number), attribute, function)
            found.append(number.value)
        return found[0], found[1]

    def launch(self, function: int, blocks: int, threads: int, addresses: Sequence[int], stream: int) -> None:
        """Put a kernel on a stream of the current context, with pointers for its parameters."""
        parameters, _values = _pointers(addresses)
        self._call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, None)

    # --- graphs: all in the context that is current ---------------------------------------------------------------------
    def stream(self) -> int:
        """A new stream, which is never the legacy one."""
        made = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(made), _NON_BLOCKING)
        return made.value or 0

    def event(self) -> int:
        """A new event, by which streams wait for each other."""
        made = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(made), _DISABLE_TIMING)
        return made.value or 0

    def follow(self, stream: int, other: int, event: int) -> None:
        """Let what is put on a stream from now on wait for what another has by now; where that is captured, the stream is from then on."""
        self._call("cuEventRecord", event, other)
        self._call("cuStreamWaitEvent", stream, event, 0)

    def begin_capture(self, stream: int) -> None:
        """Make nodes of a graph of all that is put on a stream from now on, instead of running it."""
        self._call("cuStreamBeginCapture_v2", stream, _THREAD_LOCAL)

    def captured_node(self, stream: int) -> int:
        """The node that was captured last."""
        status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
        nodes, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()
        out = map(ctypes.byref, (status, number, graph, nodes, count))
        self._call("cuStreamGetCaptureInfo_v2", stream, *out)
        if status.value != 1 or count.value != 1:  # of one stream each node follows the one before
            raise DeviceError(f"a capture has {count.value} last nodes, not one; please report it")
        return nodes[0] or 0

    def end_capture(self, stream: int) -> int:
        """The graph of what was captured."""
        graph = ctypes.c_void_p()
        self._call("cuStreamEndCapture", stream, ctypes.byref(graph))
        return graph.value or 0

    def count_nodes(self, graph: int) -> int:
        """The number of nodes of a graph."""
        count = ctypes.c_size_t()
        self._call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        return count.value

    def instantiate(self, graph: int) -> int:
        """A graph made ready to be launched."""
        executable = ctypes.c_void_p()
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, 0)
        return executable.value or 0

    def move_node(
        self, executable: int, node: int, function: int, blocks: int, threads: int, addresses: Sequence[int]
    ) -> None:
        """Give a kernel of a graph other pointers, from the next launch of the graph on."""
        parameters, _values = _pointers(addresses)
        table = ctypes.cast(parameters, ctypes.c_void_p)
        params = KernelNode(function, blocks, 1, 1, threads, 1, 1, 0, table, None)
        self._call("cuGraphExecKernelNodeSetParams", executable, node, ctypes.byref(params))

    def launch_graph(self, executable: int, stream: int) -> None:
        """Put a graph on a stream."""
        self._call("cuGraphLaunch", executable, stream)

    def addresses(self) -> tuple[int, int]:
        """Addresses of the functions that launch a graph, and that give the context that is current."""
        return address_of(self._functions["cuGraphLaunch"]), address_of(self._functions["cuCtxGetCurrent"])

    def destroy_graph(self, graph: int) -> None:
        """Let go of a graph."""
        self._call("cuGraphDestroy", graph)

    def destroy_executable(self, executable: int) -> None:
        """Let go of what was made ready; where it is running still, when it has run."""
        self._call("cuGraphExecDestroy", executable)

    def _call(self, name: str, *arguments: Any, log: Any = None) -> None:
        if name not in self._functions:
            raise DeviceError(f"the driver has no {name}; install a newer one")
        code = self._functions[name](*arguments)
        if code:
            said = [] if log is None else log.value.decode(errors="replace").strip().splitlines()
            raise self._error(name, code, said[0] if said else "")

    def _error(self, name: str, code: int, said: str = "") -> DeviceError:
        told = ": ".join(filter(None, [f"{name} failed with {self._text('cuGetErrorName', code)}", said]))
        told += f" ({self._text('cuGetErrorString', code)})"
        if code in STICKY:
            return sticky_error(told)
        remedy = _REMEDIES.get(code)
        return DeviceError(f"{told}; {remedy}" if remedy else told)

    def _text(self, function: str, code: int) -> str:
        found = ctypes.c_char_p()
        failed = self._functions[function](code, ctypes.byref(found))
        return f"error {code}" if failed or found.value is None else found.value.decode()


def address_of(function: Any) -> int:
    """The address of a function of C."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _pointers(addresses: Sequence[int]) -> tuple[Any, Any]:
    """The table of a kernel's parameters, and the values that it points to, which have to live as long."""
    values = (ctypes.c_uint64 * len(addresses))(*addresses)
    first = ctypes.addressof(values)
    return (ctypes.c_void_p * len(addresses))(*range(first, first + 8 * len(addresses), 8)), values


@cache
def driver() -> Driver:
    """The driver of this machine."""
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return Driver(library)
    raise DeviceError(f"there is no driver of NVIDIA's here: none of {', '.join(_LIBRARIES)} can be loaded")
