"""Free space on the disk, checked before a job is claimed."""

import shutil
from pathlib import Path

from pullback_runners.agent.spool import Spool

GIB = 1024**3
LARGEST_SPOOL_BYTES = GIB


def lack_of_room(data: Path, spool: Spool, *, least_free_bytes: float) -> str | None:
    """Say why no job should be claimed, or None. A full disk accepts jobs and fails them, one after the other."""
    free_bytes = shutil.disk_usage(data).free
    if free_bytes < least_free_bytes:
        return (
            f"{free_bytes / GIB:.1f} GiB are free at {data} and {least_free_bytes / GIB:.1f} are wanted; "
            "free some or give --data on a larger disk"
        )
    waiting_bytes = spool.held().bytes
    if waiting_bytes > LARGEST_SPOOL_BYTES:
        return f"{waiting_bytes / GIB:.1f} GiB of reports wait for the service; they must be delivered first"
    return None
