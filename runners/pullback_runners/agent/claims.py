"""A job, the lease on one of its attempts, and both as a claim.

Apart from the client, which takes 0.3 s to import: the process that measures a job speaks to no service.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Seconds = float


@dataclass(frozen=True)
class Lease:
    """The right to work on one attempt of one job."""

    job_id: str
    attempt: int
    token: str
    heartbeat_s: Seconds

    @property
    def path(self) -> str:
        """The address of this attempt at the service."""
        return f"/api/v1/jobs/{self.job_id}/attempts/{self.attempt}"


@dataclass(frozen=True)
class Job:
    """The work that an attempt of a job asks for."""

    project: str
    commit: Mapping[str, Any]
    suite: str
    cases: tuple[str, ...]  # globs over case names; none means the whole suite
    timeout_s: Seconds
    reference: Mapping[str, Any] | None = None
    """The commit to compare with; the same one is A/A, which shows the noise of the machine."""
    device: str | None = None
    """The device to measure on; None for that of the agent, where the service names none."""
    repository: str | None = None
    """The address that the commit is fetched from; None for the agent's own clone, where the service names none."""
    variants: tuple[str, ...] = ()
    """Variants to measure; none means those of the project."""
    effort: int = 1
    """A factor on the time for which two commits are compared."""
    is_trusted: bool = True
    """False if the code is that of a fork."""

    @property
    def suite_as_asked(self) -> str:
        """The suite and what it was narrowed to, as `quick:poly9*`."""
        return ":".join((self.suite, ";".join(self.cases))) if self.cases else self.suite

    @property
    def sha(self) -> str:
        """The commit that is measured."""
        return str(self.commit["sha"])


@dataclass(frozen=True)
class Claim:
    """A job and the lease on it."""

    job: Job
    lease: Lease
