"""Free space on the disk, checked before a job is claimed."""

import os
from pathlib import Path

from pullback_runners.agent.spool import Spool

GIB = 1024**3
LARGEST_SPOOL_BYTES = GIB
LEAST_FREE_FILES = 50_000
"""Files that must fit before a job is claimed: an environment and a build have tens of thousands."""


def lack_of_room(data: Path, spool: Spool, *, least_free_bytes: float) -> str | None:
    """Say why no job should be claimed, or None. A full disk accepts jobs and fails them, one after the other."""
    about = os.statvfs(data)
    free_bytes = about.f_bavail * about.f_frsize
    if free_bytes < least_free_bytes:
        return (
            f"{free_bytes / GIB:.1f} GiB are free at {data} and {least_free_bytes / GIB:.1f} are wanted; "
            "free some or give --data on a larger disk"
        )
    if about.f_files and about.f_favail < LEAST_FREE_FILES:  # some file systems have no limit, and say 0
        return (
            f"{about.f_favail} more files fit on the disk of {data} and {LEAST_FREE_FILES} are wanted; "
            "remove some or give --data on another disk"
        )
    waiting_bytes = spool.held().bytes
    if waiting_bytes > LARGEST_SPOOL_BYTES:
        return f"{waiting_bytes / GIB:.1f} GiB of reports wait for the service; they must be delivered first"
    return None
