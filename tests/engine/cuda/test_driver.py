"""Loading and launching by NVIDIA's driver, compared with a `libcuda` of ours with the same functions."""

import gc

import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import kernels_of
from tests.engine.cuda.libcuda import CONTEXT, Library
from tests.engine.cuda.random_nests import random_subject

from pullback.backends.cuda import driver as drivers
from pullback.backends.cuda.driver import Driver
from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import ptx
from pullback.backends.cuda.launching import OnDevice
from pullback.errors import DeviceError

STREAM = 0x5


def _subject(fewest_kernels=1):
    return next(one for one in map(random_subject, range(100)) if len(kernels_of(one).kernels) >= fewest_kernels)


def _loaded(subject, library):
    kernels = kernels_of(subject)
    return kernels, OnDevice(Driver(library), 1, "sm_80", lambda: STREAM)(kernels)


@pytest.mark.parametrize("fewest_kernels", [1, 3])
def test_launches_hand_kernels_their_grid_and_pointers(fewest_kernels):
    """The stand-in runs the emulator with what the driver was given: the bits are those of the emulator alone."""
    subject = _subject(fewest_kernels)
    emulator, by_name = Emulator(kernels_of(subject)), {one.name: one for one in kernels_of(subject).kernels}

    def run(name, blocks, threads, addresses):
        kernel = by_name[name]
        assert (blocks, threads) == (kernel.grid.blocks, kernel.grid.threads)
        emulator.launch(kernel, addresses)

    library = Library(run)
    kernels, launch = _loaded(subject, library)
    assert library.entries == ptx.entries(library.ptx[0]) == [kernel.name for kernel in kernels.kernels]
    expected, memory = nests.Memory(subject), nests.Memory(subject)
    emulator.run(expected.addresses)
    between = [nests.scratch(nbytes) for nbytes in kernels.scratch]
    launch([*memory.addresses, *(piece.ctypes.data for piece in between)])
    assert memory.bits() == expected.bits()
    assert library.calls.count("cuLaunchKernel") == len(kernels.kernels)
    assert library.launched["stream"] == STREAM


def test_the_primary_context_is_current_while_kernels_are_loaded_and_launched_and_no_longer():
    library = Library()
    subject = _subject()
    kernels, launch = _loaded(subject, library)
    assert library.contexts == [0]
    launch([256 * k for k in range(kernels.pieces + len(kernels.scratch))])
    assert library.contexts == [0]
    library.contexts.append(CONTEXT + 11)  # as where PyTorch made it current
    before = library.calls.count("cuCtxPushCurrent_v2")
    launch([256 * k for k in range(kernels.pieces + len(kernels.scratch))])
    assert library.calls.count("cuCtxPushCurrent_v2") == before
    assert library.calls.count("cuDevicePrimaryCtxRetain") == 1


def test_a_module_is_unloaded_with_what_launches_its_kernels():
    library = Library()
    _, launch = _loaded(_subject(), library)
    assert len(library.loaded) == 1
    del launch
    gc.collect()
    assert not library.loaded


@pytest.mark.parametrize(
    ("function", "code", "sentence"),
    [
        ("cuInit", 100, "cuInit failed with error 100 .*; there is no device; run on the host with pb.fetch"),
        ("cuModuleLoadDataEx", 222, "UNSUPPORTED_PTX_VERSION: ptxas .* 9.9 .*; the driver is too old for the PTX"),
        ("cuModuleGetFunction", 1, "cuModuleGetFunction failed with CUDA_ERROR_INVALID_VALUE .invalid argument."),
        ("cuLaunchKernel", 2, "CUDA_ERROR_OUT_OF_MEMORY .out of memory.; free arrays, or use a smaller size"),
        ("cuLaunchKernel", 700, "ILLEGAL_ADDRESS .*; this process cannot use the device any more: start another"),
    ],
)
def test_an_error_of_the_driver_is_one_sentence_with_the_remedy(function, code, sentence):
    library = Library()
    library.failing[function] = code
    library.log = (
        "ptxas application ptx input, line 1; fatal   : Unsupported .version 9.9\nptxas fatal : Ptx assembly aborted"
    )
    with pytest.raises(DeviceError, match=sentence) as raised:
        _loaded(_subject(), library)[1]([0] * 64)
    assert "\n" not in str(raised.value)
    assert library.contexts == [0], "a context was left current"


def test_the_version_of_the_driver_is_that_of_cuda():
    assert Driver(Library()).version() == (12, 4)


def test_a_machine_without_a_driver_is_told(monkeypatch):
    monkeypatch.setattr(drivers, "_LIBRARIES", ("libcuda-that-is-nowhere.so.1",))
    with pytest.raises(DeviceError, match="there is no driver of NVIDIA's here: none of libcuda-that-is-nowhere.so.1"):
        drivers.driver.__wrapped__()


def test_arguments_outlive_the_call_that_makes_them_and_pointers_keep_all_their_bits():
    library, seen = Library(), []
    library._run = lambda name, blocks, threads, addresses: seen.append(addresses)
    subject = _subject()
    kernels, launch = _loaded(subject, library)
    high = [2**63 + 16 * k for k in range(kernels.pieces + len(kernels.scratch))]
    launch(high)
    assert seen[-1] == [high[one.piece] for one in kernels.kernels[-1].parameters]


def test_ptx_is_made_once_and_found_on_disk_by_other_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    kernels = kernels_of(_subject())
    made = {architecture: ptx.ptx_of(kernels, architecture) for architecture in ptx.PTX_OF}
    assert ".target sm_80" in made["sm_80"]
    assert ".target sm_90" in made["sm_90"]

    def refusing(*arguments):
        raise AssertionError("made again")

    with monkeypatch.context() as patch:
        patch.setattr(ptx, "_made", refusing)
        assert made == {architecture: ptx.ptx_of(kernels, architecture) for architecture in ptx.PTX_OF}
        with pytest.raises(AssertionError, match="made again"):
            ptx.ptx_of(kernels_of(_subject(3)), "sm_80")
    for path in tmp_path.rglob("*.object"):  # cut short, as by a full disk
        path.write_bytes(path.read_bytes()[:-1])
    assert ptx.ptx_of(kernels, "sm_90") == made["sm_90"]
