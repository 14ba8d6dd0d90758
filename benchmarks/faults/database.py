"""Postgres under faults: it is killed and started again, and asked afterwards for what no fault may leave."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from pullback_service.postgres import EmbeddedPostgres

_WRONG: Mapping[str, str] = {
    "half reports": "SELECT id FROM report r WHERE points <> (SELECT count(*) FROM point p WHERE p.report_id = r.id)",
    "doubled points": "SELECT series_id, report_id FROM point GROUP BY 1, 2 HAVING count(*) > 1",
    "open attempts": "SELECT id FROM attempt WHERE ended_at IS NULL",
    "commits of no project": "SELECT id FROM commit c WHERE NOT EXISTS (SELECT 1 FROM project p WHERE p.id = c.project_id)",
}


def kill_and_start(server: EmbeddedPostgres) -> None:
    """End a running Postgres as a power cut would, and start it again."""
    assert server.pid is not None  # noqa: S101 - it runs
    postmaster = psutil.Process(server.pid)
    postmaster.kill()
    postmaster.wait(60)
    server.start()


def wrong_in(rows: Callable[[str], Sequence[tuple[Any, ...]]]) -> list[str]:
    """Sentences on what is half written, doubled or left open, when all work has ended."""
    found = {what: len(rows(query)) for what, query in _WRONG.items()}
    return [f"there are {count} {what}" for what, count in found.items() if count]
