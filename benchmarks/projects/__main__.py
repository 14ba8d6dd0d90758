"""`python -m benchmarks.projects planted|same|memory`."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import benchmarks.projects
from benchmarks.projects.memory import memory
from benchmarks.projects.repositories import LIBRARIES
from benchmarks.projects.sessions import planted, same


def main() -> None:
    """Run one of the three and print its table as it grows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.projects", description=benchmarks.projects.__doc__)
    parser.add_argument("what", choices=("planted", "same", "memory"))
    parser.add_argument("--engine", action="append", choices=sorted(LIBRARIES), help="of planted; default: all three")
    parser.add_argument("--sessions", type=int, default=30, help="of each row; up to a minute each")
    parser.add_argument(
        "--lock", default="numpy\n", help="of same: the text of the lock file that both environments have"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pullback-") as temporary:
        folder = Path(temporary)
        os.environ.setdefault("XDG_CACHE_HOME", str(folder / "cache"))
        rows = {
            "planted": lambda: planted(folder, options.engine or list(LIBRARIES), options.sessions),
            "same": lambda: same(folder, options.lock, options.sessions),
            "memory": lambda: memory(folder),
        }[options.what]()
        for row in rows:
            sys.stdout.write(row + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
