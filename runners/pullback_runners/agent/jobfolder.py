"""The folder of one attempt: everything a successor needs to clean up after an agent that was killed.

attempt.json    the lease, the report's idempotency key and the folder's own format
measuring.json  process mark of the measuring process, written right after its start
order.json      what the measuring process is asked to do
current/        the files at HEAD, for a commit that is older than the project's pullback.toml
log.txt         what the measuring process and its workers printed
report.json     the finished report (appears whole or not at all)
failure.json    instead of it: why there is none
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pullback_runners.agent.client import Lease
from pullback_runners.agent.process_mark import ProcessMark
from pullback_runners.agent.spool import write_synced


class JobFolder:
    """Paths of one attempt and the small files that remember it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.current = path / "current"
        self.log = path / "log.txt"
        self.order = path / "order.json"
        self.report = path / "report.json"
        self.failure = path / "failure.json"
        self._attempt = path / "attempt.json"
        self._measuring = path / "measuring.json"

    @classmethod
    def create(cls, jobs: Path, lease: Lease, key: str) -> "JobFolder":
        """Make the folder of a new attempt."""
        folder = cls(jobs / f"{lease.job_id}-{lease.attempt}")
        folder.path.mkdir(parents=True)
        write_synced(folder._attempt, json.dumps({"lease": asdict(lease), "key": key}).encode())
        return folder

    def remembered(self) -> tuple[Lease, str] | None:
        """Return the lease and key of an attempt, or None if the agent died before writing them."""
        try:
            attempt = json.loads(self._attempt.read_bytes())
            return Lease(**attempt["lease"]), str(attempt["key"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def mark_measuring(self, mark: ProcessMark) -> None:
        """Remember the measuring process."""
        write_synced(self._measuring, json.dumps(asdict(mark)).encode())

    def measuring(self) -> ProcessMark | None:
        """Return the measuring process remembered here, running or not."""
        try:
            return ProcessMark.from_json(json.loads(self._measuring.read_bytes()))
        except (OSError, ValueError, KeyError):
            return None

    def finished_report(self) -> Mapping[str, Any] | None:
        """Return the report if the measuring process wrote one."""
        try:
            report: Mapping[str, Any] = json.loads(self.report.read_bytes())
        except FileNotFoundError:
            return None
        return report

    def remove(self) -> None:
        """Delete the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
