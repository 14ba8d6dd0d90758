"""The spool: what was measured is on disk, synced, before anybody tries to send it.

`spool/NAME.json` waits, `spool/sent/NAME.json` was acknowledged and is kept for 14 days (so that a service restored from
an old backup can be given it again), `spool/refused/NAME.json` was refused for good and is kept for a person to look at.
Names begin with the time of writing, so sorted names are the order of measurement.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pullback_runners.agent.client import SpoolStatement
from pullback_runners.agent.errors import PermanentError
from pullback_runners.agent.synced_files import write_synced

SENT_KEPT_S = 14 * 24 * 3600.0


@dataclass(frozen=True)
class Delivery:
    """One thing the service must get: a report, or the news that an attempt failed."""

    key: str  # made before the first try; the service counts a key once
    path: str
    body: Mapping[str, Any]
    lease_token: str | None
    fallback_path: str | None = None  # where to send it when the service knows no such attempt


class Spool:
    """A folder of deliveries that survives a crash between any two instructions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sent = folder / "sent"
        self._refused = folder / "refused"
        for directory in (self._sent, self._refused):
            directory.mkdir(parents=True, exist_ok=True)

    def put(self, delivery: Delivery) -> Path:
        """Write a delivery so that it is either wholly there or not there at all."""
        path = self.folder / f"{time.time_ns():020d}-{delivery.key}.json"
        write_synced(path, json.dumps(asdict(delivery), separators=(",", ":")).encode())
        return path

    def waiting(self) -> list[Path]:
        """Deliveries not yet acknowledged, oldest first."""
        return sorted(self.folder.glob("*.json"))

    def read(self, path: Path) -> Delivery:
        """Load a delivery; a file we did not write whole is a PermanentError."""
        try:
            return Delivery(**json.loads(path.read_bytes()))
        except (ValueError, TypeError) as error:
            raise PermanentError(f"{path} is not a delivery of this agent: {error}") from error

    def mark_sent(self, path: Path) -> None:
        """Keep an acknowledged delivery for a while."""
        path.replace(self._sent / path.name)

    def mark_refused(self, path: Path, reason: str) -> None:
        """Take a delivery out of the way, with the reason beside it."""
        stored = self._refused / path.name
        path.replace(stored)
        stored.with_suffix(".reason").write_text(reason + "\n", encoding="utf-8")

    def forget_old(self) -> int:
        """Delete sent deliveries past their time; returns how many."""
        horizon_s = time.time() - SENT_KEPT_S
        old = [path for path in self._sent.glob("*.json") if path.stat().st_mtime < horizon_s]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def held(self) -> SpoolStatement:
        """Everything not yet acknowledged, counted; what is acknowledged meanwhile may be left out."""
        sizes = []
        for path in self.waiting():
            with suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return SpoolStatement(waiting=len(sizes), bytes=sum(sizes))
