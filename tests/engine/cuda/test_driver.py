"""Loading and launching by NVIDIA's driver, compared with a `libcuda` of ours with the same functions."""

import ctypes
import gc
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import kernels_of
from tests.engine.cuda.libcuda import CONTEXT, Library
from tests.engine.cuda.random_nests import random_subject

from pullback.backends.cuda import driver as drivers
from pullback.backends.cuda.driver import Driver
from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernel_launch import KernelLoader
from pullback.backends.cuda.kernels import ptx
from pullback.backends.native.linking import object_cache
from pullback.errors import DeviceError

STREAM = 0x5


def _subject(fewest_kernels=1):
    return next(one for one in map(random_subject, range(100)) if len(kernels_of(one).kernels) >= fewest_kernels)


def _loaded(subject, library):
    kernels = kernels_of(subject)
    return kernels, KernelLoader(Driver(library), 1, "sm_80", lambda: STREAM)(kernels)


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
    assert (
        library.entries == re.findall(r"\.entry (\w+)", library.ptx[0]) == [kernel.name for kernel in kernels.kernels]
    )
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
        ("cuLinkCreate_v2", 2, "cuLinkCreate_v2 failed with CUDA_ERROR_OUT_OF_MEMORY .*; free arrays"),
        ("cuLinkAddData_v2", 222, "UNSUPPORTED_PTX_VERSION: ptxas .* 9.9 .*; the driver is too old for the PTX"),
        (
            "cuLinkComplete",
            218,
            "cuLinkComplete failed with CUDA_ERROR_INVALID_PTX: ptxas .*; the driver does not read the PTX",
        ),
        ("cuModuleLoadDataEx", 209, "NO_BINARY_FOR_GPU .*; this device is of no kind that kernels are written for"),
        ("cuModuleGetFunction", 1, "cuModuleGetFunction failed with CUDA_ERROR_INVALID_VALUE .invalid argument."),
        ("cuLaunchKernel", 2, "CUDA_ERROR_OUT_OF_MEMORY .out of memory.; free arrays, or use a smaller size"),
        ("cuLaunchKernel", 700, "ILLEGAL_ADDRESS .*; this process cannot use the device any more: start another"),
    ],
)
def test_an_error_of_the_driver_is_one_sentence_with_the_remedy(function, code, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    library = Library()
    library.failing[function] = code
    library.log = (
        "ptxas application ptx input, line 1; fatal   : Unsupported .version 9.9\nptxas fatal : Ptx assembly aborted"
    )
    with pytest.raises(DeviceError, match=sentence) as raised:
        _loaded(_subject(), library)[1]([0] * 64)
    assert "\n" not in str(raised.value)
    assert library.contexts == [0], "a context was left current"
    assert not library.links, "a link was left"


def _captured(subject, library):
    """The kernels of a nest, a graph that launches them, and what names it in a call of `move`."""
    driver = Driver(library)
    context = driver.context(1)
    kernels = kernels_of(subject)
    stream = [STREAM]
    launch = KernelLoader(driver, 1, "sm_80", lambda: stream[0])(kernels)
    with driver.current(context):
        stream[0] = driver.stream()
        driver.begin_capture(stream[0])
        nodes = launch.captured(_addresses(kernels, 1))
        graph = driver.end_capture(stream[0])
        return driver, context, kernels, launch, graph, driver.instantiate(graph), nodes


def _addresses(kernels, scale):
    return [2**63 + 4096 * scale + 16 * k for k in range(kernels.pieces + len(kernels.scratch))]


def test_a_graph_launches_what_was_captured_with_the_pointers_that_it_was_told_last():
    launched = []
    library = Library(lambda name, blocks, threads, addresses: launched.append((name, blocks, threads, addresses)))
    driver, context, kernels, launch, graph, executable, nodes = _captured(_subject(3), library)
    assert launched == []  # what is captured does not run
    assert len(set(nodes)) == len(nodes) == driver.count_nodes(graph) == len(kernels.kernels)

    def expected(scale):
        addresses = _addresses(kernels, scale)
        return [
            (one.name, one.grid.blocks, one.grid.threads, [addresses[parameter.piece] for parameter in one.parameters])
            for one in kernels.kernels
        ]

    with driver.current(context):
        for scale in (1, 2, 3):
            if scale > 1:
                launch.move(executable, nodes, _addresses(kernels, scale))
            driver.launch_graph(executable, STREAM)
            assert launched == expected(scale)
            launched.clear()
        assert library.launched_on == STREAM
        driver.destroy_executable(executable)
        driver.destroy_graph(graph)
    assert (library.graphs, library.executables) == ({}, {})
    assert library.contexts == [0]


def test_parameters_of_a_node_lie_as_in_the_header_of_cuda():
    """`CUDA_KERNEL_NODE_PARAMS_v1` of cuda.h: a pointer, seven numbers of four bytes, two pointers."""
    offsets = {name: getattr(drivers.KernelNode, name).offset for name, _ in drivers.KernelNode._fields_}
    assert [*offsets.values()] == [0, 8, 12, 16, 20, 24, 28, 32, 40, 48]
    assert ctypes.sizeof(drivers.KernelNode) == 56


def _whole_life(library):
    """All that is asked of a graph, once."""
    driver, context, kernels, launch, graph, executable, nodes = _captured(_subject(), library)
    driver.count_nodes(graph)
    launch.move(executable, nodes, _addresses(kernels, 2))
    with driver.current(context):
        driver.launch_graph(executable, STREAM)
        driver.destroy_executable(executable)
        driver.destroy_graph(graph)


@pytest.mark.parametrize(
    ("function", "code", "sentence"),
    [
        ("cuStreamCreate", 2, "cuStreamCreate failed with CUDA_ERROR_OUT_OF_MEMORY .*; free arrays"),
        ("cuStreamBeginCapture_v2", 900, "CAPTURE_UNSUPPORTED .operation not permitted when stream is capturing."),
        ("cuStreamGetCaptureInfo_v2", 1, "cuStreamGetCaptureInfo_v2 failed with CUDA_ERROR_INVALID_VALUE"),
        ("cuStreamEndCapture", 901, "CAPTURE_INVALIDATED .operation failed due to a previous error during capture."),
        ("cuGraphGetNodes", 1, "cuGraphGetNodes failed with CUDA_ERROR_INVALID_VALUE"),
        ("cuGraphInstantiateWithFlags", 2, "cuGraphInstantiateWithFlags failed .*; free arrays"),
        ("cuGraphExecKernelNodeSetParams", 910, "cuGraphExecKernelNodeSetParams failed with error 910"),
        ("cuGraphLaunch", 3, "cuGraphLaunch failed with error 3 .*; a process that was forked .* method spawn"),
        ("cuGraphLaunch", 700, "ILLEGAL_ADDRESS .*; this process cannot use the device any more: start another"),
        ("cuGraphExecDestroy", 1, "cuGraphExecDestroy failed with CUDA_ERROR_INVALID_VALUE"),
        ("cuGraphDestroy", 1, "cuGraphDestroy failed with CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_an_error_of_a_graph_is_one_sentence(function, code, sentence):
    library = Library()
    library.failing[function] = code
    with pytest.raises(DeviceError, match=sentence) as raised:
        _whole_life(library)
    assert "\n" not in str(raised.value)
    assert library.contexts == [0], "a context was left current"


def test_a_driver_older_than_graphs_launches_kernels_and_says_what_it_lacks():
    library = Library()
    del library.cuStreamGetCaptureInfo_v2
    kernels, launch = _loaded(_subject(), library)
    launch(_addresses(kernels, 1))
    with pytest.raises(DeviceError, match="the driver has no cuStreamGetCaptureInfo_v2; install a newer one"):
        _captured(_subject(), library)


def test_the_legacy_stream_is_not_captured():
    driver = Driver(Library())
    with pytest.raises(DeviceError, match="cuStreamBeginCapture_v2 failed with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        driver.begin_capture(0)


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


# --- machine code on disk -----------------------------------------------------------------------------------------------
@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of objects."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    return tmp_path / "native"


def _assembled(**machine):
    """The number of texts that a driver made machine code of, and the kernels that it has then."""
    library = Library(**machine)
    _, launch = _loaded(_subject(3), library)
    del launch
    assert not library.links
    return len(library.assembled), library.entries


#: Loads kernels as a process of its own, and says what the driver had to do, and what it was given.
_LOADING = """
import json
from tests.engine.cuda.test_driver import Library, _loaded, _subject
library = Library()
_, launch = _loaded(_subject(3), library)
print(json.dumps([len(library.assembled), library.ptx, library.entries]))
"""


def _started():
    root = Path(__file__).parents[3]
    return subprocess.Popen(
        [sys.executable, "-c", _LOADING],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def _said(process):
    told = json.loads(process.communicate(timeout=300)[0])
    assert process.returncode == 0
    return told


def test_a_process_loads_machine_code_that_others_assembled_at_once(folder):
    (count, ptx_, entries), other = map(_said, [_started(), _started()])
    assert count <= 1
    assert other[1:] == [ptx_, entries]
    assert len(list(folder.iterdir())) == 2, "not the PTX and the machine code alone"
    library = Library()
    kernels, launch = _loaded(_subject(3), library)
    assert len(entries) == len(kernels.kernels)
    assert [library.assembled, library.ptx, library.entries] == [[], ptx_, entries]
    del launch


def test_another_driver_or_device_has_machine_code_of_its_own(folder, tmp_path, monkeypatch):
    release = tmp_path / "version"
    monkeypatch.setattr(drivers, "_RELEASE", release)
    machines = [{}, {"cuda": 12050}, {"capability": (8, 0)}, {"capability": (8, 6)}]
    assert [_assembled(**one)[0] for one in machines] == [1] * 4
    assert [_assembled(**one)[0] for one in machines] == [0] * 4
    release.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15")
    assert [_assembled()[0] for _ in range(2)] == [1, 0]
    release.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07")
    assert [_assembled()[0] for _ in range(2)] == [1, 0]


def _cubin(folder):
    """The object of machine code."""
    (path,) = (path for path in folder.iterdir() if b"\x7fELF" in path.read_bytes())
    return path


def _cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def _of_another_device(path):
    """A whole object of the right name, with machine code that this device does not run."""
    content = object_cache.find(path.stem)
    object_cache.keep(path.stem, replace(content, code=Library(capability=(8, 0)).cubin(b".version 7.0")))


def _no_machine_code(path):
    object_cache.keep(path.stem, replace(object_cache.find(path.stem), code=b"#" * 64))


@pytest.mark.parametrize("spoil", [_cut, _of_another_device, _no_machine_code])
def test_what_the_driver_cannot_take_is_assembled_again(folder, spoil):
    expected = _assembled()
    spoil(_cubin(folder))
    assert _assembled() == expected
    assert _assembled() == (0, expected[1])


def test_machine_code_is_loaded_where_nothing_can_be_kept(folder, tmp_path, monkeypatch):
    expected = _assembled()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "file"))
    assert [_assembled() for _ in range(2)] == [expected] * 2
