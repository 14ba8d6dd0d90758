"""The processes that are measured: the service and the worker as a user starts them, and what they and Postgres use."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil
from benchmarks.service_load.calling import Connection

from pullback_service.postgres import EmbeddedPostgres

READY_TIMEOUT_S = 120.0
TOKEN = "the token of the load test, which only loopback sees"  # noqa: S105 - made for a database of the benchmark's own
LOOK_EVERY_S = 0.005
CPU_CLOCK = 2  # clock_getcpuclockid(3): of the process whose number stands, inverted, in the upper bits
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Service:
    """Running processes of the service, all on one address, and the Postgres below them."""

    port: int
    processes: tuple[psutil.Process, ...]
    worker: psutil.Process | None
    postgres: psutil.Process

    def connect(self, token: str = TOKEN) -> Connection:
        """A connection of a client."""
        return Connection(self.port, token)

    def rss(self) -> int:
        """Bytes of memory of the serving processes."""
        return sum(int(process.memory_info().rss) for process in self.processes)

    def cpu_s(self) -> "ProcessorSeconds":
        """Processor seconds used so far."""
        service = sum(_cpu_s(process) for process in self.processes)
        worker = _cpu_s(self.worker) if self.worker is not None else 0.0
        return ProcessorSeconds(service, worker, self._postgres_cpu_s())

    def _postgres_cpu_s(self) -> float:
        """Processor time of all backends: a large upload has a connection of its own, whose backend has ended by now."""
        while True:
            ended = _ended_cpu_s(self.postgres)
            running = sum(_cpu_s(process) for process in (self.postgres, *self.postgres.children()))
            if ended == _ended_cpu_s(self.postgres):  # else one ended meanwhile, and may be in both or in neither
                return ended + running


@dataclass(frozen=True, slots=True)
class ProcessorSeconds:
    """Processor seconds."""

    service: float
    worker: float
    postgres: float

    def since(self, before: "ProcessorSeconds") -> "ProcessorSeconds":
        """The use between two readings."""
        return ProcessorSeconds(
            self.service - before.service, self.worker - before.worker, self.postgres - before.postgres
        )


def _cpu_s(process: psutil.Process) -> float:
    """Processor time, to the nanosecond where the kernel has a clock for it; /proc counts in steps of 10 ms."""
    with suppress(OSError):
        return time.clock_gettime(~process.pid << 3 | CPU_CLOCK)
    return 0.0


def _ended_cpu_s(process: psutil.Process) -> float:
    """Processor time of the children that have ended, in steps of 10 ms."""
    times = process.cpu_times()
    return float(times.children_user + times.children_system)


@contextmanager
def serving(
    server: EmbeddedPostgres,
    scratch: Path,
    *,
    replicas: int = 1,
    with_worker: bool = True,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Service]:
    """`pullback serve` (so many processes on one socket) and `pullback worker`, ended when the block ends."""
    scratch.mkdir(parents=True, exist_ok=True)
    token_file = scratch / "token"
    token_file.write_text(TOKEN)
    token_file.chmod(0o600)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PULLBACK_")},
        "DATABASE_URL": server.url(),
        "PULLBACK_AUTH": "token",
        "PULLBACK_TOKEN_FILE": str(token_file),
        # Limits are lifted: the load is to show how much the service can take, not how well it defends itself.
        "PULLBACK_TOKEN_WORK": "100000",
        "PULLBACK_ADDRESS_WORK": "100000",
        **(variables or {}),
    }
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    port = int(listening.getsockname()[1])
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str, pass_fds: tuple[int, ...] = ()) -> psutil.Process:
        with (scratch / f"{arguments[0]}-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-P", "-m", "pullback_cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=pass_fds,
            )
        started.append(process)
        return psutil.Process(process.pid)

    try:
        descriptor = listening.fileno()
        processes = tuple(start("serve", "--fd", str(descriptor), pass_fds=(descriptor,)) for _ in range(replicas))
        worker = start("worker") if with_worker else None
        postmaster = server.pid
        assert postmaster is not None  # noqa: S101 - its address was asked for above
        service = Service(port, processes, worker, psutil.Process(postmaster))
        _wait_until_ready(service, started)
        yield service
    finally:
        listening.close()
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(service: Service, started: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        for process in started:
            if process.poll() is not None:
                message = f"{process.args!r} ended with {process.returncode}: its log says why"
                raise RuntimeError(message)
        with suppress(OSError), closing(service.connect()) as connection:
            if connection.get("/readyz").status == 200:
                return
        time.sleep(0.1)
    raise TimeoutError(f"The service was not ready after {READY_TIMEOUT_S:g} s.")


class MemoryWatch:
    """The largest memory of the serving processes, looked at all the time from a thread of the client."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.before = service.rss()
        self.peak = self.before

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(LOOK_EVERY_S):
            self.peak = max(self.peak, self._service.rss())
