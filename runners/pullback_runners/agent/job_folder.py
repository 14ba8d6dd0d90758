"""The folder of one attempt: everything a successor needs to clean up after an agent that was killed.

attempt.json         the lease, the report's idempotency key and the folder's own format
measuring.json       process mark of the measuring process, written right after its start
report.sha256        the digest of the report, as the measuring process told it
log.txt              what the measuring process and its workers printed
cache/               the cache of one step in a sandbox
work/                what the measuring process writes, which may be another user's:
work/current/        the files at HEAD, for a commit that is older than the project's pullback.toml
work/report.json     the finished report (appears whole or not at all)
work/failure.json    instead of it: why there is none
"""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from pullback_runners.agent.claims import Lease
from pullback_runners.agent.errors import FailureKind, JobFailedError
from pullback_runners.agent.process_mark import ProcessMark
from pullback_runners.agent.synced_files import write_synced
from pullback_runners.sandbox.store import remove_tree
from pullback_runners.sandbox.users import BuildUser

LARGEST_REPORT_BYTES = 64 * 1024 * 1024
_LARGEST_FAILURE_BYTES = 1024 * 1024


class JobFolder:
    """Paths of one attempt and the small files that remember it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / "work"
        self.current = self.work / "current"
        self.log = path / "log.txt"
        self.report = self.work / "report.json"
        self.failure = self.work / "failure.json"
        self.cache = path / "cache"
        self._attempt = path / "attempt.json"
        self._measuring = path / "measuring.json"
        self._digest = path / "report.sha256"

    @classmethod
    def create(cls, jobs: Path, lease: Lease, key: str, user: BuildUser | None = None) -> "JobFolder":
        """Make the folder of a new attempt, whose `work/` belongs to who builds."""
        folder = cls(jobs / f"{lease.job_id}-{lease.attempt}")
        folder.path.mkdir(mode=0o711, parents=True)
        if user is None:
            folder.work.mkdir()
        else:
            user.give(folder.work)
        write_synced(folder._attempt, json.dumps({"lease": asdict(lease), "key": key}).encode(), mode=0o600)
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
        write_synced(self._measuring, json.dumps(asdict(mark)).encode(), mode=0o600)

    def measuring(self) -> ProcessMark | None:
        """Return the measuring process remembered here, running or not."""
        try:
            return ProcessMark.from_json(json.loads(self._measuring.read_bytes()))
        except (OSError, ValueError, KeyError):
            return None

    def mark_report(self, digest: str) -> None:
        """Remember the digest of the report that the measuring process wrote; processes with code of the commit can write the file, too."""
        write_synced(self._digest, digest.encode(), mode=0o600)

    def outcome(self) -> Mapping[str, Any] | None:
        """Return the report if the measuring process told of one; JobFailedError with the reason if it wrote why there is none, or wrote no proper file."""
        failure = _read_written(self.failure, _LARGEST_FAILURE_BYTES, "reason")
        if failure is not None:
            kind: FailureKind = "workload"
            if (told := failure.get("kind")) in ("build", "infra"):
                kind = told
            raise JobFailedError(kind, str(failure.get("message")), retryable=failure.get("retryable") is True)
        try:
            digest = self._digest.read_text()
        except (OSError, ValueError):
            return None
        return _read_written(self.report, LARGEST_REPORT_BYTES, "report; measure fewer cases", digest)

    def remove(self) -> None:
        """Delete the folder and all in it."""
        remove_tree(self.path)


def _read_written(path: Path, most_bytes: int, what: str, digest: str | None = None) -> Mapping[str, Any] | None:
    """The JSON object in a file of the measuring process, or None; no link, pipe or file of another name is read for it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JobFailedError("workload", f"{path.name} of the job cannot be read ({error.strerror})") from error
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        os.close(descriptor)
        raise JobFailedError("workload", f"{path.name} of the job is no file of its own")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise JobFailedError("workload", f"the job wrote more than {most_bytes >> 20} MiB of {what}")
    if digest is not None and sha256(content).hexdigest() != digest:
        raise JobFailedError(
            "workload", f"{path.name} of the job does not have the digest that the measuring process reported"
        )
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:  # of lists in lists in lists
        raise JobFailedError("workload", f"{path.name} of the job is no JSON") from error
    if not isinstance(document, dict):
        raise JobFailedError("workload", f"{path.name} of the job is no JSON object")
    return document
