"""The database in the memory of the machine, where a service that has run for a day finds it.

Postgres reads its files through the operating system, which keeps what was read. Machines that are shared take such memory
away again when it is not read for some minutes; then what is measured is the disk of that machine, and little else.
"""

from pathlib import Path

import psycopg

_PIECE = 1 << 20
_FILES = """
SELECT current_setting('data_directory') || '/' || pg_relation_filepath(oid)
  FROM pg_class
 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 't') AND pg_relation_size(oid) > 0
"""


def read_once(url: str) -> int:
    """Read every file of the service's tables and indexes; returns how many bytes these are."""
    size = 0
    with psycopg.connect(url) as connection:
        paths = [Path(path) for (path,) in connection.execute(_FILES)]
    for path in paths:
        for part in path.parent.glob(f"{path.name}*"):  # of one GB each, with the maps of what is visible and free
            if part.name == path.name or part.name[len(path.name)] in "._":
                with part.open("rb", buffering=0) as file:
                    while piece := file.read(_PIECE):
                        size += len(piece)
    return size
