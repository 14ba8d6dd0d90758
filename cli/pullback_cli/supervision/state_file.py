"""`up.json` in the data folder: what runs, so that another process can ask about it, stop it, or clean up after it."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pullback_cli.usage_errors import RefusalError
from pullback_runners.agent.process_mark import ProcessMark

_FILE = "up.json"
_LOCK = "up.lock"


@dataclass(frozen=True)
class UpState:
    """The state that a running `up` writes to its file."""

    up: ProcessMark
    url: str
    embedded_postgres: bool
    children: Mapping[str, ProcessMark] = field(default_factory=dict)
    ready: bool = False

    def with_child(self, name: str, mark: ProcessMark) -> "UpState":
        """Return the same state with a child added or replaced."""
        return replace(self, children={**self.children, name: mark})


def write_state(data: Path, state: UpState) -> None:
    """Replace the file at once: a reader never sees half of it."""
    draft = data / f"{_FILE}.partial"
    draft.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
    draft.replace(data / _FILE)


def read_state(data: Path) -> UpState | None:
    """Return what the last `up` wrote, whether it still runs or not; None when there is nothing to read."""
    try:
        content = json.loads((data / _FILE).read_text(encoding="utf-8"))
        return UpState(
            up=ProcessMark.from_json(content["up"]),
            url=str(content["url"]),
            embedded_postgres=bool(content["embedded_postgres"]),
            children={name: ProcessMark.from_json(mark) for name, mark in content["children"].items()},
            ready=bool(content["ready"]),
        )
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, AttributeError):
        return None


def forget_state(data: Path) -> None:
    """Say that nothing runs any more."""
    (data / _FILE).unlink(missing_ok=True)


def find_up(data: Path) -> ProcessMark | None:
    """The `up` that runs on a folder. The kernel knows it by its lock, whatever became of `up.json` and of the clock."""
    try:
        with (data / _LOCK).open("r", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if mark := lock.read():
                    return ProcessMark.from_json(json.loads(mark))
                state = read_state(data)  # an earlier release wrote nothing into its lock
                return state.up if state else None
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        pass
    return None


@contextmanager
def only_up_on(data: Path) -> Iterator[None]:
    """Hold the data folder for as long as this `up` lives; the kernel lets go of it however the process ends.

    An `up` that is refused, for a port in use say, leaves nothing behind that was not there before.
    """
    before = {place for place in (data / _LOCK, data) if place.exists()}
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / _LOCK).open("a")
    except OSError as error:
        raise RefusalError(
            f"the data folder {data} cannot be written ({error.strerror}): choose another with --data"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            state, holder = read_state(data), find_up(data)
            where = f" at {state.url}" if state else ""
            where += f" (process {holder.pid})" if holder else ""
            raise RefusalError(
                f"another `pullback up` runs on {data}{where}: use that one, stop it with `pullback down`, "
                "or choose another folder with --data or PULLBACK_DATA"
            ) from error
        if not os.access(data, os.W_OK | os.X_OK):
            raise RefusalError(f"the data folder {data} cannot be written: choose another with --data")
        lock.truncate(0)
        json.dump(asdict(ProcessMark.of(os.getpid())), lock)
        lock.flush()
        try:
            yield
        except RefusalError:
            if data / _LOCK not in before:
                (data / _LOCK).unlink(missing_ok=True)
            if data not in before:
                with suppress(OSError):  # something was stored in it
                    data.rmdir()
            raise
