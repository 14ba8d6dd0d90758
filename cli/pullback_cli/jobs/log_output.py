"""A job's log on the terminal, once or while it is written."""

import codecs
import time
from collections.abc import Iterator
from typing import NamedTuple

from pullback_service.client import Client

WAIT_S = 30
PAUSE_S = 1.0
UNFINISHED = {"queued", "leased", "running"}


class LogText(NamedTuple):
    """A piece of the log of an attempt."""

    attempt: int
    text: str


def log_of(client: Client, job_id: int, *, follow: bool) -> Iterator[LogText]:
    """The log of a job's newest attempt as far as it is written; or until the job has ended, with further attempts."""
    attempt: int | None = None
    offset, decoder = 0, _decoder()
    while True:
        asked_at = time.monotonic()
        piece = client.read_log(job_id, attempt=attempt, offset=offset, wait_s=WAIT_S if follow else None)
        headers = piece.headers
        complete = headers["pullback-log-complete"] == "true"
        attempt, offset = int(headers["pullback-attempt"]) or 1, int(headers["pullback-next-offset"])
        all_written = offset >= int(headers["pullback-log-size"])
        yield LogText(attempt, decoder.decode(piece.content, final=complete or (all_written and not follow)))
        has_ended = complete and headers["pullback-job-state"] not in UNFINISHED
        if all_written and (not follow or (has_ended and client.read_job(job_id).attempts <= attempt)):
            return
        if complete:
            attempt, offset, decoder = attempt + 1, 0, _decoder()
        elif follow and time.monotonic() - asked_at < PAUSE_S:
            time.sleep(PAUSE_S)  # a service where too many wait answers at once


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")
