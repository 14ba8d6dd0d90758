"""The log loop: sends what a job printed, by byte offset, while it runs."""

import threading
from pathlib import Path
from typing import Self

import structlog

from pullback_runners.agent.claims import Lease
from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.errors import PermanentError, TransientError

_log = structlog.get_logger()

LARGEST_LOG_BYTES = 16 * 1024 * 1024  # what a job may print is hostile input: the rest stays on this machine
_CHUNK_BYTES = 256 * 1024
_INTERVAL_S = 2.0


class JobLog:
    """Ships a growing file from entering the context until leaving it, the end of the file included."""

    def __init__(self, client: ServiceClient, lease: Lease, file: Path) -> None:
        self._client = client
        self._lease = lease
        self._file = file
        self._offset = 0
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join(timeout=5)  # a log is worth a few seconds, not the report behind it

    def _run(self) -> None:
        while True:
            last_round = self._finished.wait(_INTERVAL_S)
            try:
                self._ship()
            except TransientError as error:
                _log.warning("log not sent yet", job=self._lease.job_id, reason=str(error))
            except PermanentError as error:
                _log.error("log refused", job=self._lease.job_id, reason=str(error))
                return
            if last_round:
                return

    def _ship(self) -> None:
        """Send until the file is exhausted; a rewind asked for by the service is followed."""
        while self._offset < LARGEST_LOG_BYTES and self._file.exists():
            with self._file.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(min(_CHUNK_BYTES, LARGEST_LOG_BYTES - self._offset))
            if not chunk:
                return
            expected = self._client.append_log(self._lease, self._offset, chunk)
            if expected == self._offset:
                raise TransientError(f"the service stored none of the bytes at {self._offset}")
            self._offset = expected
