"""`up --detach`: the same `up` in a session of its own, watched until it is ready."""

import os
import subprocess
import sys
import time

from pullback_cli.supervision.plan import UpOptions
from pullback_cli.supervision.state_file import UpState, read_state
from pullback_cli.usage_errors import RefusalError

READY_TIMEOUT_S = 120.0


def start_detached(options: UpOptions, *, suite: str) -> "tuple[UpState | None, int, str]":
    """Start `up` in the background; returns its state once ready, or None with its exit code and its complaint."""
    try:
        options.logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusalError(
            f"the data folder {options.data} cannot be written ({error.strerror}): choose another with --data"
        ) from error
    log, errors = options.logs / "up.log", options.logs / "up-errors.log"
    arguments = ["--data", str(options.data), "--host", options.host, "--port", str(options.port)]
    arguments += ["--no-agent"] if options.project is None else ["--repository", str(options.project.top)]
    arguments += ["--suite", suite]
    with log.open("wb") as output, errors.open("wb") as complaints:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-P", "-m", "pullback_cli", "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=complaints,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
    deadline = time.monotonic() + READY_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        state = read_state(options.data)
        if state is not None and state.up.pid == process.pid and state.ready:
            return state, 0, ""
        time.sleep(0.1)
    if process.poll() is None:
        process.terminate()
        process.wait()
        raise RefusalError(
            f"`pullback up` was not ready after {READY_TIMEOUT_S:.0f} s: {log} shows how far it came; start it without --detach"
        )
    return None, process.returncode, errors.read_text(encoding="utf-8", errors="replace").strip()
