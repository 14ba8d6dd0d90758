"""The calls `up` and `status` make to the service they started: jobs in, progress and ratios out."""

from collections.abc import Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from pullback_service.client import Client, ClientError, models

Item = Mapping[str, Any]
TIMEOUT_S = 10.0


class ServiceApi:
    """One service on this machine. A call raises a transient `ClientError` where `up` simply asks again."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self.client = Client(url, token=token, timeout_s=TIMEOUT_S, attempts=1, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def is_ready(self) -> bool:
        """True if the service answers and its database has the current schema."""
        try:
            self.client.report_readiness()
        except ClientError:
            return False
        return True

    def add_job(self, project: str, commit: Item, *, suite: str, priority: int, timeout_s: float) -> models.JobDetail:
        """Ask for a measurement; what is queued or measured already is returned as it stands."""
        fields = {
            "project": project,
            "commit": {name: commit[name] for name in models.JobCommit.model_fields if name in commit},
            "suite": suite,
            "priority": priority,
            "requires": {},
            "timeout_s": timeout_s,
        }
        return self.client.create_job(models.JobRequest.model_validate(fields))

    def tell_log(self, project: str, branch: str, commits: Sequence[Item]) -> None:
        """Tell what a branch is; telling the same again changes nothing."""
        fields = models.CommitStatement.model_fields
        told = [{name: commit[name] for name in fields if name in commit} for commit in commits]
        self.client.tell_log(
            models.LogStatement.model_validate({"project": project, "branch": branch, "commits": told})
        )

    def job(self, job_id: int) -> models.JobDetail:
        """One job with its state and progress."""
        return self.client.read_job(job_id)

    def report(self, report_id: UUID) -> Item:
        """The document of a report, as it was uploaded."""
        return self.client.read_report(report_id).document
