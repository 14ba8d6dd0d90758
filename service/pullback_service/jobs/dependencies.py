"""Objects of a running application, as dependencies of the endpoints of jobs."""

from typing import Annotated

from pullback_service.jobs.job_listener import JobListener
from pullback_service.jobs.log_long_poll import LogWaits
from pullback_service.runtime import instance_of

KnownJobListener = Annotated[JobListener, instance_of(JobListener)]
KnownLogWaits = Annotated[LogWaits, instance_of(LogWaits)]
