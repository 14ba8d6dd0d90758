# ruff: noqa: N802 - functions are called as NVIDIA calls them
"""A stand-in for nvidia-ml-py that plays answers of a file: of a list one after the other, and the last from then on.

STANDIN_NVML names the file, which is read for each question: a test that writes another one changes the machine. An answer
`{"error": 15}` is an error of the library. Without a name the device is alone and quiet.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace

_QUIET = Path(__file__).parents[1] / "answers" / "quiet.json"
_WORDS = {3: "Not Supported", 4: "Insufficient Permissions", 6: "Not Found", 9: "Driver Not Loaded", 10: "Timeout"}
_WORDS |= {13: "Function Not Found", 15: "GPU is lost", 999: "Unknown Error"}
_played = {}


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(_WORDS[value])
        self.value = value


def _machine():
    return json.loads(Path(os.environ.get("STANDIN_NVML", _QUIET)).read_text(encoding="utf-8"))


def _gpu(handle):
    for gpu in _machine()["gpus"]:
        if handle == gpu["uuid"] or handle in [part["uuid"] for part in gpu.get("slices", ())]:
            return gpu
    raise NVMLError(6)


def _described(handle):
    gpu = _gpu(handle)
    return next((part for part in gpu.get("slices", ()) if part["uuid"] == handle), gpu)


def _answer(handle, question):
    answers = _gpu(handle)[question]
    place = _played.get((handle, question), 0)
    _played[handle, question] = place + 1
    return _told(answers[min(place, len(answers) - 1)])


def _told(answer):
    if isinstance(answer, dict) and "error" in answer:
        raise NVMLError(answer["error"])
    return answer


def nvmlInit():
    _told(_machine().get("init"))


def nvmlShutdown():
    pass


def nvmlSystemGetDriverVersion():
    return _machine()["driver"]


def nvmlSystemGetCudaDriverVersion():
    return _machine()["cuda"]


def nvmlDeviceGetCount():
    return len(_machine()["gpus"])


def nvmlDeviceGetHandleByIndex(place):
    gpu = _machine()["gpus"][place]
    return _told(gpu.get("handle", gpu["uuid"]))


def nvmlDeviceGetHandleByUUID(uuid):
    return _described(uuid)["uuid"]


def nvmlDeviceGetUUID(handle):
    return handle


def nvmlDeviceGetName(handle):
    return _described(handle)["name"]


def nvmlDeviceGetMemoryInfo(handle):
    described = _described(handle)
    return SimpleNamespace(total=described["memory"], free=described.get("free", described["memory"]))


def nvmlDeviceGetMinorNumber(handle):
    assert not handle.startswith("MIG"), "a slice has no number of its own"
    return _told(_gpu(handle).get("minor", {"error": 3}))


def nvmlDeviceGetGpuInstanceId(handle):
    return _described(handle)["instance"][0]


def nvmlDeviceGetComputeInstanceId(handle):
    return _described(handle)["instance"][1]


def nvmlDeviceGetMigMode(handle):
    if "mig" not in _gpu(handle):
        raise NVMLError(3)
    return [_gpu(handle)["mig"]] * 2


def nvmlDeviceGetMaxMigDeviceCount(handle):
    return 7


def nvmlDeviceGetMigDeviceHandleByIndex(handle, place):
    parts = _gpu(handle)["slices"]
    if place >= len(parts):
        raise NVMLError(6)
    return parts[place]["uuid"]


def nvmlDeviceGetClockInfo(handle, kind):
    assert not handle.startswith("MIG"), "a slice has no clocks of its own"
    return _answer(handle, {1: "sm_mhz", 2: "memory_mhz"}[kind])


def nvmlDeviceGetCurrentClocksThrottleReasons(handle):
    assert not handle.startswith("MIG"), "a slice has no clocks of its own"
    return _answer(handle, "reasons")


def nvmlDeviceGetComputeRunningProcesses(handle):
    own = {"self": os.getpid()}
    listed = [each if isinstance(each, list) else [each, None] for each in _answer(handle, "processes")]
    return [SimpleNamespace(pid=own.get(pid, pid), usedGpuMemory=used) for pid, used in listed]


def nvmlEventSetCreate():
    return {}


def nvmlDeviceRegisterEvents(handle, kinds, events):
    assert kinds == 8
    events["of"] = handle


def nvmlEventSetWait_v2(events, wait_ms):
    assert wait_ms == 0
    xids = _gpu(events["of"]).get("xids", [])
    seen = events.setdefault("seen", 0)
    if seen >= len(xids):
        raise NVMLError(10)
    events["seen"] += 1
    return SimpleNamespace(eventType=8, eventData=xids[seen])
