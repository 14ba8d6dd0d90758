"""A `libcuda` of ours: functions of C that record what they are called with, and run kernels by the emulator."""

import ctypes
import re
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint64, c_void_p

from pullback.backends.cuda.driver import FUNCTIONS

CONTEXT, MODULE = 0xC0, 0xA000

#: Codes of errors that the driver has names and sentences for.
NAMES = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    222: ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
}


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
        self._run = run
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
        _put(out, c_void_p, 0xF000 + len(self.entries) - 1)

    def _launch_kernel(self, function, bx, by, bz, tx, ty, tz, shared, stream, parameters, extra):
        assert self.contexts[-1], "no context is current"
        assert (by, bz, ty, tz, shared, extra) == (1, 1, 1, 1, 0, None)
        name = self.entries[function - 0xF000]
        count = self.ptx_parameters(name)
        places = (c_void_p * count).from_address(parameters)
        addresses = [c_uint64.from_address(place).value for place in places]
        self.launched = {"name": name, "blocks": bx, "threads": tx, "stream": stream, "addresses": addresses}
        if self._run is not None:
            self._run(name, bx, tx, addresses)

    def ptx_parameters(self, name):
        """The number of parameters of a kernel, as its PTX has it."""
        head = next(text for text in self.ptx if f".entry {name}(" in text).partition(f".entry {name}(")[2]
        return head.partition(")")[0].count(".param .u64")

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
