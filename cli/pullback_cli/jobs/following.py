"""A job's log on the terminal while it is written, through connections that break."""

import time
from collections.abc import Iterator

from pullback_cli.refusals import RefusalError
from pullback_service.client import Client, ClientError, models

MOST_FAILURES = 5
"""In a row, without anything heard in between."""
PAUSE_S = 2.0


def follow(client: Client, job_id: int) -> Iterator[models.LogEvent | models.JobEvent]:
    """Pieces of the log and news of the job, the last one when it has ended; nothing is missed or comes twice."""
    place: str | None = None
    failures = 0
    while True:
        try:
            for event in client.follow_log(job_id, after=place):
                failures = 0
                place = event.id or place
                yield event.data
                if event.name == "end":
                    return
        except ClientError as error:
            failures += 1
            if not error.is_transient or failures == MOST_FAILURES:
                raise RefusalError(str(error)) from error
            time.sleep(PAUSE_S)
