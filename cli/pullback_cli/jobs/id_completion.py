"""Completions on Tab of ids of jobs."""

import os
from collections.abc import Callable
from pathlib import Path

from pullback_cli.server_option import server_of_folder
from pullback_cli.usage_errors import RefusalError

MOST_COMPLETED = 100
COMPLETION_TIMEOUT_S = 2.0  # somebody waits at a prompt


def ids_that(*states: str) -> Callable[[str], list[tuple[str, str]]]:
    """A completion of job ids in some of the states; without an answer of the service there is none."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        from pullback_cli.services import connected_client

        file = os.environ.get("PULLBACK_TOKEN_FILE")
        server = os.environ.get("PULLBACK_SERVER") or server_of_folder()
        try:
            with connected_client(server, Path(file) if file else None, timeout_s=COMPLETION_TIMEOUT_S) as service:
                listed = service.list_jobs(limit=MOST_COMPLETED).items
        except RefusalError:
            return []
        return [
            (str(each.id), f"{each.state} {each.project} {each.commit.sha[:10]} {each.suite}")
            for each in listed
            if str(each.id).startswith(incomplete) and (not states or each.state in states)
        ]

    return complete
