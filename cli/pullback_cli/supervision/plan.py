"""The processes of `up`: plain data, made without starting or touching anything."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pullback_runners.projects.configuration import ProjectFile

HEARTBEAT_S = 2.0  # one agent on the same machine: a beat costs nothing, and progress is seen while it is made
NOTHING: Mapping[str, str] = MappingProxyType({})
LEAST_FREE_GIB = 0.5  # a person at a desk wants to see something even on a nearly full disk


@dataclass(frozen=True)
class UpOptions:
    """The options of `up`, with every default filled in."""

    data: Path
    project: ProjectFile | None
    """The repository that is measured; None where nothing is measured on this machine."""
    host: str
    port: int

    @property
    def url(self) -> str:
        """The address of the pages."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def postgres(self) -> Path:
        """Data folder of the embedded database."""
        return self.data / "postgres"

    @property
    def logs(self) -> Path:
        """The folder of the logs of all processes."""
        return self.data / "logs"


@dataclass(frozen=True)
class ProcessPlan:
    """One process: `pullback` with these arguments."""

    name: str
    arguments: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    inherited_fd: int | None = None
    stop_signal: signal.Signals = signal.SIGTERM


def plan_processes(
    options: UpOptions, *, database_url: str, listening_fd: int, notifying: Mapping[str, str] = NOTHING
) -> tuple[ProcessPlan, ...]:
    """The processes in the order of starting; they are stopped in the opposite order.

    Only those that talk to the database know its address: what an agent measures is other people's code. `notifying` are
    variables for the worker alone, which sends notifications.
    """
    database = {"DATABASE_URL": database_url}
    api = ProcessPlan(
        "api",
        ("serve", "--host", options.host, "--port", str(options.port), "--fd", str(listening_fd)),
        options.logs / "api.log",
        database | {"PULLBACK_HEARTBEAT_S": str(HEARTBEAT_S)},
        inherited_fd=listening_fd,
    )
    notifying = {"PULLBACK_PUBLIC_URL": options.url, **notifying}
    worker = ProcessPlan("worker", ("worker",), options.logs / "worker.log", {**database, **notifying})
    if options.project is None:
        return (api, worker)
    agent = ProcessPlan(
        "agent",
        (
            *("agent", "--server", options.url, "--repository", str(options.project.top)),
            *("--data", str(options.data / "agent"), "--least-free-gib", str(LEAST_FREE_GIB)),
        ),
        options.logs / "agent.log",
        stop_signal=signal.SIGINT,  # give the job back at once: whoever stops `up` does not want to wait for it
    )
    return (api, worker, agent)
